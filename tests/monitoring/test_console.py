import logging

import pytest

from myxtts.monitoring import console


@pytest.fixture
def forget_logging(monkeypatch):
    """Put logging into the state in which a script finds it; pytest has set it up before a test."""
    logger = logging.getLogger("myxtts")
    level = logger.level

    def forget():
        for one in (logging.getLogger(), logger):
            monkeypatch.setattr(one, "handlers", [])
        logger.setLevel(logging.NOTSET)

    yield forget
    logger.setLevel(level)


def test_a_script_without_logging_sees_losses_and_reports(forget_logging, capsys):
    forget_logging()
    console.show_log_unless_set_up()
    console.show_log_unless_set_up()  # a second trainer
    logging.getLogger("myxtts.training.hooks.log").info("Train loss components: mel_loss=1")
    logging.getLogger("myxtts.training.hooks.log").debug("details")
    assert capsys.readouterr().err == "Train loss components: mel_loss=1\n"


@pytest.mark.parametrize("name", ["", "myxtts"])
def test_logging_that_the_user_has_set_up_is_left_alone(forget_logging, capsys, name):
    forget_logging()
    own = logging.NullHandler()
    logging.getLogger(name).addHandler(own)
    console.show_log_unless_set_up()
    logging.getLogger("myxtts.training.hooks.log").info("Train loss components: mel_loss=1")
    assert logging.getLogger(name).handlers == [own]
    assert logging.getLogger("myxtts").level == logging.NOTSET and capsys.readouterr().err == ""


def test_rows_of_text_stand_in_columns():
    rows = [("name", "count", "why"), ("a", "10", ""), ("longer", "2", "so")]
    assert console.columns(rows, right=(1,)).splitlines() == [
        "name    count  why",
        "a          10",
        "longer      2  so",
    ]
