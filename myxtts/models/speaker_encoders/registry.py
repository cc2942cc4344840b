"""The published speaker encoders: from a recording to a speaker embedding."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.io import NOT_A_NUMBER, SILENT, AudioError, check_audible, resample
from myxtts.audio.speaker_features import (
    SAMPLE_RATE,
    coqui_partials,
    ecapa_features,
    resemblyzer_partials,
    trim_long_silences,
)
from myxtts.models.speaker_encoders import coqui, ecapa, resemblyzer
from myxtts.weights import check_fit

_RECORDING = "speaker reference"  # what errors call samples that have no file


class SpeakerEncoder:
    """A network, and how a recording becomes its input and its output one embedding.

    The embedding is the published one once the public weights are loaded; a new network's
    weights are random.
    """

    sample_rate = SAMPLE_RATE

    def __init__(self, kind: str, network: keras.layers.Layer):
        self.kind, self.network = kind, network
        self._recipe = _recipe_of(kind)
        self.dim = self._recipe.module.DIM
        shape = (None, None, self._recipe.module.BANDS)
        # One graph for all lengths.
        self._embeddings = tf.function(
            lambda features: self.network(features),
            input_signature=[tf.TensorSpec(shape, tf.float32)],
        )

    def embed(self, samples: np.ndarray, sample_rate: int) -> np.ndarray:
        """Return the embedding of a recording [samples] of any length: float32 [dim]."""
        (found,) = self.embed_many([samples], sample_rate)
        if isinstance(found, AudioError):
            raise found
        return found

    def embed_many(
        self, recordings: Sequence[np.ndarray], sample_rate: int
    ) -> list[np.ndarray | AudioError]:
        """Return the embedding of each recording, or what is wrong with it.

        Windows of the same length go through the network together: many cost little more than one.
        """
        found: list = [self._features_or_error(samples, sample_rate) for samples in recordings]
        usable = [i for i, one in enumerate(found) if not isinstance(one, AudioError)]
        for group in _of_same_length(usable, found):
            windows = self._embeddings(np.concatenate([found[i] for i in group])).numpy()
            ends = np.cumsum([len(found[i]) for i in group])[:-1]
            for i, own in zip(group, np.split(windows, ends), strict=True):
                found[i] = self._recipe.combine(own)
        return found

    def _features_or_error(
        self, samples: np.ndarray, sample_rate: int
    ) -> "np.ndarray | AudioError":
        try:
            return self._recipe.features(_at_16_khz(samples, sample_rate))
        except AudioError as error:
            return error

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


def _of_same_length(chosen: Sequence[int], features: Sequence[np.ndarray]) -> list[list[int]]:
    """Group positions by the frames that their windows [windows, frames, bands] have."""
    groups: dict[int, list[int]] = {}
    for i in chosen:
        groups.setdefault(features[i].shape[1], []).append(i)
    return list(groups.values())


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


def _at_16_khz(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    samples = np.asarray(samples, np.float32)
    if samples.ndim != 1:
        raise ValueError(f"samples must have one axis, not the shape {samples.shape}")
    if not np.isfinite(samples).all():
        raise AudioError(_RECORDING, NOT_A_NUMBER, "it holds NaN or infinite values")
    samples = resample(samples, sample_rate, SAMPLE_RATE)
    check_audible(samples, _RECORDING)
    return samples


def _spoken_partials(samples: np.ndarray) -> np.ndarray:
    spoken = trim_long_silences(samples)
    if not len(spoken):
        raise AudioError(_RECORDING, SILENT, "it has no speech; choose another recording")
    return resemblyzer_partials(spoken)


def _unit_mean(embeddings: np.ndarray) -> np.ndarray:
    mean = embeddings.mean(axis=0)
    return mean / np.linalg.norm(mean)


_RECIPES = {
    "ecapa_tdnn": _Recipe(
        module=ecapa,
        network=ecapa.EcapaTdnn,
        weights_key=None,
        features=lambda samples: ecapa_features(samples)[None],
        combine=lambda embeddings: embeddings[0],
    ),
    "resemblyzer": _Recipe(
        module=resemblyzer,
        network=resemblyzer.Resemblyzer,
        weights_key="model_state",
        features=_spoken_partials,
        combine=_unit_mean,
    ),
    "coqui": _Recipe(
        module=coqui,
        network=coqui.CoquiEncoder,
        weights_key="model",
        features=coqui_partials,
        combine=lambda embeddings: embeddings.mean(axis=0),
    ),
}
