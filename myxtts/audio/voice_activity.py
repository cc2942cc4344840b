"""Where somebody speaks in a recording, by WebRTC's detector; read forward in bounded memory."""

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np
import soxr

from myxtts.audio.slicing import Levels, mixed
from myxtts.errors import UserError

_RATE = 16000
_WINDOW = 160  # samples: 10 ms, the shortest that it takes
_MODE = 2  # of 0 to 3, from hearing voices everywhere to hearing few


def has_detector() -> bool:
    """Whether it is installed."""
    return find_spec("webrtcvad") is not None


def find_voice(levels: Levels, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Whether somebody speaks, [blocks] of the levels, in parts [frames, channels]."""
    try:
        import webrtcvad
    except ModuleNotFoundError:
        raise UserError(
            "the voice detector webrtcvad is not installed: run pip install 'myxtts[speakers]'"
        ) from None
    detector = webrtcvad.Vad(_MODE)
    resampler = soxr.ResampleStream(levels.sample_rate, _RATE, 1, dtype="float32")
    held, flags = np.zeros(0, np.float32), list[bool]()

    def hear(samples: np.ndarray) -> np.ndarray:
        whole = len(samples) - len(samples) % _WINDOW
        pcm = np.clip(np.round(samples[:whole] * 32767.0), -32768, 32767).astype("<i2")
        windows = pcm.reshape(-1, _WINDOW)
        flags.extend(detector.is_speech(row.tobytes(), _RATE) for row in windows)
        return samples[whole:].copy()

    for block in blocks:
        part = resampler.resample_chunk(mixed(block).astype(np.float32))
        held = hear(np.concatenate([held, part]))
    hear(np.concatenate([held, resampler.resample_chunk(np.zeros(0, np.float32), last=True)]))
    return _aligned(np.array(flags, bool), levels)


def _aligned(flags: np.ndarray, levels: Levels) -> np.ndarray:
    """Flags of 10 ms for blocks, which are a little shorter or longer than that."""
    if not len(flags):
        return np.zeros(len(levels.power), bool)
    middles = (np.arange(len(levels.power)) + 0.5) * levels.block / levels.sample_rate
    return flags[np.minimum((middles * _RATE / _WINDOW).astype(int), len(flags) - 1)]
