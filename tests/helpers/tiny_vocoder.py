"""A vocoder of a few thousand weights, and pieces for it, for tests of models and of training."""

from dataclasses import asdict

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.models.vocoders.istft import ISTFTVocoder
from myxtts.models.vocoders.registry import vocoder_of
from tests.helpers.make_corpus import _voiced

SPEC = AudioSpec()
# A quarter of the samples: for all that is computed more than once.
SMALL = AudioSpec(8000, n_fft=256, hop_length=64, win_length=256, n_mels=20, fmax=3600.0)


def tiny_vocoder(
    spec: AudioSpec = SPEC, *, seed: int = 1, noise: float = 0.1, **settings
) -> ISTFTVocoder:
    """A vocoder of which no weight is zero, so that it hears another pitch in every frame."""
    keras.utils.set_random_seed(seed)
    settings = {"dim": 16, "blocks": 1, "projections": 1, **settings}
    model = vocoder_of("istft", {"spec": asdict(spec), **settings})
    random = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        weight.assign(weight + noise * random.normal(size=weight.shape))
    return model


def voiced(frames: int, spec: AudioSpec = SPEC, hz: float = 120.0, seed: int = 0) -> np.ndarray:
    """Samples [frames * hop_length] of a gliding pitch with a little noise."""
    seconds = frames * spec.hop_length / spec.sample_rate
    return _voiced(np.random.default_rng(seed), seconds, spec.sample_rate, hz).astype(np.float32)


def voiced_mel(frames: int, spec: AudioSpec = SPEC, **how) -> np.ndarray:
    """The log-mel [1, frames, mels] of such a signal."""
    return log_mel(voiced(frames, spec, **how), spec)[None]


def make_pieces(rows: int, frames: int, spec: AudioSpec = SMALL) -> dict[str, tf.Tensor]:
    """A batch as `data.pieces` makes it, of voiced signals."""
    waves = [voiced(frames, spec, hz=110.0 + 30 * row, seed=row) for row in range(rows)]
    return {
        "mel": tf.constant([log_mel(wave, spec) for wave in waves], tf.float16),
        "pitch": tf.constant([pitch(wave, spec) for wave in waves]),
        "waveform": tf.constant(np.round(np.stack(waves) * 32768.0).astype(np.int16)),
        "first_frame": tf.constant(7),
        "index": tf.range(rows, dtype=tf.int64),
    }
