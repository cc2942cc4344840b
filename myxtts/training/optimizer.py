"""The optimizer of a configuration: schedule, clipping, accumulation, EMA, loss scaling."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from myxtts.config.config import TrainingConfig
from myxtts.models.layers import serialisable
from myxtts.training.fused_adam import FusedAdam, FusedAdamW


def build_optimizer(config: TrainingConfig, total_steps: int) -> keras.optimizers.Optimizer:
    """Adam with a warm-up; under a float16 policy its losses are scaled."""
    kind = FusedAdamW if config.weight_decay else FusedAdam
    decay = {"weight_decay": config.weight_decay} if config.weight_decay else {}
    accumulation = config.gradient_accumulation_steps
    optimizer = kind(
        learning_rates(config, total_steps),
        beta_1=config.beta1,
        beta_2=config.beta2,
        global_clipnorm=config.gradient_clip_norm or None,
        gradient_accumulation_steps=accumulation if accumulation > 1 else None,
        use_ema=config.ema_decay > 0,
        # Keras averages after every batch, also where several make one update.
        ema_momentum=(config.ema_decay or 0.99) ** (1 / accumulation),
        **decay,
    )
    if keras.config.dtype_policy().compute_dtype == "float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


def learning_rates(config: TrainingConfig, total_steps: int, share: float = 1.0) -> "WarmUp":
    """The schedule of a configuration, or a share of every rate of it."""
    last = config.last_learning_rate if config.lr_schedule == "cosine" else config.learning_rate
    # Keras counts batches here, whether or not they update the weights.
    return WarmUp(share * config.learning_rate, config.warmup_steps, total_steps, share * last)


@serialisable
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """A straight rise to `peak`, then half a cosine down to `final` at `total` steps."""

    def __init__(self, peak: float, warmup: int, total: int, final: float):
        self.peak, self.warmup, self.total, self.final = peak, warmup, total, final

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rise = (step + 1.0) / max(1.0, float(self.warmup))
        done = (step - self.warmup) / max(1.0, float(self.total - self.warmup))
        fall = 0.5 * (1.0 + tf.cos(math.pi * tf.clip_by_value(done, 0.0, 1.0)))
        return tf.where(
            step < self.warmup,
            self.peak * tf.minimum(rise, 1.0),
            self.final + (self.peak - self.final) * fall,
        )

    def get_config(self):
        names = ("peak", "warmup", "total", "final")
        return {name: getattr(self, name) for name in names}


def ema_values(optimizer, variables) -> list | None:
    """The EMA weights that an optimizer keeps, or None where it keeps none."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if not inner.use_ema:
        return None
    by_variable = zip(
        inner._trainable_variables, inner._model_variables_moving_average, strict=True
    )
    averages = {id(variable): average for variable, average in by_variable}
    return [averages[id(variable)] for variable in variables]


@contextmanager
def ema_weights(model: keras.Model, optimizer) -> Iterator[None]:
    """Let the model have its EMA weights for a while: they are scored and exported."""
    variables = model.trainable_variables
    averages = ema_values(optimizer, variables)
    if averages is None:
        yield
        return
    own = [variable.numpy() for variable in variables]
    try:
        for variable, average in zip(variables, averages, strict=True):
            variable.assign(average)
        yield
    finally:
        for variable, value in zip(variables, own, strict=True):
            variable.assign(value)
