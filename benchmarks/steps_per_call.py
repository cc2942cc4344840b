"""How busy a simulated accelerator is with one step a call, and with several.

    python benchmarks/steps_per_call.py [--step-ms 2] [--steps-per-call 16] [--seconds 4]

The real training loop with four hooks that do nothing launches a compiled function for every call,
as it does for a step on a GPU. That function computes nothing, so what it costs is the launch
alone. Batches have all tensors of real ones and are small, and always ready: on a GPU they are
stacked by the device, and how fast they are read is measured by `input_pipeline.py`. Host and
device take turns (`in turn`: a call is awaited before the next, as where a hook is due) or overlap
(`overlapped`: the host is one call ahead, as usual). All variants run in turn. The bar is for
those that overlap.
"""

import argparse
import itertools
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from myxtts.bench import timing
from myxtts.bench.simulated import Handle, SimulatedStep
from myxtts.bench.timing import Target

BATCH, FRAMES, TOKENS, MELS = 16, 8, 8, 80


@dataclass(frozen=True)
class Launch:
    """One run of the loop."""

    utilisation: float
    host_us: float  # CPU time of the process per step


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    asked = _parse()
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    bar = run(asked)
    print(bar)
    print(f"\n{int(bool(bar.is_met))} of 1 bars met")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--step-ms", type=float, default=2.0)
    parser.add_argument("--steps-per-call", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a variant and round")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def run(asked: argparse.Namespace) -> Target:
    """Measure every variant in turn, print the table, and return the bar."""
    counts = (1, asked.steps_per_call)
    variants = {
        f"{how}, {count} a call": lambda how=how, count=count: launch(how, count, asked)
        for how in ("in turn", "overlapped")
        for count in counts
    }
    results = timing.interleaved(variants, asked.rounds)
    busy = {
        name: 100 * statistics.median(one.utilisation for one in found)
        for name, found in results.items()
    }
    rows = [
        (name, f"{busy[name]:.1f}", f"{statistics.median(one.host_us for one in found):.0f}")
        for name, found in results.items()
    ]
    print(f"\nsteps of {asked.step_ms:g} ms, medians of {asked.rounds} rounds")
    print(timing.table(("calls", "busy, %", "host CPU, microseconds a step"), rows))
    one, many = (f"overlapped, {count} a call" for count in counts)
    what = f"busy with {asked.steps_per_call} steps a call (single calls: {busy[one]:.1f} %)"
    return Target(what, busy[many], 97.0, at_most=False, unit="%")


def launch(how: str, count: int, asked: argparse.Namespace) -> Launch:
    """Run the loop for some seconds of the device's time."""
    from myxtts.training.loop import Hook, TrainingLoop

    class Due(Hook):
        def is_due(self, step: int) -> bool:
            return step % count == 0

    step = _LaunchedStep(asked.step_ms)
    steps = count * max(4, round(1e3 * asked.seconds / asked.step_ms / count))
    hooks = [Hook() for _ in range(3)] + [Due() if how == "in turn" else Hook()]
    loop = TrainingLoop(step, hooks, 1 << 40, steps, list, steps_per_call=count)
    items = _items()
    _, _, batch = next(items)
    step.warm_up([batch] * count)
    began = timing.cpu_seconds()
    loop.run(items)
    return Launch(step.utilisation, 1e6 * (timing.cpu_seconds() - began) / steps)


def _items() -> Iterator[tuple[int, int, dict]]:
    """Endless batches with the tensors of real ones."""
    import tensorflow as tf

    frames, each = (BATCH, FRAMES), np.zeros(BATCH, np.int32)
    arrays = {
        "tokens": np.zeros((BATCH, TOKENS), np.int32),
        "mel": np.zeros((*frames, MELS), np.float16),
        "energy": np.zeros(frames, np.float32),
        "pitch": np.zeros(frames, np.float32),
        "index": np.arange(BATCH),
    }
    arrays |= dict.fromkeys(("text_lengths", "mel_lengths", "speaker", "language"), each)
    ready = [{name: tf.constant(one) for name, one in arrays.items()} for _ in range(64)]
    for number in itertools.count():
        yield 0, number, ready[number % len(ready)]


class _LaunchedStep(SimulatedStep):
    """A simulated device whose calls go through a compiled function of the batches."""

    def __init__(self, step_ms: float):
        super().__init__(step_ms)
        import tensorflow as tf

        self._launch = tf.function(lambda batch: tf.shape(batch["index"])[0])
        self._stack = tf.stack

    def warm_up(self, batches: list[dict]) -> None:
        self._launch(batches[0] if len(batches) == 1 else self._stacked(batches))

    def __call__(self, batch: dict, number: int = 0) -> Handle:
        self._launch(batch)
        return super().__call__(batch, number)

    def take_all(self, batches: list[dict], first: int) -> Handle:
        self._launch(self._stacked(batches))
        return super().take_all(batches, first)

    def _stacked(self, batches: list[dict]) -> dict:
        return {name: self._stack([one[name] for one in batches]) for name in batches[0]}


if __name__ == "__main__":
    main()
