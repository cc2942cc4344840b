"""What is dropped of a corpus: the reasons, how they are reported, and how much is too much."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NO_TEXT = "no text"
TEXT_TOO_LONG = "text too long"
UNREADABLE_TEXT = "unreadable text"
DUPLICATE = "duplicate id"
OUTSIDE = "outside the corpus"
MALFORMED = "malformed line"
NO_SPEAKER = "no speaker"
TOO_LONG = "too long"
TOO_FAST = "fewer frames than tokens"
NO_TOKENS = "nothing to say"
NO_VOICE = "no voice"
NOT_FINITE = "not-a-number features"


@dataclass(frozen=True, slots=True)
class Rejection:
    """One line or recording that is not used."""

    id: str
    reason: str
    detail: str
    seconds: float = 0.0

    @classmethod
    def parse(cls, id: str, stored: str) -> "Rejection":
        """The rejection that a store holds as "reason: detail"."""
        reason, _, detail = stored.partition(": ")
        return cls(id, reason, detail)


def by_reason(rejections: Iterable[Rejection]) -> dict[str, list[Rejection]]:
    """Group rejections by reason, the most frequent first."""
    groups = defaultdict(list)
    for rejection in rejections:
        groups[rejection.reason].append(rejection)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def is_too_much(dropped: int, total: int, max_rejected: float, few: int = 0) -> bool:
    """Whether nothing is left, or more was dropped than a share; so `few` may always be."""
    return dropped >= total or dropped > max(few, max_rejected * total)


def describe_rejections(
    rejections: Sequence[Rejection], total: int, verb: str = "could not be prepared"
) -> str:
    """All in one line: counted by reason, with names and hours."""
    parts = []
    for reason, group in by_reason(rejections).items():
        names = ", ".join(rejection.id for rejection in group[:5])
        more = f" and {len(group) - 5} more" if len(group) > 5 else ""
        detail = f" ({group[0].detail})" if group[0].detail else ""
        hours = sum(rejection.seconds for rejection in group) / 3600
        length = f", {hours:.2f} h" if hours else ""
        parts.append(f"{len(group)} x {reason}{length}: {names}{more}{detail}")
    return f"{len(rejections)} of {total} utterances {verb}: " + "; ".join(parts)


def list_rejections(rejections: Sequence[Rejection], named: int = 20) -> str:
    """A paragraph for each reason, in which so many are named with their details."""
    lines = []
    for reason, group in by_reason(rejections).items():
        lines += [f"  {len(group):,} x {reason}", *name_some(group, named)]
    return "\n".join(lines)


def name_some(group: Sequence[Rejection], named: int) -> list[str]:
    """A line for each of the first, and one for how many more there are."""
    lines = [f"      {rejection.id}: {rejection.detail}" for rejection in group[:named]]
    return lines + ([f"      and {len(group) - named:,} more"] if len(group) > named else [])
