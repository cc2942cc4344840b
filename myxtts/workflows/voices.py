"""Who speaks in a voice: its speakers, how alike they are, and which styles they attend to."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.monitoring.console import columns

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.config.config import ModelConfig

VOICES, STYLES = "voices.png", "styles.png"


def describe(voice: "Voice") -> str:
    """What the voice is made of, and the table of its speakers."""
    model, count = voice.config.model, len(voice.speakers)
    return "\n".join(
        [
            f"{voice.folder}: {count:,} {'speaker' if count == 1 else 'speakers'}",
            f"languages     {', '.join(voice.languages)}",
            f"encoder       {name_encoder(model)}",
            f"style tokens  {_styles(model)}",
            "",
            *_table(voice),
        ]
    )


def draw(voice: "Voice", folder: Path) -> Iterator[str]:
    """Draw the speakers, and their styles where the voice has style tokens; yield where."""
    from myxtts.evaluation.report.speaker_plots import write_styles, write_voices

    if len(voice.speakers) == 1:
        yield f"no {VOICES}: a single speaker differs from nobody"
    else:
        yield f"speakers  {write_voices(folder / VOICES, voice.speakers, voice.voices)}"
    if voice.config.model.use_gst:
        weights = voice.model.style(voice.voices)[1].numpy()
        yield f"styles    {write_styles(folder / STYLES, voice.speakers, weights)}"


def name_encoder(model: "ModelConfig") -> str:
    """The speaker encoder of a model, and whether it is trained."""
    if not model.speaker_encoder:
        return "its own encoder, learnt with the voice"
    how = "frozen" if model.is_encoder_frozen else "trained further with the voice"
    return f"the published encoder {model.speaker_encoder}, {how}"


def _styles(model: "ModelConfig") -> str:
    if not model.use_gst:
        return "none"
    return f"{model.gst_num_style_tokens} (attention heads: {model.gst_num_heads})"


def _table(voice: "Voice") -> Iterator[str]:
    """Yield each speaker with the nearest other one and the cosine between them."""
    from myxtts.evaluation.report.speaker_plots import nearest_others

    names = voice.speakers
    if len(names) == 1:
        yield f"0  {names[0]} is the only speaker: there is no other to compare with"
        return
    pairs = zip(names, *nearest_others(voice.voices), strict=True)
    rows = [
        (str(number), name, names[other], f"{cosine:.3f}")
        for number, (name, other, cosine) in enumerate(pairs)
    ]
    yield columns([("#", "speaker", "nearest", "cosine"), *rows], right=(0, 3))
    if len(names) > 2:
        yield "cosines are of what is left without the mean of all"
