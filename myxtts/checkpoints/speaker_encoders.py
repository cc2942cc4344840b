"""A published speaker encoder from the file that holds its weights."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.checkpoints.files import CheckpointError
from myxtts.config.config import ModelConfig
from myxtts.weights import PUBLIC, default_folder, read_checkpoint

if TYPE_CHECKING:
    from myxtts.data.features.embeddings import VoiceEncoder

_ANYWHERE = "or name your copy with --speaker-encoder-path"


def encoder_path(config: ModelConfig) -> Path:
    """Where the weights of a configured encoder are, or an error that says how to get them."""
    kind, given = config.speaker_encoder, config.speaker_encoder_path
    public = PUBLIC.get(kind)
    if not given and public is None:
        raise CheckpointError(
            f"no package has public weights of the speaker encoder {kind}: name a file of them "
            "with --speaker-encoder-path"
        )
    path = Path(given).expanduser() if given else default_folder() / public.filename
    if not path.is_file():
        get = f"`myxtts weights get {kind}` fetches it to {default_folder()}, " if public else ""
        raise CheckpointError(
            f"there are no weights of the speaker encoder {kind} at {path}: {get}{_ANYWHERE}, or "
            "train without it (--disable-pretrained-speaker-encoder)"
        )
    return path


def load_speaker_encoder(kind: str, path: str | Path):
    """The encoder with the weights of a file: exactly those, or an error that names the others."""
    from myxtts.models.speaker_encoders.registry import build_speaker_encoder

    encoder = build_speaker_encoder(kind)
    encoder.load(read_checkpoint(path), path)
    return encoder


def as_voice_encoder(encoder) -> "VoiceEncoder":
    """The same as the data know it: by its kind and a hash of its weights."""
    # It knows the cache, whose locks not every system has: voices load without.
    from myxtts.data.features.embeddings import VoiceEncoder

    weights = hashlib.sha256()
    for array in encoder.network.get_weights():
        weights.update(array.tobytes())
    return VoiceEncoder(
        encoder.kind, weights.hexdigest(), encoder.dim, encoder.sample_rate, encoder.embed_many
    )
