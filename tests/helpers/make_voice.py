"""Samples that a voice detector takes for speech, where no recording is at hand."""

import numpy as np


def make_voice(seconds: float, sample_rate: int = 16000) -> np.ndarray:
    """Harmonics of 120 Hz under a formant, in syllables: float32 [samples]."""
    time = np.arange(int(sample_rate * seconds)) / sample_rate
    tones = [
        np.exp(-(((120 * k - 600) / 400) ** 2)) * np.sin(2 * np.pi * 120 * k * time)
        for k in range(1, 30)
    ]
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * time)
    return (0.1 * np.sum(tones, axis=0) * syllables).astype(np.float32)
