"""A vocoder's update from the parts of a batch: each counts by its share of the segments."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.cluster.replicas import ALONE
from myxtts.data.batches.parts import Share
from myxtts.models.vocoders.discriminators import MultiPeriodDiscriminator
from myxtts.training.vocoder.losses import SpectralLoss
from myxtts.training.vocoder.part_steps import (
    make_adversarial_parts_step,
    make_spectral_parts_step,
)
from myxtts.training.vocoder.steps import Adversaries, completed, generate
from tests.helpers.tiny_vocoder import SMALL, make_pieces, tiny_vocoder
from tests.training.vocoder.test_steps import FRAMES, signature, values

LOSS = SpectralLoss(SMALL)
SHARE = Share(2)
BATCH = make_pieces(4, FRAMES) | {"part": tf.constant([0, 0, 0, 1])}
SIGNATURE = signature() | {"part": tf.TensorSpec([None], tf.int32)}


def weighted_parts(of_part) -> float:
    """Three quarters of the first part's value and a quarter of the second's, in step 1."""
    batch = completed({name: values for name, values in BATCH.items() if name != "part"})
    total = 0.0
    for rows, weight, draw in ((slice(0, 3), 0.75, 2), (slice(3, 4), 0.25, 3)):
        part = {n: x[rows] if x.shape.rank else tf.constant(draw) for n, x in batch.items()}
        total += weight * float(of_part(part))
    return total


def test_a_part_counts_by_its_share_of_the_segments():
    model = tiny_vocoder(SMALL)
    expected = {
        "mel_loss": weighted_parts(lambda part: LOSS.mel(*generate(model, part)[:2])),
        "stft_loss": weighted_parts(lambda part: LOSS.stft(*generate(model, part)[:2])),
        "pitch_loss": weighted_parts(lambda part: generate(model, part)[2]["pitch_loss"]),
    }
    before, rate = values(model), keras.optimizers.SGD(1e-2)
    step = make_spectral_parts_step(model, rate, LOSS, SIGNATURE, replicas=ALONE, share=SHARE)
    found = step.read(step(BATCH, 1))
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert all(np.any(old != new) for old, new in zip(before, values(model), strict=True))


def test_the_discriminators_learn_from_all_parts_at_once():
    model = tiny_vocoder(SMALL)
    judge = MultiPeriodDiscriminator(width=32)
    judge.build((None, None))

    def doubt(part) -> tf.Tensor:
        generated, recorded, _ = generate(model, part)
        return Adversaries([judge]).doubt(recorded, generated)

    expected = weighted_parts(doubt)
    optimizers = [keras.optimizers.SGD(1e-3) for _ in range(2)]
    step = make_adversarial_parts_step(
        model, optimizers[0], [judge], optimizers[1], LOSS, SIGNATURE, replicas=ALONE, share=SHARE
    )
    before = values(judge)
    found = step.read(step(BATCH, 1))
    assert found["discriminator_loss"] == pytest.approx(expected, rel=1e-5)
    assert any(np.any(old != new) for old, new in zip(before, values(judge), strict=True))
