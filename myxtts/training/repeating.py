"""Taking a step once more that ran out of memory: what it had changed already is put back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.training.steps import CompiledStep

# How Keras calls the variable in which an optimizer counts its updates.
ITERATIONS = "iteration"
# What a step changes before it has had all its memory: a discriminator learns next to the model, a
# scaled loss may skip an update, gradients add up one by one, and the means of losses come first.
EARLY = ("adversary", "dynamic_scale", "gradient_accumulator", "balance/means")


class Counters:
    """The whole numbers of a run: seeds of dropout and counts of updates.

    Each grows by the same in every step. Where the update `waits` for the norm of all gradients,
    weights change last; by then a step has had all its memory.
    """

    def __init__(self, variables: Mapping[str, Any], waits: bool):
        self._variables = {
            name: one for name, one in variables.items() if tf.as_dtype(one.dtype).is_integer
        }
        self._began = {name: _values(one) for name, one in self._variables.items()}
        self.is_simple = waits and not any(early in name for name in variables for early in EARLY)

    def rewind(self, steps: int, single: bool) -> bool:
        """Set all to what they are after so many steps; False where that cannot be told.

        Of the steps of a call the first may have been taken before another one failed: that is one
        more update.
        """
        expected = {}
        for name, one in self._variables.items():
            grown = _values(one) - self._began[name]
            each = grown // steps if steps else np.zeros_like(grown)
            rest = grown - each * steps
            if steps and (np.any(rest > each) or np.any(each >= steps)):
                return False
            if not single and ITERATIONS in name and np.any(rest):
                return False
            expected[name] = self._began[name] + each * steps
        for name, values in expected.items():
            variable = self._variables[name]
            variable.assign(values.astype(tf.as_dtype(variable.dtype).as_numpy_dtype))
        return True


def repeatable(step: CompiledStep, counters: Counters, steps: int, steps_per_call: int) -> bool:
    """Whether a step that failed after so many of this process can be taken as if it had not."""
    single = steps_per_call == 1
    if single and not step.is_eager and step.is_xla and step.inner is None:
        return True  # what XLA compiles changes all variables at its end, or none
    return counters.is_simple and counters.rewind(steps, single)


def _values(variable: Any) -> np.ndarray:
    return np.asarray(variable).astype(np.int64)
