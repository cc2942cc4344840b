"""Errors that are about one field of a request, so that the answer can name it."""

import contextlib
from collections.abc import Iterator

from myxtts.errors import UserError
from myxtts.inference.errors import SynthesisError

# How a request calls what the options of a voice call otherwise.
_FIELDS = {"speaking_rate": "speed", "style_weights": "style"}


class FieldError(UserError):
    """What one field of a request holds cannot be used."""

    def __init__(self, message: str, field: str):
        super().__init__(message)
        self.field = field


@contextlib.contextmanager
def about(field: str) -> Iterator[None]:
    """Whatever cannot be done inside is what this field holds."""
    try:
        yield
    except UserError as error:
        raise FieldError(str(error), field) from error


def field_of(error: UserError) -> str | None:
    """The field that an error is about, as far as it says so itself."""
    if isinstance(error, FieldError):
        return error.field
    option = error.option if isinstance(error, SynthesisError) else None
    return _FIELDS.get(option, option) if option else None
