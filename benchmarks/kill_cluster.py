"""Kills random workers of a run at random moments: it goes on by itself, and loses nothing.

    python benchmarks/kill_cluster.py                      # ten kills of a run of 2 workers
    python benchmarks/kill_cluster.py --kills 30 --seed 7 --workers 4

The launcher starts the workers again after every kill. The run must end by itself, compute not
more than a save interval once more for each kill, train on every utterance exactly once in every
epoch, and end with the bits of an undisturbed run. Anything else is exit code 1.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from myxtts.checkpoints import latest_state
from myxtts.config.config import XTTSConfig
from myxtts.config.io import save_config
from myxtts.workflows.gang import RESTARTS, checkpoints

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.helpers.gangs import batches_taken, start_gang, steps_taken  # noqa: E402
from tests.helpers.make_corpus import make_corpus  # noqa: E402
from tests.helpers.runs import SMALL  # noqa: E402

SETTINGS = {
    **SMALL,
    "batch_size": 8,
    "micro_batches": 4,
    "val_fraction": 0.1,
    "warmup_steps": 20,
    "adaptive_loss_weights": True,
    "validation_interval": 1_000_000,
    "keep_checkpoints": 2,
}


def main() -> None:
    asked = _parse()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        compare(Path(folder), asked)


def compare(work: Path, asked: argparse.Namespace) -> None:
    """Train undisturbed and disturbed, and compare how both end."""
    corpus = make_corpus(work / "corpus", asked.utterances, speakers=2, seconds=(0.4, 0.9))
    expected, killed = (Run(work / name, corpus, asked) for name in ("undisturbed", "killed"))
    expected.check_end(expected.start())
    seconds = expected.seconds()
    print(
        f"{asked.workers} workers, {asked.steps} steps, saved every {asked.save_interval}; "
        f"undisturbed: {seconds[0]:.1f} s to its first step, {seconds[1]:.1f} s from there on",
        flush=True,
    )
    launcher = killed.start()
    try:
        killed.kill_workers(launcher, random.Random(asked.seed), *seconds)
        killed.check_end(launcher)
    finally:
        launcher.kill()  # and its workers with it, where it has not ended
    killed.check_recomputed()
    killed.check_epochs(expected)
    killed.check_bits(expected)


class Run:
    """A training by several workers in a folder of its own."""

    def __init__(self, folder: Path, corpus: Path, asked: argparse.Namespace):
        self.asked, self.folder, self.log = asked, folder / "run", folder / "log"
        self.config, self.printed = folder / "config.yaml", folder / "printed.txt"
        folder.mkdir()
        config = XTTSConfig(
            data_path=str(corpus),
            checkpoint_dir=str(self.folder),
            max_steps=asked.steps,
            save_interval=asked.save_interval,
            **SETTINGS,
        )
        save_config(config, self.config)

    def start(self) -> subprocess.Popen:
        self.began = time.monotonic()
        with open(self.printed, "w", encoding="utf-8") as printed:
            pipes = {"stdout": printed, "stderr": printed}
            words = ("--config", self.config)
            return start_gang(self.asked.workers, self.folder, self.log, *words, **pipes)

    def seconds(self) -> tuple[float, float]:
        """How long it took to its first step, and from there to its last."""
        taken = steps_taken(self.log, 0)
        return taken[0].clock - self.began, taken[-1].clock - taken[0].clock

    def kill_workers(
        self, launcher: subprocess.Popen, chance: random.Random, starting: float, training: float
    ) -> None:
        """Kill one worker after another, while they start or while they train."""
        in_vain = 0
        for number in range(1, self.asked.kills + 1):
            before, steps = checkpoints(self.folder), len(steps_taken(self.log, 0))
            # A launcher gives up where nothing is saved any more: that is not what is tried here.
            is_training = in_vain == RESTARTS - 1 or chance.random() < self.asked.training
            latest = training / self.asked.kills if is_training else starting
            if is_training:
                self._wait(lambda seen=steps: len(steps_taken(self.log, 0)) > seen, launcher)
            if in_vain == RESTARTS - 1:
                self._wait(lambda seen=before: checkpoints(self.folder) - seen, launcher)
            time.sleep(chance.uniform(0.0, latest))
            self._wait(lambda: self._workers(launcher), launcher)
            workers = self._workers(launcher)
            victim = chance.choice(workers)
            rank = workers.index(victim)
            victim.kill()
            in_vain = 0 if checkpoints(self.folder) - before else in_vain + 1
            when = f"after step {len(set(t.step for t in steps_taken(self.log, 0)))}"
            print(f"{number:3} SIGKILL of worker {rank}, {when}", flush=True)
            self._wait(lambda old=workers: not set(old) & set(self._workers(launcher)), launcher)

    def _workers(self, launcher: subprocess.Popen) -> list[psutil.Process]:
        """The processes that the launcher has started, by their ranks."""
        if launcher.poll() is not None:
            self.check_end(launcher)
            sys.exit("the run had ended before all kills: ask for more --steps")
        found = psutil.Process(launcher.pid).children()
        return sorted((one for one in found if _runs(one)), key=lambda one: one.pid)

    def _wait(self, is_so, launcher: subprocess.Popen, seconds: float = 600.0) -> None:
        until = time.monotonic() + seconds
        while not is_so():
            self._workers(launcher)
            if time.monotonic() > until:
                sys.exit(f"nothing happens any more:\n{self.printed.read_text()[-5000:]}")
            time.sleep(0.05)

    def check_end(self, launcher: subprocess.Popen) -> None:
        if code := launcher.wait():
            sys.exit(f"the run ended with exit code {code}:\n{self.printed.read_text()[-5000:]}")

    def check_recomputed(self) -> None:
        """At most a save interval of steps for each kill."""
        again = max(len(steps_taken(self.log, r)) for r in range(self.asked.workers))
        again -= self.asked.steps
        most = self.asked.kills * self.asked.save_interval
        print(f"{again} steps were computed once more, of {most} that may be")
        if again > most:
            sys.exit("too many steps were computed once more")

    def check_epochs(self, expected: "Run") -> None:
        """The batches of the undisturbed run, and so every utterance once in every epoch."""
        batches, others = (batches_taken(run.log, self.asked.workers) for run in (self, expected))
        wrong = [step for step in others if batches.get(step) != others[step]]
        if wrong or batches.keys() != others.keys():
            sys.exit(f"other batches than the undisturbed run's at steps {wrong}")
        epochs: dict[int, Counter] = {}
        for epoch, _, index in batches.values():
            epochs.setdefault(epoch, Counter()).update(index)
        last = max(epochs)  # which may not have come to its end
        everybody = set(epochs[0])
        for epoch, taken in epochs.items():
            is_whole = epoch == last or taken.keys() == everybody
            if not is_whole or max(taken.values()) > 1:
                sys.exit(f"epoch {epoch + 1} lost or repeated utterances: {taken}")
        print(f"{last} epochs: each of {len(everybody)} utterances was trained on once in each")

    def check_bits(self, expected: "Run") -> None:
        found, other = (latest_state(run.folder / "checkpoints").arrays for run in (self, expected))
        different = [name for name in other if found[name].tobytes() != other[name].tobytes()]
        if different or found.keys() != other.keys():
            sys.exit(f"variables differ from those of the undisturbed run: {different}")
        print(f"{len(found)} variables are identical to those of the undisturbed run")


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="kills in all (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=2000, help="of the run (%(default)s)")
    parser.add_argument("--save-interval", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--utterances", type=int, default=61, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of victims and moments (%(default)s)")
    parser.add_argument(
        "--training",
        type=float,
        default=0.7,
        help="share of kills after the first step of a start (%(default)s)",
    )
    parser.add_argument("--folder", help="where runs are made (the system's temporary folder)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
