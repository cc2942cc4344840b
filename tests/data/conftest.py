"""Tiny corpora and caches that the tests of data share."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from myxtts.config.config import XTTSConfig
from myxtts.data.store.packed_cache import PackedCache, open_cache
from myxtts.data.store.shard_writer import Column, Row
from myxtts.data.store.store import Store
from tests.helpers.make_corpus import make_corpus

UTTERANCES = 30
TRAINED = 26  # of these; the others are held out


@pytest.fixture(scope="session")
def usual_corpus() -> dict:
    return {"count": UTTERANCES, "speakers": 2, "seconds": (0.5, 1.2)}


@pytest.fixture(scope="session")
def prepared_path(usual_corpus, tmp_path_factory) -> Path:
    """The usual corpus with everything in its cache; nothing may be written to it."""
    from myxtts.data.batches.training_data import TrainingData

    path = make_corpus(tmp_path_factory.mktemp("corpora") / "prepared", **usual_corpus)
    TrainingData(configured(path, preprocessing_mode="precompute"))
    return path


@pytest.fixture
def prepared(prepared_path, tmp_path) -> Path:
    """A copy of it to do anything with."""
    return Path(shutil.copytree(prepared_path, tmp_path / "prepared"))


def configured(path: Path, **settings) -> XTTSConfig:
    """A configuration for a tiny corpus."""
    settings = {"batch_size": 4, "num_workers": 2, "val_fraction": 0.1, **settings}
    return XTTSConfig(data_path=str(path), **settings)


@dataclass
class Made:
    """A cache of known content: the arrays that went into it, utterance by utterance."""

    features: Store
    tokens: Store
    arrays: list[dict[str, np.ndarray]]

    def open(self, **how) -> PackedCache:
        return open_cache(self.features, self.tokens, **how)


@pytest.fixture
def make_cache(tmp_path) -> Callable[..., Made]:
    """Write random features of given lengths in several shards."""

    def make(frames: list[int], dtype: str = "float16", mels: int = 5, shard: int = 4) -> Made:
        rng = np.random.default_rng(len(frames))
        mel = Column("mel", dtype, mels)
        columns = (mel, Column("energy", "float32"), Column("pitch", "float32"))
        features = Store(tmp_path / "made" / "features", columns, {})
        tokens = Store(tmp_path / "made" / "tokens", (Column("tokens", "int32"),), {})
        arrays = [_random_arrays(rng, length, mels, dtype) for length in frames]
        for store in (features, tokens):
            store.create()
            rows = [_row(store, number, values) for number, values in enumerate(arrays)]
            for at in range(0, len(rows), shard):
                part = rows[at : at + shard]
                store.write_shard(part, [(row.id, 0) for row in part])
        # Shards are read in the order of their names: put the arrays into the cache's order.
        order = [int(name) for name in open_cache(features, tokens).ids]
        return Made(features, tokens, [arrays[number] for number in order])

    return make


def _random_arrays(rng, length: int, mels: int, dtype: str) -> dict[str, np.ndarray]:
    return {
        "mel": rng.normal(size=(length, mels)).astype(dtype),
        "energy": rng.normal(size=length).astype(np.float32),
        "pitch": rng.uniform(80, 300, length).astype(np.float32),
        "tokens": rng.integers(1, 90, size=max(1, length // 3)).astype(np.int32),
    }


def _row(store: Store, number: int, values: dict[str, np.ndarray]) -> Row:
    notes = {"text": f"text {number}", "speaker": f"s{number % 3}", "language": "en"}
    arrays = {column.name: values[column.name] for column in store.columns}
    return Row(str(number), 0, 0, arrays, notes)
