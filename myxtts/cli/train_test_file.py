"""The program `trainTestFile.py`, mode by mode."""

import argparse
from collections.abc import Sequence

from myxtts.cli import terminal
from myxtts.cli.commands import config, synthesize, train
from myxtts.cli.settings import add_settings, resolve_settings
from myxtts.config.flags import flag_values
from myxtts.errors import UserError


def main(argv: Sequence[str] | None = None) -> int:
    parser = terminal.Parser("trainTestFile.py", description=__doc__)
    parser.add_argument("--mode", choices=tuple(MODES), required=True, help="what to do")
    about = f"where to write (default: {config.OUTPUT}, in mode test {synthesize.OUTPUT})"
    parser.add_argument("--output", metavar="FILE", help=about)
    train.add_resuming(parser)
    _add_testing(parser)
    add_settings(parser)
    terminal.add_verbose(parser)
    args = parser.parse_args(argv)
    return terminal.run(MODES[args.mode], args)


def create_config(args: argparse.Namespace) -> None:
    args.output = args.output or config.OUTPUT
    config.create(args)


def test(args: argparse.Namespace) -> None:
    """Speak a text with the voice that --checkpoint names, or that training left."""
    if args.text is None:
        raise UserError("--mode test speaks a text: give it with --text")
    given = {path: flag.value for path, flag in flag_values(args).items()}
    argv = ["--voice", args.checkpoint or resolve_settings(args).config.training.checkpoint_dir]
    for name, value in {
        "--text": args.text,
        "--output": args.output,
        "--reference": args.reference_audio,
        "--language": given.get("data.language"),
        "--seed": given.get("training.seed"),
    }.items():
        argv += [] if value is None else [f"{name}={value}"]
    synthesize.run(synthesize.parse(argv))


def _add_testing(parser: argparse.ArgumentParser) -> None:
    testing = parser.add_argument_group("mode test")
    about = "the voice's folder (default: that of --checkpoint-dir)"
    testing.add_argument("--checkpoint", "--voice", metavar="DIR", help=about)
    testing.add_argument("--text", help="what to say")
    about = "a recording of the voice to be cloned"
    testing.add_argument("--reference-audio", "--reference", metavar="WAV", help=about)


MODES = {"train": train.run, "test": test, "create-config": create_config}
