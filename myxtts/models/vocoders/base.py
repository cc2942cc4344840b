"""What every vocoder is: a class with a row in `config.vocoders.VOCODERS`."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import ConfigError, ModelConfig
from myxtts.errors import UserError

# A multiple of the period of any vocoder's noise and clock, far below what int32 can count.
PLACES = 2**20


class Size(NamedTuple):
    """About how many weights a vocoder has, and in how many layers."""

    weights: int
    layers: int


class Window(NamedTuple):
    """The frames of a mel that are wanted; the others are context.

    `first` is the place of the mel's first frame in the utterance.
    """

    start: int
    stop: int
    first: int = 0

    def place(self, seed: int) -> int:
        """The place of the first frame in the noise of a seed, which may be any whole number."""
        return (self.first + seed) % PLACES


class Vocoder:
    """Log-mels [frames, mels] to samples [frames * hop_length].

    A kind without weights is built from an AudioSpec, and has only to generate. One with weights
    is a `NeuralVocoder`, and is built from its settings, which are kept as JSON.
    """

    kind: ClassVar[str]  # its key in the table
    has_weights: ClassVar[bool] = False
    is_adversarial: ClassVar[bool] = False  # trained so, unless the configuration decides
    edge_frames: ClassVar[int] = 0  # at the ends of a segment that training does not score
    # Frames on each side that decide about a sample; infinite: the whole mel.
    context_frames: float = math.inf
    n_mels: int  # bands of the mels that it takes

    def generate(
        self, mel: np.ndarray, state: Any = None, seed: int = 0, window: Window | None = None
    ) -> tuple[np.ndarray, Any]:
        """Samples of a mel or of a window of it, and the state for what follows it.

        An utterance begins without a state. Where nothing is carried over there is none.
        """
        raise NotImplementedError

    def prepared(self) -> "Vocoder":
        """The vocoder in the form that generates fastest; that one is not trained any more."""
        return self

    @classmethod
    def settings_from(cls, config: ModelConfig, spec: AudioSpec) -> dict[str, Any]:
        """The settings that a configuration asks for."""
        raise NotImplementedError

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any], spec: AudioSpec) -> Size:
        """How large a vocoder of these settings is; a ConfigError names what cannot be."""
        raise ConfigError(f"{cls.kind} has no weights, and so no settings")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    @classmethod
    def load_published(cls, path) -> Self:
        """Read a checkpoint of the authors; its mels are those of the default AudioSpec."""
        raise UserError(f"{path}: there are no published checkpoints of {cls.kind}")

    def check_frames(self, spec: AudioSpec) -> None:
        """Raise for mels of another hop than the vocoder's."""
        if self.hop != spec.hop_length:
            raise UserError(
                f"the vocoder makes {self.hop} samples of a frame, and a frame of this data has "
                f"{spec.hop_length}: set data.hop_length, or choose another --vocoder"
            )
