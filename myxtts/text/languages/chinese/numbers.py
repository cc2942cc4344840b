"""Chinese years and telephone numbers digit by digit, signs, and acronyms by their letters."""

import re

_DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")
_YEAR = re.compile(r"(?<!\d)(\d{4})(?= ?年(?!级|纪)( ?\d{1,2} ?月|前(?!后)|的?历史)?)")
_COMMA = re.compile("(?<=[\u3400-\u9fff]),(?=\\d)")
_MINUS = re.compile("(?<=[\u3400-\u9fff])-(?=\\d)")
_PHONE = re.compile(r"(?<![\d.,-])(?:0\d{2,3}-\d{7,8}|1[3-9]\d{9}|[48]00-\d{3}-\d{4})(?![\d-])")
_MILLENNIUM, _LAST_YEAR = 2000, 2199
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,6}(?![A-Za-z])")


def say_signs(text: str) -> str:
    """Say minus and degrees, set a comma apart from a number, and say telephone numbers."""
    text = _COMMA.sub(", ", _MINUS.sub("负", text)).replace("℃", "摄氏度")
    return _PHONE.sub(lambda match: match[0].translate(_DIGITS).replace("-", ", "), text)


def say_years(text: str) -> str:
    """Write the digits of years in Han characters, and set the letters of acronyms apart."""
    text = _ACRONYM.sub(lambda match: f" {' '.join(match[0])} ", text)
    return _YEAR.sub(_year, text)


def _year(match: re.Match[str]) -> str:
    """Leave how long something lasted: "5000年", and round numbers as in "1500年的历史"."""
    year, following = int(match[1]), match[2] or ""
    is_round = year % 100 == 0 if following else year % 1000 == 0 and year != _MILLENNIUM
    if "月" not in following and (is_round or year > _LAST_YEAR):
        return match[0]
    return match[1].translate(_DIGITS)
