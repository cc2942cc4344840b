"""The tally of a listening test: the answers that listeners saved, their statistics, a table."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.config.documents import DocumentError, parse_json, read_document
from myxtts.errors import UserError
from myxtts.evaluation.listening import PREFERENCE, RATING
from myxtts.evaluation.metrics.confidence import Interval
from myxtts.evaluation.report.tables import Rows, with_bounds

FORMAT = 1
CONFIDENCE = 0.95
EVERYONE, NEITHER = "all", "no preference"
_MOST_BYTES = 1 << 24
_LEAST_SHOWN = 0.001  # of a p-value

# What a listener said of one sentence: the preferred system, None without a preference; or the
# rating of each system.
Answer = str | None | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The answers of one listener, from the file that the page saved."""

    file: str
    page: str
    design: str
    systems: tuple[str, ...]
    listener: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Preference:
    """How often each of two systems was preferred, and neither; statistics leave out the latter.

    `share` is that of the first system, with its exact (Clopper-Pearson) interval, and `p` is of
    the two-sided sign test.
    """

    first: int
    second: int
    neither: int
    share: Interval
    p: float


def tally(sheets: Sequence[Sheet]) -> tuple[Rows, str]:
    """The table of each listener and of all, and how to read it."""
    check_poolable(sheets)
    rows = _preference_rows if sheets[0].design == PREFERENCE else _rating_rows
    return rows(sheets), _LEGENDS[sheets[0].design]


def check_poolable(sheets: Sequence[Sheet]) -> None:
    """Raise where answers are of different pages, or twice of one listener."""
    first = sheets[0]
    seen: dict[str, str] = {}
    for one in sheets:
        if (one.page, one.design, one.systems) != (first.page, first.design, first.systems):
            raise UserError(
                f"{one.file} is of the page {one.page}, and {first.file} of {first.page}: only "
                "answers to the same page can be pooled"
            )
        if one.listener in seen:
            raise UserError(
                f"{one.file} and {seen[one.listener]} are of the same listener: keep one of them"
            )
        seen[one.listener] = one.file


# Statistics, which listening.html computes as well.


def preference(first: int, second: int, neither: int = 0) -> Preference:
    """Test whether two systems are preferred equally often."""
    from scipy.stats import binomtest

    decided = first + second
    if not decided:
        return Preference(0, 0, neither, Interval(0.0, math.nan, 1.0, 0), 1.0)
    test = binomtest(first, decided)
    bounds = test.proportion_ci(CONFIDENCE, method="exact")
    share = Interval(float(bounds.low), first / decided, float(bounds.high), decided)
    return Preference(first, second, neither, share, float(test.pvalue))


def mean_rating(ratings: Sequence[float]) -> Interval:
    """The mean with the interval of Student's t, which a single rating does not have."""
    count = len(ratings)
    value = float(np.mean(ratings)) if count else math.nan
    if count < 2:
        return Interval(math.nan, value, math.nan, count)
    reach = t_quantile(count) * float(np.std(ratings, ddof=1)) / math.sqrt(count)
    return Interval(value - reach, value, value + reach, count)


def t_quantile(count: int) -> float:
    """How many standard errors of a mean of `count` values reach to the bounds of its interval."""
    from scipy.stats import t

    return float(t.ppf((1.0 + CONFIDENCE) / 2.0, count - 1))


# Tables.

_LEGENDS = {
    PREFERENCE: "In brackets: the exact 95 % confidence interval of the share of those who had a "
    "preference. p: two-sided sign test.",
    RATING: "Mean rating, 0 to 100. In brackets: its 95 % confidence interval (Student's t).",
}


def _preference_rows(sheets: Sequence[Sheet]) -> Rows:
    first, second = sheets[0].systems
    rows: Rows = [("listener", first, second, NEITHER, f"for {first}, %", "p")]
    for name, answers in _by_listener(sheets):
        counts = [answers.count(choice) for choice in (first, second, None)]
        found = preference(*counts)
        share = found.share
        percent = Interval(100 * share.low, 100 * share.value, 100 * share.high, share.sentences)
        rows.append((name, *map(str, counts), with_bounds(percent, 1), shown_p(found.p)))
    return rows


def _rating_rows(sheets: Sequence[Sheet]) -> Rows:
    listeners = _by_listener(sheets)
    rows: Rows = [("system", *(name for name, _ in listeners), "ratings")]
    for system in sheets[0].systems:
        found = [mean_rating([one[system] for one in answers]) for _, answers in listeners]
        count = str(found[-1].sentences)
        rows.append((system, *(with_bounds(one, 1) for one in found), count))
    return rows


def _by_listener(sheets: Sequence[Sheet]) -> list[tuple[str, list[Any]]]:
    """The answers in each file, if there are several, and all answers."""
    everyone = (EVERYONE, [answer for one in sheets for answer in one.answers])
    each = [(one.file, list(one.answers)) for one in sheets]
    return [*each, everyone] if len(each) > 1 else [everyone]


def shown_p(p: float) -> str:
    return f"{p:.3f}" if p >= _LEAST_SHOWN else f"< {_LEAST_SHOWN}"


# Files.


def read_sheet(path: Path) -> Sheet:
    """Read the answers of a listener; what the page would not have written is an error."""
    try:
        record = parse_json(read_document(path, _MOST_BYTES))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except DocumentError as error:
        raise UserError(f"{path} holds no answers of a listening test: {error}") from error
    if isinstance(record, dict) and record.get("format") not in (None, FORMAT):
        raise UserError(f"{path} was saved by a page of another version of myxtts: use that one")
    if not _is_sheet(record):
        raise UserError(f"{path} holds no answers of a listening test: name a saved listening.json")
    answers = tuple(_answer(record["design"], one) for one in record["answers"])
    systems = tuple(record["systems"])
    return Sheet(str(path), record["page"], record["design"], systems, record["listener"], answers)


def _answer(design: str, answer: Mapping[str, Any]) -> Answer:
    return answer["preferred"] if design == PREFERENCE else answer["ratings"]


def _is_sheet(record: Any) -> bool:
    if not isinstance(record, dict) or record.get("design") not in (PREFERENCE, RATING):
        return False
    systems, answers = record.get("systems"), record.get("answers")
    if not _are_names((record.get("page"), record.get("listener"))):
        return False
    if not isinstance(systems, list) or not _are_names(systems) or len(systems) < 2:
        return False
    if not isinstance(answers, list) or not answers:
        return False
    is_answer = _is_preference if record["design"] == PREFERENCE else _are_ratings
    return all(isinstance(one, dict) and is_answer(one, systems) for one in answers)


def _are_names(values: Iterable[Any]) -> bool:
    return all(isinstance(one, str) and one.isprintable() for one in values)


def _is_preference(answer: Mapping[str, Any], systems: Sequence[str]) -> bool:
    return "preferred" in answer and answer["preferred"] in (*systems, None)


def _are_ratings(answer: Mapping[str, Any], systems: Sequence[str]) -> bool:
    ratings = answer.get("ratings")
    return (
        isinstance(ratings, dict)
        and ratings.keys() == set(systems)
        and all(type(one) in (int, float) and 0 <= one <= 100 for one in ratings.values())
    )
