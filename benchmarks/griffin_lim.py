"""How well and how fast Griffin-Lim speaks recordings again from their mels.

python benchmarks/griffin_lim.py FOLDER [--clips 10] [--rounds 3]
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.evaluation.metrics.quality import estoi

SPEC = AudioSpec()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to look for wav and FLAC files")
    parser.add_argument("--clips", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]))
    clips = read_clips(args.folder, args.clips)
    mels = [log_mel(clip, SPEC) for clip in clips]
    spoken = [griffin_lim(mel, SPEC) for mel in mels]
    pairs = list(zip(clips, spoken, strict=True))
    seconds = sum(map(len, clips)) / SPEC.sample_rate
    cost = min(_cpu_seconds(mels) for _ in range(args.rounds)) / seconds
    print(f"{len(clips)} clips, {seconds:.1f} s")
    print(f"ESTOI                        {_mean_estoi(pairs)}")
    print(f"L1 of the log-mel            {_mel_distance(spoken, mels):.3f}")
    print(f"CPU-seconds per second       {cost:.4f}")


def read_clips(folder: Path, count: int) -> list[np.ndarray]:
    """Read recordings from all over a folder, cut to whole frames."""
    paths = sorted(path for kind in ("*.wav", "*.flac") for path in folder.rglob(kind))
    if not paths:
        sys.exit(f"no wav or FLAC file in {folder}")
    chosen = paths[:: max(1, len(paths) // count)][:count]
    clips = [read_audio(path, SPEC.sample_rate) for path in chosen]
    return [clip[: len(clip) // SPEC.hop_length * SPEC.hop_length] for clip in clips]


def _cpu_seconds(mels: list[np.ndarray]) -> float:
    began = time.process_time()
    for mel in mels:
        griffin_lim(mel, SPEC)
    return time.process_time() - began


def _mel_distance(spoken: list[np.ndarray], mels: list[np.ndarray]) -> float:
    pairs = zip(spoken, mels, strict=True)
    return float(np.mean([np.abs(log_mel(samples, SPEC) - mel).mean() for samples, mel in pairs]))


def _mean_estoi(pairs: list[tuple[np.ndarray, np.ndarray]]) -> str:
    try:
        scores = [estoi(clip, heard, SPEC.sample_rate) for clip, heard in pairs]
    except UserError as error:
        return f"not measured: {error}"
    return f"{np.mean(scores):.3f}"


if __name__ == "__main__":
    main()
