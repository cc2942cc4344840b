"""How a command meets its user: the log, errors without a stack trace, and exit codes."""

import argparse
import contextlib
import difflib
import gc
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from myxtts.cli.interrupts import INTERRUPTED as INTERRUPTED
from myxtts.cli.interrupts import ending_at_once, handled
from myxtts.errors import UserError
from myxtts.monitoring import console

OK, FAILED, BAD_INPUT, BROKEN_PIPE = 0, 1, 2, 141
LONGEST_MESSAGE = 3000


def run(command: Callable[[argparse.Namespace], int | None], args: argparse.Namespace) -> int:
    """Run a command and turn what it raises into a message and an exit code."""
    show_log(args.verbose)
    try:
        with handled():
            code = command(args) or OK
        sys.stdout.flush()
        return code
    except UserError as error:
        return _fail(f"error: {error}", error.exit_code)
    except KeyboardInterrupt as error:
        return _fail(str(error) or "interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does: Python must not flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        if args.verbose:
            raise
        return _fail(f"error: {error} (--verbose shows where)", BAD_INPUT)


class Parser(argparse.ArgumentParser):
    """Answers a wrong command line with what is wrong and where help is, not with all flags."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")

    def parse_known_args(self, args=None, namespace=None):
        """Reject an unknown argument in the command that it was meant for."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._suggest(unknown)}")
        return known, unknown

    def _suggest(self, unknown: list[str]) -> str:
        flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        close = [difflib.get_close_matches(f, self._option_string_actions, 1) for f in flags]
        names = [match[0] for match in close if match]
        return f" (did you mean {', '.join(names)}?)" if names else ""


class Subjects(argparse._SubParsersAction):
    """Subjects of a verb that has options itself: one before the subject would be lost."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = vars(namespace).items()
        # -v has no default that could overwrite it.
        if any(name != "verbose" and value != parser.get_default(name) for name, value in given):
            parser.error(f"options go behind the subject {values[0]!r}, not before it")
        super().__call__(parser, namespace, values, option_string)


def add_command(
    actions: argparse._SubParsersAction,
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int | None],
) -> argparse.ArgumentParser:
    """Add a command that calls `run`, and return its parser, to be given its arguments."""
    parser = actions.add_parser(name, help=about, description=about)
    add_verbose(parser, argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def parse_program(
    name: str,
    about: str,
    add_arguments: Callable[[argparse.ArgumentParser], None],
    argv: Sequence[str] | None,
) -> argparse.Namespace:
    """Read the arguments of a program at the root of the project."""
    parser = Parser(name, description=about)
    add_arguments(parser)
    add_verbose(parser)
    return parser.parse_args(argv)


def number_list(text: str) -> list[float]:
    """The type of an argument that takes numbers with commas between them."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers: write them with commas between, as in 0.5,0,1"
        )
    return numbers


def check_least(args: argparse.Namespace, **least: float) -> None:
    """Raise where a number is given and is below its least, or is no number."""
    for name, number in least.items():
        value = getattr(args, name)
        if value is not None and not number <= value < math.inf:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} must be at least {number}, not {value}")


def print_line(line: str) -> None:
    """Print a line at once, wherever the output goes."""
    print(line, flush=True)


def add_verbose(parser: argparse.ArgumentParser, default: Any = False) -> None:
    """Add -v; a command's must not have a default, which would hide that of `myxtts -v`."""
    about = "show the log"
    parser.add_argument("-v", "--verbose", action="store_true", default=default, help=about)


def import_tensorflow() -> None:
    """Import TensorFlow without its chatter, which --verbose leaves in."""
    if sys.modules.get("tensorflow"):
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # it reads this once, on import
    verbose = logging.getLogger("myxtts").isEnabledFor(logging.INFO)
    try:
        # An import of native code can drop KeyboardInterrupt, and takes seconds.
        with ending_at_once(), contextlib.nullcontext() if verbose else _silent_descriptor(2):
            import tensorflow  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"TensorFlow cannot be imported ({error}): install it with "
            "pip install 'myxtts[gpu]', or 'myxtts[cpu]' where there is no GPU"
        ) from error
    # TensorFlow's graphs refer to themselves, and to the columns that they read: only the collector
    # frees them. It waits until a quarter of all objects is new, and those of an import are
    # 400,000: without them it comes in time, and takes milliseconds instead of a fifth of a second.
    gc.freeze()
    gc.collect()  # which counts what is left


@contextlib.contextmanager
def _silent_descriptor(number: int) -> Iterator[None]:
    """Discard what native code writes: TensorFlow logs before its log level is set."""
    kept, nowhere = os.dup(number), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)
        os.close(nowhere)


def show_log(verbose: bool) -> None:
    """Show warnings, or with `verbose` the whole log, without the names of modules."""
    console.show_log(logging.INFO if verbose else logging.WARNING)


def _fail(message: str, code: int) -> int:
    if len(message) > LONGEST_MESSAGE:  # it may quote a name from an untrusted file
        half = LONGEST_MESSAGE // 2
        message = f"{message[:half]} [...] {message[-half:]}"
    print(message, file=sys.stderr)
    return code
