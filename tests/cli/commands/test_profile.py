import json
import logging

import pytest

from myxtts.cli.commands.profile import main as profiler
from myxtts.cli.main import main
from tests.helpers.browser import Browser

CORPUS = {"count": 12}


@pytest.fixture(scope="module")
def profiled(shared_corpus, tmp_path_factory):
    """A folder with the page and the figures of a profile, and what was printed."""
    from contextlib import redirect_stdout
    from io import StringIO

    folder, said = tmp_path_factory.mktemp("profiled"), StringIO()
    words = f"--train-data {shared_corpus} --batch-size 4 --steps 6 --simulate-step-ms 5".split()
    words += ["--preprocessing-mode", "precompute", "--output", str(folder)]
    logger = logging.getLogger("myxtts")
    handlers = list(logger.handlers)
    with redirect_stdout(said):
        assert profiler(words) == 0
    logger.handlers[:] = handlers  # a command's log must not reach the tests of other modules
    return folder, said.getvalue()


def test_it_prints_loading_the_table_and_the_verdict(profiled):
    folder, said = profiled
    assert said.startswith("Data Loading Performance\n  waiting for a batch: mean")
    assert "mean load time (good below 100 ms" in said
    assert "the data engine alone; next to these steps it is " in said
    for name in ("one batch in memory", "as configured", "cache in memory", "recordings"):
        assert f"| {name} " in said
    assert "\nVerdict: " in said and f"the page is {folder / 'profile.html'}" in said


def test_the_figures_are_written_for_programs(profiled):
    figures = json.loads((profiled[0] / "profile.json").read_text(encoding="utf-8"))
    assert figures["verdict"]["sentence"] and len(figures["trials"]) == 5
    constant = figures["trials"]["one batch in memory"]
    assert constant["device_ms"] >= 4.9  # a simulated step is never shorter
    assert 0 < constant["utilisation"] <= 1.0


def test_the_page_opens_without_a_complaint(profiled):
    with Browser() as browser:
        tab = browser.open(profiled[0] / "profile.html", width=360)
        assert tab.problems == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        assert "fed in different ways" in tab.evaluate("document.body.innerText")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "1"], "--steps must be at least 5"),
        (["--simulate-step-ms", "-3"], "--simulate-step-ms must be at least 0"),
        (["--data", "/nowhere"], "there is no corpus at /nowhere"),
    ],
)
def test_bad_input_ends_in_a_sentence(words, said, capsys):
    assert main(["profile", *words]) == 2
    assert said in capsys.readouterr().err
