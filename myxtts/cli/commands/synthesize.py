"""`myxtts synthesize`: text to wav files, or to a stream, in the voice of a trained model."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.settings import add_refining, add_vocoder, add_voice
from myxtts.cli.terminal import add_command, import_tensorflow, number_list, parse_program
from myxtts.cli.terminal import run as run_command
from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.inference.synthesizer import Synthesizer

OUTPUT, OUTPUT_FOLDER, STREAM = "output.wav", "output", "-"
OPTIONS = (
    *("language", "speaker", "reference", "speaking_rate", "style_weights", "seed"),
    *("postfilter", "refine_steps", "temperature"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "speak a text, or every line of a file, in a trained or a cloned voice"
    add_arguments(add_command(verbs, "synthesize", about, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `inference_main.py`."""
    return run_command(run, parse(argv))


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments of `inference_main.py`."""
    return parse_program("inference_main.py", __doc__ or "", add_arguments, argv)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_voice(parser, required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", help="what to say")
    about = "one wav per line: text, or id|text"
    what.add_argument("--text-file", metavar="FILE", type=Path, help=about)
    who = parser.add_mutually_exclusive_group()
    about = "a recording of the voice to be cloned; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "a speaker of the corpus that the voice was trained on (default: the first)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    about = "fail unless a --reference is given"
    parser.add_argument("--clone-voice", action="store_true", help=about)
    about = "language of the text (default: the voice's first)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "2 is twice as fast as the recordings, 0.5 half as fast (default: 1)"
    parser.add_argument("--speaking-rate", metavar="RATE", type=float, default=1.0, help=about)
    about = "a number for each style token, with commas between, in place of the style that the "
    about += "voice has by itself; write =-1,... where the first is negative"
    parser.add_argument("--style-weights", metavar="LIST", type=number_list, help=about)
    about = (
        "what phases of the vocoder and noise of the refiner derive from: another seed is another "
    )
    about += "reading of the same text (default: 0)"
    parser.add_argument("--seed", type=int, default=0, help=about)
    add_refining(parser)
    add_vocoder(parser)
    about = f"wav to write (default: {OUTPUT}); for a text file a folder (default: "
    about += f"{OUTPUT_FOLDER}/); {STREAM} streams a wav to stdout, sentence by sentence"
    parser.add_argument("-o", "--output", metavar="PATH", help=about)
    about = "also write the log-mel [frames, mels] next to each wav, as .npy"
    parser.add_argument("--save-mel", action="store_true", help=about)


def run(args: argparse.Namespace) -> None:
    """Speak to a stream, to a wav for each line of a file, or to one wav."""
    from myxtts.workflows import synthesize

    if args.clone_voice and not args.reference:
        raise UserError("--clone-voice needs a recording of the voice: name it with --reference")
    if args.save_mel and args.output == STREAM:
        raise UserError("--save-mel writes next to a wav, and -o - has none: name one with -o")
    load = partial(load_synthesizer, args.voice, args.vocoder)
    options = {name: getattr(args, name) for name in OPTIONS}
    if args.output == STREAM:
        text = synthesize.read_parts(args.text_file) if args.text_file else args.text
        print(synthesize.stream(load(), text, sys.stdout.buffer, **options), file=sys.stderr)
    elif args.text_file:
        folder = Path(args.output or OUTPUT_FOLDER)
        print(synthesize.speak_file(load, args.text_file, folder, args.save_mel, **options))
    else:
        target = Path(args.output or OUTPUT)
        print(synthesize.speak_text(load, args.text, target, args.save_mel, **options))


def load_synthesizer(voice: str, vocoder: str) -> "Synthesizer":
    """Load a voice; a name that the vocoders do not know is found before TensorFlow is.

    An exported voice speaks without TensorFlow.
    """
    from myxtts.checkpoints.exported import holds_export
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import check_name

    check_name(vocoder)
    if not holds_export(voice):
        import_tensorflow()
    return Synthesizer.load(voice, vocoder)
