"""Griffin-Lim: the vocoder that needs no training."""

from typing import Any

import numpy as np

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.vocoders.base import Vocoder, Window


class GriffinLim(Vocoder):
    """Finds phases for the mel's magnitudes by iteration, in NumPy."""

    kind = "griffin_lim"

    def __init__(self, spec: AudioSpec):
        self.spec, self.hop, self.n_mels = spec, spec.hop_length, spec.n_mels

    def generate(
        self, mel: np.ndarray, state: Any = None, seed: int = 0, window: Window | None = None
    ) -> tuple[np.ndarray, Any]:
        start, stop, _ = window or Window(0, len(mel))
        return griffin_lim(mel, self.spec, seed)[start * self.hop : stop * self.hop], state
