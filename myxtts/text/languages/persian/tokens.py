"""The words of a normalised Persian text: what stands between spaces, half-spaces and marks."""

import re
from typing import NamedTuple

ZWNJ = "\u200c"
_LETTER = "\u0621-\u063a\u0641-\u06d3\u064b\u0650"
_TOKEN = re.compile(rf"[{_LETTER}\u200c]+|[^\W_]+(?:'[^\W_]+)*|\s+|.", re.DOTALL)
_PERSIAN = re.compile(rf"[{_LETTER}]")
_PREFIXES = frozenset("می نمی همی بی نا هم پیش".split())
_SUFFIXES = frozenset(
    "ها های هایی هایم هایت هایش هایمان هایتان هایشان هام هات هاش هامون هاتون هاشون "
    "تر ترین تری ترها ی ای ام ات اش مان تان شان مون تون شون ایم اید اند است ست م ت ش یم ید ند "
    "گر گری گرا گرایی گرایانه چی دار داری پذیر پذیری ناپذیر نشین نویس نامه خانه کده گاه "
    "مند ور".split()
)


class Word(NamedTuple):
    """A written word, the text between it and the next one, and whether a half-space joins them."""

    text: str
    is_persian: bool
    gap: str = " "
    is_joined: bool = False
    has_ezafe: bool = False  # it is written, by a kasra or a ye after a silent he


def split_words(text: str) -> tuple[str, list[Word]]:
    """Return what stands before the first word, and the words with what follows each."""
    lead, words = "", []
    for token in _TOKEN.findall(text):
        if _PERSIAN.match(token) or token.startswith(ZWNJ):
            words += _parts(token.strip(ZWNJ))
        elif token[0].isalnum():
            words.append(Word(token, False, ""))
        elif words:
            words[-1] = words[-1]._replace(gap=words[-1].gap + token)
        else:
            lead += token
    return lead, words


def _parts(token: str) -> list[Word]:
    """Cut a word at half-spaces, but leave its prefixes and suffixes on it."""
    pieces: list[str] = []
    for part in filter(None, token.split(ZWNJ)):
        if pieces and _belong_together(pieces[-1], part):
            pieces[-1] += ZWNJ + part
        else:
            pieces.append(part)
    joined = [word for word in (_read(piece, "", True) for piece in pieces) if word.text]
    return [*joined[:-1], joined[-1]._replace(is_joined=False)] if joined else []


def _belong_together(first: str, part: str) -> bool:
    is_suffix = part.rstrip("\u0650") in _SUFFIXES
    return is_suffix or first in _PREFIXES or (first, part) == ("سی", "امین")


def _read(piece: str, gap: str, is_joined: bool) -> Word:
    """Take the written ezafe off a word."""
    bare = piece.removesuffix("\u0650")
    if bare.endswith(f"ه{ZWNJ}ی"):
        return Word(bare[:-2], True, gap, is_joined, True)
    return Word(bare, True, gap, is_joined, bare != piece)
