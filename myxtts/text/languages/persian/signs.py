"""Persian words for fractions and for the signs of arithmetic, where they stand at a number."""

import re

_FRACTIONS = {"½": "نیم", "⅓": "یک سوم", "⅔": "دو سوم", "¼": "یک چهارم", "¾": "سه چهارم"}
_FRACTIONS |= {"⅛": "یک هشتم"}
_FRACTION = re.compile(rf"(\d?)([{''.join(_FRACTIONS)}])")
# Another sign than the hyphen, which most often stands for "to" between numbers.
_MINUS = re.compile(r"(?<=[\d)])\s?\u2212\s?(?=[\d(])")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORDS = {
    "+": "به علاوه",
    "×": "ضربدر",
    "*": "ضربدر",
    "÷": "تقسیم بر",
    "=": "مساوی",
    "<": "کوچک\u200cتر از",
    ">": "بزرگ\u200cتر از",
    "≤": "کوچک\u200cتر یا مساوی",
    "≥": "بزرگ\u200cتر یا مساوی",
    "≠": "نامساوی",
    "≈": "تقریبا مساوی",
}


def say_lost_signs(text: str) -> str:
    """Say what is written like something else once a text's characters are unified."""
    text = _FRACTION.sub(_fraction, _DIRECTION.sub("", text))
    return _MINUS.sub(" منهای ", text)


def _fraction(match: re.Match[str]) -> str:
    whole = f"{match[1]} و " if match[1] else " "
    return f"{whole}{_FRACTIONS[match[2]]} "


def _sign(match: re.Match[str]) -> str:
    return f" {_WORDS[match[1]]} "


# (pattern, what to say): digits stay, for the rules after these. An equals sign needs a number
# at one side only: "x = 5", "2 + 2 = ?".
SIGN_RULES = (
    # A percentage is often typed with its sign before the number.
    (r"(?<!\d)(?<!\d )%\s?(\d[\d.,/]{0,20}(?:-\d[\d.,/]{0,20})?)(?<=\d)(?!\s?%)", r"\1%"),
    (r"(?<=\d) ?[-—] ?(?=\d+(?:\.\d+)? ?=)", " منهای "),
    (r"(?<=[\d)%]) ?([+×*÷<>≤≥≠≈]) ?(?=[(+-]?\d|\()", _sign),
    (r"(?<=[\d)%]) ?([=]) ?", _sign),
    (r" ?([=]) ?(?=[(+-]?\d)", _sign),
    (r"(?<![\w)])\+(?=\d)", "مثبت "),
)
