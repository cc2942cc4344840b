"""What all exports share: the card, the report, and a folder that is whole or absent."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from myxtts import atomic
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, read_document
from myxtts.errors import UserError
from myxtts.workflows.exports.settings import FLOAT32, ExportSettings
from myxtts.workflows.parity import Case, Parity, choose_cases

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.export.model_card import CardFacts
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer

CARD, REPORT = "MODEL_CARD.md", "parity.json"
# A longer sentence is cut by a synthesizer, and by no player.
_MOST_LETTERS = 120
_EVALUATION = Path("evaluation", "evaluation.json")

Tell = Callable[[str], None]


def speaker(synthesizer: "Synthesizer") -> Callable[[Case], "Speech"]:
    """A function that says a case."""
    return lambda case: synthesizer.speak(
        case.text,
        language=case.language,
        speaker=case.speaker,
        speaking_rate=case.speaking_rate,
    )


def as_line(trained: "Synthesizer") -> Callable[[Case], "Speech"]:
    """Says a case as one line, as players do with a sentence."""
    say = speaker(trained)

    def line(case: Case) -> "Speech":
        speech = say(replace(case, text=first_line(case)))
        return replace(speech, mel=np.zeros_like(speech.mel))  # which a player's graph has not

    return line


def first_line(case: Case) -> str:
    """The first line of a case: players cut texts in their own way."""
    from myxtts.inference.sentences import cut_sentences

    return next(iter(cut_sentences(case.text, case.language)))


def line_cases(voice: "Voice") -> list[Case]:
    """The cases of a voice whose first line a synthesizer leaves whole."""
    return [case for case in choose_cases(voice) if is_line(case)]


def is_line(case: Case) -> bool:
    """Whether a synthesizer leaves the first line of a case whole, as players do."""
    return len(first_line(case)) <= _MOST_LETTERS


def check_parity(parity: Parity, settings: ExportSettings) -> None:
    """Raise where an export of all bits deviates; fewer bits have a price, which is reported."""
    if settings.weights == FLOAT32 and not parity.holds:
        raise UserError(
            f"the export does not speak as the voice does ({parity}): nothing was written. Report "
            "this with the voice's config.yaml, and use the voice as it is"
        )


def check_float32(settings: ExportSettings) -> None:
    if settings.weights != FLOAT32:
        raise UserError(f"--weights {settings.weights} is for ONNX files: leave it out")


def card_and_report(
    trained: "Synthesizer",
    settings: ExportSettings,
    target: str,
    parity: Parity,
    more: dict[str, Any] | None = None,
) -> tuple[bytes, bytes]:
    """The contents of MODEL_CARD.md and of parity.json."""
    from myxtts.export.model_card import model_card

    facts = card_facts(settings, trained.voice)
    facts = replace(facts, notes=(f"Compared with the trained voice: {parity}.",))
    text = model_card(trained.voice, facts, target, settings.weights, trained.vocoder.name)
    record = {"weights": settings.weights, "vocoder": trained.vocoder.name, **parity.as_dict()}
    record |= more or {}
    return text.encode(), to_json(record)


def card_facts(settings: ExportSettings, voice: "Voice") -> "CardFacts":
    """What the user says of a voice, and the figures that lie in its run."""
    from myxtts.export.model_card import CardFacts

    run = voice.folder.parent if voice.folder.name == "voice" else voice.folder
    return CardFacts(run.name, settings.licence, settings.data, _evaluation(run))


def to_json(record: Any) -> bytes:
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    target = target.absolute()
    with atomic.explained(target, kept="nothing was written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.new_folder(target) as draft:
            yield draft


def size_of(folder: Path) -> str:
    size = sum(path.stat().st_size for path in folder.iterdir())
    return f"{len(list(folder.iterdir()))} files, {size / 1e6:.1f} MB"


def _evaluation(run: Path) -> dict[str, Any] | None:
    try:
        found = parse_json(read_document(run / _EVALUATION, MOST_JSON_BYTES))
    except (OSError, DocumentError):
        return None
    return found if isinstance(found, dict) else None
