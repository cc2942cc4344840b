"""A recording of several sentences with pauses between them, of voiced-like signals."""

from pathlib import Path

import numpy as np
import soundfile

from tests.helpers.make_corpus import _voiced

RATE = 22050


def make_recording(path: Path, sentences: int = 4, seed: int = 0) -> Path:
    """Write sentences of two seconds with a pause of a second behind each."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(sentences):
        parts += [_voiced(rng, 2.0, RATE, 120.0), np.zeros(RATE)]
    samples = np.concatenate(parts) + 1e-4 * rng.standard_normal(sum(map(len, parts)))
    soundfile.write(path, samples, RATE, subtype="PCM_16")
    return path
