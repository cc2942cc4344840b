"""Prepares one corpus by several workers and by Ray: their speed, and their bytes after kills.

    python benchmarks/prepare_cluster.py                    # sixty kills
    python benchmarks/prepare_cluster.py --kills 200 --seed 7 --hours 6 --rounds 5

Kills: one, two and five workers (`--worker I/N`) run at the same time, are killed with SIGKILL at
random moments and started again, until all have finished. A Ray cluster of two nodes loses one
midway. Every file is then compared with those of a plain preparation; whatever differs ends this
program with exit code 1.

Speed: two workers with one process each, over one worker, on synthetic sounds.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kill_prepare import check_equal, contents, locate, make_voiced_corpus
from prepare import repeat, write_sources

from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.data.features import prepare as preparing
from myxtts.data.features.share import Share
from myxtts.data.store.ray_workers import RayWorkers
from myxtts.monitoring.cores import available_cores

COUNTS = (1, 2, 5)


@dataclass(frozen=True)
class Worker:
    """One worker in a process of its own, which waits for a line before it begins."""

    process: subprocess.Popen
    share: str

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None


@dataclass(frozen=True)
class Preparation:
    """What all workers together took, from the first one's beginning to the last one's end."""

    cpu_seconds: float
    busiest_cpu_seconds: float  # of the worker with most to do
    wall_seconds: float


def main() -> None:
    arguments = _parse()
    if arguments.prepare:
        run_worker(*arguments.prepare, arguments.shard)
        return
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine(("numpy", "scipy", "soundfile")))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        compare(Path(folder), arguments)
        target = measure(Path(folder), arguments.hours, arguments.rounds)
    if target:
        print(target)


def run_worker(corpus: str, cache: str, share: str, shard: int) -> None:
    """What is killed and measured: it begins when it is told to, and prints its CPU time."""
    if shard:
        preparing.shard_size = lambda utterances: shard
    utterances, location = locate(Path(corpus), cache)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    preparing.prepare(utterances, location, workers=1, share=Share.parse(share))
    print(time.process_time() - began, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=60, help="kills in all (%(default)s)")
    parser.add_argument("--utterances", type=int, default=400, help="(%(default)s)")
    parser.add_argument("--shard", type=int, default=8, help="utterances per shard (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument("--hours", type=float, default=3.0, help="of audio, for the speed")
    parser.add_argument("--rounds", type=int, default=3, help="for the speed (%(default)s)")
    parser.add_argument("--folder", help="where caches are made (the system's temporary folder)")
    parser.add_argument("--prepare", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


# The bytes


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    """Prepare a corpus plainly, by workers that are killed, and by Ray."""
    corpus = make_voiced_corpus(folder / "voiced", arguments.utterances)
    usual = preparing.shard_size
    preparing.shard_size = lambda utterances: arguments.shard
    try:
        utterances, location = locate(corpus, folder / "plain")
        preparing.prepare(utterances, location, workers=1)
        expected = contents(folder / "plain")
        print(f"\n{arguments.utterances} utterances, {len(expected)} files")
        chance = random.Random(arguments.seed)
        for count in COUNTS:
            kill_workers(corpus, folder, count, arguments, chance, expected)
        lose_a_node(corpus, folder / "ray", expected)
    finally:
        preparing.shard_size = usual


def kill_workers(
    corpus: Path,
    folder: Path,
    count: int,
    arguments: argparse.Namespace,
    chance: random.Random,
    expected: dict[str, bytes],
) -> None:
    """Fill caches by so many workers until a third of the kills has come, and compare each."""
    killed = caches = 0
    while killed < arguments.kills // len(COUNTS):
        caches += 1
        cache = folder / f"by-{count}-{caches}"
        start = partial(_start, corpus, cache, shard=arguments.shard)
        running = [start(f"{number}/{count}") for number in range(1, count + 1)]
        for worker in running:
            _begin(worker)
        while running:
            time.sleep(chance.uniform(0.0, 0.5))
            _check_ended(running)
            running = [worker for worker in running if worker.is_running]
            if running and killed < arguments.kills // len(COUNTS):
                doomed = running.pop(chance.randrange(len(running)))
                killed += _kill(doomed)
                running.append(start(doomed.share))
                _begin(running[-1])
        check_equal(contents(cache), expected, f"{count} workers, {killed} kills so far")


def lose_a_node(corpus: Path, cache: Path, expected: dict[str, bytes]) -> None:
    """Fill a cache on two nodes, of which one is killed at the first shard."""
    try:
        from ray.cluster_utils import Cluster
    except ModuleNotFoundError:
        print("Ray was not measured: it is not installed (the extra `cluster`)")
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    options = {"num_cpus": 1, "object_store_memory": 80_000_000}
    head = {"include_dashboard": False, **options}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    lost: list[int] = []
    try:
        node = cluster.add_node(**options)

        def lose(done: int, total: int, seconds: float = 0.0, /) -> None:
            if not lost:
                lost.append(done)
                cluster.remove_node(node, allow_graceful=False)

        utterances, location = locate(corpus, cache)
        with RayWorkers(cluster.address) as pool:
            preparing.prepare(utterances, location, progress=lose, share=Share(), pool=pool)
        # The dead node's temporary files go with the next who holds the store alone.
        preparing.prepare(utterances, location, workers=1)
    finally:
        cluster.shutdown()
    name = f"Ray, a node of two killed after {lost[0]} of {len(utterances)} utterances"
    check_equal(contents(cache), expected, name)


# The speed


def measure(folder: Path, hours: float, rounds: int) -> Target | None:
    """Print what one and two workers take, and return the target, in alternating rounds."""
    if available_cores() < 2:
        print("the speed-up on two cores was not measured: there is one core")
        return None
    corpus = _write_corpus(folder / "speed", 3600 * hours)
    variants = {f"by {count}": partial(_prepare, corpus, folder, count) for count in (1, 2)}
    results = timing.interleaved(variants, rounds)
    print(f"\n{hours:g} h of synthetic sounds, one process a worker, medians of {rounds} rounds")
    rows = [
        (name, f"{_median(found, 'cpu_seconds'):.2f}", f"{_median(found, 'wall_seconds'):.2f}")
        for name, found in results.items()
    ]
    print(timing.table(("prepare", "CPU-s of all", "wall, s"), rows))
    pairs = list(zip(*results.values(), strict=True))
    cpu = statistics.median(two.cpu_seconds / one.cpu_seconds for one, two in pairs)
    ratio = statistics.median(one.wall_seconds / two.wall_seconds for one, two in pairs)
    busiest = statistics.median(one.cpu_seconds / two.busiest_cpu_seconds for one, two in pairs)
    print(f"CPU time of two workers over one: {cpu:.2f}")
    print(f"CPU time of one worker over the busier of two: {busiest:.2f}, the most without load")
    print(f"load at the end: {os.getloadavg()[0]:.1f}; the speed-up means something without load")
    return Target("prepare, wall time of 1 worker over 2 workers", ratio, 1.7, at_most=False)


def _prepare(corpus: Path, folder: Path, count: int) -> Preparation:
    """Fill a new cache by so many workers."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        workers = [_start(corpus, Path(cache), f"{n}/{count}", 0) for n in range(1, count + 1)]
        began = time.perf_counter()
        for worker in workers:
            _begin(worker)
        answers = [worker.process.communicate()[0] for worker in workers]
        wall = time.perf_counter() - began
    _check_ended(workers)
    cpu = [float(answer) for answer in answers]
    return Preparation(sum(cpu), max(cpu), wall)


def _write_corpus(folder: Path, seconds: float) -> Path:
    """Synthetic recordings of so many seconds, and their metadata."""
    utterances = repeat(
        write_sources(folder / "sources", None), folder / "corpus" / "wavs", seconds
    )
    lines = [f"{one.id}|{one.text}|{one.text}\n" for one in utterances]
    (folder / "corpus" / "metadata.csv").write_text("".join(lines))
    return folder / "corpus"


def _median(found: list[Preparation], name: str) -> float:
    return statistics.median(getattr(one, name) for one in found)


# Processes


def _start(corpus: Path, cache: Path, share: str, shard: int) -> Worker:
    """Start a worker and wait until it is ready."""
    own = [sys.executable, __file__, "--prepare", corpus, cache, share, "--shard", shard]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([str(word) for word in own], start_new_session=True, **pipes)
    if process.stdout.readline() != "ready\n":
        sys.exit(f"worker {share} did not begin")
    return Worker(process, share)


def _begin(worker: Worker) -> None:
    worker.process.stdin.write("\n")
    worker.process.stdin.flush()


def _kill(worker: Worker) -> bool:
    """Kill a worker; false where it was finished before."""
    os.killpg(worker.process.pid, signal.SIGKILL)
    return worker.process.wait() == -signal.SIGKILL


def _check_ended(workers: list[Worker]) -> None:
    failed = [worker.share for worker in workers if worker.process.poll()]
    if failed:
        sys.exit(f"worker {failed[0]} failed")


if __name__ == "__main__":
    main()
