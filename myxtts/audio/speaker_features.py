"""The input features of the published speaker encoders, from 16 kHz samples, in NumPy.

Each follows the definition that its public weights were trained with, peculiarities included:
SpeechBrain's for ECAPA-TDNN, Resemblyzer's, and Coqui TTS's for its ResNet. All are evaluated in
float64, which costs milliseconds, and returned as float32.
"""

from functools import lru_cache
from typing import Literal

import numpy as np

from myxtts.audio.mel import mel_filterbank
from myxtts.audio.transforms import rfft
from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError

SAMPLE_RATE = 16000
HOP = 160
_WINDOW = 400  # 25 ms, in all three

ECAPA_BANDS = 80
_ECAPA_FLOOR, _ECAPA_RANGE_DB = 1e-10, 80.0

RESEMBLYZER_BANDS = 40
RESEMBLYZER_FRAMES = 160  # of one partial window
_RESEMBLYZER_STEP = 77  # frames from one window to the next: 1.3 windows a second
_MIN_COVERAGE = 0.75  # of the last window, or it is dropped
_RESEMBLYZER_DBFS = -30.0

_VAD_SAMPLES = 480  # 30 ms
_VAD_MODE = 3  # the strictest
_VAD_AVERAGED, _VAD_DILATED = 8, 7  # windows

COQUI_BANDS = 64
COQUI_WINDOWS = 10
_COQUI_SAMPLES = 250 * HOP  # of one window
_COQUI_FFT = 512
_COQUI_PRE_EMPHASIS = 0.97
_COQUI_DBFS = -27.0
_COQUI_LOG_OFFSET, _COQUI_NORM_EPSILON = 1e-6, 1e-5


def ecapa_features(samples: np.ndarray) -> np.ndarray:
    """Return SpeechBrain's filterbank in dB, without each band's mean: float32 [frames, 80]."""
    power = _power_spectra(samples, hamming_window(), _WINDOW, "constant")
    decibel = 10.0 * np.log10(np.maximum(power @ ecapa_filters(), _ECAPA_FLOOR))
    decibel = np.maximum(decibel, decibel.max() - _ECAPA_RANGE_DB)
    return (decibel - decibel.mean(axis=0)).astype(np.float32)


def resemblyzer_mel(samples: np.ndarray) -> np.ndarray:
    """Return Resemblyzer's mel of powers, without a logarithm: float32 [frames, 40]."""
    power = _power_spectra(samples, hann_window(), _WINDOW, "constant")
    return (power @ resemblyzer_filters()).astype(np.float32)


def resemblyzer_windows(num_samples: int) -> np.ndarray:
    """Return the first frames of the windows that cover so many samples."""
    frames = -(-(num_samples + 1) // HOP)
    end = max(1, frames - RESEMBLYZER_FRAMES + _RESEMBLYZER_STEP + 1)
    starts = np.arange(0, end, _RESEMBLYZER_STEP)
    coverage = (num_samples - HOP * starts[-1]) / (HOP * RESEMBLYZER_FRAMES)
    return starts[:-1] if len(starts) > 1 and coverage < _MIN_COVERAGE else starts


def resemblyzer_partials(samples: np.ndarray) -> np.ndarray:
    """Return the mels of all windows, the last one filled up with silence: [windows, 160, 40]."""
    starts = resemblyzer_windows(len(samples))
    missing = HOP * (starts[-1] + RESEMBLYZER_FRAMES) - len(samples)
    mel = resemblyzer_mel(np.pad(samples, (0, max(0, missing))))
    return np.stack([mel[start : start + RESEMBLYZER_FRAMES] for start in starts])


def trim_long_silences(samples: np.ndarray) -> np.ndarray:
    """Raise what is quiet to -30 dBFS and cut long pauses out, as Resemblyzer does."""
    samples = _raised(samples)
    samples = samples[: len(samples) // _VAD_SAMPLES * _VAD_SAMPLES]
    voiced = np.pad(_voice_flags(samples), ((_VAD_AVERAGED - 1) // 2, _VAD_AVERAGED // 2))
    if not voiced.any():
        return samples[:0]
    counts = np.convolve(voiced, np.ones(_VAD_AVERAGED, int), "valid")
    # More than half of the windows around: exactly half is silence.
    near = np.convolve(2 * counts > _VAD_AVERAGED, np.ones(_VAD_DILATED, int), "full")
    kept = near[_VAD_DILATED // 2 :][: len(counts)] > 0
    return samples[np.repeat(kept, _VAD_SAMPLES)]


def coqui_features(samples: np.ndarray) -> np.ndarray:
    """Return the log-mel of one window, each band of mean 0 and variance 1: [frames, 64]."""
    emphasised = np.asarray(samples, np.float64).copy()
    # The sample before the first is the second one: Coqui reflects there.
    emphasised[1:] -= _COQUI_PRE_EMPHASIS * samples[:-1]
    emphasised[0] -= _COQUI_PRE_EMPHASIS * samples[1]
    power = _power_spectra(emphasised, hamming_window(), _COQUI_FFT, "reflect")
    mel = np.log(power @ coqui_filters() + _COQUI_LOG_OFFSET)
    variance = mel.var(axis=0) + _COQUI_NORM_EPSILON
    return ((mel - mel.mean(axis=0)) / np.sqrt(variance)).astype(np.float32)


def coqui_windows(num_samples: int) -> np.ndarray:
    """Return the first samples of the windows that Coqui takes: ten of 2.5 s, or one."""
    spare = num_samples - _COQUI_SAMPLES
    if spare <= 0:  # ten times the same, whose mean is any of them
        return np.zeros(1, int)
    return np.linspace(0, spare, COQUI_WINDOWS).astype(int)


def coqui_partials(samples: np.ndarray) -> np.ndarray:
    """Return the features of all windows of samples brought to -27 dBFS: [windows, frames, 64]."""
    samples = np.asarray(samples, np.float64)
    samples = samples * (10.0 ** (_COQUI_DBFS / 20.0) / np.sqrt(np.mean(samples**2)))
    starts = coqui_windows(len(samples))
    return np.stack([coqui_features(samples[start:][:_COQUI_SAMPLES]) for start in starts])


@lru_cache(maxsize=1)
def ecapa_filters() -> np.ndarray:
    """Return SpeechBrain's filters [201, 80]: both sides as wide as the distance to the lower one.

    On the mel scale a triangle would reach farther up than down; these are symmetric in Hz.
    """
    points = _htk_points(ECAPA_BANDS)
    centres, widths = points[1:-1], np.diff(points)[:-1]
    distances = np.abs(_bins(_WINDOW)[:, None] - centres)
    return np.maximum(0.0, 1.0 - distances / widths)


@lru_cache(maxsize=1)
def resemblyzer_filters() -> np.ndarray:
    """Return Slaney's filters of equal area [201, 40]."""
    spec = AudioSpec(SAMPLE_RATE, _WINDOW, HOP, _WINDOW, RESEMBLYZER_BANDS, 0.0, SAMPLE_RATE / 2)
    return mel_filterbank(spec).T.astype(np.float64)


@lru_cache(maxsize=1)
def coqui_filters() -> np.ndarray:
    """Return torchaudio's triangles of unit height on the HTK scale [257, 64]."""
    points = _htk_points(COQUI_BANDS)
    lower, centre, upper = points[:-2], points[1:-1], points[2:]
    bins = _bins(_COQUI_FFT)[:, None]
    triangles = np.minimum((bins - lower) / (centre - lower), (upper - bins) / (upper - centre))
    return np.maximum(triangles, 0.0)


def _power_spectra(
    samples: np.ndarray, window: np.ndarray, fft_size: int, padding: Literal["constant", "reflect"]
) -> np.ndarray:
    """Return the powers [frames, bins] of frames that are centred every 10 ms."""
    padded = np.pad(np.asarray(samples, np.float64), fft_size // 2, mode=padding)
    frames = np.lib.stride_tricks.sliding_window_view(padded, fft_size)[::HOP]
    side = (fft_size - len(window)) // 2
    spectra = rfft(frames * np.pad(window, side))
    return np.square(spectra.real) + np.square(spectra.imag)


def hamming_window() -> np.ndarray:
    return 0.54 - 0.46 * _periodic_cosine()


def hann_window() -> np.ndarray:
    return 0.5 - 0.5 * _periodic_cosine()


def _periodic_cosine() -> np.ndarray:
    return np.cos(2.0 * np.pi * np.arange(_WINDOW) / _WINDOW)


def _htk_points(bands: int) -> np.ndarray:
    """Return the edges and centres in Hz of filters that are equally spaced on the HTK scale."""
    highest = 2595.0 * np.log10(1.0 + SAMPLE_RATE / 2 / 700.0)
    return 700.0 * (10.0 ** (np.linspace(0.0, highest, bands + 2) / 2595.0) - 1.0)


def _bins(fft_size: int) -> np.ndarray:
    return np.arange(fft_size // 2 + 1) * (SAMPLE_RATE / fft_size)


def _raised(samples: np.ndarray) -> np.ndarray:
    level = np.sqrt(np.mean(np.square(samples, dtype=np.float64)))
    wanted = 10.0 ** (_RESEMBLYZER_DBFS / 20.0)
    return samples * np.float32(wanted / level) if 0.0 < level < wanted else samples


def _voice_flags(samples: np.ndarray) -> np.ndarray:
    """Ask WebRTC's detector for each 30 ms whether somebody speaks: [windows] of 0 and 1."""
    try:
        import webrtcvad
    except ModuleNotFoundError:
        raise UserError(
            "Resemblyzer's encoder needs the voice detector webrtcvad, which is not installed; "
            "run pip install 'myxtts[speakers]'"
        ) from None
    detector = webrtcvad.Vad(_VAD_MODE)
    pcm = np.clip(np.round(samples * 32767.0), -32768, 32767).astype("<i2")
    windows = pcm.reshape(-1, _VAD_SAMPLES)
    return np.array([detector.is_speech(row.tobytes(), SAMPLE_RATE) for row in windows], int)
