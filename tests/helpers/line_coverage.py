"""A plugin of pytest that prints how much of the package the tests ran.

Modules of the package are instrumented as they are imported: their bytecode on Python 3.11, through
`sys.monitoring` from 3.12 on. Tracing each line took twice the time.
"""

import functools
import json
from pathlib import Path

import pytest
import slipcover

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "myxtts"
REPORT = ROOT / "build" / "coverage.txt"

_EXCLUDED = ["if __name__ == .__main__.:"]
_OUTPUT = "line_coverage"
# Ray sends what is in it to other processes, which probes in the code would prevent.
_SENT = "*/myxtts/data/store/ray_nodes.py"
# Options with which not every test runs.
_CHOICES = (
    *("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise"),
    *("maxfail", "collectonly"),
)


def pytest_addoption(parser):
    parser.addoption("--coverage-report", metavar="FILE", type=Path, default=REPORT)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Start before a conftest imports the package."""
    early_config.pluginmanager.register(LineCoverage(), "line-coverage")


class LineCoverage:
    """Measures in every worker of pytest-xdist, and prints in the process that started them."""

    def __init__(self):
        # Probes stay in the code: to remove them, slipcover exchanges it while functions run.
        self.measured = slipcover.Slipcover(d_miss_threshold=-1, exclude_also=_EXCLUDED)
        package = slipcover.FileMatcher(sources=[PACKAGE], omit=[_SENT])
        self.imports = slipcover.ImportManager(self.measured, package)
        self.imports.__enter__()
        self.workers: list[dict | None] = []

    def pytest_sessionfinish(self, session):
        """Send what this worker ran."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = json.dumps(self.measured.get_coverage())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Receive what a worker ran, which is nothing if it crashed."""
        self.workers.append(json.loads(getattr(node, "workeroutput", {}).get(_OUTPUT, "null")))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter, exitstatus, config):
        result = yield  # all the rest, except pytest's own last line
        is_whole = None not in self.workers and is_every_test(config, exitstatus)
        coverage = self.merged()
        path = config.option.coverage_report
        write_table(path, coverage)
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        terminalreporter.write_line(f"{total(coverage, is_whole)}; by file: {shown}")
        return result

    def merged(self) -> dict:
        """The lines of the whole package, imported or not, that any process ran."""
        for path in PACKAGE.rglob("*.py"):
            code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
            self.measured.code_lines[str(path)].update(self.measured.lines_from_code(code))
        workers = [worker for worker in self.workers if worker]
        return functools.reduce(slipcover.merge_coverage, workers, self.measured.get_coverage())

    def pytest_unconfigure(self):
        self.imports.__exit__()


def is_every_test(config, exitstatus: int) -> bool:
    """Whether the command line chose no tests, and pytest came to the end of them."""
    is_complete = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    is_choice = any(getattr(config.option, name, None) for name in _CHOICES)
    return is_complete and not is_choice and config.args_source is config.ArgsSource.TESTPATHS


def write_table(path: Path, coverage: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        slipcover.print_coverage(coverage, outfile=file, missing_width=60)


def total(coverage: dict, is_whole: bool) -> str:
    covered, missing = (coverage["summary"][name] for name in ("covered_lines", "missing_lines"))
    share = 100 * covered / (covered + missing)
    what = "coverage" if is_whole else "coverage by a part of the tests"
    return (
        f"{what}: {share:.1f} % of {covered + missing:,} lines in {PACKAGE.name}, without what "
        "tests run in other processes"
    )
