"""Values of SSML's attributes: how long, how fast, how loud."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_STRENGTHS = {
    "none": 0.0,
    "x-weak": 0.1,
    "weak": 0.2,
    "medium": 0.4,
    "strong": 0.7,
    "x-strong": 1.2,
}
_RATES = {
    "x-slow": 0.5,
    "slow": 0.75,
    "medium": 1.0,
    "default": 1.0,
    "fast": 1.33,
    "x-fast": 1.75,
}
SILENT_DB = -200.0
_VOLUMES = {
    "silent": SILENT_DB,
    "x-soft": -12.0,
    "soft": -6.0,
    "medium": 0.0,
    "default": 0.0,
    "loud": 6.0,
    "x-loud": 12.0,
}
LONGEST_BREAK = 60.0
_MOST_DB = 40.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How a piece is said; speaker and language None are those of the whole text."""

    rate: float = 1.0
    gain_db: float = 0.0
    speaker: str | None = None
    language: str | None = None


def break_seconds(attributes: Mapping[str, str]) -> float:
    """How long a break is, by its time or its strength."""
    if (time := attributes.get("time")) is None:
        strength = attributes.get("strength", "medium")
        if strength not in _STRENGTHS:
            raise ValueError(f"the strength {strength!r} is none of {', '.join(_STRENGTHS)}")
        return _STRENGTHS[strength]
    found = re.fullmatch(r"\s*\+?(\d{0,9}(?:\.\d{1,9})?)(ms|s)\s*", time)
    if not found or not found[1]:
        raise ValueError(f"the time {time!r} is not like 500ms or 1.5s")
    seconds = float(found[1]) / (1000.0 if found[2] == "ms" else 1.0)
    if seconds > LONGEST_BREAK:
        raise ValueError(f"a break of {seconds:g} s: the longest is {LONGEST_BREAK:g} s")
    return seconds


def rate_of(value: str) -> float:
    """How many times as fast: a word, a factor, a percentage of it, or a change in per cent."""
    if value in _RATES:
        return _RATES[value]
    found = re.fullmatch(r"\s*([+-]?)(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})(%?)\s*", value)
    if not found:
        raise ValueError(f"the rate {value!r} is none of {', '.join(_RATES)}, and not like 120%")
    number = float(found[2]) / (100.0 if found[3] else 1.0)
    rate = 1.0 + number if found[1] == "+" else 1.0 - number if found[1] == "-" else number
    if rate <= 0.0:
        raise ValueError(f"the rate {value!r} leaves no speed")
    return rate


def gain_of(value: str) -> float:
    """How many decibels louder: a word, decibels, or a number of 0 to 100."""
    if value in _VOLUMES:
        return _VOLUMES[value]
    if found := re.fullmatch(r"\s*([+-]?\d{1,4}(?:\.\d{1,9})?)dB\s*", value):
        return max(SILENT_DB, min(_MOST_DB, float(found[1])))
    raise ValueError(f"the volume {value!r} is none of {', '.join(_VOLUMES)}, and not like +6dB")
