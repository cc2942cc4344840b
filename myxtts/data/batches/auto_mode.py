"""What the mode `auto` does, decided from measured numbers and explained in one line."""

from dataclasses import dataclass

STORE_ALL = "store all"
STORE_SOME = "store some"
STORE_NONE = "store none"
READ = "read"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was measured before deciding."""

    hours: float  # of all recordings
    missing_hours: float  # of those whose features are not stored
    speed: float  # seconds of audio per second of wall time, all workers together
    missing_bytes: int
    free_bytes: int
    budget_bytes: int | None  # what may still be stored, by the user's word
    epochs: int
    missing: int  # utterances whose features are not stored
    shard_bytes: int = 0  # what the first shard takes before anything is in it
    obstacle: str = ""  # why nothing can be written


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with features that are not stored, how many bytes of them to store, and why."""

    action: str
    allowed_bytes: int
    why: str

    def __str__(self) -> str:
        return f"auto: {self.why}"


def decide(seen: Circumstances) -> Decision:
    """Store what fits while the first epoch computes it, unless that cannot pay or be done."""
    if seen.missing_hours == 0:
        return Decision(READ, 0, f"all {seen.hours:.2f} h are in the cache and are read from it")
    cost = (
        f"{seen.missing_hours:.2f} h of {seen.hours:.2f} h are not stored yet, features take "
        f"{_duration(seen.missing_hours * 3600 / seen.speed)} ({seen.speed:,.0f} x real time) "
        f"and {_size(seen.missing_bytes)}"
    )
    if seen.obstacle:
        return Decision(STORE_NONE, 0, f"{cost}; {seen.obstacle}: computed anew in every epoch")
    if seen.epochs == 1:
        return Decision(STORE_NONE, 0, f"{cost}; with one epoch storing them would not pay")
    limits = {"free": seen.free_bytes}
    if seen.budget_bytes is not None:
        limits["in the budget"] = seen.budget_bytes
    name, allowed = min(limits.items(), key=lambda limit: limit[1])
    room = f"{_size(allowed)} are {name}"
    if allowed >= seen.missing_bytes:
        why = f"{cost}; {room}: the first epoch computes and stores them"
        return Decision(STORE_ALL, allowed, why)
    fit = _fitting(allowed, seen)
    why = (
        f"{cost}; {room}: about {fit:,} of {seen.missing:,} utterances are stored, the rest is "
        "computed in every epoch"
    )
    return Decision(STORE_SOME, allowed, why)


def _fitting(allowed: int, seen: Circumstances) -> int:
    """How many utterances fit: a first shard is padded, however little is in it."""
    share = (allowed - seen.shard_bytes) / max(1, seen.missing_bytes - seen.shard_bytes)
    return int(max(0.0, share) * seen.missing)


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e7 else f"{count / 1e6:.2f} MB"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 120 else f"{seconds:.1f} s"
