"""The numbers that define a log-mel spectrogram, derived once and passed whole."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AudioSpec:
    """Log-mel by the convention of HiFi-GAN and Tacotron 2, so that public vocoder weights fit."""

    sample_rate: int = 22050
    n_fft: int = 1024
    hop_length: int = 256
    win_length: int = 1024
    n_mels: int = 80
    fmin: float = 0.0
    fmax: float = 8000.0
    floor: float = 1e-5

    def seconds(self, frames: float) -> float:
        """How long so many frames last."""
        return frames * self.hop_length / self.sample_rate
