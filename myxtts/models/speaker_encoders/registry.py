"""The published speaker encoders: from a recording to a speaker embedding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.io import AudioError
from myxtts.audio.speaker_features import SAMPLE_RATE
from myxtts.audio.speaker_recipes import RECIPES, embed_recording, embed_recordings
from myxtts.models.speaker_encoders import coqui, ecapa, resemblyzer
from myxtts.weights import check_fit


class SpeakerEncoder:
    """A network, and how a recording becomes its input and its output one embedding.

    The embedding is the published one once the public weights are loaded; a new network's
    weights are random.
    """

    sample_rate = SAMPLE_RATE

    def __init__(self, kind: str, network: keras.layers.Layer):
        self.kind, self.network = kind, network
        self._recipe = _recipe_of(kind)
        self.dim, self.bands = self._recipe.module.DIM, self._recipe.module.BANDS
        shape = (None, None, self.bands)
        # One graph for all lengths.
        self._embeddings = tf.function(
            lambda features: self.network(features),
            input_signature=[tf.TensorSpec(shape, tf.float32)],
        )

    def embed(self, samples: np.ndarray, sample_rate: int) -> np.ndarray:
        """Return the embedding of a recording [samples] of any length: float32 [dim]."""
        return embed_recording(samples, sample_rate, self._recipe, self._run)

    def embed_many(
        self, recordings: Sequence[np.ndarray], sample_rate: int
    ) -> list[np.ndarray | AudioError]:
        """Return the embedding of each recording, or what is wrong with it."""
        return embed_recordings(recordings, sample_rate, self._recipe, self._run)

    def _run(self, windows: np.ndarray) -> np.ndarray:
        return self._embeddings(windows).numpy()

    def load(self, checkpoint: Mapping, source: object) -> None:
        """Take all weights from what `read_checkpoint` returned, or none and say what is wrong."""
        module = self._recipe.module
        # A bare state dict, without what else a training saves, fits too.
        arrays = checkpoint.get(self._recipe.weights_key, checkpoint)
        check_fit(arrays, module.published_shapes(), source, module.IGNORED)
        values = module.weights_from_torch(arrays)
        for variable in self.network.weights:
            variable.assign(values[path_within(variable)])


def build_speaker_encoder(kind: str) -> SpeakerEncoder:
    """Build a speaker encoder by its name, with random weights."""
    recipe = _recipe_of(kind)
    network = recipe.network(name=kind)
    network.build((None, None, recipe.module.BANDS))
    return SpeakerEncoder(kind, network)


def _recipe_of(kind: str) -> "_Recipe":
    if kind not in _RECIPES:
        known = ", ".join(_RECIPES)
        raise ValueError(f"unknown speaker encoder {kind!r}; known are: {known}")
    return _RECIPES[kind]


def path_within(variable: keras.Variable) -> str:
    """Return a variable's path without the network's own name."""
    return variable.path.partition("/")[2]


@dataclass(frozen=True)
class _Recipe:
    """What makes one encoder differ from the others."""

    module: ModuleType
    network: type[keras.layers.Layer]
    weights_key: str | None
    features: Callable[[np.ndarray], np.ndarray]  # [samples] -> [windows, frames, bands]
    combine: Callable[[np.ndarray], np.ndarray]  # [windows, dim] -> [dim]


_RECIPES = {
    kind: _Recipe(module, network, weights_key, RECIPES[kind].features, RECIPES[kind].combine)
    for kind, module, network, weights_key in (
        ("ecapa_tdnn", ecapa, ecapa.EcapaTdnn, None),
        ("resemblyzer", resemblyzer, resemblyzer.Resemblyzer, "model_state"),
        ("coqui", coqui, coqui.CoquiEncoder, "model"),
    )
}
