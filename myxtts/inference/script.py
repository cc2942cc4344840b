"""SSML spoken piece by piece: each in its own manner, with its breaks and its volume."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from myxtts.inference.errors import SynthesisError
from myxtts.inference.sentences import PARAGRAPH, SENTENCE
from myxtts.inference.speaking_options import SpeakingOptions, find_language, look_up
from myxtts.inference.speech import PEAK_LIMIT, Sentence, Speech, followed_by_pause
from myxtts.inference.synthesizer import PAUSE_SECONDS, Synthesizer
from myxtts.text.reading import Reading
from myxtts.text.ssml import Piece, parse_ssml

logger = logging.getLogger(__name__)

_PAUSES = {"paragraph": PAUSE_SECONDS[PARAGRAPH], "sentence": PAUSE_SECONDS[SENTENCE], None: 0.0}


def stream_ssml(synthesizer: Synthesizer, document: str, **options: Any) -> Iterator[Speech]:
    """Say a document of SSML, sentence by sentence; options are those of `Synthesizer.speak`.

    What the voice lacks, such as a speaker, is an error before the first sound.
    """
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
    return _stream(synthesizer, script.pieces, has_sound, manners)


def _stream(
    synthesizer: Synthesizer,
    pieces: Sequence[Piece],
    has_sound: Sequence[bool],
    manners: dict[Any, dict[str, Any]],
) -> Iterator[Speech]:
    last = max(number for number, sounds in enumerate(has_sound) if sounds)
    for number, (piece, sounds) in enumerate(zip(pieces, has_sound, strict=True)):
        options = manners[piece.manner]
        natural = _PAUSES[piece.ends] / options["speaking_rate"] if number < last else 0.0
        pause = natural if piece.break_seconds is None else piece.break_seconds
        if not sounds:
            if pause:
                yield _silence(pause, synthesizer)
            continue
        held: Speech | None = None
        for speech in synthesizer.stream(piece.text, **options):
            if held:
                yield held
            held = _at_volume(speech, piece.manner.gain_db)
        if held:
            yield followed_by_pause(held, pause, synthesizer.spec)


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


def _silence(seconds: float, synthesizer: Synthesizer) -> Speech:
    """A pause that follows no words, with a sentence of none that keeps its time."""
    spec, voice = synthesizer.spec, synthesizer.voice
    samples, mel = np.zeros(0, np.float32), np.zeros((0, spec.n_mels), np.float32)
    no_tokens = np.zeros(0, np.int32)
    spoken = (Sentence(Reading((), voice.tokenizer, voice.languages[0]), no_tokens, 0),)
    speech = Speech(samples, spec.sample_rate, mel, (), no_tokens, no_tokens, spoken=spoken)
    return followed_by_pause(speech, seconds, spec)


def _at_volume(speech: Speech, gain_db: float) -> Speech:
    """Make speech louder or softer, as far as full scale allows."""
    if not gain_db:
        return speech
    gain = 10.0 ** (gain_db / 20.0)
    peak = float(np.abs(speech.samples).max(initial=0.0))
    if gain * peak > PEAK_LIMIT:
        gain = PEAK_LIMIT / peak
    return replace(speech, samples=speech.samples * np.float32(gain))
