"""The schedule, clipping, accumulation and averages, by hand-computed numbers."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import TrainingConfig
from myxtts.training.fused_adam import FusedAdam, FusedAdamW
from myxtts.training.optimizer import (
    WarmUp,
    build_optimizer,
    ema_values,
    ema_weights,
)

CALM = {"warmup_steps": 0, "lr_schedule": "constant", "learning_rate": 0.1, "ema_decay": 0.0}


def build(variable, **settings) -> keras.optimizers.Optimizer:
    optimizer = build_optimizer(TrainingConfig(**{**CALM, **settings}), total_steps=100)
    optimizer.build([variable])
    return optimizer


def make_variable(*values: float) -> keras.Variable:
    return keras.Variable(np.array(values, np.float32), name="weight")


def moment(optimizer) -> np.ndarray:
    """Adam's mean of the gradients; after one update a tenth of what it was given."""
    (found,) = [v for v in optimizer.variables if "momentum" in v.path]
    return found.numpy()


def test_the_learning_rate_rises_and_falls():
    rate = WarmUp(peak=1e-3, warmup=4, total=12, final=1e-4)
    # A quarter at first; half of a cosine between 1e-3 and 1e-4 over the eight steps after.
    expected = {0: 2.5e-4, 1: 5e-4, 3: 1e-3, 4: 1e-3, 8: 5.5e-4, 12: 1e-4, 500: 1e-4}
    for step, value in expected.items():
        assert float(rate(step)) == pytest.approx(value, rel=1e-5), step


def test_without_a_warm_up_it_begins_at_the_peak_and_constant_means_constant():
    assert float(WarmUp(1e-3, 0, 10, 1e-4)(0)) == pytest.approx(1e-3)
    optimizer = build(make_variable(1.0), learning_rate=0.25)
    assert float(optimizer.learning_rate) == 0.25
    optimizer.iterations.assign(90)
    assert float(optimizer.learning_rate) == 0.25


def test_the_configured_schedule_is_the_one_that_is_used():
    settings = TrainingConfig(learning_rate=1e-3, min_learning_rate=1e-4, warmup_steps=4)
    optimizer = build_optimizer(settings, total_steps=12)
    optimizer.build([make_variable(1.0)])
    for step, value in {0: 2.5e-4, 8: 5.5e-4, 12: 1e-4}.items():
        optimizer.iterations.assign(step)
        assert float(optimizer.learning_rate) == pytest.approx(value, rel=1e-5)


def test_all_gradients_together_are_clipped():
    variable = make_variable(0.0, 0.0)
    optimizer = build(variable, gradient_clip_norm=1.0)
    optimizer.apply([tf.constant([3.0, 4.0])], [variable])
    np.testing.assert_allclose(moment(optimizer), [0.06, 0.08], rtol=1e-5)


def test_a_norm_of_zero_means_no_clipping():
    variable = make_variable(0.0, 0.0)
    optimizer = build(variable, gradient_clip_norm=0.0)
    optimizer.apply([tf.constant([3.0, 4.0])], [variable])
    np.testing.assert_allclose(moment(optimizer), [0.3, 0.4], rtol=1e-5)


def test_accumulation_makes_one_update_of_the_mean_of_several_batches():
    variable = make_variable(1.0, 1.0)
    optimizer = build(variable, gradient_accumulation_steps=3, gradient_clip_norm=0.0)
    for gradient in ([3.0, 0.0], [0.0, 6.0]):
        optimizer.apply([tf.constant(gradient)], [variable])
        np.testing.assert_array_equal(variable.numpy(), [1.0, 1.0])
    optimizer.apply([tf.constant([0.0, 3.0])], [variable])
    np.testing.assert_allclose(moment(optimizer), [0.1, 0.3], rtol=1e-5)
    # Adam's first update is the learning rate in the direction of each gradient.
    np.testing.assert_allclose(variable.numpy(), [0.9, 0.9], rtol=1e-4)


def test_with_accumulation_the_schedule_counts_batches():
    settings = TrainingConfig(
        learning_rate=1e-3, min_learning_rate=0.0, warmup_steps=4, gradient_accumulation_steps=2
    )
    variable = make_variable(1.0)
    optimizer = build_optimizer(settings, total_steps=12)
    optimizer.build([variable])
    rates = []
    for _ in range(12):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([tf.constant([1.0])], [variable])
    # Four batches of warm-up, then a cosine over eight: 1, .96, .85, .69, .5, .31, .15, .04.
    cosine = [0.5 + 0.5 * math.cos(math.pi * done / 8) for done in range(8)]
    np.testing.assert_allclose(np.array(rates) * 1e3, [0.25, 0.5, 0.75, 1, *cosine], atol=1e-5)


def test_the_averages_are_those_of_the_weights_after_each_update():
    variable = make_variable(1.0)
    optimizer = build(variable, ema_decay=0.9)
    weights = []
    for _ in range(3):
        optimizer.apply([tf.constant([1.0])], [variable])
        weights.append(float(variable.numpy()[0]))
    # The first is taken as it is; then nine tenths of the old and one of the new.
    expected = 0.9 * (0.9 * weights[0] + 0.1 * weights[1]) + 0.1 * weights[2]
    (average,) = ema_values(optimizer, [variable])
    assert float(average.numpy()[0]) == pytest.approx(expected, rel=1e-6)


@pytest.fixture
def averaged():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    optimizer = build_optimizer(TrainingConfig(**{**CALM, "ema_decay": 0.5}), 10)
    optimizer.build(model.trainable_variables)
    for gradient in (1.0, -2.0):
        optimizer.apply([tf.fill(v.shape, gradient) for v in model.trainable_variables])
    return model, optimizer


def test_a_model_borrows_the_averages_and_gets_its_own_weights_back(averaged):
    model, optimizer = averaged
    own = [variable.numpy() for variable in model.trainable_variables]
    expected = [v.numpy() for v in ema_values(optimizer, model.trainable_variables)]
    assert not np.array_equal(own[0], expected[0])
    with pytest.raises(RuntimeError), ema_weights(model, optimizer):
        for variable, average in zip(model.trainable_variables, expected, strict=True):
            np.testing.assert_array_equal(variable.numpy(), average)
        raise RuntimeError("even then")
    for variable, value in zip(model.trainable_variables, own, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_without_averages_a_model_keeps_its_weights():
    variable = make_variable(1.0)
    assert ema_values(build(variable), [variable]) is None


def test_weight_decay_is_decoupled():
    assert type(build(make_variable(1.0))) is FusedAdam
    variable = make_variable(1.0)
    optimizer = build(variable, weight_decay=0.5)
    assert type(optimizer) is FusedAdamW
    optimizer.apply([tf.constant([0.0])], [variable])
    assert float(variable.numpy()[0]) == pytest.approx(1 - 0.1 * 0.5)


@pytest.mark.parametrize(
    ("policy", "is_scaled"),
    [("float32", False), ("mixed_bfloat16", False), ("mixed_float16", True)],
)
def test_losses_are_scaled_where_float16_needs_it(policy, is_scaled):
    keras.config.set_dtype_policy(policy)
    try:
        variable = make_variable(0.0, 0.0)
        optimizer = build(variable, ema_decay=0.9, gradient_clip_norm=0.0)
    finally:
        keras.config.set_dtype_policy("float32")
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer) == is_scaled
    scaled = optimizer.scale_loss(tf.constant(1.0))
    optimizer.apply([scaled * tf.constant([3.0, 4.0])], [variable])
    np.testing.assert_allclose(moment(optimizer), [0.3, 0.4], rtol=1e-5)
    (average,) = ema_values(optimizer, [variable])
    np.testing.assert_array_equal(average.numpy(), variable.numpy())
