"""`myxtts text`: show how a text is read, and measure how well texts are."""

import argparse
import os
from pathlib import Path

from myxtts.cli.terminal import add_command
from myxtts.monitoring.console import columns
from myxtts.text.languages import LANGUAGES

TEST_SETS = "./data/test_sets"


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("text", help="show how a text is read, or measure how well texts are")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "print a text as it is normalised, its words and its phonemes"
    parser = add_command(actions, "show", about, show)
    parser.add_argument("text", metavar="TEXT", help="what to read")
    _add_language(parser, "en")
    about = "write short vowels and ezafes into the text, and print nothing else (Persian)"
    parser.add_argument("--vowelise", action="store_true", help=about)
    about = "read annotated test sets with the front end and with espeak alone, and compare"
    parser = add_command(actions, "evaluate", about, evaluate)
    _add_language(parser, "fa")
    about = f"folder of the test sets (default: MYXTTS_TEST_SETS, or {TEST_SETS})"
    parser.add_argument("--test-sets", type=Path, metavar="DIR", help=about)


def show(args: argparse.Namespace) -> None:
    from myxtts.text.showing import show_text, vowelise

    if args.vowelise:
        print(vowelise(args.text, args.language))
        return
    shown = show_text(args.text, args.language)
    print(f"text        {args.text}\nnormalised  {shown.normalised}\nphonemes    {shown.phonemes}")
    if shown.words:
        print()
        print(columns([("word", "phonemes", "how"), *shown.words]))
    for note in shown.notes:
        print(f"note: {note}")


def evaluate(args: argparse.Namespace) -> None:
    from myxtts.text.showing import judge

    folder = args.test_sets or Path(os.environ.get("MYXTTS_TEST_SETS", TEST_SETS))
    print(columns(judge(args.language, folder), right=range(2, 8)))


def _add_language(parser: argparse.ArgumentParser, default: str) -> None:
    about = f"language of the text (default: {default})"
    parser.add_argument("--language", choices=tuple(LANGUAGES), default=default, help=about)
