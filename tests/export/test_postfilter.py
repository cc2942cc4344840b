"""The post-filter in the graph against the one in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.postfilter import BINS, sharpen
from myxtts.export.postfilter import Sharpening


@pytest.mark.parametrize("frames", [1, 7, 8, 100])
def test_it_sharpens_as_numpy_does(frames):
    random = np.random.default_rng(0)
    gains = random.uniform(1.0, 1.9, (BINS, 20)).astype(np.float32)
    mel = random.normal(-5, 2, (frames, 20)).astype(np.float32)
    found = Sharpening(gains)(tf.constant(mel)).numpy()
    np.testing.assert_allclose(found, sharpen(mel, gains), atol=1e-5)
