"""What can go wrong on the way from text to speech."""

from collections.abc import Sequence

from myxtts.errors import UserError

_NAMED = 30


class SynthesisError(UserError):
    """Speech that cannot be synthesized as requested, or that is unusable.

    `option` is the one of the speaking options that it is about, if it is about one.
    """

    def __init__(self, message: str, option: str | None = None):
        super().__init__(message)
        self.option = option


def check_known(name: str, known: Sequence[str], what: str) -> str:
    """Return a name that is known, or say which ones there are."""
    if name in known:
        return name
    shown = ", ".join(known[:_NAMED]) + (", ..." if len(known) > _NAMED else "")
    raise SynthesisError(f"there is no {what} {name!r} here: choose one of {shown}", what)
