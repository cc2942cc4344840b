"""Russian."""

from myxtts.text.language import Language, SymbolWords, words
from myxtts.text.languages.ordinals import genitive_ordinals, genitive_year

_ALPHABET = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"

_UNITS = "первого второго третьего четвёртого пятого шестого седьмого восьмого девятого".split()
_TEENS = (
    "десятого одиннадцатого двенадцатого тринадцатого четырнадцатого пятнадцатого шестнадцатого "
    "семнадцатого восемнадцатого девятнадцатого".split()
)
_TENS = (
    "двадцатого тридцатого сорокового пятидесятого шестидесятого семидесятого восьмидесятого "
    "девяностого".split()
)
_BEFORE_UNITS = (
    "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто".split()
)
_ORDINALS = genitive_ordinals(_UNITS, _TEENS, _TENS, _BEFORE_UNITS)
_CENTURIES = {
    18: ("тысяча восьмисотого", "тысяча восемьсот"),
    19: ("тысяча девятисотого", "тысяча девятьсот"),
    20: ("двухтысячного", "две тысячи"),
}
_NOT_COUNTED = frozenset("а в во и из к на о от по с у я".split())


def _year(year: int) -> str:
    return genitive_year(year, _ORDINALS, _CENTURIES, "года")


def _agree(number: str, following: str) -> str:
    """Say "двадцать одна книга" and "две книги": endings tell the gender well enough."""
    *head, last = number.split(" ")
    if following in _NOT_COUNTED:
        return number
    if last == "один" and following.endswith(("а", "я")):
        last = "одна"
    elif last == "один" and following.endswith(("о", "е")):
        last = "одно"
    elif last == "два" and following.endswith(("и", "ы")):
        last = "две"
    return " ".join([*head, last])


RUSSIAN = Language(
    code="ru",
    name="Russian",
    greeting="Привет, как дела?",
    script="Cyrillic",
    alphabet=_ALPHABET,
    espeak_voice="ru",
    espeak_repairs=(('u"', "ʉ"), ("^", "")),
    num2words_code="ru",
    months=(
        *"января февраля марта апреля мая июня".split(),
        *"июля августа сентября октября ноября декабря".split(),
    ),
    days=_ORDINALS,
    year_words=_year,
    ordinal_marks=dict.fromkeys(("-й", "-ый", "-ий"), ("", "")),
    agree=_agree,
    number_repairs=(("^одна (?=тысяча)", ""),),
    clock="{hour} {minute}",
    version=2,
    abbreviation_words={
        "Проф.": "профессор",
        "проф.": "профессор",
        "напр.": "например",
        "см.": "смотри",
        "акад.": "академик",
        "т. е.": "то есть",
        "т.е.": "то есть",
        "т. д.": "так далее",
        "т.д.": "так далее",
        "т. п.": "тому подобное",
    },
    symbol_words=SymbolWords(
        minus="минус",
        point="запятая",
        percent="{} процентов",
        ampersand="и",
        dollar="долларов",
        euro="евро",
        pound="фунтов",
        has_decimal_comma=True,
    ),
    abbreviations=words("г ул им проф см напр акад обл гр"),
)
