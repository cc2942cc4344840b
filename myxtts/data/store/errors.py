"""What a cache raises, and the advice that goes with damage."""

from myxtts.errors import UserError

REMEDY = "; run `myxtts cache fix` or verify_and_fix_cache(fix=True)"


class CacheError(UserError):
    """The cache cannot be written, or what it holds is not what was written."""


class PreparationError(CacheError):
    """The mode precompute could not prepare everything."""
