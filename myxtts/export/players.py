"""What the players of other projects need to know of a voice: which ids a text becomes."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from myxtts.errors import UserError
from myxtts.text.cleaners import normalise
from myxtts.text.languages import get_language
from myxtts.text.symbols import BOS_ID, EOS_ID, PAD_ID, SPECIALS
from myxtts.text.tokenizer import CHARACTERS, PIPER, Tokenizer

# What piper and sherpa-onnx call padding, and the beginning and the end of a sentence.
SPECIAL_SYMBOLS = {"_": PAD_ID, "^": BOS_ID, "$": EOS_ID}
# Where to look for characters that the cleaners turn into one that the table has.
_BLOCKS = ((0x20, 0x24F), (0x2010, 0x2040), (0x600, 0x6FF))


@dataclass(frozen=True)
class PlayerTable:
    """Ids by code point, and pairs of ids that the voice knows as one."""

    ids: dict[str, int]
    pairs: dict[tuple[int, int], int]

    @property
    def size(self) -> int:
        return max(self.ids.values()) + 1


def player_table(tokenizer: Tokenizer, language: str) -> PlayerTable:
    """The table of a voice whose units a player can type; for others, an error with the remedy."""
    if tokenizer.units not in (CHARACTERS, PIPER):
        raise UserError(
            f"players look up one code point at a time, and this voice has {tokenizer.units}, such "
            "as a stressed diphthong in one token: train it with --text-units piper (or "
            "characters), or export it --to onnx"
        )
    if tokenizer.units == CHARACTERS and get_language(language).is_open_script:
        raise UserError(
            f"this voice spells {language} by bytes, which players cannot type: train it with "
            "--text-units piper, or export it --to onnx"
        )
    own = {
        symbol: index
        for index, symbol in enumerate(tokenizer.symbols)
        if index >= len(SPECIALS) and len(symbol) == 1
    }
    ids = {**SPECIAL_SYMBOLS, **own}
    if tokenizer.units == PIPER:
        return PlayerTable(ids, {})
    ids |= _variants(own, language)
    return _with_marks(ids, own)


def _variants(own: dict[str, int], language: str) -> dict[str, int]:
    """Characters that the cleaners would write as one of the table: capitals, other commas."""
    found = {}
    for first, last in _BLOCKS:
        for character in map(chr, range(first, last + 1)):
            if character not in own and character not in SPECIAL_SYMBOLS:
                written = _normalised(character, language)
                if written in own:
                    found[character] = own[written]
    return found


def _normalised(character: str, language: str) -> str:
    # Between letters, a mark of punctuation is not stripped.
    return normalise(f"a{character}a", language)[1:-1].strip() or character


def _with_marks(ids: dict[str, int], own: dict[str, int]) -> PlayerTable:
    """The table with letters that Unicode takes apart, as piper does with a text."""
    pairs = {}
    for letter, index in own.items():
        parts = unicodedata.normalize("NFD", letter)
        if len(parts) != 2 or parts[0] not in ids:
            continue
        mark = ids.setdefault(parts[1], max(ids.values()) + 1)
        pairs[ids[parts[0]], mark] = index
    return PlayerTable(ids, pairs)


def add_metadata(model: Any, facts: dict[str, Any]) -> None:
    """Write facts into an ONNX model, where players look for them."""
    del model.metadata_props[:]
    for key, value in facts.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, str(value)


def words_of(texts: Iterable[str]) -> list[str]:
    """The words of some texts, in the order of the alphabet."""
    words = {word.strip(".,;:!?\"'()").lower() for text in texts for word in text.split()}
    return sorted(word for word in words if word and not any(map(str.isdigit, word)))
