"""What the tests of hooks share."""

import logging

import pytest


@pytest.fixture
def messages(caplog):
    """What the package has logged so far, as a function."""
    caplog.set_level(logging.INFO, "myxtts")

    def read() -> list[str]:
        return [entry.getMessage() for entry in caplog.records]

    read.clear = caplog.clear
    return read
