"""SSML spoken piece by piece: each in its own manner, with its breaks and its volume."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from myxtts.inference.errors import SynthesisError
from myxtts.inference.sentences import PARAGRAPH, SENTENCE
from myxtts.inference.speaking_options import SpeakingOptions, find_language, look_up
from myxtts.inference.speech import Speech
from myxtts.inference.synthesizer import PAUSE_SECONDS, Line, Synthesizer
from myxtts.text.reading import Reading
from myxtts.text.ssml import Piece, parse_ssml

logger = logging.getLogger(__name__)

_PAUSES = {"paragraph": PAUSE_SECONDS[PARAGRAPH], "sentence": PAUSE_SECONDS[SENTENCE], None: 0.0}


def stream_ssml(synthesizer: Synthesizer, document: str, **options: Any) -> Iterator[Speech]:
    """Say a document of SSML, sentence by sentence; options are those of `Synthesizer.speak`.

    What the voice lacks, such as a speaker, is an error before the first sound.
    """
    lines = plan_ssml(synthesizer, document, **options)
    return (next(synthesizer.say([line])) for line in lines)


def plan_ssml(
    synthesizer: Synthesizer, document: str, opening: int | None = None, **options: Any
) -> Iterator[Line]:
    """The lines of a document, with its breaks among them, as `Synthesizer.plan` has a text's."""
    script = parse_ssml(document, find_language(options.get("language"), synthesizer.voice))
    for warning in script.warnings:
        logger.warning("SSML: %s", warning)
    manners = {piece.manner: _options(piece, options) for piece in script.pieces}
    for own in manners.values():
        look_up(SpeakingOptions(**own), synthesizer.voice)
    has_sound = [
        not _is_silent(piece, manners[piece.manner], synthesizer) for piece in script.pieces
    ]
    if not any(has_sound):
        raise SynthesisError("there is nothing to say in the SSML: write words into <speak>")
    return _plan(synthesizer, script.pieces, has_sound, manners, opening)


def _plan(
    synthesizer: Synthesizer,
    pieces: Sequence[Piece],
    has_sound: Sequence[bool],
    manners: dict[Any, dict[str, Any]],
    opening: int | None,
) -> Iterator[Line]:
    last = max(number for number, sounds in enumerate(has_sound) if sounds)
    for number, (piece, sounds) in enumerate(zip(pieces, has_sound, strict=True)):
        options = manners[piece.manner]
        natural = _PAUSES[piece.ends] / options["speaking_rate"] if number < last else 0.0
        pause = natural if piece.break_seconds is None else piece.break_seconds
        if not sounds:
            if pause:
                yield _pause(pause, options, synthesizer)
            continue
        held: Line | None = None
        for line in synthesizer.plan(piece.text, opening, **options):
            if held:
                yield held
            held = replace(line, gain_db=piece.manner.gain_db)
        if held:
            yield replace(held, pause_seconds=pause)
        opening = None  # which only the first words have


def _options(piece: Piece, options: dict[str, Any]) -> dict[str, Any]:
    """The options of the whole text, and what a piece asks for instead."""
    manner = piece.manner
    found = {**options, "speaking_rate": options.get("speaking_rate", 1.0) * manner.rate}
    if manner.speaker:
        found |= {"speaker": manner.speaker, "reference": None}
    if manner.language:
        found["language"] = manner.language
    return found


def _is_silent(piece: Piece, options: dict[str, Any], synthesizer: Synthesizer) -> bool:
    """Whether a piece has no sound: perhaps only a mark between two elements."""
    parts = piece.text.marks.cut(piece.text.text)
    if any(not isinstance(part, str) for part in parts):
        return False
    return bool(synthesizer.nothing_to_say([piece.text.text], options.get("language")))


def _pause(seconds: float, options: dict[str, Any], synthesizer: Synthesizer) -> Line:
    """A pause that follows no words."""
    voice = synthesizer.voice
    delivery = look_up(SpeakingOptions(**options), voice)
    return Line(Reading((), voice.tokenizer, delivery.language), delivery, seconds)
