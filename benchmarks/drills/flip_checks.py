"""What reads a damaged file, and whether it notices: the checks of the part `flips`."""

import json
import logging
import pickle
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drills import small_runs
from benchmarks.drills.cases import EQUAL, REFUSED, REPAIRED, TRACEBACK, WRONG, Outcome
from benchmarks.drills.small_runs import CORPUS, RUN, VOCODER
from myxtts.checkpoints.states import ABANDONED
from myxtts.monitoring.history import HISTORY

_ENCODER = "encoder.pt"
WITH_ENCODER = (
    *small_runs.PREPARE,
    "--use-pretrained-speaker-encoder",
    "--speaker-encoder-path",
    _ENCODER,
)
_BY_VOCODER = (*small_runs.SPEAK, "--vocoder", VOCODER)


class References:
    """What the same commands and loaders give where nothing is damaged."""

    def __init__(self, folder: Path):
        self.folder = folder

    @cached_property
    def values(self) -> dict[str, Any]:
        return pickle.loads((self.folder / "references.pickle").read_bytes())


Check = Callable[[Path, Path, References], Outcome]


# Worlds


def make_world(folder: Path, seed: int) -> None:
    """A corpus with all that can be stored of it, a voice, a vocoder and a built-in corpus."""
    from tests.helpers.stand_in_encoder import make_arrays, write_weights

    folder.mkdir()
    small_runs.make_corpus(folder, seed)
    write_weights(folder / _ENCODER, make_arrays(seed))
    small_runs.run(folder, *WITH_ENCODER, before=_use_stand_in)
    small_runs.run(folder, *small_runs.TRAIN)
    small_runs.run(folder, *small_runs.ON_PREDICTIONS)
    small_runs.run(folder, *small_runs.DEMO)


def make_begun(folder: Path, whole: Path) -> None:
    """The same corpus, with a run that was killed before its last step."""
    small_runs.copy(whole, folder)
    shutil.rmtree(folder / RUN)
    log = folder.with_suffix(".log")
    small_runs.attempt(folder, small_runs.TRAIN, log, lambda: small_runs.kill_in_step(3))


def write_references(folder: Path) -> None:
    """Read and run everything once, undisturbed."""
    values: dict[str, Any] = {}
    whole = folder / "whole"
    values["stored"] = small_runs.stored(whole / CORPUS)
    values["demo"] = small_runs.contents(whole, "demo")
    values["states"] = {path.name: _state(path) for path in _states(whole)}
    for name, words in (("said", small_runs.SPEAK), ("said by vocoder", _BY_VOCODER)):
        small_runs.run(whole, *words)
        values[name] = (whole / "said.wav").read_bytes()
        (whole / "said.wav").unlink()
    finished = small_runs.copy(folder / "begun", folder / "finished")
    small_runs.run(finished, *small_runs.TRAIN)
    values["finished"] = small_runs.contents(finished, RUN)
    without = small_runs.copy(whole, folder / "without-vocoder")
    shutil.rmtree(without / VOCODER)
    values["vocoder run"] = small_runs.contents(whole, VOCODER)
    # These use TensorFlow in this process, after which nothing may be forked.
    values["best"] = {name: _best(whole / name) for name in (RUN, VOCODER)}
    values["history"] = _history(whole / RUN)
    values["voice"] = _voice(whole)
    values["vocoder"] = _vocoder(whole)
    values["encoder"] = _encoder(whole)
    (folder / "references.pickle").write_bytes(pickle.dumps(values))


# Commands


def prepare(world: Path, file: Path, references: References) -> Outcome:
    """`myxtts prepare`: afterwards every store holds what it held."""
    ended = small_runs.attempt(world, small_runs.PREPARE, world.parent / "prepare.log")
    return _ended(ended, file, lambda: _stores(world, references))


def prepare_voices(world: Path, file: Path, references: References) -> Outcome:
    """The same with a speaker encoder, which describes the voices that are missing."""
    ended = small_runs.attempt(world, WITH_ENCODER, world.parent / "prepare.log", _use_stand_in)
    return _ended(ended, file, lambda: _stores(world, references))


def verify_and_fix(world: Path, file: Path, references: References) -> Outcome:
    """`cache verify` names the file, or nothing is wrong; `cache fix` makes it good."""
    log = world.parent / "verify.log"
    ended = small_runs.attempt(world, small_runs.VERIFY, log)
    if outcome := small_runs.broken(ended):
        return outcome
    if not ended.code:
        wrong = _stores(world, references)
        return Outcome(WRONG, f"verify found nothing; {wrong}") if wrong else Outcome(EQUAL)
    if not _names(ended.text, file):
        return Outcome(WRONG, f"verify does not name {file.name}: {ended.text[-200:]}")
    for words in (small_runs.FIX, small_runs.VERIFY):
        ended = small_runs.attempt(world, words, log)
        if outcome := small_runs.broken(ended, (0,)):
            return outcome
    wrong = small_runs.store_differences(
        small_runs.stored(world / CORPUS), references.values["stored"], is_whole=False
    )
    return Outcome(WRONG, f"after fix: {wrong}") if wrong else Outcome(REPAIRED)


def make_demo(world: Path, file: Path, references: References) -> Outcome:
    ended = small_runs.attempt(world, small_runs.DEMO, world.parent / "demo.log")
    # Its tables and recordings are what it is for; the stamp may be written anew.
    expected = {name: x for name, x in references.values["demo"].items() if Path(name) != file}

    def wrong() -> str:
        found = small_runs.contents(world, "demo")
        found.pop(str(file), None)
        return small_runs.differences(found, expected)

    return _ended(ended, Path("demo"), wrong)


def speak(world: Path, file: Path, references: References) -> Outcome:
    return _speak(world, file, small_runs.SPEAK, references.values["said"])


def speak_by_vocoder(world: Path, file: Path, references: References) -> Outcome:
    return _speak(world, file, _BY_VOCODER, references.values["said by vocoder"])


def train_on(world: Path, file: Path, references: References) -> Outcome:
    """The run ends as the undisturbed one did: weights, history, the best and both voices.

    A damaged history that a warning names cannot come back, and nothing is trained by it. A damaged
    checkpoint that a warning names is set aside, and computed again.
    """
    ended = small_runs.attempt(world, small_runs.TRAIN, world.parent / "train.log")

    def wrong() -> str:
        found, expected = small_runs.contents(world, RUN), dict(references.values["finished"])
        warned = small_runs.warnings_of(ended.text)
        if file.name == HISTORY and HISTORY in warned:
            # Checkpoints record the trail of the history; their weights are compared all the same.
            gone = (HISTORY, "state.json")
            found = {name: x for name, x in found.items() if Path(name).name not in gone}
            expected = {name: x for name, x in expected.items() if Path(name).name not in gone}
        if "checkpoints" in file.parts and file.name in warned:
            found = {name: x for name, x in found.items() if Path(name).parts[1] != ABANDONED}
        return small_runs.differences(found, expected)

    return _ended(ended, file, wrong)


def train_vocoder(world: Path, file: Path, references: References) -> Outcome:
    log = world.parent / "train.log"
    ended = small_runs.attempt(world, small_runs.ON_PREDICTIONS, log)

    def wrong() -> str:
        found = small_runs.contents(world, VOCODER)
        return small_runs.differences(found, references.values["vocoder run"])

    return _ended(ended, file, wrong)


# Loaders, called here: this process has no other use for TensorFlow


def load_state(world: Path, file: Path, references: References) -> Outcome:
    """The last whole state: the last, or the one before with a warning that names the damage.

    One that is not the last is asked for by its name.
    """
    own = references.values["states"][file.parent.name]
    if file.parent.name != max(references.values["states"]):
        return _compared(lambda: _state(world / file.parent), own, file)

    def load() -> tuple[str, Any]:
        from myxtts.checkpoints import latest_state

        state = latest_state(world / RUN / "checkpoints")
        return state.path.name, _parts(state)

    def is_right(found: tuple[str, Any], warned: str) -> bool:
        is_last = found[0] == max(references.values["states"])
        return _same(found[1], references.values["states"].get(found[0])) and (
            is_last or _names(warned, file)
        )

    return _loaded(load, is_right, file)


def load_best(world: Path, file: Path, references: References) -> Outcome:
    run = file.parts[0]
    return _compared(lambda: _best(world / run), references.values["best"][run], file)


def load_voice(world: Path, file: Path, references: References) -> Outcome:
    return _compared(lambda: _voice(world), references.values["voice"], file)


def load_vocoder(world: Path, file: Path, references: References) -> Outcome:
    return _compared(lambda: _vocoder(world), references.values["vocoder"], file)


def read_history(world: Path, file: Path, references: References) -> Outcome:
    expected = references.values["history"]

    def is_right(found: Any, warned: str) -> bool:
        return _same(found, expected) or _names(warned, file)

    return _loaded(lambda: _history(world / RUN), is_right, file)


def load_encoder(world: Path, file: Path, references: References) -> Outcome:
    return _compared(lambda: _encoder(world), references.values["encoder"], file)


def _voice(world: Path) -> dict[str, Any]:
    from myxtts.checkpoints import load_voice, weights_of

    voice = load_voice(world / RUN)
    return {
        "config": {name: asdict(getattr(voice.config, name)) for name in ("data", "model")}
        | {"training": asdict(voice.config.training)},
        "tokenizer": voice.tokenizer.to_json(),
        "speakers": voice.speakers,
        "languages": voice.languages,
        "voices": np.asarray(voice.voices),
        "weights": {name: np.asarray(value) for name, value in weights_of(voice.model).items()},
    }


def _vocoder(world: Path) -> dict[str, Any]:
    from myxtts.checkpoints import weights_of
    from myxtts.checkpoints.vocoders import load_vocoder

    found = load_vocoder(world / VOCODER)
    weights = {name: np.asarray(value) for name, value in weights_of(found.model).items()}
    return {
        "kind": found.kind,
        "spec": asdict(found.spec),
        "settings": json.loads(json.dumps(found.model.to_settings())),
        "weights": weights,
    }


def _encoder(world: Path) -> dict[str, np.ndarray]:
    from myxtts.weights import read_checkpoint

    return {name: np.array(value) for name, value in read_checkpoint(world / _ENCODER).items()}


def _history(run: Path) -> Any:
    from myxtts.evaluation.history import read_history
    from myxtts.training.hooks.history import forget_after

    history = read_history(run / "history.jsonl")
    last = history.steps
    forget_after(run / "history.jsonl", last)  # as resuming does
    kept = small_runs.contents(run)["history.jsonl"]
    return history.mel_loss, history.val_mel_loss, history.mean_mel_loss, kept


def _best(run: Path) -> Any:
    from myxtts.checkpoints import best_state

    best = best_state(run / "checkpoints")
    return best and (best.step, best.metric, best.value)


def _states(world: Path) -> list[Path]:
    from myxtts.checkpoints import saved_states

    return saved_states(world / RUN / "checkpoints")


def _state(path: Path) -> dict[str, Any]:
    from myxtts.checkpoints import load_state

    return _parts(load_state(path))


def _parts(state) -> dict[str, Any]:
    return {"step": state.step, "facts": state.facts, "arrays": state.arrays}


# Judgement


def _ended(ended, file: Path, wrong: Callable[[], str]) -> Outcome:
    """Refused by name, or a success after which nothing is wrong."""
    if outcome := small_runs.broken(ended):
        return outcome
    if ended.code:
        return _refusal(ended.text, file)
    if problem := wrong():
        warned = small_runs.warnings_of(ended.text)
        return Outcome(WRONG, f"{problem}; warned: {warned[:200] or 'of nothing'}")
    return Outcome(REPAIRED if _names(ended.text, file) else EQUAL)


def _compared(load: Callable[[], Any], expected: Any, file: Path) -> Outcome:
    return _loaded(load, lambda found, warned: _same(found, expected), file)


def _loaded(load: Callable[[], Any], is_right: Callable[[Any, str], bool], file: Path) -> Outcome:
    """What a loader gave or said; whatever else it raises is a stack trace to its user."""
    from myxtts.errors import UserError

    with _Warnings() as warnings:
        try:
            found = load()
        except UserError as error:
            return _refusal(str(error), file)
        except Exception:
            text = traceback.format_exc()
            print(text, flush=True)
            return Outcome(TRACEBACK, small_runs.raised(text))
    if not is_right(found, warnings.text):
        said = warnings.text[:200] or "of nothing"
        return Outcome(WRONG, f"{file.name} was read as something else; warned: {said}")
    return Outcome(REPAIRED if warnings.text else EQUAL, warnings.text[:200])


def _refusal(text: str, file: Path) -> Outcome:
    said = " ".join(text.split())[-300:]
    if not _names(text, file):
        return Outcome(WRONG, f"refused without naming {file.name}: {said}")
    return Outcome(REFUSED, said)


def _names(text: str, file: Path) -> bool:
    """Whether a message names a file: itself, another file of its shard, or the folder whose files
    do not fit each other any more."""
    joined = " ".join(text.split())
    names = {file.name}
    if len(file.parts) > 2:
        names.add(str(file.parent))
    if "cached_features" in file.parts:
        names |= {f"{file.stem}.", f"{file.parent.name}:", f"{file.parent.name} "}
    return any(name in joined for name in names)


def _stores(world: Path, references: References) -> str:
    from myxtts.errors import UserError

    try:
        found = small_runs.stored(world / CORPUS)
    except UserError as error:
        return f"the cache cannot be opened afterwards: {error}"
    return small_runs.store_differences(found, references.values["stored"])


def _speak(world: Path, file: Path, words: tuple[str, ...], expected: bytes) -> Outcome:
    ended = small_runs.attempt(world, words, world.parent / "speak.log")

    def wrong() -> str:
        found = (world / "said.wav").read_bytes()
        return "" if found == expected else "other samples"

    return _ended(ended, file, wrong)


def _same(found: Any, expected: Any) -> bool:
    """Equal to the bit, also inside of dicts, and of arrays with NaN in them."""
    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and found.keys() == expected.keys()
            and all(_same(found[name], value) for name, value in expected.items())
        )
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and (found.dtype, found.shape) == (expected.dtype, expected.shape)
            and found.tobytes() == expected.tobytes()
        )
    return type(found) is type(expected) and repr(found) == repr(expected)


class _Warnings(logging.Handler):
    """Keeps what the package warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self):
        logging.getLogger("myxtts").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("myxtts").removeHandler(self)


class _Patch:
    """As much of pytest's monkeypatch as the stand-in needs, for the life of a process."""

    @staticmethod
    def setitem(mapping, name, value) -> None:
        mapping[name] = value


def _use_stand_in() -> None:
    """Let a small network stand for the published speaker encoder, which takes seconds."""
    from tests.helpers.stand_in_encoder import install

    install(_Patch())
