"""A voice: a folder with all that speaking needs, and nothing of training.

It has config.yaml, tokenizer.json, model.safetensors (weights by their layers' names),
speakers.safetensors (a vector for each known speaker) and voice.json, which names the speakers and
languages in the order of their numbers and knows the other files by their checksums.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import myxtts
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
    check_file,
    describe,
    new_folder,
    present,
    read_json,
    read_tensors,
    write_json,
    write_tensors,
)
from myxtts.checkpoints.variables import assign, misfit, weights_of
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config, save_config
from myxtts.text.tokenizer import Tokenizer

FORMAT_VERSION = 1
_CARD, _CONFIG, _TOKENIZER = "voice.json", "config.yaml", "tokenizer.json"
_MODEL, _SPEAKERS = "model.safetensors", "speakers.safetensors"
_CHECKED = (_TOKENIZER, _MODEL, _SPEAKERS)
_INSIDE_RUN = "voice"
_REMEDY = "copy the voice anew, or let training write it again"


@dataclass(frozen=True, eq=False)
class Voice:
    """A model that can speak; voices [speakers, dim] are the vectors of the known speakers."""

    folder: Path
    config: XTTSConfig
    tokenizer: Tokenizer
    model: Any
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    voices: np.ndarray


def save_voice(
    folder: str | Path,
    model,
    config: XTTSConfig,
    tokenizer: Tokenizer,
    speakers: Sequence[str],
    languages: Sequence[str],
    voices: np.ndarray,
    weights: Mapping[str, Any] | None = None,
) -> Path:
    """Write a voice, in place of one that may be there.

    `weights` stand in for the model's own, by the names that `weights_of` gives them.
    """
    folder = Path(folder).absolute()
    if problem := _vector_problem(np.asarray(voices), speakers, config):
        raise ValueError(problem)
    if _is_foreign(folder):
        raise CheckpointError(f"{folder} is there and is not a voice: choose another folder")
    with new_folder(folder) as draft:
        save_config(config, draft / _CONFIG)
        tokenizer.save(draft / _TOKENIZER)
        write_tensors(draft / _MODEL, _weights(model, weights or {}))
        write_tensors(draft / _SPEAKERS, {"voices": np.asarray(voices, np.float32)})
        card = {
            "format": FORMAT_VERSION,
            "myxtts": myxtts.__version__,
            "speakers": list(speakers),
            "languages": list(languages),
            "files": {name: describe(draft / name) for name in _CHECKED},
        }
        write_json(draft / _CARD, card)
    return folder


def load_voice(path: str | Path, *, build: Callable | None = None) -> Voice:
    """Load a voice from its folder, or from that of the run that made it.

    `build` makes the model from its settings, as `build_xtts` does.
    """
    folder = _find(Path(path).absolute())
    card = _read_card(folder)
    config = load_config(folder / _CONFIG)
    speakers, languages = tuple(card["speakers"]), tuple(card["languages"])
    with _remedied():
        check_file(folder / _TOKENIZER, card["files"][_TOKENIZER])
        vectors = read_tensors(folder / _SPEAKERS, card["files"][_SPEAKERS])
        arrays = read_tensors(folder / _MODEL, card["files"][_MODEL])
    tokenizer = Tokenizer.load(folder / _TOKENIZER)
    voices = vectors.get("voices", np.empty(0))
    if problem := _vector_problem(voices, speakers, config):
        raise CheckpointError(f"{folder / _SPEAKERS} does not fit the voice: {problem}; {_REMEDY}")
    model = _build(build or _builder(), config, tokenizer, len(languages), len(speakers))
    _fill(model, arrays, folder)
    return Voice(folder, config, tokenizer, model, speakers, languages, voices)


def read_languages(path: str | Path) -> tuple[str, ...]:
    """The languages of a voice, without loading it; it speaks the first one by default."""
    return tuple(_read_card(_find(Path(path).absolute()))["languages"])


def _is_foreign(folder: Path) -> bool:
    """Whether something lies there that a voice must not replace."""
    if not folder.is_dir():
        return folder.exists()
    return any(folder.iterdir()) and not (folder / _CARD).exists()


def _weights(model, replaced: Mapping[str, Any]) -> dict[str, Any]:
    own = weights_of(model)
    replaced = {name: np.asarray(value) for name, value in replaced.items()}
    if problem := misfit({name: own[name] for name in replaced if name in own}, replaced):
        raise ValueError(f"the weights given do not fit the model: {problem}")
    return own | replaced


def _vector_problem(voices: np.ndarray, speakers: Sequence[str], config: XTTSConfig) -> str:
    expected = (len(speakers), config.model.speaker_embedding_dim)
    if voices.shape == expected:
        return ""
    return f"the speakers' vectors are {list(voices.shape)} instead of {list(expected)}"


def _find(path: Path) -> Path:
    for folder in (path, path / _INSIDE_RUN):
        if (present(folder) / _CARD).is_file():
            return present(folder)
    looked_for = f"{path / _CARD} and {path / _INSIDE_RUN / _CARD}"
    if not path.exists():
        raise CheckpointError(f"there is no folder {path}: name a voice, or the run that made it")
    raise CheckpointError(
        f"there is no voice in {path} (looked for {looked_for}): name a voice's folder, or that of "
        "a run that has come to write one"
    )


def _read_card(folder: Path) -> dict[str, Any]:
    """Read voice.json; its own fields and the files that it speaks of are there afterwards."""
    with _remedied():
        card = read_json(folder / _CARD)
    version = card.get("format")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} is a voice of format {version}, made by myxtts {card.get('myxtts', '?')}, "
            f"and this is myxtts {myxtts.__version__}, which reads up to format {FORMAT_VERSION}: "
            "install a later one"
        )
    if not _is_card(card):
        raise CheckpointError(f"{folder / _CARD} does not describe a voice of myxtts: {_REMEDY}")
    missing = [name for name in (_CONFIG, *_CHECKED) if not (folder / name).is_file()]
    if missing:
        raise DamagedError(f"the voice {folder} lacks {', '.join(missing)}: {_REMEDY}")
    return card


def _is_card(card: Mapping[str, Any]) -> bool:
    files = card.get("files")
    return (
        isinstance(card.get("format"), int)
        and all(_are_names(card.get(key)) for key in ("speakers", "languages"))
        and isinstance(files, dict)
        and all(isinstance(files.get(name), dict) for name in _CHECKED)
        and all({"size", "sha256"} <= files[name].keys() for name in _CHECKED)
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(item, str) for item in value)


def _builder() -> Callable:
    from myxtts.models.xtts import build_xtts

    return build_xtts


def _build(build: Callable, config: XTTSConfig, tokenizer, num_languages: int, num_speakers: int):
    import keras

    # Layers take the policy that is in force when they are made, and a voice speaks in float32
    # whatever was trained before in this process.
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        return build(
            config.model, config.data.audio_spec, tokenizer.vocab_size, num_languages, num_speakers
        )
    finally:
        keras.config.set_dtype_policy(policy)


def _fill(model, arrays: Mapping[str, np.ndarray], folder: Path) -> None:
    variables = weights_of(model)
    if problem := misfit(variables, arrays):
        raise CheckpointError(
            f"{folder / _MODEL} does not fit the model that {folder / _CONFIG} describes: "
            f"{problem}; {_REMEDY}"
        )
    assign(variables, arrays)


@contextlib.contextmanager
def _remedied() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{error}: {_REMEDY}") from error
