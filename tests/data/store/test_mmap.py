"""Memory of batches: what is freed is kept, so that the next batch faults no page in."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, threading
import numpy as np
from myxtts.data.store.mmap import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use():
    return [np.ones(3 << 20, np.uint8) for _ in range(3)]

def work():
    use(), use()
    before = faults()
    for _ in range(8):
        use()
    print(faults() - before)

keep_freed_memory()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_a_freed_buffer_of_a_thread_is_used_again_without_page_faults():
    # A process of its own: the setting is the whole process's.
    command = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    pages = 8 * 3 * (3 << 20) // 4096
    assert int(answer.stdout) < pages // 10
