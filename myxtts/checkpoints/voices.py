"""A voice: a folder with all that speaking needs, and nothing of training.

It has config.yaml, tokenizer.json, model.safetensors (weights by their layers' names),
speakers.safetensors (a vector for each known speaker) and voice.json, which names the speakers and
languages in the order of their numbers and knows all files, itself included, by their checksums.
"""

import contextlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import myxtts
from myxtts import atomic
from myxtts.audio.postfilter import BINS, MOST_LOST
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
    check_file,
    describe,
    is_description,
    new_folder,
    read_json,
    read_tensors,
    sealed,
    unsealed,
    write_json,
    write_tensors,
)
from myxtts.checkpoints.variables import assign, misfit, weights_of
from myxtts.config.config import XTTSConfig
from myxtts.config.documents import shown
from myxtts.config.io import load_config, save_config
from myxtts.config.sizes import num_layers, num_weights
from myxtts.text.tokenizer import Tokenizer

KERAS, ONNX = "keras", "onnx"  # what runs a voice's model
FORMAT_VERSION = 2
_SEALED_SINCE = 2  # before, neither the card nor the settings had a checksum
_CARD, _CONFIG, _TOKENIZER = "voice.json", "config.yaml", "tokenizer.json"
_MODEL, _SPEAKERS = "model.safetensors", "speakers.safetensors"
GAINS = "postfilter"  # next to the speakers' vectors
_FILES = (_CONFIG, _TOKENIZER, _MODEL, _SPEAKERS)
_INSIDE_RUN = "voice"
# What settings may ask for beyond the file, where only a rough count is compared.
_SPARE_WEIGHTS, _SPARE_TENSORS = 1 << 24, 128
_TENSORS_PER_LAYER = 4  # at least
_REMEDY = "copy the voice anew, or let training write it again"


@dataclass(frozen=True, eq=False)
class Voice:
    """A model that can speak; voices [speakers, dim] are the vectors of the known speakers.

    The gains [modulation bins, mels], where there are any, are those of its post-filter. The model
    of an exported voice is an `OnnxModel`, and its vocoder comes with it.
    """

    folder: Path
    config: XTTSConfig
    tokenizer: Tokenizer
    model: Any
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    voices: np.ndarray
    gains: np.ndarray | None = None
    engine: str = KERAS
    vocoder: Any = None  # that an exported voice has


def save_voice(
    folder: str | Path,
    model,
    config: XTTSConfig,
    tokenizer: Tokenizer,
    speakers: Sequence[str],
    languages: Sequence[str],
    voices: np.ndarray,
    weights: Mapping[str, Any] | None = None,
    gains: np.ndarray | None = None,
) -> Path:
    """Write a voice, in place of one that may be there.

    `weights` stand in for the model's own, by the names that `weights_of` gives them.
    """
    folder = Path(folder).absolute()
    if problem := vector_problem(np.asarray(voices), speakers, config):
        raise ValueError(problem)
    if _is_foreign(folder):
        raise CheckpointError(f"{folder} is there and is not a voice: choose another folder")
    with new_folder(folder) as draft:
        save_config(config, draft / _CONFIG)
        tokenizer.save(draft / _TOKENIZER)
        write_tensors(draft / _MODEL, _weights(model, weights or {}))
        tensors = {"voices": np.asarray(voices, np.float32)}
        if gains is not None:
            tensors[GAINS] = np.asarray(gains, np.float32)
        write_tensors(draft / _SPEAKERS, tensors)
        card = {
            "format": FORMAT_VERSION,
            "myxtts": myxtts.__version__,
            "speakers": list(speakers),
            "languages": list(languages),
            "files": {name: describe(draft / name) for name in _FILES},
        }
        write_json(draft / _CARD, sealed(card))
    return folder


@dataclass(frozen=True, eq=False)
class VoiceFiles:
    """What the files of a voice hold, checked as far as that goes without building the model."""

    folder: Path
    config: XTTSConfig
    tokenizer: Tokenizer
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    voices: np.ndarray
    arrays: dict[str, np.ndarray]
    gains: np.ndarray | None = None
    source: str = _MODEL  # what the arrays were read from


def load_voice(path: str | Path, *, build: Callable | None = None) -> Voice:
    """Load a voice from its folder, that of the run that made it, or that of an export.

    `build` makes the model from its settings, as `build_xtts` does.
    """
    from myxtts.checkpoints.exported import holds_export, load_export

    return load_export(path) if holds_export(path) else _load(read_voice(path), build)


def load_trainable(path: str | Path) -> Voice:
    """Load a voice, also an exported one, with a model that can be trained further."""
    from myxtts.checkpoints.exported import holds_export, read_trainable

    return _load(read_trainable(path) if holds_export(path) else read_voice(path))


def _load(files: VoiceFiles, build: Callable | None = None) -> Voice:
    """The voice of some files, with its model."""
    model = _build(build or _builder(), files)
    _fill(model, files)
    return Voice(
        files.folder,
        files.config,
        files.tokenizer,
        model,
        files.speakers,
        files.languages,
        files.voices,
        files.gains,
    )


def read_voice(path: str | Path) -> VoiceFiles:
    """Read the files of a voice, each compared with its checksum and with the others."""
    folder = _find(Path(path).absolute())
    card = _read_card(folder)
    with _remedied():
        for name in (_CONFIG, _TOKENIZER):
            if is_description(card["files"].get(name)):
                check_file(folder / name, card["files"][name])
        vectors = read_tensors(folder / _SPEAKERS, card["files"][_SPEAKERS], finite=True)
        arrays = read_tensors(folder / _MODEL, card["files"][_MODEL], finite=True)
    files = VoiceFiles(
        folder,
        load_config(folder / _CONFIG),
        Tokenizer.load(folder / _TOKENIZER),
        tuple(card["speakers"]),
        tuple(card["languages"]),
        np.asarray(vectors.get("voices", np.empty(0)), np.float32),
        arrays,
        vectors.get(GAINS),
    )
    problem = vector_problem(files.voices, files.speakers, files.config)
    if problem := problem or gain_problem(files.gains, files.config):
        raise CheckpointError(f"{folder / _SPEAKERS} does not fit the voice: {problem}; {_REMEDY}")
    check_size(files)
    return files


def read_languages(path: str | Path) -> tuple[str, ...]:
    """The languages of a voice, without loading it; it speaks the first one by default."""
    return read_names(path)[1]


def read_names(path: str | Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The speakers and the languages of a voice or of an export, without loading it."""
    from myxtts.checkpoints.exported import holds_export, read_card

    if holds_export(path):
        card = read_card(atomic.present(Path(path).absolute()))
    else:
        card = _read_card(_find(Path(path).absolute()))
    return tuple(card["speakers"]), tuple(card["languages"])


def holds_voice(path: str | Path) -> bool:
    """Whether a folder is a voice's, or that of a run that has written one."""
    path = Path(path).absolute()
    return any((atomic.present(one) / _CARD).is_file() for one in (path, path / _INSIDE_RUN))


def _is_foreign(folder: Path) -> bool:
    """Whether the path holds something that a voice must not replace."""
    if not folder.is_dir():
        return folder.exists()
    return any(folder.iterdir()) and not (folder / _CARD).exists()


def _weights(model, replaced: Mapping[str, Any]) -> dict[str, Any]:
    own = weights_of(model)
    replaced = {name: np.asarray(value) for name, value in replaced.items()}
    if problem := misfit({name: own[name] for name in replaced if name in own}, replaced):
        raise ValueError(f"the weights given do not fit the model: {problem}")
    return own | replaced


def vector_problem(voices: np.ndarray, speakers: Sequence[str], config: XTTSConfig) -> str:
    expected = (len(speakers), config.model.speaker_embedding_dim)
    if voices.shape == expected:
        return ""
    return f"the speakers' vectors are {list(voices.shape)} instead of {list(expected)}"


def gain_problem(gains: np.ndarray | None, config: XTTSConfig) -> str:
    expected = (BINS, config.data.n_mels)
    if gains is None:
        return ""
    if gains.shape != expected:
        return f"the post-filter's gains are {list(gains.shape)} instead of {list(expected)}"
    return "" if (abs(gains) <= MOST_LOST).all() else "the post-filter's gains are too large"


def _find(path: Path) -> Path:
    for folder in (path, path / _INSIDE_RUN):
        if (atomic.present(folder) / _CARD).is_file():
            return atomic.present(folder)
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
        record = read_json(folder / _CARD)
        version = record.get("format")
        is_known = type(version) is int and _SEALED_SINCE <= version <= FORMAT_VERSION
        card = unsealed(folder / _CARD, record, required=is_known)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} is a voice of format {shown(version)}, made by myxtts "
            f"{card.get('myxtts', '?')!s:.40}, and this is myxtts {myxtts.__version__}, which "
            f"reads up to format {FORMAT_VERSION}: install a later one"
        )
    if not _is_card(card):
        raise CheckpointError(f"{folder / _CARD} does not describe a voice of myxtts: {_REMEDY}")
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise DamagedError(f"the voice {folder} lacks {', '.join(missing)}: {_REMEDY}")
    return card


def _is_card(card: Mapping[str, Any]) -> bool:
    version, files = card.get("format"), card.get("files")
    if type(version) is not int or version < 1 or not isinstance(files, dict):
        return False
    described = _FILES if version >= _SEALED_SINCE else [n for n in _FILES if n != _CONFIG]
    return all(are_names(card.get(key)) for key in ("speakers", "languages")) and all(
        is_description(files.get(name)) for name in described
    )


def are_names(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(_is_name, value))


def _is_name(value: Any) -> bool:
    """Whether it is text that can be written, and that steers no terminal."""
    return isinstance(value, str) and not any(
        unicodedata.category(character) in ("Cc", "Cs") for character in value
    )


def check_size(files: VoiceFiles) -> None:
    """Reject settings of a model that the file cannot hold, before it takes memory and time."""
    model = files.config.model
    stored = sum(array.size for array in files.arrays.values())
    weights = num_weights(model, files.tokenizer.vocab_size, len(files.languages))
    layers = num_layers(model)
    if weights > 2 * stored + _SPARE_WEIGHTS:
        what = f"about {weights:,} weights, and the file has {stored:,}"
    elif _TENSORS_PER_LAYER * layers > len(files.arrays) + _SPARE_TENSORS:
        what = f"{layers:,} layers, and the file has {len(files.arrays):,} tensors"
    else:
        return
    raise CheckpointError(f"{_misfit_of(files)}: that has {what}; {_REMEDY}")


def _misfit_of(files: VoiceFiles) -> str:
    settings = files.folder / _CONFIG
    return f"{files.folder / files.source} does not fit the model that {settings} describes"


def _builder() -> Callable:
    try:
        from myxtts.models.xtts import build_xtts
    except ModuleNotFoundError as error:
        raise CheckpointError(
            f"a trained voice needs TensorFlow and Keras ({error}): install them with pip install "
            "'myxtts[cpu]' or 'myxtts[gpu]', or let `myxtts export` make a voice that needs neither"
        ) from error
    return build_xtts


def _build(build: Callable, files: VoiceFiles):
    import keras

    # Layers take the policy that is in force when they are made, and a voice speaks in float32
    # whatever was trained before in this process.
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        return build(
            files.config.model,
            files.config.data.audio_spec,
            files.tokenizer.vocab_size,
            len(files.languages),
            len(files.speakers),
        )
    finally:
        keras.config.set_dtype_policy(policy)


def _fill(model, files: VoiceFiles) -> None:
    variables = weights_of(model)
    if problem := misfit(variables, files.arrays):
        raise CheckpointError(f"{_misfit_of(files)}: {problem}; {_REMEDY}")
    assign(variables, files.arrays)


@contextlib.contextmanager
def _remedied() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{error}: {_REMEDY}") from error
