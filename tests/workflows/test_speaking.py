"""Recordings as a vocoder makes them."""

import numpy as np
import scipy.linalg  # noqa: F401  (loads a BLAS of its own, which later would know no limit)

from myxtts.audio.mel import num_frames
from myxtts.config.audio_spec import AudioSpec
from myxtts.workflows.speaking import resynthesise
from tests.audio.test_threads import blas_threads


def test_recordings_are_resynthesised_in_order_with_one_thread_for_each():
    spec, seen = AudioSpec(), []
    recorded = [np.full(length, 0.1, np.float32) for length in (5000, 9000, 7000)]

    def vocoder(mel, spec, seed):
        seen.append(blas_threads())
        return np.zeros(len(mel) * spec.hop_length, np.float32)

    found = resynthesise(recorded, vocoder, spec)
    frames = [num_frames(len(one), spec) for one in recorded]
    assert [len(one) // spec.hop_length for one in found] == frames
    assert seen == [{1}] * 3
