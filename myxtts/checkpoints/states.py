"""Training states: one folder per saved step, checked before it is used.

A state is a folder `step-00000120` with state.safetensors and state.json; `best.json` next to them
names the best one.
"""

import json
import logging
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from myxtts import atomic
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
    describe,
    explained,
    new_folder,
    read_json,
    read_tensors,
    remove_folder,
    sealed,
    unsealed,
    write_json,
    write_json_atomically,
    write_tensors,
)

logger = logging.getLogger(__name__)

ABANDONED = "abandoned"
FORMAT_VERSION = 1
_ARRAYS, _RECORD, _BEST = "state.safetensors", "state.json", "best.json"
_STATE = re.compile(r"step-(\d{8,})")
_SET_ASIDE = re.compile(r"\.(step-\d{8,})\.old")
_OWN_NAMES = rf"{_STATE.pattern}|{re.escape(_BEST)}"


@dataclass(frozen=True, eq=False)
class SavedState:
    """What was saved at a step: arrays by name, and facts as JSON gives them back."""

    step: int
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]
    path: Path


@dataclass(frozen=True)
class Best:
    """The step that did best, by which metric, and where it is."""

    step: int
    metric: str
    value: float
    path: Path


def save_state(
    folder: str | Path, step: int, values: Mapping[str, Any], facts: Mapping[str, Any]
) -> Path:
    """Save arrays or variables, and facts that JSON can hold, as the state of a step."""
    folder = Path(folder)
    recover(folder)
    target = folder / _name(step)
    with new_folder(target) as draft:
        write_tensors(draft / _ARRAYS, values)
        record = {
            "format": FORMAT_VERSION,
            "step": step,
            **describe(draft / _ARRAYS),
            "facts": json.loads(json.dumps(facts)),
        }
        write_json(draft / _RECORD, sealed(record))
    return target


def saved_states(folder: str | Path) -> list[Path]:
    """The states of a folder, the earliest step first."""
    entries = _entries(folder)
    found = {path.name: path for path in entries if _STATE.fullmatch(path.name)}
    for path in entries:
        if match := _SET_ASIDE.fullmatch(path.name):
            found.setdefault(match[1], path)
    return [path for _, path in sorted(found.items(), key=lambda item: _step(item[0]))]


def latest_state(folder: str | Path) -> SavedState | None:
    """Load the last state that is whole, with a warning for each that is not; None if none is."""
    paths = saved_states(folder)
    for path in reversed(paths):
        try:
            return load_state(path)
        except DamagedError as error:
            logger.warning("%s: this checkpoint is skipped, and the one before it is tried", error)
    if paths:
        raise CheckpointError(
            f"none of the {len(paths)} checkpoints in {folder} is whole: bring back a copy of one, "
            "or start over with --reset-training"
        )
    return None


def load_state(path: str | Path) -> SavedState:
    """Load a state after checking every byte of it."""
    path = Path(path)
    record = _read_record(path)
    arrays = read_tensors(path / _ARRAYS, record)
    return SavedState(record["step"], arrays, record["facts"], path)


def read_facts(path: str | Path) -> dict[str, Any]:
    """The facts of a state, without its arrays."""
    return _read_record(Path(path))["facts"]


def _read_record(path: Path) -> dict[str, Any]:
    record = read_json(path / _RECORD)
    version = record.get("format")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format {version}, and this version of myxtts reads up to "
            f"{FORMAT_VERSION}: use the myxtts that wrote it, or a later one"
        )
    return unsealed(path / _RECORD, record, required=True)


def mark_best(folder: str | Path, step: int, metric: str, value: float) -> None:
    """Name the state of a step as the best: `prune` keeps it."""
    folder = Path(folder)
    state = state_path(folder, step)
    if not state.exists():
        raise CheckpointError(f"{folder} has no checkpoint of step {step} to call the best")
    record = {"step": int(step), "metric": metric, "value": float(value)}
    write_json_atomically(folder / _BEST, sealed(record | {"sha256": _arrays_of(state)}))


def unmark_best(folder: str | Path) -> None:
    """Forget which state is the best."""
    with explained(Path(folder) / _BEST):
        (Path(folder) / _BEST).unlink(missing_ok=True)


def best_state(folder: str | Path) -> Best | None:
    """Which state was marked as the best; None if none was, or it is gone."""
    best = marked_best(folder)
    if best is None or best.path.exists():
        return best
    file = Path(folder) / _BEST
    logger.warning("%s names step %d as the best, whose checkpoint is gone", file, best.step)
    return None


def marked_best(folder: str | Path) -> Best | None:
    """What was marked as the best, whether or not its state is still there."""
    file = Path(folder) / _BEST
    if not file.exists():
        return None
    record = read_json(file)
    try:
        # The version before wrote no checksum; an unknown key is what damage made of `check`.
        record = unsealed(file, record, required=record.keys() != {"step", "metric", "value"})
        step, metric, value = int(record["step"]), str(record["metric"]), float(record["value"])
    except (KeyError, TypeError, ValueError, DamagedError) as error:
        raise DamagedError(
            f"{file} is damaged: remove it, and the next validation marks the best anew"
        ) from error
    best = Best(step, metric, value, state_path(folder, step))
    named, own = record.get("sha256"), _arrays_of(best.path)
    if named and own and named != own:
        raise DamagedError(
            f"{file} is not of this run, or of another state of step {step}: remove it, and the "
            "next validation marks the best anew"
        )
    return best


def _arrays_of(state: Path) -> str | None:
    """The checksum of a state's arrays; None where it is gone or its record cannot be read.

    It names a state by what was learned: one that is saved again may know more scores.
    """
    try:
        return _read_record(state)["sha256"]
    except CheckpointError:
        return None


def state_path(folder: str | Path, step: int) -> Path:
    """Where the state of a step is, or would be."""
    return atomic.present(Path(folder) / _name(step))


def prune(folder: str | Path, keep: int, protect: Iterable[str | Path] = ()) -> list[Path]:
    """Remove all states but the last `keep`, the best one and those in `protect`."""
    states = saved_states(folder)
    best = best_state(folder)
    kept = {Path(path).resolve() for path in protect}
    kept |= {path.resolve() for path in states[max(len(states) - keep, 0) :]}
    kept |= {best.path.resolve()} if best else set()
    removed = [path for path in states if path.resolve() not in kept]
    for path in removed:
        remove_folder(path)
    return removed


def abandon_after(folder: str | Path, step: int) -> list[Path]:
    """Move states later than a step into `abandoned` next to the folder."""
    moved = []
    # The latest first: a kill in between leaves a run that can be resumed as it was at that step.
    for path in reversed(saved_states(folder)):
        name = path.name.removeprefix(".").removesuffix(".old")
        if _step(name) > step:
            kept = Path(folder).with_name(ABANDONED) / name
            remove_folder(kept) if kept.exists() else kept.parent.mkdir(exist_ok=True)
            moved.append(path.rename(kept))
            logger.warning("%s is later than where the run resumes: it is now %s", path, kept)
    return moved[::-1]


def recover(folder: str | Path, *names: str) -> None:
    """Tidy up after a killed process: remove drafts, put back what was set aside and not replaced.

    This concerns the states of a folder and `best.json`, or only what has one of the `names`.
    """
    folder = Path(folder)
    known = "|".join(map(re.escape, names)) or _OWN_NAMES
    pattern = re.compile(rf"\.(?P<name>{known})\.(?P<kind>tmp|old)")
    with explained(folder):
        for path in _entries(folder):
            match = pattern.fullmatch(path.name)
            if not match:
                continue
            target = folder / match["name"]
            if match["kind"] == "old" and not target.exists():
                path.rename(target)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _entries(folder: str | Path) -> list[Path]:
    folder = Path(folder)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _step(name: str) -> int:
    return int(name.removeprefix("step-"))
