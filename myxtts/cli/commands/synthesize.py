"""`myxtts synthesize`: text to wav files, or to a stream, in the voice of a trained model."""

import argparse
import math
import re
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import Parser, add_command, add_verbose, import_tensorflow
from myxtts.cli.terminal import run as run_command
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer

OUTPUT, OUTPUT_FOLDER, STREAM = "output.wav", "output", "-"
VOCODER = "auto"
MANNER = ("language", "speaker", "reference", "speaking_rate", "style_weights", "seed")

_LINES_AT_A_TIME = 64
_UNKNOWN_BYTES = 0xFFFFFFFF
_BLOCK = 4096  # characters of a file that are read at a time
_SPACES = re.compile(r"\s+")
_LINE_END = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # as of str.splitlines()
_SAFE_ID = re.compile(r"\w[\w.-]*")


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
    _add_manner(parser)
    about = (
        f"wav to write (default: {OUTPUT}); for a text file a folder (default: {OUTPUT_FOLDER}/)"
    )
    about += f"; {STREAM} streams a wav to stdout, sentence by sentence"
    parser.add_argument("-o", "--output", metavar="PATH", help=about)
    about = "also write the log-mel [frames, mels] beside each wav, as .npy"
    parser.add_argument("--save-mel", action="store_true", help=about)


def _add_manner(parser: argparse.ArgumentParser) -> None:
    who = parser.add_mutually_exclusive_group()
    about = "a recording of the voice to be cloned; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "a speaker of the corpus that the voice was trained on (default: the first)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    parser.add_argument("--clone-voice", action="store_true", help="insist on a --reference")
    about = "language of the text (default: the voice's first)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "2 is twice as fast as the recordings, 0.5 half as fast (default: 1)"
    parser.add_argument("--speaking-rate", metavar="RATE", type=float, default=1.0, help=about)
    about = "a number for each style token, with commas between, in place of the style that the "
    about += "voice has by itself; write =-1,... where the first is negative"
    parser.add_argument("--style-weights", metavar="LIST", type=style_weights, help=about)
    about = "what the vocoder's random phases derive from (default: 0)"
    parser.add_argument("--seed", type=int, default=0, help=about)
    about = "how a mel becomes a waveform: griffin_lim, istft, hifigan, or the path of a trained "
    about += f"vocoder ({VOCODER}, the default: the one that the voice's run has trained, if any)"
    names = ("--vocoder", "--vocoder-type")
    parser.add_argument(*names, metavar="NAME", default=VOCODER, dest="vocoder", help=about)


def run(args: argparse.Namespace) -> None:
    """Check what can be checked before the voice is loaded, then speak."""
    if args.clone_voice and not args.reference:
        raise UserError("--clone-voice needs a recording of the voice: name it with --reference")
    if args.save_mel and args.output == STREAM:
        raise UserError("--save-mel writes beside a wav, and -o - writes none: name a file with -o")
    manner = {name: getattr(args, name) for name in MANNER}
    if args.output == STREAM:
        text = read_parts(Path(args.text_file)) if args.text_file else args.text
        stream_to_stdout(load_synthesizer(args.voice, args.vocoder), text, manner)
    elif args.text_file:
        lines = read_lines(Path(args.text_file))
        folder = _folder(args.output or OUTPUT_FOLDER)
        speaker = load_synthesizer(args.voice, args.vocoder)
        speak_to_folder(speaker, lines, folder, args.save_mel, manner)
    else:
        target = _wav(args.output or OUTPUT)
        speaker = load_synthesizer(args.voice, args.vocoder)
        speak_to_file(speaker, args.text, target, args.save_mel, manner)


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


def speak_to_file(
    synthesizer: "Synthesizer", text: str, target: Path, save_mel: bool, manner: dict
) -> None:
    began = time.monotonic()
    speech = synthesizer.speak(text, **manner)
    _write(target, speech, save_mel)
    print(f"{target}: {_speed(speech.seconds, began)}")


def speak_to_folder(
    synthesizer: "Synthesizer", lines: dict[str, str], folder: Path, save_mel: bool, manner: dict
) -> None:
    """Write ID.wav for each line of text, and metadata.csv of them all."""
    silent = synthesizer.nothing_to_say(list(lines.values()), manner["language"])
    if silent:
        names = ", ".join(list(lines)[index] for index in silent[:10])
        raise UserError(f"nothing to say in {len(silent)} of the lines ({names}): remove them")
    ids, seconds, began = list(lines), 0.0, time.monotonic()
    with progress("speaking", "lines") as report:
        for start in range(0, len(ids), _LINES_AT_A_TIME):
            part = ids[start : start + _LINES_AT_A_TIME]
            spoken = synthesizer.speak_many([lines[name] for name in part], **manner)
            for name, speech in zip(part, spoken, strict=True):
                _write(folder / f"{name}.wav", speech, save_mel)
                seconds += speech.seconds
            report(start + len(part), len(ids), seconds)
    metadata = "".join(f"{name}|{text}\n" for name, text in lines.items())
    (folder / "metadata.csv").write_text(metadata, encoding="utf-8")
    print(f"{folder}: {len(ids):,} wavs and metadata.csv, {_speed(seconds, began)}")


def stream_to_stdout(synthesizer: "Synthesizer", text: str | Iterable[str], manner: dict) -> None:
    """Write a wav of unknown length, each sentence as soon as it is there."""
    import numpy as np

    began, seconds, out = time.monotonic(), 0.0, sys.stdout.buffer
    spoken = synthesizer.stream(text, **manner)
    out.write(wav_header(synthesizer.spec.sample_rate))
    out.flush()
    for speech in spoken:
        out.write(np.round(speech.samples * 32768.0).astype("<i2").tobytes())
        out.flush()
        seconds += speech.seconds
    print(_speed(seconds, began), file=sys.stderr)


def wav_header(sample_rate: int) -> bytes:
    """Return the header of mono 16-bit PCM whose length is not known yet."""
    layout = struct.pack("<IHHIIHH", 16, 1, 1, sample_rate, 2 * sample_rate, 2, 16)
    unknown = struct.pack("<I", _UNKNOWN_BYTES)
    return b"RIFF" + unknown + b"WAVEfmt " + layout + b"data" + unknown


def read_lines(path: Path) -> dict[str, str]:
    """Read a text file as text by id: the ids of `id|text` lines, or 0001, 0002, and so on."""
    return _by_id("".join(_read_blocks(path)), path)


def read_parts(path: Path) -> Iterator[str]:
    """Read a text file as it is needed, one sentence or more a line, without the ids of its lines.

    Only all lines together tell whether they have ids: a file without "|" in its first has none.
    """
    parts = _read_blocks(path)
    first = next(parts)
    if "|" in first.partition("\n")[0]:
        return iter(["\n".join(_by_id("".join([first, *parts]), path).values())])
    return chain([first], parts)


def _read_blocks(path: Path) -> Iterator[str]:
    """Yield a file without empty lines, a line or part of one at a time; raise if it is empty."""
    is_empty = at_start = True
    try:
        with path.open(encoding="utf-8-sig") as file:
            while block := file.readline(_BLOCK):
                block = _SPACES.sub(_line_end, block)
                block = block.lstrip() if at_start else block
                if block:
                    is_empty, at_start = False, block.endswith("\n")
                    yield block
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from error
    if is_empty:
        raise UserError(f"{path} holds no text: write one line for each recording to be made")


def _line_end(spaces: re.Match) -> str:
    return "\n" if _LINE_END.search(spaces[0]) else spaces[0]


def _by_id(text: str, path: Path) -> dict[str, str]:
    lines = [line.strip() for line in text.strip().split("\n")]
    if not all("|" in line for line in lines):
        return {f"{number:04d}": line for number, line in enumerate(lines, 1)}
    found: dict[str, str] = {}
    for line in lines:
        name, _, said = line.partition("|")
        _check_id(name, said, found, path)
        found[name] = said
    return found


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


def _check_id(name: str, text: str, known: dict[str, str], path: Path) -> None:
    if not _SAFE_ID.fullmatch(name):
        raise UserError(f"{path}: {name!r} cannot name a file: use letters, digits, '_', '.', '-'")
    if name in known:
        raise UserError(f"{path}: two lines are called {name!r}: give each its own name")
    if "|" in text:
        raise UserError(f"{path}: the line {name!r} has more than one '|': keep id|text")


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


def _write(target: Path, speech: "Speech", save_mel: bool) -> None:
    import numpy as np

    from myxtts.audio.io import write_output, write_wav

    write_wav(target, speech.samples, speech.sample_rate)
    if save_mel:
        mel = BytesIO()
        np.save(mel, speech.mel)
        write_output(target.with_suffix(".npy"), mel.getvalue())


def _speed(seconds: float, began: float) -> str:
    took = time.monotonic() - began
    return f"{seconds:.2f} s of speech in {took:.2f} s, real-time factor {took / seconds:.3f}"
