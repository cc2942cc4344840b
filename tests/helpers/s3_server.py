"""A real S3 API on this machine: moto's server, in a process of its own.

Moto needs a botocore of its own, so it may be installed elsewhere: `pipx install 'moto[server]'`.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "bucket"


@dataclass(frozen=True)
class S3Server:
    """A server with one empty bucket; its log has a line for every request."""

    endpoint: str
    process: subprocess.Popen
    log: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a client of it needs."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def requests(self, method: str = "GET") -> int:
        """How many requests of a method it has answered."""
        return self.log.read_text().count(f'"{method} ')

    def pause(self) -> None:
        """Stop answering, with connections open."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def find_server() -> str | None:
    """The program, on the path or next to this Python."""
    return shutil.which("moto_server") or shutil.which(
        "moto_server", path=str(Path(sys.executable).parent)
    )


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Start a server on a free port of the loopback interface; `folder` is for its log."""
    program = find_server()
    if program is None:
        raise FileNotFoundError("moto_server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "s3-server.log"
    command = [program, "-H", "127.0.0.1", "-p", str(port)]
    # Nothing of this process's Python: the server has packages of its own.
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with open(log, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=own)
    server = S3Server(f"http://127.0.0.1:{port}", process, log)
    try:
        _make_bucket(server)
        yield server
    finally:
        server.resume()
        process.terminate()
        process.wait(10)


def _make_bucket(server: S3Server, seconds: float = 60.0) -> None:
    """Wait until it answers."""
    request = urllib.request.Request(f"{server.endpoint}/{BUCKET}", method="PUT")
    until = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(request).close()
            return
        except urllib.error.URLError:
            if time.monotonic() > until or server.process.poll() is not None:
                raise
            time.sleep(0.2)
