"""What can go wrong on the way from text to speech."""

from collections.abc import Sequence

from myxtts.errors import UserError

_NAMED = 30


class SynthesisError(UserError):
    """Speech that cannot be synthesized as requested, or that is unusable."""


def check_known(name: str, known: Sequence[str], what: str) -> str:
    """Return a name that is known, or say which ones there are."""
    if name in known:
        return name
    shown = ", ".join(known[:_NAMED]) + (", ..." if len(known) > _NAMED else "")
    raise SynthesisError(f"there is no {what} {name!r} here: choose one of {shown}")
