"""Records of steps, for tests of hooks."""

import numpy as np

from myxtts.monitoring.timeline import StepTimes
from myxtts.training.loop import StepRecord


def record(step, metrics=None, *, epoch=0, data_ms=1.0, compute_ms=9.0, index=(0, 1)):
    metrics = {"loss": 1.0} if metrics is None else metrics
    times = StepTimes(
        wait_ms=data_ms, call_ms=compute_ms, device_ms=compute_ms, idle={"wait": data_ms}
    )
    return StepRecord(step, epoch, step - 1, metrics, np.array(index), times)


# The times of such a record, as they are logged.
FIGURES = {
    **{"data_ms": 1.0, "compute_ms": 9.0, "device_ms": 9.0},
    **{"stall_ms": 1.0, "compile_ms": 0.0},
}
