"""What every test can rely on."""

import logging

import pytest


@pytest.fixture(autouse=True)
def untouched_logger():
    """Commands set up the package's logger; the next test finds it as it was."""
    logger = logging.getLogger("myxtts")
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
