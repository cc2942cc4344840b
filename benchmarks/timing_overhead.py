"""What measuring each step costs: the training loop with its timeline, and the same without.

    python benchmarks/timing_overhead.py [--steps 20000] [--rounds 5]

The step computes nothing and the batch is always the same, so that nothing but the loop is left.
The bar is 1 % of a step of 20 ms. Both are timed in one run, in turn.
"""

import argparse
import os
import statistics
import time

from myxtts.bench import timing
from myxtts.bench.timing import Target

STEP_MS = 20.0


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    asked = _parse()
    print("machine:", timing.describe_machine())
    loops = {
        "measured": lambda: per_step(asked.steps, _measured),
        "the same loop with a clock that does nothing": lambda: per_step(asked.steps, _unmeasured),
    }
    found = timing.interleaved(loops, asked.rounds)
    medians = {name: statistics.median(times) for name, times in found.items()}
    rows = [(name, f"{1e6 * seconds:.1f}") for name, seconds in medians.items()]
    print(timing.table(("loop", "microseconds a step"), rows))
    cost, bare = medians.values()
    share = 100 * (cost - bare) / (STEP_MS / 1e3)
    print(Target(f"measuring, as a share of a step of {STEP_MS:.0f} ms", share, 1.0, unit="%"))


def per_step(steps: int, make_loop) -> float:
    """Seconds of a step of a loop over one batch and four hooks that do nothing."""
    import numpy as np

    batch = {"mel": np.zeros((16, 448, 1), np.float16), "index": np.arange(16)}
    items = ((0, number, batch) for number in range(steps))
    loop = make_loop(steps)
    began = time.perf_counter()
    loop.run(items)
    return (time.perf_counter() - began) / steps


def _measured(steps: int):
    from myxtts.training.loop import Hook, TrainingLoop

    return TrainingLoop(_NoStep(), [Hook() for _ in range(4)], 1, steps, list)


def _unmeasured(steps: int):
    from myxtts.monitoring.timeline import StepTimes

    times = StepTimes()

    class Nothing:
        """Takes the place of timeline and recorder alike."""

        restart = calling = staticmethod(lambda: None)
        mark = staticmethod(lambda phase: 0.0)
        called = add = add_hook = staticmethod(lambda *arguments: None)
        fetched = staticmethod(lambda: times)

    loop = _measured(steps)
    loop._timeline = loop.recorder = Nothing()
    return loop


class _NoStep:
    is_async = is_eager = is_new = False

    def place(self, batch):
        return batch

    def __call__(self, batch, number):
        return number

    def read(self, number):
        return {"loss": 0.0}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
