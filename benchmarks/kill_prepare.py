"""Kills preparations at random moments, and compares the finished cache with an undisturbed one.

    python benchmarks/kill_prepare.py                       # twenty kills
    python benchmarks/kill_prepare.py --kills 100 --seed 7

Kills take turns: the whole process group with two workers, the parent alone with two workers (its
workers must end by themselves), and a preparation without workers. A cache that gets finished
between two kills is compared, and the next kill begins with an empty one. Whatever differs by a
name or a byte, or is damaged when verified, ends this program with exit code 1.
"""

import argparse
import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from myxtts.config.config import DataConfig
from myxtts.data.corpus.corpus import read_corpus
from myxtts.data.features import prepare as preparing
from myxtts.data.features.location import locate_cache
from myxtts.data.features.repair import verify_cache
from myxtts.text.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
# (workers, whether the whole group is killed): the ways in which a preparation dies.
WAYS = ((2, True), (2, False), (1, True))


def main() -> None:
    arguments = _parse()
    if arguments.prepare:
        run_preparation(Path(arguments.prepare[0]), arguments.prepare[1], arguments)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        compare(Path(folder), arguments)


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    """Make undisturbed caches, then kill and finish others."""
    corpus = make_voiced_corpus(folder / "corpus", arguments.utterances)
    took = {n: _finish(corpus, folder / f"by-{n}", n, arguments) for n in (1, 2)}
    expected = contents(folder / "by-1")
    print(
        f"{arguments.utterances} utterances, {len(expected)} files; undisturbed: "
        f"{took[1]:.1f} s by 1 process, {took[2]:.1f} s by 2 workers"
    )
    check_equal(contents(folder / "by-2"), expected, "by 2 workers")
    caches = (folder / f"killed-{number}" for number in itertools.count(1))
    cache, chance, killed = next(caches), random.Random(arguments.seed), 0
    while killed < arguments.kills:
        workers, whole_group = WAYS[killed % len(WAYS)]
        delay = chance.uniform(0.0, arguments.latest) * took[workers]
        if _kill(corpus, cache, workers, whole_group, delay, arguments):
            killed += 1
            who = ("the group" if whole_group else "the parent") + f" of {workers} workers"
            who = who if workers > 1 else "the only process"
            print(f"{killed:3} SIGKILL to {who} after {delay:.2f} s: {_inspect(corpus, cache)}")
        else:
            check_equal(contents(cache), expected, f"{cache.name}, finished")
            cache = next(caches)
    _finish(corpus, cache, 1, arguments)
    check_equal(contents(cache), expected, f"{cache.name}, finished")


def run_preparation(corpus: Path, cache: str, arguments: argparse.Namespace) -> None:
    """What is killed: it says when it begins, as importing takes most of a small run."""
    preparing.shard_size = lambda utterances: arguments.shard
    utterances, location = locate(corpus, cache)
    print("ready", flush=True)
    preparing.prepare(utterances, location, workers=arguments.workers)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20, help="kills in all (%(default)s)")
    parser.add_argument("--utterances", type=int, default=400, help="(%(default)s)")
    parser.add_argument("--shard", type=int, default=8, help="utterances per shard (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument(
        "--latest", type=float, default=0.9, help="latest moment, in whole runs (%(default)s)"
    )
    parser.add_argument("--folder", help="where caches are made (the system's temporary folder)")
    parser.add_argument("--prepare", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def make_voiced_corpus(path: Path, utterances: int) -> Path:
    sys.path.insert(0, str(ROOT))
    from tests.helpers.make_corpus import make_corpus

    return make_corpus(path, utterances, seconds=(0.4, 0.9))


def locate(corpus: Path, cache: str | Path):
    config = DataConfig(dataset_path=str(corpus), cache_dir=str(cache))
    utterances = read_corpus(corpus, val_fraction=0.0).utterances
    return utterances, locate_cache(corpus, config, Tokenizer.build())


def _finish(corpus: Path, cache: Path, workers: int, arguments: argparse.Namespace) -> float:
    """Prepare to the end; the seconds that it took once it was ready."""
    process = _start(corpus, cache, workers, arguments)
    began = time.monotonic()
    if process.wait() != 0:
        sys.exit(f"preparing {cache.name} failed with exit code {process.returncode}")
    return time.monotonic() - began


def _kill(
    corpus: Path,
    cache: Path,
    workers: int,
    whole_group: bool,
    delay: float,
    arguments: argparse.Namespace,
) -> bool:
    """Start a preparation and kill it after a while; false where it was finished before."""
    process = _start(corpus, cache, workers, arguments)
    time.sleep(delay)
    offspring = _offspring(process)
    if process.poll() is not None:
        return False
    if whole_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    _, alive = psutil.wait_procs(offspring, timeout=10)
    if alive:
        sys.exit(f"workers outlived their parent: {alive}")
    return process.returncode == -signal.SIGKILL


def _start(
    corpus: Path, cache: Path, workers: int, arguments: argparse.Namespace
) -> subprocess.Popen:
    own = [sys.executable, __file__, "--prepare", corpus, cache]
    options = ["--workers", workers, "--shard", arguments.shard]
    process = subprocess.Popen(
        [str(word) for word in (*own, *options)],
        stdout=subprocess.PIPE,
        # A killed parent leaves semaphores, of which the interpreter warns.
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    if process.stdout.readline() != "ready\n":
        sys.exit("the preparation did not begin")
    return process


def _offspring(process: subprocess.Popen) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def contents(cache: Path) -> dict[str, bytes]:
    """Every file's name and a hash of its bytes."""
    files = sorted(path for path in cache.rglob("*") if path.is_file())
    return {
        str(path.relative_to(cache)): hashlib.blake2b(path.read_bytes()).digest() for path in files
    }


def _inspect(corpus: Path, cache: Path) -> str:
    """Say what a kill left: whole shards, and files without an index, which count for nothing."""
    _, location = locate(corpus, cache)
    damaged = [str(problem) for problem in verify_cache(location) if problem.shard]
    if damaged:
        sys.exit(f"{cache.name} is damaged: " + "; ".join(damaged))
    tokens, features = (len(s.index_files()) for s in (location.tokens, location.features))
    leftovers = sum(path.suffix == ".tmp" for path in cache.rglob("*"))
    return f"{tokens} shards of tokens, {features} of features, {leftovers} temporary files"


def check_equal(found: dict[str, bytes], expected: dict[str, bytes], name: str) -> None:
    different = [file for file in expected if found.get(file) != expected[file]]
    foreign = [file for file in found if file not in expected]
    if different or foreign:
        sys.exit(f"{name}: different or missing {different}, foreign {foreign}")
    print(f"{name}: {len(found)} files, names and bytes identical to the undisturbed cache")


if __name__ == "__main__":
    main()
