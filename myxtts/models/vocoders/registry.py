"""Vocoders by their kind: the classes of the table, built from settings or a configuration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from myxtts.config.config import AudioSpec, ModelConfig
from myxtts.config.vocoders import VOCODERS
from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.models.vocoders.base import Vocoder
    from myxtts.models.vocoders.neural import NeuralVocoder


def vocoder_class(kind: str) -> "type[Vocoder]":
    """The class of a kind, imported on demand."""
    module, _, name = VOCODERS[kind].path.partition(":")
    return getattr(import_module(module), name)


def build_vocoder(config: ModelConfig, spec: AudioSpec) -> "NeuralVocoder":
    """The vocoder of a configuration, with all of its weights, not trained yet."""
    kind = config.vocoder_type
    if not vocoder_class(kind).has_weights:
        trained = [name for name in VOCODERS if vocoder_class(name).has_weights]
        raise UserError(f"{kind} has nothing to train: choose --vocoder {' or '.join(trained)}")
    return vocoder_of(kind, vocoder_class(kind).settings_from(config, spec))


def vocoder_of(kind: str, settings: Mapping[str, Any]) -> "NeuralVocoder":
    """A vocoder from its settings, as `to_settings` returns them or JSON has kept them."""
    with in_float32():
        model = vocoder_class(kind).from_settings(settings)
        model.build((None, None, None))
    return model


@contextmanager
def in_float32() -> Iterator[None]:
    """Layers take the policy that is in force when they are made: waveforms need float32."""
    import keras

    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
