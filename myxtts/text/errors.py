"""What can go wrong with text, and what to do about it."""

from myxtts.errors import UserError


class TextError(UserError):
    """A text, a language or a symbol table that cannot be used."""


class MissingExtraError(UserError):
    """An optional package that the text at hand needs is not installed."""

    def __init__(self, what: str, extra: str):
        super().__init__(f'{what} needs an optional package: pip install "myxtts[{extra}]"')
        self.extra = extra
