"""`myxtts synthesize`: text to wav files, or to a stream, in the voice of a trained model."""

import argparse
import os
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
BOOK_FORMATS = ("wav", "flac", "opus", "vorbis", "mp3")
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
    add_voice(parser, has_default=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", help="what to say")
    about = "a file of lines, text or id|text, each of which becomes a wav; one that ends in .epub "
    about += "is taken for a --book"
    what.add_argument("--text-file", metavar="FILE", type=Path, help=about)
    about = "a book (.txt, .md or .epub) that becomes a recording per chapter; the same command "
    about += "again goes on where it was interrupted"
    what.add_argument("--book", metavar="FILE", type=Path, help=about)
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
    about = "--text, or the whole of --text-file, is SSML: break, phoneme, sub, say-as, prosody "
    about += "(rate, volume), voice (a speaker), lang, p, s"
    parser.add_argument("--ssml", action="store_true", help=about)
    about = "how to pronounce words: lines of word = respelling in plain letters or, for a voice "
    about += "of phonemes, word = /IPA/; [en] begins a section for one language, # a comment"
    parser.add_argument("--lexicon", metavar="FILE", type=Path, help=about)
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
    about = f"wav to write (default: {OUTPUT}); for a text file or a book a folder (default: "
    about += f"{OUTPUT_FOLDER}/); {STREAM} streams a wav to stdout, sentence by sentence"
    parser.add_argument("-o", "--output", metavar="PATH", help=about)
    about = f"of the chapters of a --book: {', '.join(BOOK_FORMATS)} (default: {BOOK_FORMATS[0]})"
    parser.add_argument("--format", choices=BOOK_FORMATS, metavar="NAME", help=about)
    about = "when each word is said: a file that ends in .srt, .vtt (with words) or .json (with "
    about += "words and phonemes); srt, vtt or json alone is a file next to each recording"
    parser.add_argument("--subtitles", metavar="FILE", help=about)
    about = "also write the log-mel [frames, mels] next to each wav, as .npy"
    parser.add_argument("--save-mel", action="store_true", help=about)


def run(args: argparse.Namespace) -> None:
    """Speak to a stream, to a wav for each line of a file or chapter of a book, or to one wav."""
    # When NumPy is imported, its BLAS starts a thread for each core, which spins; none is needed.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from myxtts.workflows import books, synthesize

    _check(args)
    load = partial(load_synthesizer, args.voice, args.vocoder)
    options = {name: getattr(args, name) for name in OPTIONS}
    if args.lexicon:
        from myxtts.text.lexicon import read_lexicon

        options["lexicon"] = read_lexicon(args.lexicon)
    folder, times = Path(args.output or OUTPUT_FOLDER), args.subtitles
    if args.output == STREAM:
        said = _text(args) if args.ssml or not args.text_file else None
        text = said or synthesize.read_parts(args.text_file)
        synthesize.subtitles_next_to(None, times)  # a wrong name is found before the voice
        spoken = synthesize.stream(load(), text, sys.stdout.buffer, times, args.ssml, **options)
        print(spoken, file=sys.stderr)
    elif args.book:
        form = args.format or BOOK_FORMATS[0]
        print(books.speak_book(load, args.book, folder, form, times, **options))
    elif args.text_file and not args.ssml:
        file = args.text_file
        print(synthesize.speak_file(load, file, folder, args.save_mel, times, **options))
    else:
        target, how = Path(args.output or OUTPUT), (args.save_mel, times, args.ssml)
        print(synthesize.speak_text(load, _text(args), target, *how, **options))


def _check(args: argparse.Namespace) -> None:
    """Raise for flags that contradict each other; an EPUB among text files is a book."""
    if args.text_file and args.text_file.suffix.lower() == ".epub":
        args.book, args.text_file = args.text_file, None
    if args.clone_voice and not args.reference:
        raise UserError("--clone-voice needs a recording of the voice: name it with --reference")
    if args.save_mel and args.output == STREAM:
        raise UserError("--save-mel writes next to a wav, and -o - has none: name one with -o")
    if args.format and not args.book:
        raise UserError("--format is for the chapters of a --book: other speech is wav")
    if not args.book:
        return
    if args.ssml or args.save_mel or args.output == STREAM:
        raise UserError("a --book goes without --ssml, --save-mel and -o -: remove them")


def _text(args: argparse.Namespace) -> str:
    """What to say, or the whole file of it."""
    if not args.text_file:
        return args.text
    try:
        return args.text_file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {args.text_file} ({error.strerror}): check it") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{args.text_file} is not UTF-8 ({error}): save it as UTF-8") from error


def load_synthesizer(voice: str | Path, vocoder: str) -> "Synthesizer":
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
