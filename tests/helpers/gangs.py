"""Runs of several workers on this machine, with what each step took written down, and faults."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Supervises workers as `myxtts train --devices` does, which here run the program below.
LAUNCHER = """
import logging, sys
from pathlib import Path
from myxtts.monitoring.console import show_log
from myxtts.workflows.gang import start_local, supervise

count, folder, *words = sys.argv[1:]
show_log(logging.INFO)
sys.exit(supervise(lambda: start_local([sys.executable, "-c", *words], int(count)), Path(folder)))
"""

# Trains, writes down every step, and sends signals after some of them: each only once.
WORKER = """
import json, os, sys, time
from pathlib import Path
from myxtts.cli.main import main
from myxtts.cluster.rendezvous import find_worker
from myxtts.training.loop import TrainingLoop

folder, faults, *words = sys.argv[1:]
folder, worker, take_step = Path(folder), find_worker(), TrainingLoop._step
folder.mkdir(parents=True, exist_ok=True)
rank = worker.rank if worker else 0
faults = [fault for fault in json.loads(faults) if fault["rank"] == rank]
log = open(folder / f"{rank}.jsonl", "a", buffering=1)

def step(self, group):
    take_step(self, group)
    (number,), (batch,) = group.numbers, group.batches
    taken = {"step": self.done, "epoch": group.epoch, "number": number}
    taken |= {"index": batch["index"].numpy().tolist()}
    taken |= {"frames": batch["mel"].shape[0] * batch["mel"].shape[1]}
    taken |= {"clock": time.monotonic(), "cpu": time.process_time()}
    print(json.dumps(taken), file=log)
    for fault in faults:
        mark = folder / f"{rank}-{fault['step']}-{fault['signal']}"
        if fault["step"] == self.done and not mark.exists():
            mark.touch()
            os.kill(os.getppid() if fault["launcher"] else os.getpid(), fault["signal"])

TrainingLoop._step = step
sys.exit(main(words))
"""


@dataclass(frozen=True)
class Fault:
    """A signal that a worker gets, or sends to its launcher, after a step."""

    rank: int
    step: int
    signal: int
    launcher: bool = False


@dataclass(frozen=True)
class Taken:
    """What a worker took of a batch, at which step, and when it had computed it."""

    step: int
    epoch: int
    number: int
    index: Sequence[int] = field(hash=False)
    frames: int  # with their padding
    clock: float  # seconds, by a clock that all processes share
    cpu: float  # seconds that its process has computed


def start_gang(
    count: int, run: Path, log: Path, *words, faults: Sequence[Fault] = (), **options
) -> subprocess.Popen:
    """Start a launcher of so many workers that train in the folder `run`."""
    told = json.dumps([vars(fault) | {"signal": int(fault.signal)} for fault in faults])
    command = [sys.executable, "-c", LAUNCHER, count, run, WORKER, log, told, "train", *words]
    kept = {name: x for name, x in os.environ.items() if not name.startswith("MYXTTS_")}
    environment = kept | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([str(word) for word in command], env=environment, **options)


def train_gang(
    count: int, run: Path, log: Path, *words, faults: Sequence[Fault] = (), timeout: float = 600
) -> subprocess.CompletedProcess:
    """Run such workers to their end, with what all of them printed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start_gang(count, run, log, *words, faults=faults, **pipes) as launcher:
        try:
            out, err = launcher.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            launcher.kill()  # its workers die with it
            raise
    return subprocess.CompletedProcess(launcher.args, launcher.returncode, out, err)


def steps_taken(log: Path, rank: int) -> list[Taken]:
    """What a worker took, those steps included that were taken once more after a restart."""
    path = log / f"{rank}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    # The last line may be that of a process that was killed.
    return [Taken(**json.loads(line)) for line in lines if line.endswith("}")]


def batches_taken(log: Path, count: int) -> dict[int, tuple[int, int, list[int]]]:
    """The batch of each step as it counted in the end: epoch, number, and all workers' shares."""
    last = [{one.step: one for one in steps_taken(log, rank)} for rank in range(count)]
    return {
        step: (one.epoch, one.number, [i for own in last for i in own[step].index])
        for step, one in sorted(last[0].items())
    }
