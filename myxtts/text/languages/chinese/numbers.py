"""Chinese years digit by digit, and acronyms by their letters."""

import re

_DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")
_YEAR = re.compile(r"(?<!\d)(\d{4})(?= ?年(?!级|纪))")
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,6}(?![A-Za-z])")


def say_years(text: str) -> str:
    """Write the digits of years in Han characters, and set the letters of acronyms apart."""
    text = _ACRONYM.sub(lambda match: f" {' '.join(match[0])} ", text)
    return _YEAR.sub(lambda match: match[1].translate(_DIGITS), text)
