"""The command `myxtts`; nothing heavy is imported before one of its verbs runs."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

# All else is imported when Ctrl-C is answered.
from myxtts.cli.interrupts import ending_at_once, handled

if TYPE_CHECKING:
    import argparse


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for what the user can fix, 130 for Ctrl-C."""
    with handled():
        with ending_at_once():
            from myxtts.cli import terminal

            args = build_parser().parse_args(argv)
            args.words = list(sys.argv[1:] if argv is None else argv)
        return terminal.run(args.run, args)


def build_parser() -> "argparse.ArgumentParser":
    """Return the parser of all verbs; each stores the function to run as `run`."""

    from myxtts import __version__
    from myxtts.cli import terminal
    from myxtts.cli.verbs import VERBS

    about = "Voice-cloning text-to-speech: from recordings to a voice, with no step left waiting."
    parser = terminal.Parser(prog="myxtts", description=about)
    parser.add_argument("--version", action="version", version=f"myxtts {__version__}")
    terminal.add_verbose(parser)
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in VERBS:
        module.add(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
