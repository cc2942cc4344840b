"""Korean numbers that num2words does not know: native ones before counters, months, letters."""

import re

from myxtts.text.numbers import set_apart

_UNITS = ["", *"한 두 세 네 다섯 여섯 일곱 여덟 아홉".split()]
_TENS = ["", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"]
# What is counted with native numbers; months of a duration and other units take Chinese ones.
_COUNTER = (
    "시간|시(?![장민대위도내청])|살|명(?![가-힣]{2})|개(?![월국년])|권|마리|병(?!원)|잔|송이|켤레|"
    "벌|채(?!널)|그루|사람|가지|군데|달(?!러)"
)
_COUNTED = re.compile(rf"(?<![\d.,제])(?<!제 )(\d{{1,2}})(?=\s?(?:{_COUNTER}))")
_MONTHS = re.compile(r"(?<!\d)(6|10)\s?월(?![요])")
_ACRONYM = re.compile(r"(?<![A-Za-z])[A-Z]{2,6}(?![A-Za-z])")
_LETTERS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "에이 비 시 디 이 에프 지 에이치 아이 제이 케이 엘 엠 엔 오 피 큐 아르 에스 티 유 브이 "
        "더블유 엑스 와이 제트".split(),
        strict=True,
    )
)
_PHONE = re.compile(r"(?<![\d.,-])(?:0\d{1,2}-\d{3,4}|1\d{3})-\d{4}(?![\d-])")
_DIGITS = "공일이삼사오육칠팔구"
_LAST_HOUR = 12  # later ones are Chinese: 십사 시


def say_counted(text: str) -> str:
    """Write native numbers before counters, irregular months, telephone numbers, and acronyms."""
    text = _ACRONYM.sub(lambda match: "".join(_LETTERS[letter] for letter in match[0]), text)
    text = _PHONE.sub(_phone, text)
    text = _MONTHS.sub(lambda match: "유월" if match[1] == "6" else "시월", text)
    return _COUNTED.sub(_say, text)


def _say(match: re.Match[str]) -> str:
    number, rest = int(match[1]), match.string[match.end() :].lstrip()
    is_hour = rest.startswith("시") and not rest.startswith("시간")
    if not number or is_hour and number > _LAST_HOUR:
        return match[0]
    return set_apart(match, native(number))


def _phone(match: re.Match[str]) -> str:
    """Say the digits of a telephone number, with a pause between its groups."""
    digits = "".join(_DIGITS[int(sign)] if sign.isdigit() else ", " for sign in match[0])
    return set_apart(match, digits)


def native(number: int) -> str:
    """Say 1 to 99 as before a counter: 21 is 스물한."""
    if number == 20:
        return "스무"
    return _TENS[number // 10] + _UNITS[number % 10]
