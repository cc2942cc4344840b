"""What the vocoders that are Keras models share: how they generate and what training asks for."""

from functools import cached_property
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf

from myxtts.models.vocoders.base import Vocoder, Window


class NeuralVocoder(Vocoder, keras.Model):
    """A vocoder with weights: `call` takes log-mels [batch, frames, mels].

    Besides, a kind has `hop` and `n_mels`, and whatever of `Vocoder` it can do.
    """

    has_weights: ClassVar[bool] = True
    predicts_pitch: ClassVar[bool] = False  # and is trained on the recording's

    def to_settings(self) -> dict[str, Any]:
        """What it can be built from again, as JSON keeps it."""
        return self.settings

    def waveform(self, mel: tf.Tensor) -> tf.Tensor:
        """The waveforms [batch, frames * hop] of mels."""
        return self(mel)

    def training_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The `waveform` of a batch; and the `pitch` [batch, frames] in Hz, if it predicts one."""
        return {"waveform": self.waveform(batch["mel"])}

    def prepared(self) -> "NeuralVocoder":
        _ = self.inference_function  # now, before several threads ask for it
        return self

    def generate(
        self, mel: np.ndarray, state: Any = None, seed: int = 0, window: Window | None = None
    ) -> tuple[np.ndarray, Any]:
        start, stop, _ = window or Window(0, len(mel))
        return self.inference_function(mel[None])[
            0, start * self.hop : stop * self.hop
        ].numpy(), state

    @cached_property
    def inference_function(self) -> tf.types.experimental.PolymorphicFunction:
        """`waveform`, compiled once for mels of all lengths."""
        return tf.function(self.waveform, input_signature=[self._mel_signature])

    @property
    def _mel_signature(self) -> tf.TensorSpec:
        return tf.TensorSpec([None, None, self.n_mels], tf.float32)
