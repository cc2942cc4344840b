"""The ezafes of a Universal Dependencies treebank, which follow from its trees."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from myxtts.text.languages.persian.expansion import unify_letters
from myxtts.text.languages.persian.tokens import Word
from tools.persian.annotated import Sentence

_LINKS = frozenset(("amod", "nmod", "flat"))
_NOMINALS = frozenset(("NOUN", "PROPN", "ADJ", "PRON", "NUM", "ADP", "DET", "ADV"))
_PREPOSITIONS = frozenset(
    "بدون بین میان طی ضمن علیه درباره کنار زیر روی بالای پشت جلوی نزد پیش مانند مثل همانند نظیر "
    "توسط حین پیرامون سوی سمت قبل".split()
)
# Titles are joined to the name without an ezafe.
_TITLES = frozenset("دکتر مهندس امام سید شیخ حاج آیت‌الله حجت‌الاسلام ملا میرزا استاد سردار".split())


class _Token(NamedTuple):
    form: str
    lemma: str
    tag: str
    head: int
    link: str


def read_treebank(path: Path) -> Iterator[Sentence]:
    """Read the sentences of a CoNLL-U file."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        if lines:
            yield _sentence(lines)


def _sentence(lines: list[list[str]]) -> Sentence:
    tokens = [_Token(x[1], x[2], x[3], int(x[6]) - 1, x[7]) for x in lines if x[0].isdigit()]
    clitics = _clitics(lines)
    words: list[Word] = []
    ezafes: list[bool | None] = []
    for place, token in enumerate(tokens):
        text = unify_letters(token.form)
        if token.tag == "PUNCT":
            if words:
                words[-1] = words[-1]._replace(gap=text)
        elif place in clitics and words:
            words[-1] = words[-1]._replace(text=words[-1].text + text)
            ezafes[-1] = False
        else:
            words.append(Word(text, True))
            ezafes.append(_has_ezafe(tokens, place))
    unknown: list[str | None] = [None] * len(words)
    return Sentence(words, ezafes, unknown, [False] * len(words), [])


def _clitics(lines: list[list[str]]) -> set[int]:
    """The places of tokens that are written as one word with the token before them."""
    found = set()
    for line in lines:
        if "-" in line[0]:
            first, last = map(int, line[0].split("-"))
            found |= set(range(first, last))
    return found


def _has_ezafe(tokens: list[_Token], place: int) -> bool | None:
    token = tokens[place]
    if place + 1 == len(tokens) or token.tag not in _NOMINALS or tokens[place + 1].tag == "PUNCT":
        return False
    if token.tag == "ADP":
        return token.form in _PREPOSITIONS and tokens[place + 1].tag not in ("ADP", "SCONJ")
    if _is_indefinite(token) or token.form in _TITLES or token.form.endswith("ترین"):
        return False
    top = _top(tokens, place + 1)
    if top is None or tokens[top].link.split(":")[0] not in _LINKS:
        return False
    head = tokens[top].head
    has_case = any(x.head == top and x.link in ("case", "mark", "cc") for x in tokens)
    return head <= place and not has_case and _is_below(tokens, place, head)


def _top(tokens: list[_Token], first: int) -> int | None:
    """The highest token whose part of the sentence begins at a place, and hangs on its left."""
    place = first
    if _leftmost(tokens, place) != first:
        return None
    while tokens[place].head > place:
        place = tokens[place].head
        if _leftmost(tokens, place) != first:
            return None
    return place if 0 <= tokens[place].head < first else None


def _leftmost(tokens: list[_Token], top: int) -> int:
    return min(place for place in range(len(tokens)) if _is_below(tokens, place, top))


def _is_below(tokens: list[_Token], place: int, top: int) -> bool:
    seen = 0
    while place != top and place >= 0 and seen <= len(tokens):
        place, seen = tokens[place].head, seen + 1
    return place == top


def _is_indefinite(token: _Token) -> bool:
    """Whether a ye was added to the noun: "مردی" is a man, but "بازی" is a game."""
    stem = token.form[:-1]
    if not token.form.endswith("ی") or stem.endswith(("ا", "و")):
        return False  # the ye of "صدای" writes the ezafe
    return stem == token.lemma or stem.endswith(("های", "\u200cا"))
