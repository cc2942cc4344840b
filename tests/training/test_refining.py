"""Training a refiner: it begins late, resumes to the bit, and its voice speaks with and without."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from myxtts.audio.postfilter import BINS, MOST_GAIN, sharpen
from myxtts.checkpoints import load_state, load_voice, saved_states
from myxtts.inference.errors import SynthesisError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.monitoring.history import read_lines
from myxtts.training.loop import TrainingLoop
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import assert_equal_states, final_state, run_config

CORPUS = {"count": 12, "speakers": 2, "seconds": (0.4, 0.8)}
STEPS, START = 10, 0.4
PLAN = {
    "max_steps": STEPS,
    "save_interval": 4,
    "keep_checkpoints": 9,
    "validation_interval": 5,
    "refiner_layers": 1,
    "refiner_start": START,
    "adaptive_loss_weights": True,
}


@pytest.fixture(scope="module")
def run(shared_corpus, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("refined") / "run"
    assert XTTSTrainer(run_config(shared_corpus, folder, **PLAN)).train() == "finished"
    return folder


def flow_losses(folder: Path) -> dict[int, float]:
    lines = [line.values for line in read_lines(folder / "history.jsonl")]
    return {line["step"]: line["flow_loss"] for line in lines if "loss" in line}


def test_the_refiner_begins_after_its_share_of_the_steps(run):
    losses = flow_losses(run)
    assert [step for step, loss in losses.items() if loss == 0] == [1, 2, 3, 4]
    first, last = (load_state(path).arrays for path in saved_states(run / "checkpoints")[::2])
    names = [name for name in first if name.startswith("model/refiner/")]
    moved = [name for name in names if not np.array_equal(first[name], last[name])]
    assert names and "model/refiner/head/kernel" in moved
    assert not first["model/refiner/head/kernel"].any()  # zeros until it learns


def test_it_resumes_to_the_bit(shared_corpus, run, tmp_path, monkeypatch):
    take = TrainingLoop._step

    def step(self, *args):
        take(self, *args)
        if self.done == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    config = run_config(shared_corpus, tmp_path / "run", **PLAN)
    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "_step", step)
        assert XTTSTrainer(config).train() == "SIGTERM"
    assert XTTSTrainer(config).train() == "finished"
    assert_equal_states(final_state(tmp_path / "run"), final_state(run))
    assert flow_losses(tmp_path / "run") == flow_losses(run)


def test_its_voice_speaks_refined_unless_asked_not_to(run):
    synthesizer = Synthesizer(load_voice(run), may_be_endless=True)
    plain, fine, again, other = (
        synthesizer.speak("ab", **how).mel
        for how in ({"refine_steps": 0}, {}, {"refine_steps": 4, "temperature": 0.7}, {"seed": 5})
    )
    np.testing.assert_array_equal(fine, again)
    assert plain.shape == fine.shape == other.shape
    assert not np.allclose(plain, fine) and not np.allclose(fine, other)


def test_its_voice_has_gains_that_only_unrefined_mels_get(run):
    voice = load_voice(run)
    assert voice.gains.shape == (BINS, voice.config.data.n_mels)
    assert 1.0 <= voice.gains.min() < voice.gains.max() <= MOST_GAIN
    synthesizer = Synthesizer(voice, may_be_endless=True)
    mels = {
        (steps, is_on): synthesizer.speak("ab", refine_steps=steps, postfilter=is_on).mel
        for steps in (0, 2)
        for is_on in (True, False)
    }
    np.testing.assert_array_equal(mels[2, True], mels[2, False])
    np.testing.assert_array_equal(mels[0, True], sharpen(mels[0, False], voice.gains))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"refine_steps": 65}, "refine steps must be between 0 and 64, not 65"),
        ({"refine_steps": -1}, "refine steps must be between 0 and 64, not -1"),
        ({"temperature": -0.1}, "the temperature -0.1 is not between 0"),
    ],
)
def test_steps_and_temperatures_that_make_no_sense_are_rejected(run, how, message):
    with pytest.raises(SynthesisError, match=message):
        Synthesizer(load_voice(run)).speak("ab", **how)
