"""Japanese dates, times and acronyms in katakana, whose sounds change with the number."""

import re

_DIGITS = ["", *"イチ ニ サン ヨン ゴ ロク ナナ ハチ キュウ".split()]
_HUNDREDS = ["", *"ヒャク ニヒャク サンビャク ヨンヒャク ゴヒャク ロッピャク ナナヒャク".split()]
_HUNDREDS += ["ハッピャク", "キュウヒャク"]
_THOUSANDS = ["", "セン", "ニセン", "サンゼン", "ヨンセン", "ゴセン", "ロクセン", "ナナセン"]
_THOUSANDS += ["ハッセン", "キュウセン"]
_MONTHS = "イチ ニ サン シ ゴ ロク シチ ハチ ク ジュウ ジュウイチ ジュウニ".split()
_DAYS = (
    "ツイタチ フツカ ミッカ ヨッカ イツカ ムイカ ナノカ ヨウカ ココノカ トオカ ジュウイチニチ "
    "ジュウニニチ ジュウサンニチ ジュウヨッカ ジュウゴニチ ジュウロクニチ ジュウシチニチ "
    "ジュウハチニチ ジュウクニチ ハツカ ニジュウイチニチ ニジュウニニチ ニジュウサンニチ "
    "ニジュウヨッカ ニジュウゴニチ ニジュウロクニチ ニジュウシチニチ ニジュウハチニチ "
    "ニジュウクニチ サンジュウニチ サンジュウイチニチ".split()
)
# Digits that have another form before "o'clock", "year" and "minutes".
_OF_HOURS = {4: "ヨ", 7: "シチ", 9: "ク"}
_OF_YEARS = {4: "ヨ"}
_MINUTES = [
    "",
    *"イップン ニフン サンプン ヨンプン ゴフン ロップン ナナフン ハップン キュウフン".split(),
]
_LETTERS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "エー ビー シー ディー イー エフ ジー エイチ アイ ジェー ケー エル エム エヌ オー ピー "
        "キュー アール エス ティー ユー ブイ ダブリュー エックス ワイ ゼット".split(),
        strict=True,
    )
)
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,6}(?![A-Za-z])")
_YEAR = re.compile(r"(?<!\d)(\d{3,4}) ?(?:年|ねん)")
_MONTH = re.compile(r"(?<!\d)(\d{1,2}) ?(?:月|がつ)")
_DAY = re.compile(r"(?<!\d)(\d{1,2}) ?(?:日(?![間本])|にち)")
_HOUR = re.compile(r"(?<!\d)(\d{1,2}) ?(?:時(?!間)|じ(?!かん))")
_MINUTE = re.compile(r"(?<!\d)(\d{1,2}) ?(?:分|ふん|ぷん)")
_FRACTION = re.compile(r"(?<![\d.])(\d{1,4}) ?分の ?(\d{1,4})(?![\d.])")
# The first of a month is another word than one day: "5月1日" and "1日3回".
_FIRST_OF_MONTH = re.compile(
    r"(?:(?<=月)|(?<=ガツ)) ?1 ?(?:日(?![間目本])|にち)|(?<!\d)1 ?日(?= ?[(（][月火水木金土日])"
)
_ONE_DAY = re.compile(r"(?<!\d)1 ?(?:日(?![間本])|にち)")
_MINUS = re.compile(r"(?<![\dA-Za-z)-])-(?=\d)")
_LAST_HOUR, _LAST_MINUTE = 24, 59


def say_signs(text: str) -> str:
    """Say the minus before a number, where no space stands before it, and the degrees behind it."""
    return _MINUS.sub("マイナス", text).replace("℃", "度")


def say_dates_in_kana(text: str) -> str:
    """Write years, months, days, hours, minutes and acronyms in katakana."""
    text = _ACRONYM.sub(lambda m: "".join(_LETTERS[letter] for letter in m[0]), text)
    text = _YEAR.sub(lambda m: kana(int(m[1]), _OF_YEARS) + "ネン", text)
    text = _MONTH.sub(lambda m: _listed(m, _MONTHS, "ガツ"), text)
    text = _FIRST_OF_MONTH.sub("ツイタチ", text)
    text = _ONE_DAY.sub("イチニチ", text)
    text = _DAY.sub(lambda m: _listed(m, _DAYS, ""), text)
    text = _HOUR.sub(_hour, text)
    text = _FRACTION.sub(_fraction, text)
    return _MINUTE.sub(_minute, text)


def kana(number: int, last: dict[int, str] | None = None) -> str:
    """Say 1 to 9999; `last` has the digits with another form at the end."""
    thousands, rest = divmod(number, 1000)
    hundreds, rest = divmod(rest, 100)
    tens, ones = divmod(rest, 10)
    ten = (_DIGITS[tens] if tens > 1 else "") + "ジュウ" if tens else ""
    end = (last or {}).get(ones, _DIGITS[ones])
    return _THOUSANDS[thousands] + _HUNDREDS[hundreds] + ten + end


def _listed(match: re.Match[str], names: list[str], suffix: str) -> str:
    number = int(match[1])
    return names[number - 1] + suffix if 1 <= number <= len(names) else match[0]


def _hour(match: re.Match[str]) -> str:
    number = int(match[1])
    if number > _LAST_HOUR:
        return match[0]
    return (kana(number, _OF_HOURS) if number else "レイ") + "ジ"


def _fraction(match: re.Match[str]) -> str:
    parts, part = int(match[1]), int(match[2])
    return f"{kana(parts)}ブンノ{kana(part)}" if parts and part else match[0]


def _minute(match: re.Match[str]) -> str:
    number = int(match[1])
    if not 0 < number <= _LAST_MINUTE:
        return match[0]
    tens, ones = divmod(number, 10)
    if not ones:
        return (_DIGITS[tens] if tens > 1 else "") + "ジュップン"
    return (kana(10 * tens) if tens else "") + _MINUTES[ones]
