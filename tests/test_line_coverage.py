"""The coverage that `make test` prints, of small test runs in a folder of their own."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.helpers.line_coverage import PACKAGE, ROOT, is_every_test

TEST = """
import os
from myxtts.text.language import words

def test_one():
    assert words("a b a") == {"a", "b"}

def test_two():
    assert "CRASH" not in os.environ or os._exit(1)
"""
LANGUAGE = "text/language.py"


@pytest.fixture
def run(tmp_path):
    """Run pytest on two toy tests; return the last lines that it prints, and the table."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    (tmp_path / "test_toy.py").write_text(TEST)

    def start(*argv: str, **environ: str) -> tuple[list[str], str]:
        plugins = "-p tests.helpers.line_coverage --coverage-report coverage.txt".split()
        command = [sys.executable, "-m", "pytest", *plugins, *argv]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        env = os.environ | {"PYTHONPATH": path} | environ
        env.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        return done.stdout.splitlines()[-2:], (tmp_path / "coverage.txt").read_text()

    return start


def row_of(table: str, name: str) -> str:
    (row,) = [line for line in table.splitlines() if f"{PACKAGE.name}/{name} " in line]
    return row


def line_of(text: str) -> int:
    lines = (PACKAGE / LANGUAGE).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_the_total_is_printed_before_the_last_line_and_the_table_names_missing_lines(
    run, processes
):
    (total, last), table = run(*processes)
    assert re.fullmatch(
        r"coverage: 0\.\d % of \d\d,\d{3} lines in myxtts, without what tests run in other "
        r"processes; by file: coverage\.txt",
        total,
    )
    assert "2 passed" in last
    missing = [line_of('return {"$"'), line_of("map(chr")]
    assert row_of(table, LANGUAGE).endswith(" {}, {}".format(*missing))
    assert row_of(table, "cli/main.py").split()[3] == "0"


@pytest.mark.parametrize(
    ("argv", "environ"),
    [(["test_toy.py"], {}), (["-n", "2"], {"CRASH": "1"})],
    ids=["named on the command line", "a worker crashed"],
)
def test_a_part_of_the_tests_is_called_one(run, argv, environ):
    (total, _), _ = run(*argv, **environ)
    assert total.startswith("coverage by a part of the tests: 0.")


@pytest.mark.parametrize(
    ("options", "exitstatus", "expected"),
    [
        ({}, 0, True),
        ({}, 1, True),  # some failed
        ({}, 2, False),  # interrupted
        ({"keyword": "speech"}, 0, False),
        ({"markexpr": "not slow"}, 0, False),
        ({"maxfail": 1}, 1, False),
    ],
)
def test_a_choice_or_an_early_end_makes_it_a_part(options, exitstatus, expected):
    sources = pytest.Config.ArgsSource
    option = SimpleNamespace(**({"keyword": "", "markexpr": "", "maxfail": 0} | options))
    config = SimpleNamespace(option=option, ArgsSource=sources, args_source=sources.TESTPATHS)
    assert is_every_test(config, exitstatus) is expected
