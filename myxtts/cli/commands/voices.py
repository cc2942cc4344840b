"""`myxtts voices`: who speaks in a voice, how alike they are, and which styles they attend to."""

import argparse
from pathlib import Path

from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.errors import UserError


def add(verbs: argparse._SubParsersAction) -> None:
    about = "list the speakers of a voice, and plot their similarity and their styles"
    parser = add_command(verbs, "voices", about, run)
    about = "the voice: its folder, or that of the run that made it"
    parser.add_argument("voice", metavar="VOICE", help=about)
    # Not inside of the voice, which training replaces at each checkpoint.
    about = "where to draw (default: %(default)s/)"
    parser.add_argument("-o", "--output", metavar="FOLDER", default="plots", type=Path, help=about)


def run(args: argparse.Namespace) -> None:
    """Print first, which needs no matplotlib, then draw."""
    if args.output.is_file():
        raise UserError(f"{args.output} is a file: name a folder with -o")
    import_tensorflow()
    from myxtts.checkpoints import load_voice
    from myxtts.workflows.voices import describe, draw

    voice = load_voice(args.voice)
    print(f"{describe(voice)}\n")
    for line in draw(voice, args.output):
        print(line)
