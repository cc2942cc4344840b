"""Adam by one operation for each variable: the numbers and the variables of Keras's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.training.fused_adam import FusedAdam, FusedAdamW

KINDS = {FusedAdam: keras.optimizers.Adam, FusedAdamW: keras.optimizers.AdamW}
SHAPES = ((3, 4), (5,), (2, 3, 2))


def trained(kind, steps: int = 6, graph: bool = True, **settings):
    """Variables and all that an optimizer has after some steps of made-up gradients."""
    random = np.random.default_rng(1)
    variables = [
        keras.Variable(random.normal(size=shape).astype(np.float32), name=f"w{number}")
        for number, shape in enumerate(SHAPES)
    ]
    optimizer = kind(0.01, **settings)
    optimizer.build(variables)
    update = tf.function(optimizer.apply) if graph else optimizer.apply
    for _ in range(steps):
        update([tf.constant(random.normal(size=shape).astype(np.float32)) for shape in SHAPES])
    return [*variables, *optimizer.variables]


@pytest.mark.parametrize("fused", KINDS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_ema": True, "ema_momentum": 0.9},
        {"global_clipnorm": 0.5, "beta_1": 0.5, "beta_2": 0.99, "epsilon": 1e-4},
        {"gradient_accumulation_steps": 2, "use_ema": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
def test_numbers_and_variables_are_those_of_keras(fused, settings, graph):
    found = trained(fused, graph=graph, **settings)
    expected = trained(KINDS[fused], graph=graph, **settings)
    assert [one.shape for one in found] == [one.shape for one in expected]
    names = [[v.path.partition("/")[2] for v in of[len(SHAPES) :]] for of in (found, expected)]
    assert names[0] == names[1]
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-6, atol=2e-7)


def test_a_sparse_gradient_counts_as_a_dense_one():
    gradient = tf.IndexedSlices(tf.ones([2, 4]), tf.constant([0, 2]), tf.constant([3, 4]))
    rows = []
    for kind in (FusedAdam, keras.optimizers.Adam):
        variable = keras.Variable(np.ones((3, 4), np.float32))
        optimizer = kind(0.1)
        optimizer.build([variable])
        optimizer.apply([gradient], [variable])
        rows.append(variable.numpy())
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-6)
    assert rows[0][1, 0] == 1.0 and rows[0][0, 0] < 1.0


def test_losses_may_be_scaled():
    variable = keras.Variable(np.ones(3, np.float32))
    optimizer = keras.optimizers.LossScaleOptimizer(FusedAdam(0.1), initial_scale=8.0)
    optimizer.build([variable])
    optimizer.apply([tf.fill([3], 8.0 * 2.0)], [variable])
    np.testing.assert_allclose(variable.numpy(), 0.9, rtol=1e-5)
    optimizer.apply([tf.fill([3], float("inf"))], [variable])
    np.testing.assert_allclose(variable.numpy(), 0.9, rtol=1e-5)


def test_an_update_has_few_operations():
    """What it is there for: Keras has about 20 operations for each variable."""
    counts = {}
    for kind in (FusedAdam, keras.optimizers.Adam):
        variables = [keras.Variable(np.ones(3, np.float32)) for _ in range(10)]
        optimizer = kind(0.1, use_ema=True)
        optimizer.build(variables)
        update = tf.function(lambda *grads, of=optimizer: of.apply(list(grads)))
        graph = update.get_concrete_function(*(tf.ones(3) for _ in variables)).graph
        counts[kind] = len(graph.get_operations())
    assert counts[FusedAdam] < 0.5 * counts[keras.optimizers.Adam]
