"""Japanese numbers with what is counted, in katakana: both change their sounds at the seam."""

import re
from typing import NamedTuple

from myxtts.text.languages.japanese.numbers import kana


class _Counter(NamedTuple):
    """How a counter sounds by itself, behind a stop, and behind three or a thousand."""

    plain: str
    doubled: str
    voiced: str
    stops: frozenset[int]  # last parts of a number that end in a stop before it


_LIPS, _TEETH = frozenset((1, 6, 8, 10, 100)), frozenset((1, 8, 10))
_COUNTERS = {
    "本": _Counter("ホン", "ポン", "ボン", _LIPS),
    "匹": _Counter("ヒキ", "ピキ", "ビキ", _LIPS),
    "杯": _Counter("ハイ", "パイ", "バイ", _LIPS),
    "個": _Counter("コ", "コ", "コ", _LIPS),
    "回": _Counter("カイ", "カイ", "カイ", _LIPS),
    "階": _Counter("カイ", "カイ", "ガイ", _LIPS),
    "歳": _Counter("サイ", "サイ", "サイ", _TEETH),
    "才": _Counter("サイ", "サイ", "サイ", _TEETH),
    "冊": _Counter("サツ", "サツ", "サツ", _TEETH),
}
_VOICING = frozenset((3, 1000))
_WHOLE = {"1人": "ヒトリ", "2人": "フタリ", "20歳": "ハタチ", "20才": "ハタチ"}
_COUNTED = re.compile(rf"(?<![\d.,])(\d{{1,4}}) ?([{''.join(_COUNTERS)}人])")
# The groups of a telephone number: the first begins with zero.
_PHONE = re.compile(r"(?<![\d.,-])0\d{1,4}-\d{1,4}-\d{3,4}(?![\d-])")
_DIGITS = "ゼロ イチ ニ サン ヨン ゴ ロク ナナ ハチ キュウ".split()


def say_counted(text: str) -> str:
    """Write numbers before frequent counters, and telephone numbers, in katakana."""
    return _COUNTED.sub(_count, _PHONE.sub(_phone, text))


def _count(match: re.Match[str]) -> str:
    number, sign = int(match[1]), match[2]
    if not number:
        return match[0]
    if f"{number}{sign}" in _WHOLE:
        return _WHOLE[f"{number}{sign}"]
    if sign == "人":
        return kana(number, {4: "ヨ"}) + "ニン"
    said, counter = kana(number), _COUNTERS[sign]
    last = next(number % (10 * size) for size in (1, 10, 100, 1000) if number % (10 * size))
    last = last if last < 10 else 10 ** (len(str(last)) - 1)
    if last in counter.stops:
        return said[:-1] + "ッ" + counter.doubled
    return said + (counter.voiced if last in _VOICING else counter.plain)


def _phone(match: re.Match[str]) -> str:
    groups = match[0].split("-")
    return ", ".join("".join(_DIGITS[int(digit)] for digit in group) for group in groups)
