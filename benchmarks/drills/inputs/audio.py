"""Recordings from strangers: every format that libsndfile reads, with headers that lie."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.drills.cases import WRONG
from benchmarks.drills.judging import Bad, Bounds, Input
from tests.helpers.hostile_audio import mutations

KIND = "recordings"
COUNT, PER_CASE = 2200, 55
# An hour of silence is a few kilobytes of FLAC: decoding is bounded by size, not by promises.
BOUNDS = Bounds(cpu_seconds=2.0, cpu_per_byte=20e-6, megabytes=300.0, memory_per_byte=100.0)


def set_up(folder: Path, seed: int) -> None:
    """Nothing: recordings are made as they are used."""


def warm_up() -> None:
    """Nothing: features are computed by NumPy."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    for name, data in mutations(seed, count):
        yield Input(Path(name).stem, len(data), _prepare(name, data))


def _prepare(name: str, data: bytes):
    def run(own: Path) -> None:
        from myxtts.audio.io import read_info
        from myxtts.config.config import DataConfig
        from myxtts.data.features.features import FeatureSettings, compute_features

        path = own / name
        path.write_bytes(data)
        read_info(path)
        arrays = compute_features(path, FeatureSettings.from_config(DataConfig()))
        for kind, array in arrays.items():
            if not np.isfinite(array).all():
                raise Bad(WRONG, f"{kind} that is not finite is stored")

    return run
