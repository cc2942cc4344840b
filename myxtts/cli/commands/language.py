"""`myxtts language`: what a language has, and what it still lacks."""

import argparse

from myxtts.cli.terminal import add_command
from myxtts.monitoring.console import columns
from myxtts.text.languages import LANGUAGES

MARKS = {True: "yes", False: "no", None: "not here"}


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("language", help="see what a language has and still lacks")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "print a checklist of a language, and how well it reads the texts of a corpus"
    parser = add_command(actions, "check", about, check)
    parser.add_argument("code", metavar="CODE", choices=tuple(LANGUAGES), help="code, such as fa")
    about = "a corpus whose texts are read and counted"
    parser.add_argument("corpus", metavar="CORPUS", nargs="?", help=about)


def check(args: argparse.Namespace) -> None:
    from myxtts.workflows.check_language import check_language

    found = check_language(args.code, args.corpus)
    print(columns([("what", "holds", "how"), *((x.name, MARKS[x.holds], x.how) for x in found)]))
    lacking = [item.name for item in found if item.holds is False]
    print(f"\nlacking: {', '.join(lacking)}" if lacking else "\nnothing is lacking")
