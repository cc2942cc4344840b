"""What runs a voice: the one interface between a synthesizer and the model, in Keras or in ONNX.

`myxtts.models.xtts.XTTS` and `myxtts.models.onnx.model.OnnxModel` have these methods, and a
vocoder's side is `myxtts.models.vocoders.base.Vocoder`. All else that a synthesizer does is NumPy,
and the same for both.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np


class Engine(Protocol):
    """Embeds references and says tokens; arrays or tensors, which NumPy reads, come back."""

    wants_embeddings: bool  # of a published encoder, instead of mels
    published_voice: Any  # has that `speaker_encoder`, if it wants them
    can_vary: bool  # whether there is a `synthesize_varied`

    def encode_voice(self, mel: np.ndarray, lengths: np.ndarray) -> Any:
        """Speaker embeddings [batch, voice_dim] of mels [batch, frames, mels]."""

    def encode_embedding(self, embedding: np.ndarray) -> Any:
        """Speaker embeddings [batch, voice_dim] of a published encoder's [batch, dim]."""

    def styled(self, voice: np.ndarray, weights: np.ndarray | None = None) -> Any:
        """Speaker embeddings with their style, or with one mixed by weights [batch, tokens]."""

    def synthesize(
        self,
        tokens: np.ndarray,
        text_lengths: np.ndarray,
        language: np.ndarray,
        voice: np.ndarray,
        speaking_rate: np.ndarray,
    ) -> Mapping[str, Any]:
        """`mel` [batch, frames, mels], `mel_lengths` [batch] and `durations` [batch, tokens]."""

    def synthesize_varied(self, *said: Any) -> Mapping[str, Any]:
        """The same from these arguments, a seed and how much melody and tempo vary with it."""

    def synthesize_refined(self, *said: Any) -> Mapping[str, Any]:
        """The same from these arguments, the seed, the temperature and the steps of a refiner."""
