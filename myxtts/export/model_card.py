"""MODEL_CARD.md: what a voice is, what it was made of, how good it is and what it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import myxtts
from myxtts.checkpoints import Voice

_MOST_NAMED = 20
_NOT_STATED = "not stated"
# Figures of an evaluation that a card shows, with their titles.
_SHOWN = {
    "wer": "word error rate",
    "cer": "character error rate",
    "similarity": "speaker similarity",
    "mos": "DNSMOS overall",
    "mcd": "mel-cepstral distortion",
}


@dataclass(frozen=True)
class CardFacts:
    """What only the owner of a voice knows, and what was measured elsewhere."""

    name: str
    licence: str = ""
    data: str = ""
    evaluation: Mapping[str, Any] | None = None  # as `evaluation.json` has it
    notes: tuple[str, ...] = field(default=())


def model_card(voice: Voice, facts: CardFacts, target: str, weights: str, vocoder: str) -> str:
    """The card as Markdown."""
    data = voice.config.data
    speakers = ", ".join(voice.speakers[:_MOST_NAMED])
    more = len(voice.speakers) - _MOST_NAMED
    speakers += f" and {more:,} more" if more > 0 else ""
    rows = {
        "format": target,
        "languages": ", ".join(voice.languages),
        "speakers": f"{len(voice.speakers):,} ({speakers})",
        "text units": voice.tokenizer.units,
        "audio": f"{data.sample_rate:,} Hz, {data.n_mels} mels, {data.hop_length} samples a frame",
        "vocoder": vocoder,
        "weights": weights,
        "model size": voice.config.model.model_size,
        "made by": f"myxtts {myxtts.__version__}",
        "licence of the voice": facts.licence or _NOT_STATED,
        "training data": facts.data or _NOT_STATED,
    }
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows.items())
    parts = [
        f"# {_cell(facts.name)}",
        f"| | |\n|---|---|\n{table}",
        "## Figures\n\n" + _figures(facts.evaluation),
        *([_list("## Notes", facts.notes)] if facts.notes else []),
        _USE,
        _CONSENT,
    ]
    return "\n\n".join(parts) + "\n"


def _figures(evaluation: Mapping[str, Any] | None) -> str:
    measures = (evaluation or {}).get("measures") or {}
    rows = [
        f"| {title} | {_interval(one.get('speech'))} | {_interval(one.get('recordings'))} |"
        for name, title in _SHOWN.items()
        if isinstance(one := measures.get(name), dict)
    ]
    if not rows:
        return "Not evaluated: `myxtts evaluate` measures a voice, and an export shows its figures."
    head = "| metric | this voice | recordings |\n|---|---|---|"
    return "\n".join([head, *rows])


def _interval(found: Any) -> str:
    if not isinstance(found, dict) or not isinstance(found.get("value"), int | float):
        return "-"
    return f"{found['value']:.3g}"


def _list(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"{title}\n", *(f"- {line}" for line in lines)])


def _cell(text: str) -> str:
    """Text that cannot break out of a cell of a table."""
    return " ".join(text.replace("|", "/").split())


_USE = """## Intended use

Speech from text: reading aloud, accessibility, games, announcements, research. The voice makes
mistakes in names, numbers and foreign words: check what matters before it is published."""

_CONSENT = """## Consent

Clone or imitate a person only with that person's consent, and tell listeners that the speech is
synthetic where they could take it for a recording. Do not use the voice to deceive."""
