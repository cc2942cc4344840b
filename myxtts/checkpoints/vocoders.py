"""A vocoder: a folder with its weights and settings, or a published checkpoint.

The folder has model.safetensors (weights by their layers' names) and vocoder.json, which tells the
kind, the settings and the mels that it was made for.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import myxtts
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
    describe,
    new_folder,
    present,
    read_json,
    read_tensors,
    write_json,
    write_tensors,
)
from myxtts.checkpoints.variables import assign, misfit, weights_of
from myxtts.config.audio_spec import AudioSpec
from myxtts.weights import PUBLIC, default_folder

FORMAT_VERSION = 1
UNIVERSAL = "hifigan_universal"
_CARD, _MODEL, _INSIDE_RUN = "vocoder.json", "model.safetensors", ("vocoder", "stage2/vocoder")


@dataclass(frozen=True, eq=False)
class TrainedVocoder:
    """A vocoder, where it comes from, its kind, and the mels that it was made for."""

    path: Path
    kind: str
    model: Any
    spec: AudioSpec

    def check(self, spec: AudioSpec) -> None:
        """Refuse other mels than those that it knows."""
        own, other = asdict(self.spec), asdict(spec)
        differing = [name for name in own if own[name] != other[name]]
        if differing:
            said = ", ".join(f"{name} {own[name]} here {other[name]}" for name in differing)
            raise CheckpointError(
                f"the vocoder {self.path} was made for other mels ({said}): choose another one, "
                "or griffin_lim"
            )


def save_vocoder(folder: str | Path, kind: str, model, spec: AudioSpec) -> Path:
    """Write a vocoder, in place of one that may be there."""
    from myxtts.models.vocoders import settings_of

    folder = Path(folder).absolute()
    if _is_foreign(folder):
        raise CheckpointError(f"{folder} is there and is not a vocoder: choose another folder")
    with new_folder(folder) as draft:
        write_tensors(draft / _MODEL, weights_of(model))
        card = {
            "format": FORMAT_VERSION,
            "myxtts": myxtts.__version__,
            "kind": kind,
            "settings": settings_of(model),
            "spec": asdict(spec),
            "files": {_MODEL: describe(draft / _MODEL)},
        }
        write_json(draft / _CARD, card)
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
    card = read_json(folder / _CARD)
    if not _is_card(card):
        raise _foreign_card(folder)
    from myxtts.models.vocoders import vocoder_of

    arrays = read_tensors(folder / _MODEL, card["files"][_MODEL])
    try:
        spec, model = AudioSpec(**card["spec"]), vocoder_of(card["kind"], card["settings"])
    except (TypeError, ValueError) as error:  # settings of another name, or of another kind
        raise _foreign_card(folder) from error
    variables = weights_of(model)
    if problem := misfit(variables, arrays):
        raise DamagedError(f"{folder / _MODEL} does not fit its settings: {problem}")
    assign(variables, arrays)
    return TrainedVocoder(folder, card["kind"], model, spec)


def find_vocoder(path: Path) -> Path | None:
    """The vocoder's folder in a folder: itself, or where a run keeps it."""
    for folder in (path, *(path / name for name in _INSIDE_RUN)):
        if (present(folder) / _CARD).is_file():
            return present(folder)
    return None


def public_vocoder(name: str = UNIVERSAL) -> Path:
    """Where public weights are, or an error that says how to get them."""
    path = default_folder() / PUBLIC[name].filename
    if not path.is_file():
        raise CheckpointError(
            f"there are no weights of {name} at {path}: `myxtts weights get {name}` fetches "
            "them, or name a vocoder's folder or checkpoint"
        )
    return path


def named_vocoder(text: str) -> Path:
    """The path that a name of public weights stands for; any other text is a path."""
    is_public = text in PUBLIC and text.startswith("hifigan")
    return public_vocoder(text) if is_public else Path(text)


def _load_published(path: Path) -> TrainedVocoder:
    from myxtts.models.hifigan import load_hifigan

    # The mels of all published checkpoints are those of the default.
    return TrainedVocoder(path, "hifigan", load_hifigan(path), AudioSpec())


def _is_card(card: Mapping[str, Any]) -> bool:
    files = card.get("files")
    return (
        card.get("format") == FORMAT_VERSION
        and card.get("kind") in ("istft", "hifigan")
        and isinstance(card.get("settings"), dict)
        and isinstance(card.get("spec"), dict)
        and isinstance(files, dict)
        and isinstance(files.get(_MODEL), dict)
        and {"size", "sha256"} <= files[_MODEL].keys()
    )


def _foreign_card(folder: Path) -> CheckpointError:
    return CheckpointError(
        f"{folder / _CARD} does not describe a vocoder of this myxtts: copy the folder again, or "
        "name another one"
    )


def _is_foreign(folder: Path) -> bool:
    """Whether something lies there that a vocoder must not replace."""
    if not folder.is_dir():
        return folder.exists()
    return any(folder.iterdir()) and not (folder / _CARD).exists()
