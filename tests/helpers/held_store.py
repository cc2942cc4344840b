"""A store that is held by somebody else."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_SH if sys.argv[2] == "True" else fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_elsewhere(folder: Path, shared: bool) -> Iterator[subprocess.Popen]:
    """Another process holds the lock of a store, alone or with others, until it is killed."""
    command = [sys.executable, "-c", _HOLD, str(folder / ".lock"), str(shared)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()
