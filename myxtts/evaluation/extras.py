"""Optional packages, imported where they are used."""

from importlib import import_module
from typing import Any

from myxtts.errors import UserError


def import_extra(module: str, what: str, extra: str = "eval") -> Any:
    """Import a module; where it is missing, raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(
            f'{what} cannot be imported ({error}); install it with pip install "myxtts[{extra}]"'
        ) from error
