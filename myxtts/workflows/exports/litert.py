"""The export for LiteRT: one file from token ids to samples, and what an app needs next to it."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from myxtts.errors import UserError
from myxtts.workflows.exports.common import (
    CARD,
    REPORT,
    Tell,
    as_line,
    card_and_report,
    check_float32,
    check_parity,
    first_line,
    line_cases,
    new_folder,
    size_of,
    to_json,
)
from myxtts.workflows.exports.settings import ExportSettings
from myxtts.workflows.parity import MOST_RMS, Case, Parity, Speak, compare

if TYPE_CHECKING:
    from myxtts.export.litert import LiteSpeaker
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer

MODEL, TOKENIZER, VOICE = "voice.tflite", "tokenizer.json", "voice.json"


def export_litert(trained: "Synthesizer", settings: ExportSettings, tell: Tell) -> None:
    """Write a folder with the model, its tokens, and its speakers and languages."""
    from myxtts.export.litert import LiteSpeaker, LiteVoice

    check_float32(settings)
    _check(trained)
    with new_folder(settings.output) as draft:
        model = LiteVoice(trained.voice, trained.vocoder.model).convert()
        (draft / MODEL).write_bytes(model)
        trained.voice.tokenizer.save(draft / TOKENIZER)
        (draft / VOICE).write_bytes(to_json(_description(trained)))
        usual = cache(lite_speaker(trained, LiteSpeaker(model)))
        plain = lite_speaker(trained, LiteSpeaker(model, delegates=False))
        parity, record = _check_parity(trained, usual, plain, settings, tell)
        card, report = card_and_report(trained, settings, "LiteRT", parity, record)
        (draft / CARD).write_bytes(card)
        (draft / REPORT).write_bytes(report)
    tell(f"{settings.output}: {size_of(settings.output)}")


def _check_parity(
    trained: "Synthesizer", usual: Speak, plain: Speak, settings: ExportSettings, tell: Tell
) -> tuple[Parity, dict]:
    """Compare with XNNPACK, as apps run a model by default, and without: one rule for both.

    The end of a state next to half a frame may be rounded otherwise inside of a token, whose
    duration stays: such a text differs in its samples, and is counted.
    """
    cases, line = line_cases(trained.voice), cache(as_line(trained))
    parity, without = compare(cases, line, usual), compare(cases, line, plain)
    singles = [compare([case], line, usual) for case in cases]
    inside = sum(one.rms is not None and one.rms > MOST_RMS for one in singles)
    tell(f"parity with XNNPACK: {parity}; {inside} with other samples alone")
    tell(f"parity without XNNPACK: {without}")
    check_parity(parity, settings)
    check_parity(without, settings)
    return parity, {
        "delegate": "XNNPACK",
        "other_samples": inside,
        "without_delegate": without.as_dict(),
    }


def _check(trained: "Synthesizer") -> None:
    """Raise where a part of a voice is none that LiteRT runs."""
    model, vocoder = trained.voice.config.model, trained.vocoder.name
    found = {
        "a refiner": model.refiner_layers > 0,
        "a decoder that goes step by step (autoregressive)": model.decoder_strategy != "parallel",
        f"the vocoder {vocoder} (istft is)": vocoder != "istft",
    }
    for part in (part for part, is_there in found.items() if is_there):
        raise UserError(f"{part} is not converted to LiteRT: export this voice --to onnx")


def _description(trained: "Synthesizer") -> dict:
    """What the numbers of speakers and languages mean, and how fast samples are played."""
    voice = trained.voice
    return {
        "sample_rate": trained.spec.sample_rate,
        "hop_length": trained.spec.hop_length,
        "languages": list(voice.languages),
        "speakers": list(voice.speakers),
    }


def lite_speaker(trained: "Synthesizer", say: "LiteSpeaker") -> Speak:
    from myxtts.inference.speech import Speech, fade_ends, set_level

    voice, spec = trained.voice, trained.spec

    def speak(case: Case) -> "Speech":
        text = first_line(case)
        tokens = voice.tokenizer.encode(text, case.language)
        language = voice.languages.index(case.language)
        out = say(tokens, language, voice.speakers.index(case.speaker), case.speaking_rate)
        samples = set_level(fade_ends(out["samples"][0], spec.sample_rate), spec.sample_rate)
        mel = np.zeros((len(samples) // spec.hop_length, spec.n_mels), np.float32)
        return Speech(samples, spec.sample_rate, mel, (text,), tokens, out["durations"][0])

    return speak
