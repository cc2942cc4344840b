"""Persian numbers in words."""

from myxtts.text.languages.persian.tokens import ZWNJ

_ONES = (
    "صفر یک دو سه چهار پنج شش هفت هشت نه ده یازده دوازده سیزده چهارده پانزده شانزده هفده هجده نوزده"
).split()
_TENS = "_ _ بیست سی چهل پنجاه شصت هفتاد هشتاد نود".split()
_HUNDREDS = "_ صد دویست سیصد چهارصد پانصد ششصد هفتصد هشتصد نهصد".split()
_SCALES = "_ هزار میلیون میلیارد تریلیون کوادریلیون".split()
_FRACTIONS = {1: "دهم", 2: "صدم", 3: "هزارم"}
_AND = " و "


# The words that numbers are made of, each of which has an ordinal.
NUMBER_WORDS = frozenset((*_ONES[1:], *_TENS[2:], *_HUNDREDS[1:], *_SCALES[1:]))


def cardinal(value: int) -> str:
    """Say a whole number: 1402 is "هزار و چهارصد و دو"."""
    if value < 0:
        return "منفی " + cardinal(-value)
    if value >= 1000 ** len(_SCALES):
        return spell_digits(str(value))
    if value == 0:
        return _ONES[0]
    groups = []
    for scale in _SCALES:
        value, group = divmod(value, 1000)
        if group:
            groups.append(_with_scale(group, scale))
    return _AND.join(reversed(groups))


def _with_scale(group: int, scale: str) -> str:
    # A thousand is never "one thousand"; a million is.
    if scale == "هزار" and group == 1:
        return scale
    words = _below_thousand(group)
    return words if scale == "_" else f"{words} {scale}"


def _below_thousand(value: int) -> str:
    hundreds, rest = divmod(value, 100)
    words = [_HUNDREDS[hundreds]] if hundreds else []
    if rest >= 20:
        words.append(_TENS[rest // 10])
        rest %= 10
    if rest:
        words.append(_ONES[rest])
    return _AND.join(words)


def is_number(word: str) -> bool:
    """Whether a word is a part of a number, cardinal or ordinal, or of "دو و نیم"."""
    stem = word.removesuffix("مین").removesuffix("م").removesuffix(f"{ZWNJ}ا")
    return not NUMBER_WORDS.isdisjoint((word, stem)) or word in ("سوم", "سومین", "نیم")


def ordinal(value: int) -> str:
    """Say an ordinal: 3 is "سوم", 30 "سی‌ام", 21 "بیست و یکم"."""
    words = cardinal(value)
    if words.endswith("سه"):
        return words[:-2] + "سوم"
    return words + (f"{ZWNJ}ام" if words.endswith("ی") else "م")


def decimal_words(text: str) -> str:
    """Say a decimal number: "3.14" is "سه ممیز چهارده صدم"."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    words = whole_number(whole or "0")
    if not fraction:
        return words
    if len(fraction) in _FRACTIONS:
        return f"{words} ممیز {cardinal(int(fraction))} {_FRACTIONS[len(fraction)]}"
    return f"{words} ممیز {spell_digits(fraction)}"


def whole_number(digits: str) -> str:
    """Say a string of digits, digit by digit where it starts with zero or is huge."""
    if len(digits) > 3 * len(_SCALES) or digits.startswith("0") and len(digits) > 1:
        return spell_digits(digits)
    return cardinal(int(digits))


def spell_digits(digits: str) -> str:
    """Say each digit by itself."""
    return " ".join(_ONES[int(digit)] for digit in digits)
