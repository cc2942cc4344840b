"""A run that is killed at any file operation and resumed ends as if it had not been."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.drills.recorder import Recording, State, record
from myxtts.checkpoints import (
    abandon_after,
    best_state,
    load_state,
    restore,
    save_state,
    saved_states,
)
from myxtts.checkpoints.files import new_folder
from myxtts.monitoring.timeline import StepTimes
from myxtts.training.hooks import evaluation as evaluation_module
from myxtts.training.hooks.evaluation import Candidates, Evaluated, EvaluationHook, Judged
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.saving import Saved, SavingHook, Scores
from myxtts.training.hooks.validation import ValidationHook
from myxtts.training.loop import StepRecord, notify
from myxtts.training.run_folder import alone_in, own_state, state_to_resume

TOTAL, SAVED_EVERY, SCORED_EVERY, JUDGED_EVERY = 6, 3, 4, 2
# The best is found at a step that is saved for that alone, and again when the run ends.
LOSSES = {2: 5.0, 4: 3.0, 6: 2.0}
# The end is scored and is not the best.
WORSE_AT_THE_END = {**LOSSES, 6: 4.0}


class Weight:
    """A variable without a framework."""

    dtype, shape = np.dtype("float32"), (2,)

    def __init__(self):
        self.value = np.zeros(2, np.float32)

    def assign(self, value):
        self.value = np.array(value, np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.value.copy()


class ToyValidation(ValidationHook):
    """Scores that are known beforehand."""

    def __init__(self, losses, listeners, resumed):
        super().__init__(None, SCORED_EVERY, listeners, resumed)
        self.losses = losses

    def validate(self, step):
        self.scored[step] = {"loss": self.losses[step]}
        for hook in self.listeners:
            notify(hook, lambda one: one.record_validation(step, self.scored[step]))


class ToyEvaluation(EvaluationHook):
    """Scores that always arrive one step late."""

    def collect(self, wait=False):
        super().collect(wait=True)


def write(folder: Path, voice) -> None:
    """A voice is what its weight is."""
    with new_folder(folder) as draft:
        (draft / "voice.json").write_text(json.dumps(voice.number))


def load(folder: Path):
    return SimpleNamespace(number=json.loads((folder / "voice.json").read_text()))


class ToyRun:
    """A run in a folder, wired as the trainers do it, that adds its step to its only weight."""

    def __init__(
        self, folder: Path, losses: dict[int, float], is_judged: bool = False, keep: int = 1
    ):
        self.folder, self.losses, self.is_judged, self.keep = folder, losses, is_judged, keep
        self.weight = Weight()

    def train(self, resume: bool | Path | None = None, total: int = TOTAL) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone_in(self.folder):
            saved = state_to_resume(self.folder, resume)
            if saved:
                restore({"weight": self.weight}, saved.arrays)
                abandon_after(self.folder / "checkpoints", saved.step)
            self._train(own_state(self.folder, saved), saved.step if saved else 0, total)

    def _train(self, resumed, done: int, total: int) -> None:
        history = HistoryHook(self.folder, 1, resumed)
        validation = ToyValidation(self.losses, [history], resumed)
        evaluation = self._evaluation(history, resumed) if self.is_judged else None
        saved = Saved(
            self.folder,
            {"weight": self.weight},
            {"utterances": 4},
            lambda folder: write(folder, self.voice),
            SAVED_EVERY,
            self.keep,
            history=history,
            resumed=resumed,
        )
        metric = "cer" if self.is_judged else "loss"
        saving = SavingHook(saved, Scores(validation, evaluation, metric))
        hooks = [one for one in (history, evaluation, validation, saving) if one]
        for hook in hooks:
            hook.start(done)
        for step in range(done + 1, total + 1):
            self.weight.assign(self.weight.value + step)
            epoch, number = divmod(step - 1, 4)
            told = StepRecord(step, epoch, number, {"loss": 1.0 / step}, np.array([0]), StepTimes())
            for hook in hooks:
                hook.after_step(told)
        for hook in hooks:
            hook.finish(total, "finished")
        for hook in hooks:
            hook.close()

    def _evaluation(self, history, resumed) -> EvaluationHook:
        candidates = Candidates(self.folder / "candidates")
        judged = Judged(self.judge, (), self.snapshot, candidates, write)
        return ToyEvaluation(judged, JUDGED_EVERY, [history], resumed=resumed)

    @property
    def voice(self):
        return SimpleNamespace(number=int(self.weight.value[0]))

    @contextmanager
    def snapshot(self):
        yield self.voice

    def judge(self, voice, utterances) -> Callable[[], Evaluated]:
        # The weight is the sum of all steps so far.
        (step,) = (n for n in range(TOTAL + 1) if n * (n + 1) // 2 == voice.number)
        found = Evaluated({"cer": self.losses[step]}, np.zeros(1), 1, np.zeros((1, 1)))
        return lambda: found


def tree(folder: Path) -> dict[str, bytes]:
    """All files, and empty folders; of a history the lines, without times and checksums.

    Scores of an evaluation come when they come: the order of the lines does not count.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "history.jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            lines = [
                {k: v for k, v in x.items() if not k.endswith("_ms") and k != "check"}
                for x in lines
            ]
            found[name] = "\n".join(sorted(map(json.dumps, lines))).encode()
        elif path.is_file() and path.name != ".lock":
            found[name] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()):
            found[name] = b"an empty folder"
    return found


@pytest.fixture(autouse=True)
def toy_voices(monkeypatch):
    monkeypatch.setattr(evaluation_module, "load_voice", load)


@pytest.fixture
def resumed_differently(tmp_path, monkeypatch, caplog):
    """By the operation before which the fault came: the files that differ in the end."""

    def resume_each(
        recording: Recording,
        states: list[State],
        expected: dict[str, bytes],
        resume: Callable[[Path], None],
    ) -> dict[str, list[str]]:
        differing, folder = {}, tmp_path / "killed"
        monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # which no kill is about
        for label, state in states:
            shutil.rmtree(folder, ignore_errors=True)
            state.write_to(folder, recording.blobs)
            resume(folder)
            found = tree(folder)
            if found != expected:
                names = [name for name in found | expected if found.get(name) != expected.get(name)]
                differing[label] = names
            assert "is not the history of this run" not in caplog.text
        return differing

    return resume_each


@pytest.mark.parametrize("fault", ["kill", "power cut"])
@pytest.mark.parametrize(
    ("losses", "is_judged"), [(LOSSES, False), (WORSE_AT_THE_END, False), (LOSSES, True)]
)
def test_a_run_that_a_fault_ends_at_any_operation_ends_like_one_that_was_not(
    tmp_path, losses, is_judged, fault, resumed_differently
):
    folder = tmp_path / "undisturbed"
    with record(folder, tmp_path / "blobs") as recording:
        ToyRun(folder, losses, is_judged).train()
    expected = tree(folder)
    states = recording.kills() if fault == "kill" else recording.cuts(0, per_moment=1)
    assert len(states) > 80
    assert best_state(folder / "checkpoints").step == (6 if losses[6] == 2.0 else 4)
    assert saved_states(folder / "checkpoints")[-1].name == "step-00000006"

    def resume(killed: Path) -> None:
        ToyRun(killed, losses, is_judged).train()

    assert resumed_differently(recording, states, expected, resume) == {}


def test_a_finished_run_is_left_as_it_is(tmp_path):
    ToyRun(tmp_path, WORSE_AT_THE_END).train()
    before = tree(tmp_path)
    ToyRun(tmp_path, WORSE_AT_THE_END).train()
    assert tree(tmp_path) == before


def test_a_restart_from_an_earlier_checkpoint_killed_at_any_operation_ends_alike(
    tmp_path, resumed_differently
):
    """The best was of a later step: now its mark and its voice are of the one before."""
    folder, chosen = tmp_path / "undisturbed", Path("checkpoints", "step-00000006")
    ToyRun(folder, WORSE_AT_THE_END, keep=3).train(total=6)
    ToyRun(folder, {8: 1.0}, keep=3).train(total=8)
    assert best_state(folder / "checkpoints").step == 8
    with record(folder, tmp_path / "blobs") as recording:
        ToyRun(folder, {7: 5.0}, keep=3).train(resume=folder / chosen, total=7)
    expected = tree(folder)
    assert best_state(folder / "checkpoints").step == 4
    assert load(folder / "voice-best").number == 1 + 2 + 3 + 4
    assert load(folder / "abandoned" / "voice-best").number == sum(range(9))
    assert (folder / "abandoned" / "step-00000008").is_dir()

    def resume(killed: Path) -> None:
        has_passed = (killed / "checkpoints" / "step-00000007").exists()
        start = None if has_passed else killed / chosen
        ToyRun(killed, {7: 5.0}, keep=3).train(resume=start, total=7)

    assert resumed_differently(recording, recording.kills(), expected, resume) == {}


def test_a_checkpoint_that_knows_no_scores_is_resumed_as_before(tmp_path):
    """As the version before wrote them."""
    ToyRun(tmp_path, LOSSES).train()
    (path,) = saved_states(tmp_path / "checkpoints")
    saved = load_state(path)
    del saved.facts["known"]
    save_state(tmp_path / "checkpoints", saved.step, saved.arrays, saved.facts)
    before = tree(tmp_path)
    ToyRun(tmp_path, LOSSES).train()
    assert tree(tmp_path) == before
    ToyRun(tmp_path, {8: 1.0}).train(total=8)
    assert best_state(tmp_path / "checkpoints").step == 8


def test_a_damaged_mark_of_the_best_is_made_again(tmp_path):
    ToyRun(tmp_path, WORSE_AT_THE_END, keep=2).train()
    before = tree(tmp_path)
    (tmp_path / "checkpoints" / "best.json").write_text("{")
    shutil.rmtree(tmp_path / "voice-best")
    ToyRun(tmp_path, WORSE_AT_THE_END, keep=2).train()
    assert tree(tmp_path) == before


def test_starting_over_killed_at_any_operation_keeps_the_old_run_whole(
    tmp_path, resumed_differently
):
    root = tmp_path / "undisturbed"
    ToyRun(root / "run", LOSSES).train()
    old = tree(root / "run")
    with record(root, tmp_path / "blobs") as recording:
        ToyRun(root / "run", WORSE_AT_THE_END).train(resume=False)
    expected = tree(root)
    assert {name: x for name, x in expected.items() if name.startswith("run.1/")} == {
        f"run.1/{name}": content for name, content in old.items()
    }

    def resume(killed: Path) -> None:
        has_begun = (killed / "run" / ".set-aside").exists() or (killed / "run.1").exists()
        ToyRun(killed / "run", WORSE_AT_THE_END).train(resume=None if has_begun else False)

    assert resumed_differently(recording, recording.kills(), expected, resume) == {}
