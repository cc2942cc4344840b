"""Recordings to embeddings: what a published speaker encoder reads, and how windows become one.

The network itself is given as a function, so that this is the same whatever runs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from myxtts.audio.io import NOT_A_NUMBER, SILENT, AudioError, check_audible, resample
from myxtts.audio.speaker_features import (
    SAMPLE_RATE,
    coqui_partials,
    ecapa_features,
    resemblyzer_partials,
    trim_long_silences,
)

_RECORDING = "speaker reference"  # what errors call samples that have no file

Network = Callable[[np.ndarray], np.ndarray]  # [windows, frames, bands] -> [windows, dim]


class Recipe(Protocol):
    """What makes one encoder differ from the others, besides its network."""

    @property
    def features(self) -> Callable[[np.ndarray], np.ndarray]:
        """Samples [samples] of 16 kHz to [windows, frames, bands]."""

    @property
    def combine(self) -> Callable[[np.ndarray], np.ndarray]:
        """The embeddings of windows [windows, dim] to one [dim]."""


@dataclass(frozen=True)
class Windows:
    """A recipe that is nothing more than its two functions."""

    features: Callable[[np.ndarray], np.ndarray]
    combine: Callable[[np.ndarray], np.ndarray]


def embed_recordings(
    recordings: Sequence[np.ndarray], sample_rate: int, recipe: Recipe, network: Network
) -> list[np.ndarray | AudioError]:
    """Return the embedding of each recording, or what is wrong with it.

    Windows of the same length go through the network together: many cost little more than one.
    """
    found: list = [_features_or_error(samples, sample_rate, recipe) for samples in recordings]
    usable = [i for i, one in enumerate(found) if not isinstance(one, AudioError)]
    for group in _of_same_length(usable, found):
        windows = network(np.concatenate([found[i] for i in group]))
        ends = np.cumsum([len(found[i]) for i in group])[:-1]
        for i, own in zip(group, np.split(windows, ends), strict=True):
            found[i] = recipe.combine(own)
    return found


def embed_recording(
    samples: np.ndarray, sample_rate: int, recipe: Recipe, network: Network
) -> np.ndarray:
    """Return the embedding of a recording [samples] of any length: float32 [dim]."""
    (found,) = embed_recordings([samples], sample_rate, recipe, network)
    if isinstance(found, AudioError):
        raise found
    return found


def _features_or_error(
    samples: np.ndarray, sample_rate: int, recipe: Recipe
) -> np.ndarray | AudioError:
    try:
        return recipe.features(_at_16_khz(samples, sample_rate))
    except AudioError as error:
        return error


def _of_same_length(chosen: Sequence[int], features: Sequence[np.ndarray]) -> list[list[int]]:
    """Group positions by the frames that their windows [windows, frames, bands] have."""
    groups: dict[int, list[int]] = {}
    for i in chosen:
        groups.setdefault(features[i].shape[1], []).append(i)
    return list(groups.values())


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


RECIPES: dict[str, Windows] = {
    "ecapa_tdnn": Windows(
        lambda samples: ecapa_features(samples)[None], lambda embeddings: embeddings[0]
    ),
    "resemblyzer": Windows(_spoken_partials, _unit_mean),
    "coqui": Windows(coqui_partials, lambda embeddings: embeddings.mean(axis=0)),
}
