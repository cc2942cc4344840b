"""Trains from a cache on a real S3 API on this machine: time, requests, an outage, a flipped bit.

    pipx install 'moto[server]'                              # the server, once
    python benchmarks/object_storage.py                      # 30 s of outage
    python benchmarks/object_storage.py --utterances 3000 --outage 60

Batches are taken at the pace of a step and compared with those of a local cache. Whatever differs
by a bit, or does not end as it should, ends this program with exit code 1.
"""

import argparse
import importlib
import logging
import os
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.features import prepare as preparing
from myxtts.data.store.errors import CacheError
from myxtts.data.store.remote import Remote
from myxtts.workflows.prepare import prepare

if TYPE_CHECKING:
    from tests.helpers.s3_server import S3Server

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = (".mel", ".energy", ".pitch")
URL = "s3://bucket/corpus-cache"


def main() -> None:
    arguments = _parse()
    sys.path.insert(0, str(ROOT))
    from tests.helpers.s3_server import find_server, s3_server

    if find_server() is None:
        sys.exit("moto_server is not on the path: pipx install 'moto[server]'")
    logging.getLogger("myxtts").setLevel(logging.ERROR)
    importlib.import_module("tensorflow")  # before any clock runs
    preparing.shard_size = lambda utterances: arguments.shard
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        with s3_server(Path(folder)) as server:
            os.environ.update(server.environment)
            Bench(Path(folder), server, arguments).run()


@dataclass
class Epoch:
    """What an epoch came to."""

    first: float  # seconds until its first batch, opening included
    seconds: float
    requests: int
    batches: list[int]  # a checksum of each
    utterances: dict[int, int]  # a checksum of the features of each

    def __str__(self) -> str:
        return (
            f"first batch after {self.first:6.2f} s, all {len(self.batches)} after "
            f"{self.seconds:6.2f} s, {self.requests} GET"
        )


class Bench:
    """One corpus, its cache on a disk and on the server, and what reading either takes."""

    def __init__(self, folder: Path, server: "S3Server", arguments: argparse.Namespace):
        from tests.helpers.make_corpus import make_corpus

        self.folder, self.server, self.arguments = folder, server, arguments
        self.corpus = make_corpus(folder / "corpus", arguments.utterances, seconds=(2.0, 6.0))

    def run(self) -> None:
        local, remote = self.config(cache_dir=str(self.folder / "local")), self.config("whole")
        self.prepare("local cache", local)
        self.prepare("object storage", remote)
        size = sum(n for name, n in Remote(URL).objects().items() if name.endswith(COLUMNS))
        shards = sum(name.endswith(".mel") for name in Remote(URL).objects())
        print(f"{self.arguments.utterances} utterances, {size / 1e6:.1f} MB in {shards} shards\n")
        expected = self.epochs("local cache", local, 2)
        found = self.epochs("object storage", self.config("fetched"), 2)
        for one, other in zip(found, expected, strict=True):
            _require(one.batches == other.batches, "batches differ from those of the local cache")
        _require(found[1].requests == 0, "the second epoch fetched something")
        small = {"local_cache_gb": self.arguments.disk * size / 1e9}
        name = f"a disk for {self.arguments.disk:.0%}"
        calm = self.epochs(name, self.config("small", **small), 2)
        for one in calm:
            _require(one.utterances == expected[0].utterances, "utterances differ")
        self.outage(self.config("outage", **small), calm[0])
        self.flipped_bit(self.config("flipped"))
        print("\nall batches have the bits of the local cache")

    def config(self, mirror: str = "", **settings) -> XTTSConfig:
        where = {"cache_dir": URL, "local_cache_dir": str(self.folder / mirror)} if mirror else {}
        plain = {"batch_size": 16, "num_workers": 2, "val_fraction": 0.0}
        return XTTSConfig(data_path=str(self.corpus), **plain | where | settings)

    def prepare(self, name: str, config: XTTSConfig) -> None:
        began, before = time.monotonic(), self.server.requests("PUT")
        prepare(config, lambda line: None)
        puts = self.server.requests("PUT") - before
        print(f"prepare, {name:<16} {time.monotonic() - began:6.2f} s, {puts} PUT")

    def epochs(self, name: str, config: XTTSConfig, count: int) -> list[Epoch]:
        """Read some epochs, from opening the corpus on."""
        found, data, began = [], None, time.monotonic()
        for number in range(count):
            before = self.server.requests()
            data = data or TrainingData(config)
            found.append(self.epoch(data, number, began, before))
            print(f"{name:<18} epoch {number + 1}: {found[-1]}")
            began = time.monotonic()
        return found

    def epoch(self, data: TrainingData, number: int, began: float, before: int) -> Epoch:
        first, batches, utterances = 0.0, [], {}
        for batch in _paced(data.train_batches(number), self.arguments.step_ms / 1e3):
            first = first or time.monotonic() - began
            arrays = {name: tensor.numpy() for name, tensor in batch.items()}
            batches.append(zlib.crc32(b"".join(a.tobytes() for a in arrays.values())))
            for row, index in enumerate(arrays["index"].tolist()):
                length = int(arrays["mel_lengths"][row])
                features = [arrays[name][row, :length] for name in ("mel", "energy", "pitch")]
                utterances[index] = zlib.crc32(b"".join(one.tobytes() for one in features))
        seconds = time.monotonic() - began
        return Epoch(first, seconds, self.server.requests() - before, batches, utterances)

    def outage(self, config: XTTSConfig, calm: Epoch) -> None:
        """Stop the server a third into an epoch, and let it go on later."""
        seconds = self.arguments.outage
        data, began, before = TrainingData(config), time.monotonic(), self.server.requests()
        stop = threading.Timer(calm.seconds / 3, self.server.pause)
        resume = threading.Timer(calm.seconds / 3 + seconds, self.server.resume)
        for timer in (stop, resume):
            timer.start()
        found = self.epoch(data, 0, began, before)
        resume.join()
        print(f"{f'{seconds:g} s of outage':<18} epoch 1: {found}")
        _require(found.batches == calm.batches, "batches differ after an outage")

    def flipped_bit(self, config: XTTSConfig) -> None:
        remote = Remote(URL)
        name = sorted(name for name in remote.objects() if name.endswith(".mel"))[0]
        content = bytearray(remote.read(name))
        content[len(content) // 3] ^= 1
        remote.write(name, bytes(content))
        try:
            TrainingData(config)
        except CacheError as error:
            _require(name in str(error), "the error does not name the object")
            print(f"{'a flipped bit':<18} {str(error)[:160]}")
        else:
            _require(False, "a flipped bit was not noticed")


def _paced(batches, seconds: float) -> Iterator[dict]:
    for batch in batches:
        yield batch
        time.sleep(seconds)


def _require(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(what)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--utterances", type=int, default=600, help="(%(default)s)")
    parser.add_argument("--shard", type=int, default=16, help="utterances per shard (%(default)s)")
    parser.add_argument("--step-ms", type=float, default=50.0, help="of a step (%(default)s)")
    parser.add_argument("--disk", type=float, default=0.4, help="share of the cache (%(default)s)")
    parser.add_argument("--outage", type=float, default=30.0, help="seconds (%(default)s)")
    parser.add_argument("--folder", help="where all is made (the system's temporary folder)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
