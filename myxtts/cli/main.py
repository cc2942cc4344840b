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

            words = list(sys.argv[1:] if argv is None else argv)
            args = build_parser(words).parse_args(words)
            args.words = words
        return terminal.run(args.run, args)


def build_parser(words: Sequence[str] = ()) -> "argparse.ArgumentParser":
    """Return the parser of a command line's verb, or of all; each stores what to run as `run`."""

    from myxtts import __version__
    from myxtts.cli import terminal
    from myxtts.cli.verbs import find_verbs

    about = "Voice-cloning text-to-speech: from recordings to a voice, with no step left waiting."
    parser = terminal.Parser(prog="myxtts", description=about)
    parser.add_argument("--version", action="version", version=f"myxtts {__version__}")
    terminal.add_verbose(parser)
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in find_verbs(words):
        module.add(verbs)
    return parser


if __name__ == "__main__":
    sys.exit(main())
