"""The server under load: first sound, throughput and CPU, with and without batches, and piper's.

python benchmarks/serving.py VOICE [--piper PYTHON --piper-voice FILE.onnx ...] [--clients 1 4 16]
python benchmarks/serving.py VOICE --soak 20

Every client on loopback has the same texts, in an order of its own, and sends one after the other.
All servers get the same work in one run, and answer as wav at the rate of the voice, as piper does;
with `--format mp3` ours encodes. PYTHON is an interpreter that has piper-tts with its HTTP server
(piper-tts[http]); `myxtts export --to piper` writes the same voice for it, and
benchmarks/piper_voice.py one of the size that piper's own have. The soak lets a third of 16 clients
hang up midway, and watches what the server keeps.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psutil
import yaml

OPENINGS = (
    *("In the morning", "After the storm", "Down by the river", "Late in the evening"),
    *("Some years ago", "Behind the old house", "At the end of the road", "Without a word"),
)
MIDDLES = (
    *("the children found a letter", "nobody expected the train", "a small boat came into sight"),
    *("she opened the window", "they talked about the weather", "the teacher closed the book"),
)
ENDINGS = ("and went home.", "as always.", "before it was dark.", "for the first time in weeks.")
TIMEOUT = 600
SOAK_CLIENTS = 16
MP3_BYTES_PER_SECOND = 8000
WAV_HEADER = 44


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("voice")
    parser.add_argument("--vocoder", default="auto")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    about = "sentences of the texts that each client sends"
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 3, 10, 40], help=about)
    parser.add_argument("--piper", metavar="PYTHON", help="an interpreter that has piper-tts")
    parser.add_argument("--piper-voice", metavar="FILE", nargs="*", default=[], help="its voices")
    parser.add_argument("--format", choices=("wav", "mp3"), default="wav", help="what ours answers")
    parser.add_argument("--soak", type=float, metavar="MINUTES")
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]), flush=True)
    if args.soak:
        soak(args)
        return
    print(f"{len(os.sched_getaffinity(0))} cores; load before: {os.getloadavg()[0]:.1f}")
    header = ("server", "clients", "first p50", "first p95", "sentences/s", "CPU s/s", "speech s")
    print("{:16}{:>8}{:>11}{:>11}{:>13}{:>9}{:>10}".format(*header), flush=True)
    for name, start in servers(args):
        with start() as server:
            for count in (1, 5, 5):
                server.speak(make_text(count, random.Random(count)), lambda size: True)  # warm
            for clients in args.clients:
                row = measure(server, clients, args.sentences)
                print(f"{name:16}{clients:8}" + row, flush=True)


@dataclass(frozen=True)
class Server:
    """A server that speaks: who it is, and how it is asked."""

    process: psutil.Process
    url: str
    path: str
    body: dict
    bytes_per_second: int
    key: str = "input"

    def speak(self, text: str, goes_on: Callable[[int], bool]) -> "Answer":
        """Ask for a text, and read while `goes_on` agrees to what was read so far."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT)
        with contextlib.closing(connection):
            began, first, size = time.monotonic(), None, 0
            body = json.dumps({**self.body, self.key: text})
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            while part := answer.read1(1 << 16):
                size += len(part)
                if first is None and size > WAV_HEADER:
                    first = time.monotonic() - began
                if not goes_on(size):
                    break
        return Answer(answer.status, first, size / self.bytes_per_second)

    def metric(self, name: str) -> float:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def cpu_seconds(self) -> float:
        everyone = [self.process, *self.process.children(recursive=True)]
        return sum(sum(one.cpu_times()[:2]) for one in everyone)


@dataclass(frozen=True)
class Answer:
    status: int
    first: float | None
    seconds: float


def servers(args: argparse.Namespace) -> Iterator[tuple[str, Callable]]:
    yield "batches", lambda: our_server(args)
    yield "one by one", lambda: our_server(args, "--max-batch", "1")
    if not (args.piper and args.piper_voice):
        print("piper is not measured: name --piper and --piper-voice", flush=True)
        return
    for voice in args.piper_voice:
        name = Path(voice).stem.split("-")[1]
        yield f"piper, {name}", lambda voice=voice: piper_server(args.piper, voice)


@contextlib.contextmanager
def our_server(args: argparse.Namespace, *words: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        named = ("--voice", args.voice, "--vocoder", args.vocoder, "--clones", folder)
        command = [sys.executable, "-m", "myxtts.cli.main", "serve", "--port", "0", *named, *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise SystemExit("the server did not start")
            asked = {"model": "tts-1", "voice": "alloy", "response_format": args.format}
            rate = MP3_BYTES_PER_SECOND if args.format == "mp3" else 2 * sample_rate(args.voice)
            yield Server(psutil.Process(process.pid), url, "/v1/audio/speech", asked, rate)
        finally:
            process.terminate()
            process.wait()


def sample_rate(voice: str) -> int:
    found = (Path(voice) / inside / "config.yaml" for inside in (".", "voice"))
    config = next(path for path in found if path.is_file())
    return yaml.safe_load(config.read_text())["data"]["sample_rate"]


@contextlib.contextmanager
def piper_server(python: str, voice: str) -> Iterator[Server]:
    rate = json.loads(Path(f"{voice}.json").read_text())["audio"]["sample_rate"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [python, "-m", "piper.http_server", "-m", voice, "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, "--host", "127.0.0.1"], **quiet)
    url = f"http://127.0.0.1:{port}"
    found = Server(psutil.Process(process.pid), url, "/synthesize", {}, 2 * rate, "text")
    try:
        for _ in range(300):
            time.sleep(0.2)
            with contextlib.suppress(OSError):
                found.speak("Hello.", lambda size: True)
                break
        yield found
    finally:
        process.terminate()
        process.wait()


def measure(server: Server, clients: int, sentences: list[int]) -> str:
    """Have every client send its texts; return the figures as the rest of a row."""
    answers: list[Answer] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        for count in chance.sample(sentences, len(sentences)):
            answers.append(server.speak(make_text(count, chance), lambda size: True))

    cpu, began = server.cpu_seconds(), time.monotonic()
    run_all([threading.Thread(target=work, args=(number,)) for number in range(clients)])
    took, cpu = time.monotonic() - began, server.cpu_seconds() - cpu
    bad = Counter(one.status for one in answers if one.status != 200)
    if bad or len(answers) != clients * len(sentences):
        return f"  failed: {dict(bad)}, {len(answers)} answers"
    speech = sum(one.seconds for one in answers)
    p50, p95 = np.percentile([one.first for one in answers], (50, 95))
    rate = clients * sum(sentences) / took
    return f"{p50:10.2f}s{p95:10.2f}s{rate:13.1f}{cpu / speech:9.3f}{speech:10.0f}"


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def make_text(sentences: int, chance: random.Random) -> str:
    parts = (OPENINGS, MIDDLES, ENDINGS)
    said = (" ".join(chance.choice(part) for part in parts) for _ in range(sentences))
    return " ".join(said)


@dataclass
class Seen:
    """What a server holds at a moment."""

    memory_mb: float
    threads: int
    files: int
    queue: float

    @classmethod
    def of(cls, server: Server) -> "Seen":
        process = server.process
        memory = process.memory_info().rss / 2**20
        held = process.num_threads(), process.num_fds()
        return cls(memory, *held, server.metric("myxtts_queue"))

    def __str__(self) -> str:
        return (
            f"{self.memory_mb:7.0f} MB {self.threads:4} threads {self.files:4} files "
            f"{self.queue:4.0f} queued"
        )


@dataclass
class Soak:
    """What clients have met so far."""

    statuses: Counter = field(default_factory=Counter)
    left: int = 0
    errors: Counter = field(default_factory=Counter)


def soak(args: argparse.Namespace) -> None:
    """Sixteen clients for some minutes, a third of which hang up midway."""
    with our_server(args, "--max-queue", str(SOAK_CLIENTS - 2)) as server:
        server.speak(make_text(3, random.Random(0)), lambda size: True)
        print("idle    ", Seen.of(server), flush=True)
        met, until = Soak(), time.monotonic() + 60 * args.soak
        threads = [
            threading.Thread(target=soak_client, args=(server, number, until, met, args.sentences))
            for number in range(SOAK_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        warm_up, seen = time.monotonic() + 6 * args.soak, []
        while time.monotonic() < until:
            time.sleep(max(5.0, 3 * args.soak))
            now = Seen.of(server)
            if time.monotonic() > warm_up:
                seen.append(now)
            print("working ", now, flush=True)
        for thread in threads:
            thread.join()
        time.sleep(2)
        print("idle    ", Seen.of(server))
    growth = seen[-1].memory_mb - seen[0].memory_mb
    print(f"answers {dict(met.statuses)}, {met.left} hung up, errors {dict(met.errors)}")
    print(f"memory grew by {growth:.0f} MB after the warm-up")


def soak_client(server: Server, number: int, until: float, met: Soak, sizes: list[int]) -> None:
    chance = random.Random(number)
    while time.monotonic() < until:
        hangs_up = chance.random() < 1 / 3
        after = chance.randrange(1, 300_000)
        try:
            answer = server.speak(
                make_text(chance.choice(sizes), chance),
                lambda size, after=after, hangs_up=hangs_up: not (hangs_up and size > after),
            )
            met.statuses[answer.status] += 1
            met.left += hangs_up and answer.status == 200
            if answer.status == 429:
                time.sleep(0.5)
        except (OSError, http.client.HTTPException) as error:
            met.errors[type(error).__name__] += 1


if __name__ == "__main__":
    main()
