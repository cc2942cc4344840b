"""Errors and cost of the two ways to find a pitch: on speech, built-in voices and known signals.

    python benchmarks/pitch.py [--speech FOLDER ...] [--clips 100] [--rounds 5]

On speech Praat is the reference (Boersma, 1993: autocorrelation, and cross-correlation), through
the package praat-parselmouth; without it only what is known by construction is compared. A gross
error is a pitch that is off by more than 20 %, among the frames that the reference and both ways
call voiced: who calls more frames voiced has the harder ones. The usual definition, among the
frames that the reference and one way call voiced, is printed beside it. A voicing error is a frame
that only one of a way and the reference calls voiced. Built-in voices need the extra `phonemes`.
"""

import argparse
import importlib.util
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from myxtts.audio.io import read_audio
from myxtts.audio.mel import mel_and_energy, mel_and_energy_tf, num_frames
from myxtts.audio.pitch import mel_energy_and_pitch, mel_energy_and_pitch_tf, pitch
from myxtts.audio.threads import single_threaded_blas
from myxtts.audio.yin import yin, yin_tf
from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.config.audio_spec import AudioSpec
from myxtts.demo_corpus.corpus import choose_voices, record_sentences
from myxtts.demo_corpus.sentences import held_out_sentences

SPEC = AudioSpec()
FMIN, FMAX = 65.0, 600.0
BATCH = 16  # clips of a batch in the graph
METHODS: dict[str, Callable[[np.ndarray, AudioSpec], np.ndarray]] = {"yin": yin, "spectrum": pitch}
PRAAT = {"autocorrelation": "to_pitch_ac", "cross-correlation": "to_pitch_cc"}
# Formants of five vowels: centre and bandwidth in Hz.
VOWELS = (
    ((730, 90), (1090, 110), (2440, 170)),
    ((270, 60), (2290, 200), (3010, 300)),
    ((300, 60), (870, 100), (2240, 170)),
    ((530, 70), (1840, 150), (2480, 200)),
    ((570, 80), (840, 100), (2410, 170)),
)


@dataclass(frozen=True)
class Clip:
    """Samples, and what some references say of their frames: F0, and 0 where unvoiced."""

    samples: np.ndarray
    references: dict[str, np.ndarray]


@dataclass(frozen=True)
class Errors:
    """Shares of frames in percent; `off` is the median deviation of what all call voiced."""

    gross: float
    own_gross: float  # of what this way calls voiced, whatever the other does
    voicing: float
    off: float


def main() -> None:
    arguments = _parse()
    print("command:", " ".join(["python", *sys.argv]))
    packages = ("numpy", "scipy", "tensorflow-cpu", "praat-parselmouth")
    print("machine:", timing.describe_machine(packages))
    with tempfile.TemporaryDirectory() as folder:
        sets = dict(clip_sets(Path(folder), arguments))
    bars = [*_compare(sets), *_measure(_spoken(sets), arguments.rounds)]
    for bar in bars:
        print(bar)
    print(f"\n{sum(bool(bar.is_met) for bar in bars)} of {len(bars)} bars met")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--speech", type=Path, nargs="*", default=[], help="folders of recordings")
    parser.add_argument("--clips", type=int, default=100, help="of each set")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


# What is compared


def clip_sets(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, list[Clip]]]:
    yield "known, clean", known_clips(arguments.clips, noise=0.0)
    yield "known, 10 dB of noise", known_clips(arguments.clips, noise=10**-0.5)
    if importlib.util.find_spec("parselmouth") is None:
        print("praat-parselmouth is not installed: there is no reference for recordings")
        return
    for source in arguments.speech:
        yield source.name, _recorded(_copied(source, folder / source.name, arguments.clips))
    if importlib.util.find_spec("espeakng_loader") is None:
        print("the extra `phonemes` is not installed: there are no built-in voices")
        return
    yield "built-in voices", _recorded(_built_in(folder / "built-in", arguments.clips))


def known_clips(count: int, noise: float) -> list[Clip]:
    """Pulses of a gliding pitch through the formants of a vowel, with pauses of noise alone.

    Frames near the ends of what is voiced are marked NaN: half of their samples are.
    """
    rng = np.random.default_rng(11)
    clips = []
    for base in np.geomspace(80, 400, count):
        time = np.arange(2 * SPEC.sample_rate) / SPEC.sample_rate
        hz = base * 2 ** (0.3 * np.sin(2 * np.pi * (rng.uniform(0.5, 1.5) * time + rng.random())))
        wave = lfilter([1.0], [1.0, -0.97], _pulses(hz))
        for centre, width in VOWELS[int(rng.integers(len(VOWELS)))]:
            radius = np.exp(-np.pi * width / SPEC.sample_rate)
            turn = 2 * np.pi * centre / SPEC.sample_rate
            wave = lfilter([1.0], [1.0, -2 * radius * np.cos(turn), radius**2], wave)
        wave = wave - wave.mean()
        wave /= np.sqrt(np.mean(wave**2))
        is_voiced = (time % 0.8) < 0.5
        samples = 0.05 * (wave * is_voiced + max(noise, 1e-3) * rng.standard_normal(len(time)))
        clips.append(Clip(samples.astype(np.float32), {"truth": _truth(hz, is_voiced)}))
    return clips


def _pulses(hz: np.ndarray) -> np.ndarray:
    """All harmonics up to 5 kHz: pulses at whole samples would have a pitch of their own."""
    phase = 2 * np.pi * np.cumsum(hz) / SPEC.sample_rate
    return np.sum([np.cos(k * phase) * (k * hz < 5000) for k in range(1, 5000 // 64)], axis=0)


def _truth(hz: np.ndarray, is_voiced: np.ndarray) -> np.ndarray:
    """F0 at the centres of frames, 0 where all of a frame is unvoiced, NaN where a part is."""
    centres = np.arange(num_frames(len(hz), SPEC)) * SPEC.hop_length + SPEC.hop_length // 2
    half = SPEC.n_fft // 2
    share = np.array([is_voiced[max(0, at - half) : at + half].mean() for at in centres])
    return np.where(share == 1.0, hz[centres], np.where(share == 0.0, 0.0, np.nan))


def _copied(source: Path, folder: Path, count: int) -> list[Path]:
    """Some recordings of a folder, evenly chosen, as copies."""
    suffixes = (".wav", ".flac", ".ogg", ".mp3")
    found = sorted(path for path in source.rglob("*") if path.suffix in suffixes)
    if not found:
        raise SystemExit(f"there are no recordings below {source}")
    folder.mkdir()
    chosen = found[:: max(1, len(found) // count)][:count]
    return [Path(shutil.copy2(path, folder)) for path in chosen]


def _built_in(folder: Path, count: int) -> list[Path]:
    """Sentences of the built-in corpus by eight of its voices."""
    voices = choose_voices("en", 8)
    sentences = held_out_sentences("en", max(1, count // len(voices)))
    return [path for voice in voices for path in record_sentences(folder, "en", voice, sentences)]


def _recorded(paths: Sequence[Path]) -> list[Clip]:
    return [_with_praat(read_audio(path, SPEC.sample_rate)) for path in paths]


def _with_praat(samples: np.ndarray) -> Clip:
    import parselmouth

    sound = parselmouth.Sound(samples.astype(np.float64), SPEC.sample_rate)
    hop = SPEC.hop_length / SPEC.sample_rate
    times = (np.arange(num_frames(len(samples), SPEC)) + 0.5) * hop
    references = {}
    for name, method in PRAAT.items():
        found = getattr(sound, method)(
            time_step=hop / 2, pitch_floor=FMIN, pitch_ceiling=FMAX, very_accurate=True
        )
        references[f"Praat, {name}"] = np.nan_to_num([found.get_value_at_time(t) for t in times])
    return Clip(samples, references)


# Errors


def errors(found: np.ndarray, reference: np.ndarray, other: np.ndarray) -> Errors:
    """Compare a contour with a reference; frames whose reference is NaN do not count."""
    is_known = ~np.isnan(reference)
    found, reference, other = found[is_known], reference[is_known], other[is_known]
    voiced = (found > 0) & (reference > 0)
    all_deviate = np.abs(found[voiced] / reference[voiced] - 1.0)
    deviation = all_deviate[other[voiced] > 0]
    return Errors(
        100 * float(np.mean(deviation > 0.2)),
        100 * float(np.mean(all_deviate > 0.2)),
        100 * float(np.mean((found > 0) != (reference > 0))),
        100 * float(np.median(deviation)),
    )


def _compare(sets: dict[str, list[Clip]]) -> list[Target]:
    rows, bars = [], []
    for name, clips in sets.items():
        contours = {
            method: np.concatenate([find(clip.samples, SPEC) for clip in clips])
            for method, find in METHODS.items()
        }
        for reference in clips[0].references:
            truth = np.concatenate([clip.references[reference] for clip in clips])
            old, new = contours.values()
            before, now = errors(old, truth, new), errors(new, truth, old)
            pairs = ((before.gross, now.gross), (before.voicing, now.voicing))
            beside = ((before.own_gross, now.own_gross), (before.off, now.off))
            cells = [f"{a:.2f} -> {b:.2f}" for a, b in (pairs[0], beside[0], pairs[1], beside[1])]
            rows.append((f"{name}; {reference}", f"{len(truth):,}", *cells))
            for kind, (a, b) in zip(("gross", "voicing"), pairs, strict=True):
                what = f"{kind} errors of spectrum, {name}; {reference} (yin's)"
                bars.append(Target(what, b, a, unit="%"))
    shown = ("gross errors, %", "gross, own frames, %", "voicing errors, %", "median off, %")
    header = ("clips; reference", "frames", *shown)
    print("\nyin -> spectrum")
    print(timing.table(header, rows))
    return bars


# Cost


def _spoken(sets: dict[str, list[Clip]]) -> list[np.ndarray]:
    """The last set that is no known signal, or the first."""
    return [clip.samples for clip in list(sets.values())[-1 if len(sets) > 2 else 0]]


def _measure(clips: list[np.ndarray], rounds: int) -> list[Target]:
    seconds = sum(map(len, clips)) / SPEC.sample_rate
    variants = {name: lambda work=work: _cpu(work) for name, work in _work(clips).items()}
    with single_threaded_blas():
        timing.interleaved(variants, 1)  # compiles, and fills tables
        results = timing.interleaved(variants, rounds)
    print(f"\nCPU of {seconds:.0f} s of audio, one thread, medians of {rounds} rounds")
    rows = []
    for name, found in results.items():
        spent = statistics.median(found)
        rows.append((name, f"{1e6 * spent / seconds:.0f}", f"{seconds / spent:,.0f}"))
    print(timing.table(("work", "microseconds per second", "x real time"), rows))
    bars = []
    for twin, least in (("NumPy", 3.0), ("graph", 3.0)):
        mel, before, now = (results[f"{what}, {twin}"] for what in ("mel", "and yin", "and pitch"))
        ratios = [(b - a) / max(c - a, 1e-9) for a, b, c in zip(mel, before, now, strict=True)]
        what = f"{twin}: what yin adds to the mel over what spectrum adds, CPU"
        bars.append(Target(what, statistics.median(ratios), least, at_most=False))
    return bars


def _work(clips: list[np.ndarray]) -> dict[str, Callable[[], object]]:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    # Batches without padding, which would be no audio.
    joined = np.concatenate(clips)
    batch = joined[: len(joined) // BATCH * BATCH].reshape(BATCH, -1)
    batches = [tf.constant(part) for part in np.array_split(batch, len(clips) // BATCH + 1, axis=1)]

    def graph(function: Callable) -> Callable[[], object]:
        signature = [tf.TensorSpec([None, None], tf.float32)]
        compiled = tf.function(function, input_signature=signature)
        return lambda: [compiled(batch) for batch in batches]

    def with_yin(batch):
        return mel_and_energy_tf(batch, SPEC), yin_tf(batch, None, SPEC)

    return {
        "mel, NumPy": lambda: [mel_and_energy(clip, SPEC) for clip in clips],
        "and yin, NumPy": lambda: [(mel_and_energy(c, SPEC), yin(c, SPEC)) for c in clips],
        "and pitch, NumPy": lambda: [mel_energy_and_pitch(clip, SPEC) for clip in clips],
        "mel, graph": graph(lambda batch: mel_and_energy_tf(batch, SPEC)),
        "and yin, graph": graph(with_yin),
        "and pitch, graph": graph(lambda batch: mel_energy_and_pitch_tf(batch, None, SPEC)),
    }


def _cpu(work: Callable[[], object]) -> float:
    began = timing.cpu_seconds()
    work()
    return timing.cpu_seconds() - began


if __name__ == "__main__":
    main()
