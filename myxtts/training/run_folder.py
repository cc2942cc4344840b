"""A run's folder: who may train in it, what it resumes from, and what happens to an older run."""

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from myxtts.checkpoints import latest_state, load_state, recover
from myxtts.checkpoints.files import explained
from myxtts.checkpoints.states import SavedState
from myxtts.errors import UserError
from myxtts.training.steps import CompiledStep

logger = logging.getLogger(__name__)


def state_to_resume(folder: Path, resume: bool | Path | str | None) -> SavedState | None:
    """The checkpoint to resume from, if any; an old run is set aside where one starts over.

    `resume` is as `TrainingRun` takes it.
    """
    recover(folder / "checkpoints")
    _finish_setting_aside(folder)
    if isinstance(resume, (str, Path)):
        return load_state(resume)
    if resume is False:
        set_aside(folder)
        return None
    saved = latest_state(folder / "checkpoints")
    if saved is None and resume:
        raise UserError(
            f"there is nothing to resume in {folder}: leave --resume out to start there, "
            "or name the folder of an earlier run with --checkpoint-dir"
        )
    return saved


def set_aside(folder: Path) -> Path | None:
    """Move the run in a folder to a name next to it, and return that, if there was a run."""
    if not (folder / "checkpoints").exists() and not (folder / "history.jsonl").exists():
        return None
    (folder / _SET_ASIDE).mkdir(exist_ok=True)
    return _finish_setting_aside(folder)


def own_state(folder: Path, saved: SavedState | None) -> SavedState | None:
    """A checkpoint, if it is one of the run in this folder: its facts are about this run."""
    if saved is None or saved.path.resolve().parent != (folder / "checkpoints").resolve():
        return None
    return saved


def _finish_setting_aside(folder: Path) -> Path | None:
    """Move all of a run into a folder inside, and that next to it by one rename.

    Where a kill has come in between, the next process finds that folder and carries on.
    """
    inside = folder / _SET_ASIDE
    if not inside.exists():
        return None
    for path in folder.iterdir():
        if path.name not in (_LOCK, _SET_ASIDE):
            path.rename(inside / path.name)
    number = 1
    while (kept := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    inside.rename(kept)
    logger.info("the run that was in %s is kept in %s", folder, kept)
    return kept


_LOCK, _SET_ASIDE = ".lock", ".set-aside"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a run's folder, and keep a second training out of it."""
    with explained(folder / _LOCK):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / _LOCK, "a", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another process trains in {folder}: wait for it, or choose another "
                "--checkpoint-dir"
            ) from None
        yield


def describe_step(step: CompiledStep) -> str:
    """How TensorFlow really ran a step."""
    if step.is_eager:
        return "eagerly"
    compiled = "compiled by XLA for each of them" if step.is_xla else "without XLA"
    return f"as a graph, traced {step.traces} x for {step.shapes} shapes, {compiled}"
