"""Corpora with things in them that are no recordings and no texts: pipes, devices, loops."""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.drills.inputs import corpora
from benchmarks.drills.judging import Bounds, Input

KIND = "corpora with pipes, devices and loops"
COUNT, PER_CASE = 240, 12
# `data check` and `prepare`, which starts processes.
BOUNDS = Bounds(cpu_seconds=6.0, megabytes=300.0, patience=5.0)

_SPARSE = 1 << 40


def set_up(folder: Path, seed: int) -> None:
    corpora.set_up(folder, seed)


def warm_up() -> None:
    """Nothing: `prepare` uses no TensorFlow."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"traps {seed}")
    pairs = [(trap, place) for trap in _TRAPS for place in _PLACES]
    # A link in place of the cache is followed: so a user moves a cache to a larger disk.
    pairs.remove(("outside", "cache"))
    random.shuffle(pairs)
    for number in range(count):
        trap, place = pairs[number % len(pairs)]
        verb = random.choice(("check", "prepare"))
        yield Input(f"{trap}-{place}-{verb}", 0, _use(folder / "base", trap, place, verb))


def _use(base: Path, trap: str, place: str, verb: str):
    def run(own: Path) -> int:
        from myxtts.cli.main import main

        root = own / "corpus"
        shutil.copytree(base, root)
        target = root / _PLACES[place](root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        _TRAPS[trap](target)
        # What is rejected may be most of so few.
        os.environ["MYXTTS_DATA_MAX_REJECTED"] = "0.9"
        os.environ["MYXTTS_DATA_NUM_WORKERS"] = "1"
        return main([*(["data", "check"] if verb == "check" else ["prepare"]), str(root)])

    return run


def _tree_of_texts(root: Path) -> str:
    """Texts next to recordings, in place of a table."""
    lines = (root / "metadata.csv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, text, _ = line.split("|")
        (root / "wavs" / f"{name}.txt").write_text(text, encoding="utf-8")
    (root / "metadata.csv").unlink()
    return "wavs/utt-0001.txt"


_PLACES = {
    "recording": lambda root: "wavs/utt-0001.wav",
    "other-recording": lambda root: "wavs/other.flac",
    "recordings": lambda root: "wavs",
    "metadata": lambda root: "metadata.csv",
    "validation": lambda root: "metadata_eval.csv",
    "speakers": lambda root: "speakers.csv",
    "text": _tree_of_texts,
    "inside": lambda root: "wavs/inner",
    "cache": lambda root: "cached_features",
    "root-entry": lambda root: "something",
}


def _socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def _sparse(path: Path) -> None:
    with open(path, "wb") as file:
        header = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0\x80>\0\0\0}\0\0\2\0\x10\0"
        file.write(header + b"data\xff\xff\xff\xff")
        file.truncate(_SPARSE)


def _nested(path: Path) -> None:
    os.makedirs(path / Path(*["d"] * 300))


def _crowded(path: Path) -> None:
    path.mkdir()
    for number in range(3000):
        (path / f"{number}.txt").touch()


_TRAPS = {
    "pipe": lambda path: os.mkfifo(path),
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "full": lambda path: path.symlink_to("/dev/full"),
    "random": lambda path: path.symlink_to("/dev/urandom"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
    "parent-loop": lambda path: path.symlink_to(".."),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "outside": lambda path: path.symlink_to("../../canary"),
    "socket": _socket,
    "sparse": _sparse,
    "nested": _nested,
    "crowded": _crowded,
}
