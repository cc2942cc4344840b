"""A trained voice in a form that runs elsewhere: written, compared with the voice, then named."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts import atomic
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, parse_json, read_document
from myxtts.errors import UserError
from myxtts.workflows.parity import Case, Parity, choose_cases, compare

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.export.model_card import CardFacts
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer

TARGETS = ("onnx", "piper", "sherpa", "saved-model", "litert")
CARD, REPORT = "MODEL_CARD.md", "parity.json"
_EVALUATION = Path("evaluation", "evaluation.json")


@dataclass(frozen=True)
class ExportSettings:
    """What is exported, and what its card says of it."""

    voice: str
    output: Path
    vocoder: str = "auto"
    weights: str = "float32"
    licence: str = ""
    data: str = ""


def export(target: str, settings: ExportSettings, tell: Callable[[str], None] = print) -> None:
    """Write a voice for a target; raise where it does not speak as the voice itself."""
    from myxtts.inference.synthesizer import Synthesizer

    write = _writer(target)
    check_free(settings.output)
    synthesizer = Synthesizer.load(settings.voice, settings.vocoder)
    if synthesizer.voice.engine != "keras":
        raise UserError(
            f"{settings.voice} is an exported voice: name the folder of the voice that it was "
            "exported from, or that of its run"
        )
    write(synthesizer, settings, tell)


def export_onnx(
    trained: "Synthesizer", settings: ExportSettings, tell: Callable[[str], None]
) -> None:
    """Write a folder of graphs that `myxtts synthesize` speaks with."""
    from myxtts.export.onnx_voice import fill_folder
    from myxtts.inference.synthesizer import Synthesizer

    with _new_folder(settings.output) as draft:
        fill_folder(draft, trained.voice, trained.vocoder.model, settings.weights)
        exported = Synthesizer.load(draft)
        cases, has_graph = choose_cases(trained.voice), trained.vocoder.model.has_weights
        parity = compare(cases, speaker(trained), speaker(exported), has_graph)
        tell(f"parity: {parity}")
        check_parity(parity, settings)
        write_report(draft / REPORT, parity, settings)
        write_card(draft / CARD, trained, settings, "onnx (myxtts)", parity)
    tell(f"{settings.output}: {_megabytes(settings.output)}")


def speaker(synthesizer: "Synthesizer") -> Callable[[Case], "Speech"]:
    """A function that says a case."""
    return lambda case: synthesizer.speak(
        case.text,
        language=case.language,
        speaker=case.speaker,
        speaking_rate=case.speaking_rate,
    )


def check_free(path: Path) -> None:
    """Raise where something is in the way: an export replaces nothing."""
    if path.exists():
        raise UserError(f"{path} is there already: remove it, or choose another place with -o")


def check_parity(parity: Parity, settings: ExportSettings) -> None:
    """Raise where an export of all bits deviates; fewer bits have a price, which is reported."""
    if settings.weights == "float32" and not parity.holds:
        raise UserError(
            f"the export does not speak as the voice does ({parity}): nothing was written. Report "
            "this with the voice's config.yaml, and use the voice as it is"
        )


def write_report(path: Path, parity: Parity, settings: ExportSettings) -> None:
    """Write parity.json."""
    record = {"weights": settings.weights, "vocoder": settings.vocoder, **parity.as_dict()}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def write_card(
    path: Path,
    trained: "Synthesizer",
    settings: ExportSettings,
    target: str,
    parity: Parity,
    *notes: str,
) -> None:
    """Write MODEL_CARD.md."""
    from myxtts.export.model_card import model_card

    facts = card_facts(settings, trained.voice)
    facts = replace(facts, notes=(f"Compared with the trained voice: {parity}.", *notes))
    text = model_card(trained.voice, facts, target, settings.weights, trained.vocoder.name)
    path.write_text(text, encoding="utf-8")


def card_facts(settings: ExportSettings, voice: "Voice") -> "CardFacts":
    """What the user says of a voice, and the figures that lie in its run."""
    from myxtts.export.model_card import CardFacts

    run = voice.folder.parent if voice.folder.name == "voice" else voice.folder
    return CardFacts(run.name, settings.licence, settings.data, _evaluation(run))


def _evaluation(run: Path) -> dict[str, Any] | None:
    try:
        found = parse_json(read_document(run / _EVALUATION, MOST_JSON_BYTES))
    except (OSError, DocumentError):
        return None
    return found if isinstance(found, dict) else None


def _writer(target: str) -> Callable[..., None]:
    writers = {"onnx": export_onnx}
    if target not in writers:
        raise UserError(f"unknown target {target!r}: choose one of {', '.join(TARGETS)}")
    return writers[target]


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    target = target.absolute()
    with atomic.explained(target, kept="nothing was written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic.new_folder(target) as draft:
            yield draft


def _megabytes(folder: Path) -> str:
    size = sum(path.stat().st_size for path in folder.iterdir())
    return f"{len(list(folder.iterdir()))} files, {size / 1e6:.1f} MB"
