"""English numbers in words."""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = (
    "_ thousand million billion trillion quadrillion quintillion sextillion septillion octillion "
    "nonillion decillion"
).split()
_LIMIT = 1000 ** len(_SCALES)
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(value: int) -> str:
    """Say a whole number: 1234 is "one thousand two hundred thirty-four"."""
    if value < 0:
        return "minus " + cardinal(-value)
    if value >= _LIMIT:
        return spell_digits(str(value))
    if value < 1000:
        return _below_thousand(value)
    groups = []
    for scale in _SCALES:
        value, group = divmod(value, 1000)
        if group:
            groups.append(_below_thousand(group) + (f" {scale}" if scale != "_" else ""))
        if not value:
            break
    return " ".join(reversed(groups))


def _below_thousand(value: int) -> str:
    if value < 20:
        return _ONES[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    hundreds, rest = divmod(value, 100)
    return f"{_ONES[hundreds]} hundred" + (f" {_below_thousand(rest)}" if rest else "")


def ordinal(value: int) -> str:
    """Say an ordinal: 21 is "twenty-first"."""
    words = cardinal(value)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    return head + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


def year(value: int) -> str:
    """Say a year: 1905 is "nineteen oh five", 2005 "two thousand five"."""
    century, rest = divmod(value, 100)
    if not 1000 <= value < 10000 or century % 10 == 0 and rest < 10:
        return cardinal(value)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decimal_words(text: str) -> str:
    """Say digits with one or more points: "3.14" is "three point one four"."""
    whole, *parts = text.split(".")
    words = [whole_number(whole)] if whole else []
    for part in parts:
        words += ["point", spell_digits(part)]
    return " ".join(words)


def whole_number(digits: str) -> str:
    """Say a string of digits, digit by digit where it starts with zero or is huge."""
    if len(digits) > 3 * len(_SCALES) or digits.startswith("0") and len(digits) > 1:
        return spell_digits(digits)
    return cardinal(int(digits))


def spell_digits(digits: str) -> str:
    """Say each digit by itself."""
    return " ".join(_ONES[int(digit)] for digit in digits)
