"""Runs on a cache on object storage: the bits of a local run, and resuming on a small disk."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

pytest.importorskip("fsspec", reason="object storage needs the extra object-storage")

from myxtts.config.config import XTTSConfig
from myxtts.data.features import prepare as preparing
from myxtts.training.trainer import XTTSTrainer
from myxtts.workflows.prepare import prepare
from tests.helpers.faulty_storage import fresh_storage, objects
from tests.helpers.runs import assert_equal_states, final_state, run_config

CORPUS = {"count": 15, "speakers": 2, "seconds": (0.3, 0.5)}
COLUMNS = (".mel", ".energy", ".pitch")


@pytest.fixture(autouse=True)
def graphs_afterwards():
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def configure(corpus, tmp_path, monkeypatch) -> Callable[..., XTTSConfig]:
    """Settings of a run and of a mirror of one name; shards have three utterances."""
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: 3)

    def settings(name: str, max_steps: int = 7, **others) -> XTTSConfig:
        where = {
            "cache_dir": "faulty://bucket",
            "local_cache_dir": str(tmp_path / f"{name}-mirror"),
        }
        plan = {"max_steps": max_steps, "save_interval": 100, "enable_eager_debug": True}
        return run_config(corpus, tmp_path / name, **plan | where | others)

    return settings


@pytest.fixture
def stored(configure) -> int:
    """The bytes of the features on object storage."""
    with fresh_storage() as storage:
        prepare(configure("maker"))
        found = objects(storage, "/bucket")
        yield sum(len(data) for name, data in found.items() if name.endswith(COLUMNS))


def train(config: XTTSConfig) -> Path:
    assert XTTSTrainer(config).train() == "finished"
    return Path(config.training.checkpoint_dir)


def test_a_run_has_the_bits_of_one_on_a_local_cache(configure, stored, tmp_path):
    local = train(configure("local", cache_dir=str(tmp_path / "cache")))
    assert_equal_states(final_state(train(configure("remote"))), final_state(local))


def test_a_run_on_a_small_disk_resumes_to_the_same_bits(configure, stored, tmp_path):
    small = {"local_cache_gb": stored / 2 / 1e9, "validation_interval": 3}
    whole = train(configure("whole", **small))
    train(configure("part", 4, **small))
    # As if on another machine: nothing is fetched yet.
    resumed = train(configure("part", **small, local_cache_dir=str(tmp_path / "elsewhere")))
    assert_equal_states(final_state(resumed), final_state(whole))


def test_another_disk_has_another_plan(configure, stored, caplog):
    train(configure("run", 4, local_cache_gb=stored / 2 / 1e9))
    with caplog.at_level(logging.WARNING):
        train(configure("run", local_cache_gb=stored / 1.5 / 1e9))
    assert "plan changed): resuming with the first batch of epoch" in caplog.text
