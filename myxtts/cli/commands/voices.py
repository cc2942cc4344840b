"""`myxtts voices`: who speaks in a voice, how alike they are, and which styles they attend to."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.config.config import ModelConfig

FOLDER, VOICES, STYLES = "plots", "voices.png", "styles.png"


def add(verbs: argparse._SubParsersAction) -> None:
    about = "list the speakers of a voice, and plot their similarity and their styles"
    parser = add_command(verbs, "voices", about, run)
    about = "the voice: its folder, or that of the run that made it"
    parser.add_argument("voice", metavar="VOICE", help=about)
    # Not inside of the voice, which training replaces at each checkpoint.
    about = "where to draw (default: %(default)s/)"
    parser.add_argument("-o", "--output", metavar="FOLDER", default=FOLDER, type=Path, help=about)


def run(args: argparse.Namespace) -> None:
    """Tell first, which needs no matplotlib, then draw."""
    if args.output.is_file():
        raise UserError(f"{args.output} is a file: name a folder with -o")
    import_tensorflow()
    from myxtts.checkpoints import load_voice

    voice = load_voice(args.voice)
    for line in describe(voice):
        print(line)
    print()
    draw(voice, args.output)


def describe(voice: "Voice") -> Iterator[str]:
    """Yield what the voice is made of, and the table of its speakers."""
    model, count = voice.config.model, len(voice.speakers)
    yield f"{voice.folder}: {count:,} {'speaker' if count == 1 else 'speakers'}"
    yield f"languages     {', '.join(voice.languages)}"
    yield f"described by  {_encoder(model)}"
    yield f"style tokens  {_styles(model)}"
    yield ""
    yield from _table(voice)


def draw(voice: "Voice", folder: Path) -> None:
    """Draw the speakers, and their styles where the voice has style tokens; say where."""
    from myxtts.evaluation.report.speaker_plots import write_styles, write_voices

    if len(voice.speakers) == 1:
        print(f"no {VOICES}: a single speaker differs from nobody")
    else:
        print(f"speakers  {write_voices(folder / VOICES, voice.speakers, voice.voices)}")
    if voice.config.model.use_gst:
        weights = voice.model.style(voice.voices)[1].numpy()
        print(f"styles    {write_styles(folder / STYLES, voice.speakers, weights)}")


def _encoder(model: "ModelConfig") -> str:
    if not model.speaker_encoder:
        return "its own encoder, learnt with the voice"
    how = "frozen" if model.is_encoder_frozen else "trained further with the voice"
    return f"the published encoder {model.speaker_encoder}, {how}"


def _styles(model: "ModelConfig") -> str:
    if not model.use_gst:
        return "none"
    return f"{model.gst_num_style_tokens} (attention heads: {model.gst_num_heads})"


def _table(voice: "Voice") -> Iterator[str]:
    """Yield each speaker with the nearest other one, the cosine between them, and a head."""
    from myxtts.evaluation.report.speaker_plots import nearest_others

    names = voice.speakers
    if len(names) == 1:
        yield f"0  {names[0]} is the only speaker: there is no other to compare with"
        return
    wide, digits = max(7, *map(len, names)), len(str(len(names) - 1))
    yield f"{'#':>{digits}}  {'speaker':<{wide}}  {'nearest':<{wide}}  cosine"
    others, cosines = nearest_others(voice.voices)
    for number, (name, other, cosine) in enumerate(zip(names, others, cosines, strict=True)):
        yield f"{number:>{digits}}  {name:<{wide}}  {names[other]:<{wide}}  {cosine:6.3f}"
    if len(names) > 2:
        yield "cosines are of what is left without the mean of all"
