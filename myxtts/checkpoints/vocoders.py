"""A vocoder: a folder with its weights and settings, or a published checkpoint.

The folder has model.safetensors (weights by their layers' names) and vocoder.json, which holds the
kind, the settings and the mels that it was made for; both are known by their checksums.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import myxtts
from myxtts import atomic
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
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
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import ConfigError, audio_spec_of
from myxtts.config.presets import audio_preset_of
from myxtts.config.vocoders import VOCODERS
from myxtts.weights import PUBLIC, default_folder

if TYPE_CHECKING:
    from myxtts.models.vocoders.neural import NeuralVocoder

PUBLISHED_SPEC = AudioSpec()  # the mels of all published checkpoints
FORMAT_VERSION = 2
_SEALED_SINCE = 2  # before, the card had no checksum
# What settings may ask for beyond the file, where only a rough count is compared.
_SPARE_WEIGHTS, _SPARE_TENSORS = 1 << 22, 64
_TENSORS_PER_LAYER = 3  # at least
_REMEDY = "copy the folder again, or name another vocoder"
_CARD, _MODEL = "vocoder.json", "model.safetensors"
# Its own, that of a run of train-vocoder inside it, and that of its second stage.
_INSIDE_RUN = ("vocoder", "vocoder/vocoder", "stage2/vocoder")


@dataclass(frozen=True, eq=False)
class TrainedVocoder:
    """A vocoder, where it comes from, and the mels that it was made for."""

    path: Path
    model: "NeuralVocoder"
    spec: AudioSpec

    @property
    def kind(self) -> str:
        return self.model.kind

    def check(self, spec: AudioSpec) -> None:
        """Raise for other mels than those that it was made for."""
        _check_mels(f"the vocoder {self.path}", self.spec, spec)


@dataclass(frozen=True, eq=False)
class VocoderFiles:
    """What the files of a vocoder hold, checked as far as that goes without building the model."""

    folder: Path
    kind: str
    settings: dict[str, Any]
    spec: AudioSpec
    arrays: dict[str, np.ndarray]


def save_vocoder(folder: str | Path, model: "NeuralVocoder", spec: AudioSpec) -> Path:
    """Write a vocoder, in place of one that may be there."""
    folder = Path(folder).absolute()
    if _is_foreign(folder):
        raise CheckpointError(f"{folder} is there and is not a vocoder: choose another folder")
    with new_folder(folder) as draft:
        write_tensors(draft / _MODEL, weights_of(model))
        card = {
            "format": FORMAT_VERSION,
            "myxtts": myxtts.__version__,
            "kind": model.kind,
            "settings": model.to_settings(),
            "spec": asdict(spec),
            "files": {_MODEL: describe(draft / _MODEL)},
        }
        write_json(draft / _CARD, sealed(card))
    return folder


def load_vocoder(path: str | Path) -> TrainedVocoder:
    """Load a vocoder: its folder, that of the run that made it, or a checkpoint of HiFi-GAN."""
    path = Path(path).expanduser().absolute()
    if path.is_file():
        return _load_published(path)
    folder = find_vocoder(path)
    if folder is None:
        looked = ", ".join(str(path / name) for name in ("", *_INSIDE_RUN))
        raise CheckpointError(
            f"there is no vocoder in {path} (looked in {looked}): name a vocoder's folder, the "
            "run that made it, or a checkpoint of HiFi-GAN"
        )
    files = read_vocoder(folder)
    with _remedied():
        model = _build(files)
        variables = weights_of(model)
        if problem := misfit(variables, files.arrays):
            raise DamagedError(f"{folder / _MODEL} does not fit its settings: {problem}")
    assign(variables, files.arrays)
    return TrainedVocoder(folder, model, files.spec)


def read_vocoder(folder: Path) -> VocoderFiles:
    """Read the files of a vocoder, each compared with its checksum and with the other."""
    with _remedied():
        card = _read_card(folder)
        arrays = read_tensors(folder / _MODEL, card["files"][_MODEL], finite=True)
        spec = _check_card(card, arrays, folder)
    return VocoderFiles(folder, card["kind"], card["settings"], spec, arrays)


def find_vocoder(path: Path) -> Path | None:
    """The vocoder's folder in a folder: itself, or where a run keeps it."""
    for folder in (path, *(path / name for name in _INSIDE_RUN)):
        if (atomic.present(folder) / _CARD).is_file():
            return atomic.present(folder)
    return None


def public_vocoder(name: str, spec: AudioSpec = PUBLISHED_SPEC) -> Path:
    """Where public weights are, or an error that says how to get them; or that they do not fit."""
    _check_mels(f"the published vocoder {name}", PUBLISHED_SPEC, spec)
    path = default_folder() / PUBLIC[name].filename
    if not path.is_file():
        raise CheckpointError(
            f"there are no weights of {name} at {path}: `myxtts weights get {name}` fetches "
            "them, or name a vocoder's folder or checkpoint"
        )
    return path


def named_vocoder(text: str, spec: AudioSpec = PUBLISHED_SPEC) -> Path:
    """The path that a name of public weights stands for; any other text is a path."""
    is_public = any(text in row.public for row in VOCODERS.values())
    return public_vocoder(text, spec) if is_public else Path(text)


def _load_published(path: Path) -> TrainedVocoder:
    """Load a checkpoint of the kind whose public file has this name, or of the first such kind."""
    from myxtts.models.vocoders.registry import vocoder_class

    files = {kind: [PUBLIC[one].filename for one in row.public] for kind, row in VOCODERS.items()}
    published = [kind for kind, names in files.items() if names]
    kind = next((kind for kind in published if path.name in files[kind]), published[0])
    return TrainedVocoder(path, vocoder_class(kind).load_published(path), PUBLISHED_SPEC)


def _check_mels(what: str, own: AudioSpec, wanted: AudioSpec) -> None:
    """Raise where a vocoder for some mels is wanted for others."""
    before, now = asdict(own), asdict(wanted)
    differing = [name for name in before if before[name] != now[name]]
    if differing:
        said = ", ".join(f"{name} {before[name]} here {now[name]}" for name in differing)
        preset = audio_preset_of(wanted)
        command = "myxtts train-vocoder" + (f" --audio {preset}" if preset else "")
        raise CheckpointError(
            f"{what} was made for other mels ({said}): train one for these with `{command}`, or "
            "choose griffin_lim"
        )


def _read_card(folder: Path) -> dict[str, Any]:
    """Read vocoder.json; its own fields are there afterwards."""
    record = read_json(folder / _CARD)
    version = record.get("format")
    is_known = type(version) is int and _SEALED_SINCE <= version <= FORMAT_VERSION
    card = unsealed(folder / _CARD, record, required=is_known)
    if not _is_card(card):
        raise CheckpointError(
            f"{folder / _CARD} does not describe a vocoder of this myxtts: {_REMEDY}"
        )
    return card


def _is_card(card: Mapping[str, Any]) -> bool:
    version, files = card.get("format"), card.get("files")
    return (
        type(version) is int
        and 1 <= version <= FORMAT_VERSION
        and card.get("kind") in list(VOCODERS)
        and isinstance(card.get("settings"), dict)
        and isinstance(card.get("spec"), dict)
        and isinstance(files, dict)
        and is_description(files.get(_MODEL))
    )


def _check_card(
    card: Mapping[str, Any], arrays: Mapping[str, np.ndarray], folder: Path
) -> AudioSpec:
    """The mels of a card whose settings fit them, and can be those of the arrays."""
    from myxtts.models.vocoders.registry import vocoder_class

    try:
        spec = audio_spec_of(card["spec"])
        size = vocoder_class(card["kind"]).check_settings(card["settings"], spec)
    except ConfigError as error:
        raise _impossible(folder, error) from error
    stored = sum(array.size for array in arrays.values())
    is_deeper = _TENSORS_PER_LAYER * size.layers > len(arrays) + _SPARE_TENSORS
    if size.weights > 2 * stored + _SPARE_WEIGHTS or is_deeper:
        raise DamagedError(
            f"{folder / _MODEL} does not fit its settings: these are of about {size.weights:,} "
            f"weights in {size.layers:,} layers, and the file has {stored:,} in {len(arrays):,} "
            "tensors"
        )
    return spec


def _build(files: VocoderFiles):
    from myxtts.models.vocoders.registry import vocoder_of

    try:
        return vocoder_of(files.kind, files.settings)
    except ValueError as error:  # of relations that only the model knows
        raise _impossible(files.folder, error) from error


def _impossible(folder: Path, error: Exception) -> DamagedError:
    return DamagedError(f"{folder / _CARD} has settings that cannot be: {error}")


@contextlib.contextmanager
def _remedied() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{error}: {_REMEDY}") from error


def _is_foreign(folder: Path) -> bool:
    """Whether the path holds something that a vocoder must not replace."""
    if not folder.is_dir():
        return folder.exists()
    return any(folder.iterdir()) and not (folder / _CARD).exists()
