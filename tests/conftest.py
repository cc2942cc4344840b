"""What every test can rely on."""

import logging
import os

import pytest

# Some virtual machines show matrix instructions that they cannot do: bfloat16 would end the tests.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


@pytest.fixture(autouse=True)
def own_weights_folder(monkeypatch):
    """No test finds public weights by accident: `shared_weights` looks before this is unset."""
    monkeypatch.delenv("MYXTTS_WEIGHTS_DIR", raising=False)


@pytest.fixture(autouse=True)
def untouched_logger():
    """Commands set up the package's logger; the next test finds it as it was."""
    logger = logging.getLogger("myxtts")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
