"""The server under attack: ten thousand connections, bombs, and requests made from its own API.

python benchmarks/serving_attack.py [VOICE] [--connections 10000] [--uploads 100] [--minutes 10]

Every part ends with a request of the usual kind, which the server has to answer. What each part met
is counted, and so is what the server's process holds afterwards. The exit code is 1 where anything
was answered with 5xx, broke the API's description, or stopped the server.
"""

import argparse
import errno
import io
import json
import os
import resource
import selectors
import socket
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import numpy as np
import soundfile

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving import Server, our_server  # noqa: E402

WAIT = 300  # seconds for anything
CONSENT = "I, Ada Example, agree that my voice is cloned here."
JSON = {"Content-Type": "application/json"}
ASKED = {"model": "tts-1", "voice": "alloy", "input": "Hello.", "response_format": "wav"}
HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
WHOLE = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
LORIS_SECONDS = 90  # several times what a head may take
EXAMPLES = 25  # of an operation, in a round


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("voice", nargs="?", default=str(ROOT / "myxtts" / "default_voice"))
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--uploads", type=int, default=100, help="damaged recordings")
    parser.add_argument("--minutes", type=float, default=10, help="of requests from the API")
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]), flush=True)
    asked = SimpleNamespace(voice=args.voice, vocoder="auto", format="wav")
    limits = ("--max-text", "300", "--max-upload-mb", "2", "--max-clones", "20")
    with our_server(asked, *limits) as server:
        # The server keeps the usual limit.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, args.connections + 1000), hard))
        parts = [
            (f"{args.connections} silent connections", lambda: hold(server, args.connections, b"")),
            (f"{args.connections} slow heads", lambda: hold(server, args.connections, HALF)),
            (f"{args.connections} requests at once", lambda: hold(server, args.connections, WHOLE)),
            ("bombs and lies", lambda: send_bombs(server, args.uploads)),
            (f"API, {args.minutes:g} min", lambda: follow_schema(server, args.minutes)),
        ]
        bad = [name for name, part in parts if not survives(server, name, part)]
    sys.exit(f"not survived: {', '.join(bad)}" if bad else 0)


def survives(server: Server, name: str, part: Callable[[], Counter]) -> bool:
    """Run a part, and then ask for speech until it comes; print what was met."""
    began = time.monotonic()
    met = part()
    ended = time.monotonic()
    status: int | str = "nothing"
    while status != 200 and time.monotonic() < ended + WAIT:
        try:
            status = httpx.post(f"{server.url}/v1/audio/speech", json=ASKED, timeout=WAIT)
            status = status.status_code
        except httpx.TransportError as error:
            status = type(error).__name__
            time.sleep(0.2)
    after = time.monotonic() - ended
    held = server.process
    print(
        f"{name} ({ended - began:.0f} s): {dict(sorted(met.items(), key=str))}\n"
        f"  afterwards: {status} after {after:.1f} s, {held.memory_info().rss / 2**20:.0f} MB, "
        f"{held.num_threads()} threads, {held.num_fds()} files, "
        f"{server.metric('myxtts_queue'):.0f} queued",
        flush=True,
    )
    broken = any(str(key).startswith(("5", "broken")) for key in met)
    return status == 200 and not broken


def hold(server: Server, count: int, said: bytes) -> Counter:
    """Open so many connections, say this on each, go on slowly, and count how each one ends."""
    address = urlsplit(server.url)
    met: Counter = Counter()
    waiting, most_files = selectors.DefaultSelector(), 0
    until = time.monotonic() + LORIS_SECONDS
    begun = 0
    while (begun < count or waiting.get_map()) and time.monotonic() < until:
        for _ in range(min(500, count - begun)):
            begun += 1
            sock = socket.socket()
            sock.setblocking(False)
            if sock.connect_ex((address.hostname, address.port)) not in (0, errno.EINPROGRESS):
                met["not connected"] += 1
                sock.close()
                continue
            waiting.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        for key, events in waiting.select(0.2):
            if end := _went_on(waiting, key, events, said):
                met[end] += 1
        most_files = max(most_files, server.process.num_fds())
    met["held to the end"] = len(waiting.get_map())
    for key in list(waiting.get_map().values()):
        key.fileobj.close()
    waiting.close()
    met["most files of the server"] = most_files
    return met


def _went_on(waiting: selectors.BaseSelector, key: selectors.SelectorKey, events: int, said: bytes):
    """Read or write on a connection; how it ended, if it did."""
    sock = key.fileobj
    try:
        if events & selectors.EVENT_READ:
            answer = sock.recv(4096)
            waiting.unregister(sock)
            sock.close()
            return answer.split()[1].decode() if answer.startswith(b"HTTP") else "closed"
        sock.send(said)
        waiting.modify(sock, selectors.EVENT_READ)
    except OSError as error:
        waiting.unregister(sock)
        sock.close()
        return type(error).__name__
    return None


def send_bombs(server: Server, uploads: int) -> Counter:
    """What unpacks to much, and what lies about itself or smuggles lines into headers."""
    from tests.helpers.hostile_audio import mutations

    met: Counter = Counter()
    with httpx.Client(base_url=server.url, timeout=WAIT) as client:
        for name, content in [*bombs(), *mutations(seed=11, count=uploads)]:
            form = {"name": f"Ada {sum(met.values())}", "consent": CONSENT}
            answer = client.post("/v1/voices", data=form, files={"audio_sample": (name, content)})
            met[answer.status_code] += 1
            if answer.status_code == 200:
                client.delete(f"/v1/voices/{answer.json()['id']}")
        many = zlib.compress(json.dumps({**ASKED, "input": "a" * 50_000_000}).encode())
        for headers in (
            {**JSON, "Content-Encoding": "deflate"},
            {**JSON, "Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
            {**JSON, "X-Forwarded-Host": "evil.example", "Host": "evil.example"},
        ):
            answer = client.post("/v1/audio/speech", content=many, headers=headers)
            met[answer.status_code] += 1
        for voice in ("lj\r\nX-Injected: 1", "../../etc/passwd", "\x00", "a" * 100_000):
            answer = client.post("/v1/audio/speech", json={**ASKED, "voice": voice})
            met[answer.status_code] += 1
            met["broken: injected"] += "x-injected" in answer.headers
    return +met


def bombs() -> Iterator[tuple[str, bytes]]:
    """Recordings of hours in few bytes, and of gigabytes by their headers."""
    for form, subtype in (("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("WAV", "IMA_ADPCM")):
        content = io.BytesIO()
        silence = np.zeros(8000 * 60, np.float32)
        with soundfile.SoundFile(content, "w", 8000, 1, format=form, subtype=subtype) as sound:
            while content.tell() < 1 << 20 and sound.frames < 8000 * 3600:
                sound.write(silence)
        yield f"silence.{form.lower()}", content.getvalue()
    size = b"\xff\xff\xff\xff"
    layout = (
        b"WAVEfmt \x10\x00\x00\x00\x01\x00\xff\xff\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\x20\x00"
    )
    yield "channels.wav", b"RIFF" + size + layout + b"data" + size + bytes(1000)
    yield "packed.zip", b"PK\x03\x04" + bytes(1 << 20)
    yield "large.wav", bytes(8 << 20)


def follow_schema(server: Server, minutes: float) -> Counter:
    """Requests from the API's description, with other choices in every round."""
    from tests.helpers.schema_requests import described, try_requests

    met: Counter = Counter()
    until, number = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until:
        for operation, mode in described(server.url):
            if time.monotonic() > until:
                break
            try:
                try_requests(operation, mode, EXAMPLES, number)
                met["examples kept to it"] += EXAMPLES
            except Exception as error:  # the first breach of each kind is what is wanted
                said = str(error)
                met[f"broken: {operation.label}"] += 1
                if met[f"broken: {operation.label}"] == 1:
                    print(f"{operation.label}, round {number}:\n{said[:3000]}", flush=True)
        number += 1
    met["rounds"] = number
    return met


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    main()
