"""Evaluation while training: it speaks at once, is scored later, and the best voice is kept."""

import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import best_state, load_voice, saved_states
from myxtts.errors import UserError
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks.evaluation import Candidates, Evaluated, EvaluationHook, Judged
from myxtts.training.hooks.saving import Saved, SavingHook, Scores
from myxtts.training.loop import Hook, StepRecord
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import run_config

CORPUS = {"count": 10, "speakers": 2, "seconds": (0.3, 0.5)}
PATH = np.eye(3, dtype=np.float32)
SAMPLES = np.zeros(8, np.float32)


def evaluated(**scores: float) -> Evaluated:
    return Evaluated(scores, SAMPLES, 8000, PATH)


class Remember(Hook):
    """A listener, and a board, that keeps what it is told."""

    def __init__(self):
        self.heard, self.shown = {}, []

    def record_validation(self, step, metrics):
        self.heard[step] = metrics

    def audio(self, step, name, *_):
        self.shown.append((step, name))

    images = audio


class Run:
    """A model of one number, an evaluation of it every second step, and what saves it."""

    def __init__(self, folder: Path, scores: dict[int, object], metric: str = "wer", keep: int = 1):
        self.folder, self.scores = folder, scores
        self.variable = keras.Variable(np.zeros(1, np.float32))
        self.gates: dict[int, threading.Event] = {}
        self.listener = Remember()
        self.spoken: list[int] = []
        candidates = Candidates(folder / "candidates")
        evaluate = lambda voice, utterances: self.evaluate(voice, utterances)  # noqa: E731
        evaluate.higher_is_better = {"mos"}
        judged = Judged(evaluate, (), self.snapshot, candidates, write)
        self.evaluation = EvaluationHook(judged, 2, [self.listener], self.listener)
        saved = Saved(
            folder,
            {"weight": self.variable},
            {},
            lambda target: write(target, SimpleNamespace(number=int(self.variable.numpy()[0]))),
            100,
            keep,
        )
        self.saving = SavingHook(saved, Scores(evaluation=self.evaluation, metric=metric))

    @contextmanager
    def snapshot(self):
        yield SimpleNamespace(number=int(self.variable.numpy()[0]))

    def evaluate(self, voice, utterances):
        """Speak what the voice is; its score waits for the gate of its step, if there is one."""
        number = voice.number
        self.spoken.append(number)
        if isinstance(self.scores[number], Exception):
            raise self.scores[number]

        def score() -> Evaluated:
            if number in self.gates:
                assert self.gates[number].wait(30)
            if self.scores[number] is None:
                raise ValueError("the judge has left")
            return evaluated(**self.scores[number])

        return score

    def start(self, step: int = 0) -> None:
        for hook in (self.evaluation, self.saving):
            hook.start(step)

    def step(self, number: int) -> None:
        self.variable.assign([number])
        record = StepRecord(number, 0, number - 1, {}, np.array([0]), StepTimes())
        for hook in (self.evaluation, self.saving):
            hook.after_step(record)

    def finish(self, step: int, reason: str = "finished") -> None:
        for hook in (self.evaluation, self.saving):
            hook.finish(step, reason)

    @property
    def best(self) -> str:
        return (self.folder / "voice-best" / "voice.json").read_text()


def write(folder: Path, voice) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "voice.json").write_text(str(voice.number))


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    def load(folder: Path):
        return SimpleNamespace(number=int((folder / "voice.json").read_text()))

    monkeypatch.setattr("myxtts.training.hooks.evaluation.load_voice", load)

    def make(scores, **settings) -> Run:
        return Run(tmp_path, scores, **settings)

    return make


def scores(**wer: float) -> dict[int, dict[str, float]]:
    return {int(name[1:]): {"wer": value, "mos": value} for name, value in wer.items()}


def test_the_score_comes_late_and_belongs_to_the_step_that_spoke(make_run):
    run = make_run(scores(s2=0.5, s4=0.7, s5=0.9))
    run.gates[2] = threading.Event()
    run.start()
    for number in (1, 2, 3):
        run.step(number)
    assert run.spoken == [2] and run.listener.heard == {}  # training went on meanwhile
    run.gates[2].set()
    for number in (4, 5):
        run.step(number)
    run.finish(5)
    assert run.spoken == [2, 4, 5]  # the last weights as well
    assert {step: found["wer"] for step, found in run.listener.heard.items()} == {
        2: 0.5, 4: 0.7, 5: 0.9,
    }  # fmt: skip
    assert (2, "evaluation/audio") in run.listener.shown
    assert (5, "evaluation/alignment") in run.listener.shown


def test_what_is_kept_are_the_weights_of_the_best_step_not_those_of_when_it_was_known(make_run):
    run = make_run(scores(s2=0.5, s4=0.2, s6=0.4))
    run.gates[4] = threading.Event()
    run.start()
    for number in range(1, 7):
        run.step(number)
    run.gates[4].set()
    run.finish(6)
    best = best_state(run.saving.states)
    assert (best.step, best.metric, best.value) == (4, "wer", 0.2)
    assert run.best == "4"
    # Its checkpoint was kept next to the last one, and no candidate is left.
    assert [path.name for path in saved_states(run.saving.states)] == [
        "step-00000004", "step-00000006",
    ]  # fmt: skip
    assert not (run.folder / "candidates").exists()


@pytest.mark.parametrize("metric, best", [("wer", "4"), ("mos", "2")])
def test_less_is_better_but_for_ratings(make_run, metric, best):
    run = make_run(scores(s2=0.5, s4=0.2), metric=metric)
    run.start()
    for number in range(1, 5):
        run.step(number)
    run.finish(4)
    assert run.best == best


def test_a_judge_that_fails_is_logged_and_training_goes_on(make_run, caplog):
    run = make_run({2: RuntimeError("no voice"), 4: None, **scores(s6=0.3)})
    run.start()
    for number in range(1, 7):
        run.step(number)
    run.finish(6)
    assert "evaluation after step 2 failed: no voice" in caplog.text
    assert "evaluation after step 4 failed: the judge has left" in caplog.text
    assert run.best == "6" and list(run.listener.heard) == [6]


def test_a_voice_that_finds_no_room_is_judged_but_not_kept(make_run, caplog):
    run = make_run(scores(s2=0.5, s4=0.7))

    def full(folder, voice):
        if voice.number == 2:
            raise OSError(28, "No space left on device")
        write(folder, voice)

    run.evaluation.judged = replace(run.evaluation.judged, export=full)
    run.start()
    for number in (1, 2, 3, 4):
        run.step(number)
    run.finish(4)
    assert "the voice of step 2 cannot wait for its score" in caplog.text
    assert set(run.listener.heard) == {2, 4} and run.best == "4"


def test_a_score_without_the_metric_keeps_nothing(make_run):
    run = make_run({2: {"mcd": 3.0, "wer": float("nan")}})
    run.start()
    run.step(1)
    run.step(2)
    run.finish(2)
    assert best_state(run.saving.states) is None and not (run.folder / "voice-best").exists()
    assert run.listener.heard == {2: {"mcd": 3.0}}


def test_what_a_stopped_run_could_not_score_is_scored_when_it_goes_on(make_run):
    stopped = make_run(scores(s2=0.1))
    stopped.gates[2] = threading.Event()
    stopped.start()
    for number in (1, 2, 3):
        stopped.step(number)
    stopped.finish(3, "SIGTERM")
    stopped.gates[2].set()
    assert best_state(stopped.saving.states) is None
    run = make_run(scores(s2=0.1, s4=0.2))
    run.start(3)
    assert run.spoken == [2]
    run.step(4)
    run.finish(4)
    assert run.best == "2" and best_state(run.saving.states).step == 2
    assert {step: found["wer"] for step, found in run.listener.heard.items()} == {2: 0.1, 4: 0.2}


def test_a_run_that_was_killed_while_it_kept_the_best_keeps_it_now(make_run):
    run = make_run(scores(s2=0.1))
    run.start()
    run.step(1)
    run.step(2)
    run.evaluation.collect(wait=True)
    run.evaluation.candidates.promote = lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run.saving._promote()
    assert best_state(run.saving.states).step == 2 and not (run.folder / "voice-best").exists()
    again = make_run(scores(s2=0.1))
    again.start(2)
    again.finish(2)
    assert again.best == "2"


def test_what_is_trained_again_is_judged_again(make_run):
    run = make_run(scores(s2=0.5, s4=0.1))
    run.start()
    for number in (1, 2, 3, 4):
        run.step(number)
    run.evaluation.collect(wait=True)  # a kill comes before anything is kept
    again = make_run(scores(s2=0.5, s4=0.3))
    again.start(3)
    assert again.evaluation.candidates.steps == []
    again.step(4)
    again.finish(4)
    assert best_state(again.saving.states).value == 0.3


def test_a_best_by_another_metric_does_not_count(make_run):
    first = make_run(scores(s2=0.1))
    first.start()
    first.step(1)
    first.step(2)
    first.finish(2)
    second = make_run(scores(s4=3.0), metric="mos")
    second.start(2)
    second.step(3)
    second.step(4)
    second.finish(4)
    best = best_state(second.saving.states)
    assert (best.step, best.metric) == (4, "mos") and second.best == "4"


# The trainer's part: eager, on a corpus of seconds.


@pytest.fixture
def make_trainer(shared_corpus, tmp_path):
    def make(evaluator=None, **settings) -> XTTSTrainer:
        plan = {"epochs": 2, "enable_eager_debug": True, "save_interval": 100}
        plan |= {"enable_evaluation": True, "evaluation_interval": 1, "validation_interval": 100}
        config = run_config(shared_corpus, tmp_path / "run", **{**plan, **settings})
        return XTTSTrainer(config, evaluator=evaluator)

    yield make
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("metric", ["cer", "loss"])
def test_a_run_is_judged_each_epoch_and_keeps_the_best_voice(make_trainer, caplog, metric):
    caplog.set_level(logging.INFO, logger="myxtts")
    asked = []

    def evaluator(voice, utterances):
        bias = voice.model.trainable_variables[0].numpy()
        asked.append((bias, voice.speakers, [one.id for one in utterances]))
        number = len(asked)  # the first is the best
        return lambda: evaluated(cer=0.1 * number)

    trainer = make_trainer(evaluator, evaluation_metric=metric)
    assert trainer.train() == "finished"
    steps = len(trainer.data.train_batches())
    assert len(asked) == 2 and asked[0][1] == ("speaker0", "speaker1")
    assert asked[0][2] == asked[1][2] == [one.id for one in trainer.data.val.utterances]
    lines = [json.loads(x) for x in (trainer.folder / "history.jsonl").read_text().splitlines()]
    found = {line["step"]: line["val/cer"] for line in lines if "val/cer" in line}
    assert found == pytest.approx({steps: 0.1, 2 * steps: 0.2})
    assert f"evaluation after step {steps}: cer=0.1" in caplog.text
    best = best_state(trainer.folder / "checkpoints")
    assert best.metric == metric
    if metric == "cer":
        assert best.step == steps
        # What was kept is what was heard: the EMA weights of that step.
        kept = load_voice(trainer.folder / "voice-best").model.trainable_variables[0]
        np.testing.assert_array_equal(kept.numpy(), asked[0][0])
        assert not np.array_equal(asked[0][0], asked[1][0])


def test_without_a_judge_or_held_out_sentences_it_does_not_begin(make_trainer):
    with pytest.raises(UserError, match="given nothing that judges"):
        make_trainer().train()
    with pytest.raises(UserError, match="raise --val-fraction"):
        make_trainer(lambda voice, utterances: None, val_fraction=0.0).train()
