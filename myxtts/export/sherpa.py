"""A voice for sherpa-onnx: one graph with metadata, the table of its tokens, and a lexicon."""

import unicodedata
from collections.abc import Iterable
from typing import Any

from myxtts.export.players import SPECIAL_SYMBOLS, PlayerTable, words_of
from myxtts.export.single_file import SingleFile
from myxtts.text.languages import get_language
from myxtts.text.symbols import BOS_ID, EOS_ID, PAD_ID
from myxtts.text.tokenizer import CHARACTERS

MODEL, TOKENS, LEXICON = "model.onnx", "tokens.txt", "lexicon.txt"


def sherpa_metadata(single: SingleFile) -> dict[str, Any]:
    """What sherpa-onnx reads in the graph itself."""
    voice, row = single.voice, get_language(single.language)
    is_spelled = voice.tokenizer.units == CHARACTERS
    facts = {
        "model_type": "vits",
        "comment": "piper",  # which says what the inputs are
        "language": row.name,
        "voice": row.espeak_voice,
        "version": 1,
        "n_speakers": len(voice.speakers),
        "sample_rate": voice.config.data.sample_rate,
        "has_espeak": 0 if is_spelled else 1,
    }
    if is_spelled:
        marks = " ".join(symbol for symbol in ",.?!:;" if symbol in voice.tokenizer.symbols)
        facts |= {
            "frontend": "characters",
            "add_blank": 0,
            "use_eos_bos": 1,
            "bos_id": BOS_ID,
            "eos_id": EOS_ID,
            "blank_id": PAD_ID,
            "pad_id": PAD_ID,
            "punctuation": marks,
        }
    return facts


def token_lines(table: PlayerTable) -> str:
    """tokens.txt: a symbol and its id in each line."""
    return "".join(f"{symbol} {index}\n" for symbol, index in table.ids.items())


def lexicon_lines(single: SingleFile, texts: Iterable[str]) -> str:
    """lexicon.txt: the words of some texts and their sounds, which sherpa-onnx 2 looks up."""
    from myxtts.text.phonemes import phonemize

    known = set(single.voice.tokenizer.symbols) - set(SPECIAL_SYMBOLS)
    lines = []
    words = words_of(texts)
    for word, ipa in zip(words, phonemize(words, single.language, plain=True), strict=True):
        sounds = [point for point in unicodedata.normalize("NFD", ipa) if point in known]
        sounds = [point for point in sounds if not point.isspace()]
        if sounds:
            lines.append(f"{word} {' '.join(sounds)}\n")
    return "".join(lines)
