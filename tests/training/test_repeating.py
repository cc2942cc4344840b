"""What a step that ran out of memory had counted already is put back, where that can be told."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import variables_of
from myxtts.training.fused_adam import FusedAdam
from myxtts.training.repeating import ITERATIONS, Counters

DRAWS = np.array([0, 2])  # of a step, by its seed


def after(steps: int, waits: bool = True, **more) -> tuple[dict, Counters]:
    """The variables after some steps, and what knows them from the beginning."""
    variables = {
        "dropout/seed": tf.Variable([7, 100], dtype=tf.int64),
        "optimizer/iteration": tf.Variable(40, dtype=tf.int64),
        "weights": tf.Variable([0.5]),
        **more,
    }
    counters = Counters(variables, waits)
    variables["dropout/seed"].assign_add(steps * DRAWS)
    variables["optimizer/iteration"].assign_add(steps)
    return variables, counters


@pytest.mark.parametrize("steps", [0, 3, 50])
@pytest.mark.parametrize(("draws", "updates"), [(0, 0), (1, 0), (2, 1)])
def test_the_counts_of_a_part_of_a_step_are_put_back(steps, draws, updates):
    variables, counters = after(steps)
    variables["dropout/seed"].assign_add([0, draws])
    variables["optimizer/iteration"].assign_add(updates)
    variables["weights"].assign([0.25])
    assert counters.is_simple and counters.rewind(steps, single=True)
    assert variables["dropout/seed"].numpy().tolist() == [7, 100 + 2 * steps]
    assert variables["optimizer/iteration"].numpy() == 40 + steps
    assert variables["weights"].numpy() == 0.25


def test_a_step_that_was_taken_within_a_call_cannot_be_taken_again():
    variables, counters = after(8)
    assert counters.rewind(8, single=False)
    variables["optimizer/iteration"].assign_add(1)
    assert not counters.rewind(8, single=False)
    assert variables["optimizer/iteration"].numpy() == 49


def test_what_does_not_grow_evenly_is_left_alone():
    variables, counters = after(8)
    variables["dropout/seed"].assign_add([0, 5])  # more than a step draws
    assert not counters.rewind(8, single=True)
    assert variables["dropout/seed"].numpy().tolist() == [7, 121]


@pytest.mark.parametrize(
    "early",
    [
        "adversary/iteration",
        "optimizer/dynamic_scale",
        "optimizer/kernel_gradient_accumulator",
        "balance/means",
    ],
)
def test_what_a_step_changes_early_rules_it_out(early):
    assert not after(1, **{early: tf.Variable(0.0)})[1].is_simple
    assert not after(1, waits=False)[1].is_simple


def test_the_count_of_updates_has_the_name_that_keras_gives_it():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = FusedAdam(0.1, gradient_accumulation_steps=2)
    optimizer.build(model.trainable_variables)
    variables = variables_of(model, optimizer)
    assert sum(ITERATIONS in name for name in variables) == 1
    assert not Counters(variables, waits=True).is_simple  # gradients add up early
