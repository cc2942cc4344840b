"""Whether several workers train what one does, what adding up costs, and whether they can change.

    python benchmarks/replicas.py [--work FOLDER] [--steps 200] [--workers 1 2 4]

Runs of 1, 2 and 4 workers on the built-in corpus, all with 4 micro-batches, are compared with the
run of one. With exact sums they must be equal. With sums in the order of the network they round
differently, and that grows tenfold in ten steps, as every change of a bit does: so their first
losses are compared one by one, and the last ones by their mean. Another run with exact sums begins
with 2 workers, is killed, resumes with 4, is stopped, and ends with 1. For the efficiency two
workers share batches twice as large as those of two processes that train on their own at the same
time, so that each has the same work. A missed target is exit code 1.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.checkpoints import latest_state
from myxtts.config.io import save_config
from myxtts.config.presets import create_default_config
from myxtts.demo_corpus.corpus import make_demo
from myxtts.monitoring.history import read_lines

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.helpers.gangs import Fault, start_gang, steps_taken  # noqa: E402

BATCH_SIZE, PARTS = 8, 4
OWN_SIZES = 8, 16  # utterances that a worker has of a batch, for the efficiency
SPEAKERS, CLAUSES = 2, 80
FIRST = 20  # steps whose losses must be the same
SKIPPED = 10  # steps that trace, and come before all workers have batches ahead
FOREVER = 1_000_000


def main() -> None:
    targets: list[Target] = []
    run_in_work(lambda work, asked: targets.extend(run(work, asked)) or targets, _parse())
    sys.exit(0 if all(target.is_met for target in targets) else 1)


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Train with each number of workers, and print what differs and what it cost."""
    # Some kernels round by their threads, and a launcher shares the cores among its workers.
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    corpus = make_demo(work / "corpus", speakers=SPEAKERS, clauses=CLAUSES)
    runs = {
        (count, is_exact): Run(
            work, f"of-{count}{'-exact' * is_exact}", corpus, asked.steps, is_exact
        )
        for is_exact in (True, False)
        for count in asked.workers
        if is_exact or count > 1  # one worker adds up its parts in either order
    }
    for (count, _), one in runs.items():
        one.finish(count)
        print(f"{one.name}: ended", flush=True)
    reference = runs[asked.workers[0], True]
    print(timing.table(HEADER, [row(*key, one, reference) for key, one in runs.items()]))
    changed = changing_run(work, corpus, asked.steps)
    targets = []
    for (count, is_exact), one in runs.items():
        if one is not reference:
            compare = equal_runs if is_exact else similar_runs
            targets += compare(f"{count} workers", one, reference)
    targets += equal_runs("2, then 4, then 1 workers", changed, reference)
    targets += [efficiency(work, corpus, asked.steps, size) for size in OWN_SIZES]
    print()
    for target in targets:
        print(target)
    return targets


@dataclass
class Run:
    """A training in a folder, by any number of workers."""

    work: Path
    name: str
    corpus: Path
    steps: int
    is_exact: bool = False
    batch_size: int = BATCH_SIZE
    parts: int = PARTS
    save_interval: int = FOREVER
    log_interval: int = 1

    def __post_init__(self) -> None:
        shutil.rmtree(self.work / self.name, ignore_errors=True)  # of an earlier benchmark

    @property
    def folder(self) -> Path:
        return self.work / self.name / "run"

    @property
    def log(self) -> Path:
        return self.work / self.name / "log"

    def start(self, count: int, faults: Sequence[Fault] = (), **options) -> subprocess.Popen:
        config = create_default_config(
            str(self.corpus),
            model_size="tiny",
            checkpoint_dir=str(self.folder),
            batch_size=self.batch_size,
            micro_batches=self.parts,
            exact_sums=self.is_exact,
            max_steps=self.steps,
            save_interval=self.save_interval,
            validation_interval=FOREVER,
            sample_interval=0,
            log_interval=self.log_interval,
        )
        path = self.work / self.name / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_config(config, path)
        with open(self.work / self.name / "printed.txt", "a", encoding="utf-8") as printed:
            pipes = {"stdout": printed, "stderr": printed}
            words = ("--config", path)
            return start_gang(
                count, self.folder, self.log, *words, faults=faults, **pipes, **options
            )

    def finish(self, count: int, faults: Sequence[Fault] = (), code: int = 0) -> None:
        """Train, and end the program where that does not end as it should."""
        self.check(self.start(count, faults).wait(), code)

    def check(self, ended: int, code: int = 0) -> None:
        if ended != code:
            printed = (self.work / self.name / "printed.txt").read_text()
            sys.exit(f"{self.name} ended with exit code {ended}, not {code}:\n{printed[-5000:]}")

    def metrics(self, name: str) -> np.ndarray:
        """A metric of all steps."""
        lines = [line.values for line in read_lines(self.folder / "history.jsonl")]
        return np.array([line[name] for line in lines if "loss" in line and name in line])

    def weights(self) -> np.ndarray:
        arrays = latest_state(self.folder / "checkpoints").arrays
        return np.concatenate(
            [x.ravel() for name, x in arrays.items() if name.startswith("model/")]
        )

    def step_ms(self) -> float:
        """The mean time of a step, from the end of one to the end of the next."""
        taken = steps_taken(self.log, 0)[SKIPPED:]
        return 1e3 * (taken[-1].clock - taken[0].clock) / (len(taken) - 1)

    def frames(self, count: int) -> float:
        """The frames of a step with their padding, of each of so many workers."""
        taken = [steps_taken(self.log, rank)[SKIPPED:] for rank in range(count)]
        return statistics.mean(one.frames for own in taken for one in own)

    def cpu_ms(self, count: int) -> float:
        """The CPU time of a step, of all workers together."""
        spent = [steps_taken(self.log, rank)[SKIPPED:] for rank in range(count)]
        return 1e3 * sum(own[-1].cpu - own[0].cpu for own in spent) / (len(spent[0]) - 1)


# The same training


HEADER = (
    *("workers", "sums", f"loss, first {FIRST} steps", "any loss", "weights", "step, ms"),
    *("CPU of a step, ms", "adding up, ms"),
)


def row(count: int, is_exact: bool, one: Run, reference: Run) -> tuple[str, ...]:
    """How a run differs from the reference, and what it cost."""
    reduced = one.metrics("reduce_ms")[SKIPPED:]
    losses = loss_differences(one, reference)
    return (
        str(count),
        "exact" if is_exact else "as they come",
        f"{losses[:FIRST].max():.1e}",
        f"{losses.max():.1e}",
        f"{weight_difference(one, reference):.1e}",
        f"{one.step_ms():.1f}",
        f"{one.cpu_ms(count):.1f}",
        f"{statistics.median(reduced):.1f}" if len(reduced) else "",
    )


def loss_differences(one: Run, reference: Run) -> np.ndarray:
    """The relative difference of each step's loss."""
    losses, others = one.metrics("loss"), reference.metrics("loss")
    if len(losses) != len(others):
        sys.exit(f"{one.name} has {len(losses)} losses, {reference.name} has {len(others)}")
    return np.abs(losses / others - 1.0)


def weight_difference(one: Run, reference: Run) -> float:
    """The distance of the weights, relative to their norm."""
    own, others = one.weights(), reference.weights()
    return float(np.linalg.norm(own - others) / np.linalg.norm(others))


def equal_runs(what: str, one: Run, reference: Run) -> list[Target]:
    """Exact sums: every loss and all weights must be the same."""
    losses = float(loss_differences(one, reference).max())
    weights = weight_difference(one, reference)
    against = f"{what} with exact sums against {reference.name}"
    return [
        Target(f"largest difference of a loss, {against}", losses, 1e-4, unit=""),
        Target(f"difference of the weights, {against}", weights, 1e-3, unit=""),
    ]


def similar_runs(what: str, one: Run, reference: Run) -> list[Target]:
    """The first losses must be the same but for rounding, and the last ones in their mean."""
    first = float(loss_differences(one, reference)[:FIRST].max())
    ends = [run.metrics("loss")[-(run.steps // 4) :].mean() for run in (one, reference)]
    last = 100 * abs(float(ends[0] / ends[1]) - 1.0)
    against = f"{what} against {reference.name}"
    return [
        Target(f"largest difference of a loss in {FIRST} steps, {against}", first, 1e-4, unit=""),
        Target(f"difference of the mean loss at the end, {against}", last, 1.0, unit="%"),
    ]


def changing_run(work: Path, corpus: Path, steps: int) -> Run:
    """A run that is killed, resumed by more workers, stopped, and ended by one."""
    one = Run(work, "changing", corpus, steps, True, save_interval=max(1, steps // 8))
    killed = Fault(0, steps // 3, signal.SIGKILL, launcher=True)
    one.finish(2, [killed], -signal.SIGKILL)
    stopped = Fault(0, 2 * steps // 3, signal.SIGTERM, launcher=True)
    one.finish(4, [stopped], 130)
    one.finish(1)
    taken = [own.step for own in steps_taken(one.log, 0)]
    print(f"2 workers, killed; 4, stopped; 1: {len(taken) - steps} steps were computed twice")
    return one


# The efficiency


def efficiency(work: Path, corpus: Path, steps: int, size: int) -> Target:
    """Two workers against two processes on their own, with so many utterances for each."""
    unlogged = {"log_interval": steps}  # the others wait while the chief logs
    own = {"batch_size": size, "parts": PARTS, **unlogged}
    apart = [Run(work, f"apart-{number}", corpus, steps, **own) for number in range(2)]
    processes = [one.start(1) for one in apart]
    for one, process in zip(apart, processes, strict=True):
        one.check(process.wait())
    both = {"batch_size": 2 * size, "parts": 2 * PARTS, **unlogged}
    together = Run(work, "together", corpus, steps, **both)
    together.finish(2)
    alone, shared = statistics.mean(one.step_ms() for one in apart), together.step_ms()
    spent = statistics.mean(one.cpu_ms(1) for one in apart), together.cpu_ms(2) / 2
    # A batch twice as large has a little more padding, which is work too.
    padded = together.frames(2) / statistics.mean(one.frames(1) for one in apart)
    print(
        f"a step of {size} utterances for each of two processes: {alone:.1f} ms and "
        f"{spent[0]:.1f} ms of CPU on their own, {shared:.1f} ms and {spent[1]:.1f} ms as workers, "
        f"with {padded:.3f} x the frames"
    )
    return Target(
        f"frames/s of 2 workers, of those of two processes on their own, {size} utterances each",
        100 * padded * alone / shared,
        85,
        at_most=False,
        unit="%",
        note=f"utterances/s {100 * alone / shared:.0f} %, by CPU time "
        f"{100 * spent[0] / spent[1]:.0f} %",
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the corpus and the runs here")
    parser.add_argument("--steps", type=int, default=200, help="of each run (%(default)s)")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 4], help="the first is the reference"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
