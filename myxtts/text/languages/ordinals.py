"""Ordinals of languages that say the day of a date, or its year, in the genitive."""

from collections.abc import Mapping, Sequence


def genitive_ordinals(
    units: Sequence[str], teens: Sequence[str], tens: Sequence[str], round_tens: Sequence[str] = ()
) -> dict[int, str]:
    """The ordinals from 1 on: those of 1 to 9, of 10 to 19, and of 20, 30 and so on.

    `round_tens` are what stands before the units, if it is not the ordinal: "двадцать первого".
    """
    found = dict(enumerate((*units, *teens), start=1))
    for place, ten in enumerate(tens, start=2):
        before = round_tens[place - 2] if round_tens else ten
        found[10 * place] = ten
        found |= {10 * place + n: f"{before} {unit}" for n, unit in enumerate(units, start=1)}
    return found


def genitive_year(
    year: int, ordinals: Mapping[int, str], centuries: Mapping[int, tuple[str, str]], suffix: str
) -> str:
    """Say a year by the ordinal of its last two digits; `centuries` have (whole, before others).

    Other years stay numbers.
    """
    century, rest = divmod(year, 100)
    if century not in centuries:
        return str(year)
    whole, head = centuries[century]
    return f"{head} {ordinals[rest]} {suffix}" if rest else f"{whole} {suffix}"
