"""Whether the speaker encoders tell three speakers apart as the originals do, and their cost.

python benchmarks/speaker_encoders.py [FOLDER] [--weights checkpoints] [--rounds 5]
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import alone
import numpy as np

from myxtts.audio.io import read_audio
from myxtts.models.speaker_encoders.registry import SpeakerEncoder, build_speaker_encoder
from myxtts.weights import PUBLIC, default_folder, read_checkpoint

EXCERPTS = Path(__file__).parents[2] / "shared" / "data" / "excerpts80"
SPEAKERS, CLIPS = ("LJ", "WS", "HS"), range(1, 21)
# Mean cosines of the original implementations on these clips: same and different speakers.
ORIGINAL = {"resemblyzer": (0.909, 0.574), "ecapa_tdnn": (0.801, 0.105)}
TOLERANCE = 0.01
REFERENCE_SECONDS, MOST_CPU_SECONDS = 10, 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", default=EXCERPTS, help="80_Excerpts in LJSpeech's layout"
    )
    parser.add_argument("--weights", type=Path, default=default_folder())
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]), f"(on core {alone.CORE} alone)")
    encoders = {kind: _with_public_weights(kind, args.weights) for kind in ORIGINAL}
    if (args.folder / "wavs").is_dir():
        for encoder in filter(None, encoders.values()):
            report_discrimination(encoder, args.folder / "wavs")
    else:
        print(f"discrimination was not measured: no {args.folder / 'wavs'}")
    for kind in (*ORIGINAL, "coqui"):
        report_cost(encoders.get(kind) or build_speaker_encoder(kind), args.rounds)
    print("coqui was timed with random weights: its public ones could not be had")


def report_discrimination(encoder: SpeakerEncoder, wavs: Path) -> None:
    """Print the mean cosines within and between speakers next to those of the original."""
    embeddings = {speaker: _embed_clips(encoder, wavs, speaker) for speaker in SPEAKERS}
    everyone = np.concatenate(list(embeddings.values()))
    cosines = everyone @ everyone.T
    speaker = np.repeat(np.arange(len(SPEAKERS)), len(CLIPS))
    is_pair = np.triu(np.ones_like(cosines, bool), 1)
    is_same = speaker[:, None] == speaker
    same, different = cosines[is_pair & is_same], cosines[is_pair & ~is_same]
    originals = ORIGINAL[encoder.kind]
    rows = zip(("same", "different"), (same, different), originals, strict=True)
    for what, found, original in rows:
        met = "met" if abs(found.mean() - original) <= TOLERANCE else "NOT met"
        print(
            f"{encoder.kind:12} {what:9} speaker: mean {found.mean():.4f} "
            f"({found.min():.3f} .. {found.max():.3f}, {len(found)} pairs), "
            f"original {original:.3f}: {met} (within {TOLERANCE})"
        )


def report_cost(encoder: SpeakerEncoder, rounds: int) -> None:
    """Print the CPU time of one reference, the least of some rounds: whatever else runs adds."""
    samples = _speech_like(REFERENCE_SECONDS, encoder.sample_rate)
    for _ in range(2):  # start-up: tracing, and the memory of the largest tensors
        encoder.embed(samples, encoder.sample_rate)
    costs = sorted(_cpu_seconds(encoder, samples) for _ in range(rounds))
    met = "met" if costs[0] < MOST_CPU_SECONDS else "NOT met"
    print(
        f"{encoder.kind:12} {REFERENCE_SECONDS} s of speech: {costs[0]:.3f} CPU-seconds "
        f"(at most {costs[-1]:.3f} of {rounds}): {met} (below {MOST_CPU_SECONDS})"
    )


def _with_public_weights(kind: str, folder: Path) -> SpeakerEncoder | None:
    path = folder / PUBLIC[kind].filename
    if not path.exists():
        print(f"{kind}: no {path}, so random weights: run myxtts weights get {kind}")
        return None
    encoder = build_speaker_encoder(kind)
    encoder.load(read_checkpoint(path), path)
    return encoder


def _embed_clips(encoder: SpeakerEncoder, wavs: Path, speaker: str) -> np.ndarray:
    """Return unit embeddings [clips, dim] of a speaker's first clips."""
    paths = [wavs / f"{speaker}-{number:02}.flac" for number in CLIPS]
    rate = encoder.sample_rate
    embeddings = np.stack([encoder.embed(read_audio(path, rate), rate) for path in paths])
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


def _cpu_seconds(encoder: SpeakerEncoder, samples: np.ndarray) -> float:
    began = time.process_time()
    encoder.embed(samples, encoder.sample_rate)
    return time.process_time() - began


def _speech_like(seconds: float, sample_rate: int) -> np.ndarray:
    """Harmonics of 120 Hz under a formant, in syllables: a voice detector lets them pass."""
    moments = np.arange(int(seconds * sample_rate)) / sample_rate
    tones = (
        np.exp(-(((120 * k - 600) / 400) ** 2)) * np.sin(2 * np.pi * 120 * k * moments)
        for k in range(1, 30)
    )
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * moments)
    return (0.1 * sum(tones) * syllables).astype(np.float32)


if __name__ == "__main__":
    main()
