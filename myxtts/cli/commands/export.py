"""`myxtts export`: a trained voice in a form that runs without TensorFlow, or in other players."""

import argparse
from pathlib import Path

from myxtts.cli.settings import add_vocoder, add_voice
from myxtts.cli.terminal import add_command, import_tensorflow, print_line
from myxtts.workflows.exports.settings import (
    TARGETS,
    WEIGHTS,
    ExportSettings,
    check_free,
)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "write a voice for onnxruntime, piper, sherpa-onnx, TensorFlow Serving or LiteRT"
    parser = add_command(verbs, "export", about, run)
    add_voice(parser, required=True)
    about = "what the voice is to run in"
    parser.add_argument("--to", choices=TARGETS, required=True, dest="target", help=about)
    about = "what to write: a folder, or for piper a file that ends in .onnx"
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, required=True, help=about)
    add_vocoder(parser)
    about = "how weights are stored; fewer bits make smaller files and cost a little quality "
    about += "(default: %(default)s)"
    parser.add_argument("--weights", choices=WEIGHTS, default=WEIGHTS[0], help=about)
    about = "language of a player's voice, which has one (default: the voice's first)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "a text whose words go into the lexicon of sherpa-onnx (default: some sentences)"
    parser.add_argument("--words", metavar="FILE", type=Path, dest="lexicon_text", help=about)
    about = "licence of the voice, for its model card"
    parser.add_argument("--licence", metavar="TEXT", default="", help=about)
    about = "what the voice was trained on, for its model card"
    parser.add_argument("--training-data", metavar="TEXT", default="", help=about)


def run(args: argparse.Namespace) -> None:
    """Check what can be checked at once, then load, write and compare."""
    from myxtts.workflows.export import export

    check_free(args.output)
    import_tensorflow()
    from myxtts.export.conversion import import_tf2onnx

    if args.target in ("onnx", "piper", "sherpa"):
        import_tf2onnx()
    settings = ExportSettings(
        args.voice,
        args.output,
        args.vocoder,
        args.weights,
        args.licence,
        args.training_data,
        args.language,
        args.lexicon_text,
    )
    export(args.target, settings, print_line)
