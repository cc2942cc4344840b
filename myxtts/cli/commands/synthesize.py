"""`myxtts synthesize`: text to wav files, or to a stream, in the voice of a trained model."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import Parser, add_command, add_verbose, import_tensorflow
from myxtts.cli.terminal import run as run_command
from myxtts.config.vocoders import VOCODERS
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.inference.synthesizer import Synthesizer

OUTPUT, OUTPUT_FOLDER, STREAM = "output.wav", "output", "-"
VOCODER = "auto"
OPTIONS = ("language", "speaker", "reference", "speaking_rate", "style_weights", "seed")


def add(verbs: argparse._SubParsersAction) -> None:
    about = "speak a text, or every line of a file, in a trained or a cloned voice"
    add_arguments(add_command(verbs, "synthesize", about, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `inference_main.py`."""
    return run_command(run, parse(argv))


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments of `inference_main.py`."""
    parser = Parser("inference_main.py", description=__doc__)
    add_arguments(parser)
    add_verbose(parser)
    return parser.parse_args(argv)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "the voice: its folder, or that of the run that made it"
    names = ("--voice", "--checkpoint", "--checkpoint-dir")
    parser.add_argument(*names, metavar="DIR", required=True, dest="voice", help=about)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", help="what to say")
    what.add_argument("--text-file", metavar="FILE", help="one wav per line: text, or id|text")
    _add_options(parser)
    about = (
        f"wav to write (default: {OUTPUT}); for a text file a folder (default: {OUTPUT_FOLDER}/)"
    )
    about += f"; {STREAM} streams a wav to stdout, sentence by sentence"
    parser.add_argument("-o", "--output", metavar="PATH", help=about)
    about = "also write the log-mel [frames, mels] next to each wav, as .npy"
    parser.add_argument("--save-mel", action="store_true", help=about)


def _add_options(parser: argparse.ArgumentParser) -> None:
    who = parser.add_mutually_exclusive_group()
    about = "a recording of the voice to be cloned; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "a speaker of the corpus that the voice was trained on (default: the first)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    parser.add_argument(
        "--clone-voice", action="store_true", help="fail unless a --reference is given"
    )
    about = "language of the text (default: the voice's first)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "2 is twice as fast as the recordings, 0.5 half as fast (default: 1)"
    parser.add_argument("--speaking-rate", metavar="RATE", type=float, default=1.0, help=about)
    about = "a number for each style token, with commas between, in place of the style that the "
    about += "voice has by itself; write =-1,... where the first is negative"
    parser.add_argument("--style-weights", metavar="LIST", type=style_weights, help=about)
    about = "what the vocoder's random phases derive from (default: 0)"
    parser.add_argument("--seed", type=int, default=0, help=about)
    about = f"how a mel becomes a waveform: {', '.join(VOCODERS)}, or the path of a trained "
    about += f"vocoder ({VOCODER}, the default: the one that the voice's run has trained, if any)"
    names = ("--vocoder", "--vocoder-type")
    parser.add_argument(*names, metavar="NAME", default=VOCODER, dest="vocoder", help=about)


def run(args: argparse.Namespace) -> None:
    """Check what can be checked before the voice is loaded, then speak."""
    if args.clone_voice and not args.reference:
        raise UserError("--clone-voice needs a recording of the voice: name it with --reference")
    if args.save_mel and args.output == STREAM:
        raise UserError(
            "--save-mel writes next to a wav, and -o - writes none: name a file with -o"
        )
    from myxtts.workflows import synthesize

    options = {name: getattr(args, name) for name in OPTIONS}
    if args.output == STREAM:
        text = synthesize.read_parts(Path(args.text_file)) if args.text_file else args.text
        synthesizer = load_synthesizer(args.voice, args.vocoder)
        done = synthesize.stream(synthesizer, text, sys.stdout.buffer, **options)
        print(done, file=sys.stderr)
    elif args.text_file:
        lines = synthesize.read_lines(Path(args.text_file))
        folder = _folder(args.output or OUTPUT_FOLDER)
        synthesizer = load_synthesizer(args.voice, args.vocoder)
        with progress("speaking", "lines") as report:
            done = synthesize.speak_lines(
                synthesizer, lines, folder, save_mel=args.save_mel, report=report, **options
            )
        print(f"{folder}: {len(lines):,} wavs and metadata.csv, {done}")
    else:
        target = _wav(args.output or OUTPUT)
        synthesizer = load_synthesizer(args.voice, args.vocoder)
        done = synthesize.speak_text(
            synthesizer, args.text, target, save_mel=args.save_mel, **options
        )
        print(f"{target}: {done}")


def load_synthesizer(voice: str, vocoder: str = VOCODER) -> "Synthesizer":
    """Load a voice; a name that the vocoders do not know is found before TensorFlow is."""
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import check_name

    check_name(vocoder)
    import_tensorflow()
    from myxtts.checkpoints import load_voice

    synthesizer = Synthesizer(load_voice(voice), vocoder)
    synthesizer.warm_up()
    return synthesizer


def style_weights(text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = [math.nan]
    if not all(map(math.isfinite, weights)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers: write them with commas between, as in 0.5,0,1"
        )
    return weights


def _wav(output: str) -> Path:
    target = Path(output)
    if target.is_dir():
        raise UserError(f"{target} is a folder: name a wav file with -o")
    if target.suffix.lower() != ".wav":
        raise UserError(f"{target} does not end in .wav, which is what is written: rename it")
    return target


def _folder(output: str) -> Path:
    folder = Path(output)
    if folder.is_file() or folder.suffix.lower() == ".wav":
        raise UserError(f"a text file becomes many wavs: name a folder with -o, not {folder}")
    return folder
