"""What vocoders cost, and what they keep of recordings that they copy from their mels.

python benchmarks/vocoders.py FOLDER [--istft RUN] [--weights FOLDER] [--torch PYTHON] [--what ...]

FOLDER is a corpus. RUN is a vocoder that `myxtts train-vocoder --vocoder istft` has trained on it;
what it was trained on is left out of what is judged. The weights are those that `myxtts weights get
hifigan_universal` and `dnsmos` fetch. PYTHON is an interpreter that has torch, for the original of
HiFi-GAN; librosa's Griffin-Lim is timed where librosa is installed.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from myxtts.weights import default_folder

CORE = min(os.sched_getaffinity(0))
TIMED_SECONDS, ROUNDS = 20.0, 3
ESTOI_CLIPS, RATED_CLIPS = 40, 20
MOST_PROJECTIONS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--istft", type=Path)
    parser.add_argument("--weights", type=Path, default=default_folder())
    parser.add_argument("--torch", type=Path, help="an interpreter that has torch")
    parser.add_argument("--clips", type=int, default=150)
    parser.add_argument("--what", choices=("speed", "quality", "both"), default="both")
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]))
    if args.what != "quality":
        # A process of its own: threads are counted and pinned before TensorFlow starts them.
        speed(args)
    if args.what != "speed":
        quality(args)


def speed(args: argparse.Namespace) -> None:
    """Time each vocoder on the same mels, on one core."""
    if os.environ.get("MYXTTS_PINNED") != "1":
        environment = os.environ | {"MYXTTS_PINNED": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
        words = [sys.executable, __file__, *sys.argv[1:], "--what", "speed"]
        subprocess.run(["taskset", "-c", str(CORE), *words], env=environment, check=True)
        return
    clips, _, spec = read_clips(args)
    chosen, seconds = [], 0.0
    for clip in clips:
        if seconds < TIMED_SECONDS:
            chosen.append(clip)
            seconds += len(clip) / spec.sample_rate
    from myxtts.audio.mel import log_mel

    mels = [log_mel(clip, spec) for clip in chosen]
    vocoders = find_vocoders(args, spec, with_fast=True)
    found = {name: [] for name in vocoders}
    for vocode in vocoders.values():  # what compiles does so now
        vocode(mels[0])
    for _ in range(ROUNDS):  # by turns, so that a slow moment hits them all
        for name, vocode in vocoders.items():
            began = time.process_time()
            for mel in mels:
                vocode(mel)
            found[name].append((time.process_time() - began) / seconds)
    costs = {name: min(values) for name, values in found.items()}
    if args.torch:
        costs["HiFi-GAN V1, torch"] = torch_cost(args, mels, seconds)
    print(f"\nCPU-seconds per second of speech, core {CORE}, least of {ROUNDS} rounds:")
    for name, cost in costs.items():
        print(f"  {name:<34} {cost:8.4f}   {1 / cost:7.1f} x real time")
    ours, hifigan = costs["Griffin-Lim (32)"], costs.get("HiFi-GAN V1")
    compare = [
        ("istft, faster than Griffin-Lim (32)", ours, costs.get("istft"), 12.0),
        ("istft without projections, the same", ours, costs.get("istft, 0 projections"), 12.0),
        (
            "istft, faster than librosa's",
            costs.get("Griffin-Lim (32), librosa"),
            costs.get("istft"),
            12.0,
        ),
        ("istft, faster than HiFi-GAN V1", hifigan, costs.get("istft"), 10.0),
        ("torch's cost over ours, HiFi-GAN V1", costs.get("HiFi-GAN V1, torch"), hifigan, 1 / 1.2),
    ]
    for what, slow, fast, least in compare:
        if slow and fast:
            tell(what, slow / fast, least, at_least=True)


def quality(args: argparse.Namespace) -> None:
    """Judge copies of recordings: log-mel, ESTOI, DNSMOS and what a recogniser understands."""
    import numpy as np

    from myxtts.audio.mel import log_mel
    from myxtts.evaluation.asr import asr_for
    from myxtts.evaluation.metrics.intelligibility import error_rates
    from myxtts.evaluation.metrics.quality import Dnsmos, estoi

    clips, texts, spec = read_clips(args)
    words = sum(len(text.split()) for text in texts)
    seconds = sum(map(len, clips)) / spec.sample_rate
    print(f"\n{len(clips)} recordings, {seconds:.0f} s, {words} words")
    mels = [log_mel(clip, spec) for clip in clips]
    recogniser = asr_for("en")
    dnsmos = args.weights / "dnsmos.onnx"
    judge = Dnsmos.open(dnsmos) if dnsmos.is_file() else None

    def hear(speech) -> float:
        heard = recogniser.transcribe_many([(one, spec.sample_rate) for one in speech])
        return error_rates(texts, heard, "en").wer

    def rate(speech) -> float:
        some = [(one, spec.sample_rate) for one in speech[:RATED_CLIPS]]
        return float(np.mean([one.overall for one in judge.score_many(some)])) if judge else np.nan

    rows = {"recordings": (0.0, 1.0, hear(clips), rate(clips))}
    for name, vocode in find_vocoders(args, spec).items():
        copies = [vocode(mel) for mel in mels]
        distance = np.mean(
            [np.abs(log_mel(c, spec) - m).mean() for c, m in zip(copies, mels, strict=True)]
        )
        pairs = list(zip(clips, copies, strict=True))[:ESTOI_CLIPS]
        kept = np.nanmean([estoi(clip, copy, spec.sample_rate) for clip, copy in pairs])
        rows[name] = (distance, kept, hear(copies), rate(copies))
    print(f"{'':<20} log-mel L1   ESTOI     WER  DNSMOS")
    for name, (distance, kept, wer, mos) in rows.items():
        print(f"{name:<20} {distance:10.3f} {kept:7.3f} {wer:7.4f} {mos:7.2f}")
    recorded, griffin = rows["recordings"], rows["Griffin-Lim (32)"]
    if "HiFi-GAN V1" in rows:
        distance, _, wer, _ = rows["HiFi-GAN V1"]
        tell("HiFi-GAN V1, log-mel L1", distance, 0.28)
        tell("HiFi-GAN V1, WER above the recordings'", wer - recorded[2], 0.02)
    if "istft" in rows:
        print("ESTOI of istft by projections:", end="")
        for count in range(MOST_PROJECTIONS + 1):
            vocode = projecting(args, spec, count)
            pairs = zip(clips[:ESTOI_CLIPS], mels, strict=False)
            found = [estoi(clip, vocode(mel), spec.sample_rate) for clip, mel in pairs]
            print(f"  {count}: {np.nanmean(found):.3f}", end="", flush=True)
        print()
        _, kept, wer, _ = rows["istft"]
        tell("istft, ESTOI above Griffin-Lim's", kept - griffin[1], 0.0, at_least=True)
        tell("istft, WER above Griffin-Lim's", wer - griffin[2], 0.02)


def read_clips(args: argparse.Namespace):
    """Recordings of the corpus, those that an istft run did not see first, cut to whole frames."""
    from myxtts.audio.io import read_audio
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.config.io import load_config
    from myxtts.data.corpus.corpus import read_corpus

    spec = AudioSpec()
    fraction = load_config(args.istft / "config.yaml").data.val_fraction if args.istft else 0.0
    corpus = read_corpus(args.folder, val_fraction=fraction)
    chosen = (corpus.val if args.istft else corpus.train)[: args.clips]
    clips = [read_audio(one.audio, spec.sample_rate) for one in chosen]
    hop = spec.hop_length
    return [clip[: len(clip) // hop * hop] for clip in clips], [one.text for one in chosen], spec


def find_vocoders(args: argparse.Namespace, spec, with_fast: bool = False) -> dict[str, Callable]:
    """What there is: (log-mel) -> samples by name."""
    from myxtts.audio.griffin_lim import griffin_lim
    from myxtts.checkpoints.vocoders import load_vocoder
    from myxtts.inference.vocoders import Vocoder

    found = {"Griffin-Lim (32)": lambda mel: griffin_lim(mel, spec)}
    if with_fast and (theirs := librosa_griffin_lim(spec)):
        found["Griffin-Lim (32), librosa"] = theirs
    if args.istft:
        trained = Vocoder(load_vocoder(args.istft).model)
        found["istft"] = lambda mel: trained(mel, spec, 0)
        if with_fast:
            found["istft, 0 projections"] = projecting(args, spec, 0)
            found["istft, its trunk alone"] = trunk_alone(args, spec)
    public = args.weights / "hifigan_universal.pth"
    if public.is_file():
        universal = Vocoder(load_vocoder(public).model)
        found["HiFi-GAN V1"] = lambda mel: universal(mel, spec, 0)
    return found


def projecting(args: argparse.Namespace, spec, count: int) -> Callable:
    """The istft vocoder with so many projections."""
    from myxtts.checkpoints.vocoders import load_vocoder
    from myxtts.inference.vocoders import Vocoder

    trained = load_vocoder(args.istft)
    trained.model.projections = count
    vocoder = Vocoder(trained.model)
    return lambda mel: vocoder(mel, spec, 0)


def trunk_alone(args: argparse.Namespace, spec) -> Callable:
    """What hears pitch and timbre in a mel: the part of istft that no other trick makes cheaper."""
    import tensorflow as tf

    from myxtts.checkpoints.vocoders import load_vocoder

    model = load_vocoder(args.istft).model
    signature = [tf.TensorSpec([1, None, spec.n_mels], tf.float32)]
    trunk = tf.function(model.trunk_outputs, input_signature=signature)
    return lambda mel: trunk(mel[None])


def librosa_griffin_lim(spec):
    """The Griffin-Lim of librosa from the same magnitudes, or nothing without librosa."""
    try:
        import librosa
    except ModuleNotFoundError:
        return None
    import numpy as np

    from myxtts.audio.griffin_lim import linear_magnitude

    def vocode(mel):
        magnitude = linear_magnitude(mel, spec).T
        missing = spec.n_fft // 2 + 1 - len(magnitude)
        magnitude = np.pad(magnitude, ((0, missing), (0, 0)))
        return librosa.griffinlim(
            magnitude, n_iter=32, hop_length=spec.hop_length, n_fft=spec.n_fft
        )

    return vocode


def torch_cost(args: argparse.Namespace, mels, seconds: float) -> float:
    """CPU-seconds per second of the original definition in torch, on the same core and mels."""
    import numpy as np

    program = Path(__file__).with_name("hifigan_in_torch.py")
    frames = np.concatenate(mels).astype(np.float32)
    lengths = np.array([len(mel) for mel in mels])
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"myxtts-mels-{os.getpid()}.npz"
    np.savez(path, mels=frames, lengths=lengths)
    try:
        words = [
            str(args.torch),
            str(program),
            str(path),
            str(args.weights / "hifigan_universal.pth"),
        ]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    finally:
        path.unlink(missing_ok=True)
    return float(said.split()[-1]) / seconds


def tell(what: str, value: float, bar: float, at_least: bool = False) -> None:
    is_met = value >= bar if at_least else value <= bar
    sign, verdict = ">=" if at_least else "<=", "met" if is_met else "NOT met"
    print(f"{what}: {value:.3f} (bar {sign} {bar:.3g}): {verdict}")


if __name__ == "__main__":
    main()
