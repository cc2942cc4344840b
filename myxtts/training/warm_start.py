"""A warm start: what a run takes from a voice, and which tables are extended for new speakers."""

import hashlib
from collections.abc import Mapping
from operator import attrgetter

import keras
import numpy as np
import tensorflow as tf

from myxtts.checkpoints import Voice, weights_of
from myxtts.checkpoints.states import SavedState
from myxtts.config.config import DataConfig, ModelConfig, XTTSConfig
from myxtts.config.io import Setting
from myxtts.config.presets import preset_values
from myxtts.errors import UserError

# Tables that have a row, or a column, for each language or speaker, and the axis of those.
EXTENDED = {
    "text_encoder/language/embeddings": 0,
    "speaker/kernel": 1,
    "speaker/bias": 0,
}

# A weight that the known model may lack, and the encoder whose place a published one may take.
TEXT_VOICE, LEARNT = "text_voice", "audio_encoder/"

AUDIO = "data.audio"
SPEAKER_ENCODER = (
    "model.use_pretrained_speaker_encoder",
    "model.speaker_encoder_type",
    "model.speaker_encoder_path",
    "model.freeze_speaker_encoder",
)
# What the weights of a voice were learnt with, and mean nothing without.
FEATURES = DataConfig.affecting("features", "preprocessing")
LASTING = (
    *(
        f"model.{name}"
        for name in ModelConfig.__dataclass_fields__
        if name not in ModelConfig.affecting("vocoder")
    ),
    *(f"data.{name}" for name in FEATURES),
)


def warm_start(model: keras.Model, known: keras.Model, voices: np.ndarray) -> None:
    """Give a model the weights of a known one, whose speakers have voices [speakers, dim].

    New speakers and languages in the tables that are extended begin as the mean of the known. A
    part that the known model lacks begins as what changes its speech least.
    """
    own, given = weights_of(model), weights_of(known)
    # A model of one speaker has nobody to tell apart, and so no head for it.
    added = set(EXTENDED)
    has_new_text_voice = model.shares_text_voice and not known.shares_text_voice
    if has_new_text_voice:
        added.add(TEXT_VOICE)
    has_new_encoder = bool(model.published_voice and not known.published_voice)
    if has_new_encoder:
        theirs = {id(variable) for variable in model.published_voice.variables}
        added |= {name for name, variable in own.items() if id(variable) in theirs}
        given = {name: value for name, value in given.items() if not name.startswith(LEARNT)}
    surplus = [name for name in given if name not in own]
    missing = [name for name in own if name not in given and name not in added]
    values, other = {}, []
    for name, value in given.items():
        if name in own:
            array = np.asarray(value)
            array = _extended(array, own[name].shape, EXTENDED[name]) if name in EXTENDED else array
            values[name] = array
            if tuple(array.shape) != tuple(own[name].shape):
                other.append(name)
    if surplus or missing or other:
        wrong = ", ".join([*surplus, *missing, *other][:5])
        raise UserError(
            f"the model to be trained is another than the voice's ({wrong}): leave the settings "
            "of the model as they are in the voice"
        )
    for name, array in values.items():
        own[name].assign(array)
    if has_new_text_voice:
        own[TEXT_VOICE].assign(tf.reduce_mean(known.styled(tf.constant(voices)), axis=0))
    if has_new_encoder:
        model.published_voice.begin_from(voices.mean(axis=0))


def check_lasting(known: XTTSConfig, asked: Mapping[str, Setting]) -> None:
    """Refuse what is asked for, by its path, where a voice's own settings must not change.

    An audio preset asks for every value that it sets.
    """
    if AUDIO in asked:
        name, origin = asked[AUDIO]
        values = preset_values(AUDIO, name)
        implied = {path: Setting(value, f"{origin} {name}") for path, value in values.items()}
        asked = implied | dict(asked)
    for path in LASTING:
        own = attrgetter(path)(known)
        if path in asked and asked[path].value != own and not _is_new(path, known.model):
            raise UserError(
                f"{path} is {asked[path].value!r} ({asked[path].origin}), but the voice was "
                f"trained with {own!r}, and its weights fit nothing else: leave that out, or train "
                "a voice from nothing with `myxtts train`"
            )


def _is_new(path: str, known: ModelConfig) -> bool:
    """Whether a setting may be another than the voice's: it adds a part that the voice lacks."""
    if path == "model.text_voice":
        return known.text_voice == "own"
    return path in SPEAKER_ENCODER and not known.speaker_encoder


def freeze_speaker_encoder(model: keras.Model) -> None:
    """Leave the encoder as it is, so that embeddings of known speakers stay valid.

    This comes before the optimizer is built, which keeps an EMA of what is trained.
    """
    (model.published_voice or model.audio_encoder).trainable = False


def with_known_embeddings(new: np.ndarray, known: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Embeddings [speakers, dim]; known speakers who are not present in the data keep theirs."""
    absent = np.setdiff1d(np.arange(len(known)), present)
    new = new.copy()
    new[absent] = known[absent]
    return new


def identity(voice: Voice) -> str:
    """A hash of what a run takes from its voice every time it resumes: the speaker embeddings."""
    return hashlib.sha256(np.ascontiguousarray(voice.voices).tobytes()).hexdigest()


def check_beginning(saved: SavedState, start: Voice | None) -> None:
    """Raise for a checkpoint of a run that did not begin as this one does."""
    began, begins = saved.facts.get("start"), start and identity(start)
    if began == begins:
        return
    if begins is None:
        problem = "belongs to a run that began from a voice: resume it with `myxtts finetune`"
    elif began is None:
        problem = "belongs to a run that began from nothing: choose another --checkpoint-dir"
    else:
        problem = f"belongs to a run that began from another voice than {start.folder} is now: "
        problem += "bring that one back, choose another --checkpoint-dir"
    raise UserError(f"{saved.path} {problem}, or start over with --reset-training")


def _extended(array: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray:
    more = shape[axis] - array.shape[axis]
    if more <= 0:
        return array
    mean = array.mean(axis=axis, keepdims=True)
    return np.concatenate([array, np.repeat(mean, more, axis=axis)], axis=axis)
