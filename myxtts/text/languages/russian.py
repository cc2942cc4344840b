"""Russian."""

import re

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
# Before these a number stands by itself.
_NOT_COUNTED = words(
    "а без был была были было в во вы где для до если есть за и из или их к как когда ли либо "
    "между мы на над не нет ни но о об он она они оно от перед по под при с со так там то только "
    "ты у уже чтобы это я"
)
# After these it is a name: "глава два книги".
_NUMBERED = re.compile(
    "(?:вариант|верси|глав|групп|номер|пункт|раздел|рисун|сери|сезон|стать|страниц|таблиц|том|"
    r"уров|урок|част|шаг|этап)\w{0,2}"
)
# An end in -а is a feminine as often as a genitive: "двадцать первого века".
_FEMININE = words(
    "буква глава голова группа девочка девушка задача звезда игра картина квартира книга комната "
    "команда копейка кошка минута нога неделя ночь ошибка песня победа птица рука рыба секунда "
    "семья собака статья сторона страна страница строка точка тысяча улица часть школа штука "
    "машина женщина монета попытка"
)
_ACCUSATIVE = {"у": "а", "ю": "я"}


def _year(year: int) -> str:
    return genitive_year(year, _ORDINALS, _CENTURIES, "года")


def _agree(number: str, following: str, before: str) -> str:
    """Say "двадцать одна книга", "одну минуту" and "две книги", by endings and a list."""
    *head, last = number.split(" ")
    if following in _NOT_COUNTED or _NUMBERED.fullmatch(before):
        return number
    if last == "один":
        last = _one(following)
    elif last == "два" and following.endswith(("и", "ы")):
        last = "две"
    return " ".join([*head, last])


def _one(following: str) -> str:
    """Say one before a noun, or before an adjective."""
    if following in _FEMININE or following.endswith(("ая", "ия")):
        return "одна"
    nominative = following[:-1] + _ACCUSATIVE.get(following[-1], "")
    if nominative in _FEMININE or following.endswith(("ую", "ию")):
        return "одну"
    is_neuter = following.endswith(("о", "ое")) and not following.endswith("го")
    return "одно" if is_neuter else "один"


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
    version=3,
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
