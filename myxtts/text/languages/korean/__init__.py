"""Korean."""

from myxtts.text.dates import say_dates, say_times
from myxtts.text.language import Language, SymbolWords, span
from myxtts.text.languages.korean.numbers import say_counted
from myxtts.text.languages.korean.reading import Reader
from myxtts.text.numbers import expand_numbers

# Conjoining jamo: the tokenizer takes Korean syllables apart, 67 symbols instead of 11,172.
_ALPHABET = span(0x1100, 0x1112) + span(0x1161, 0x1175) + span(0x11A8, 0x11C2)


def _expand(text: str) -> str:
    return expand_numbers(say_counted(say_times(say_dates(text, KOREAN), KOREAN)), KOREAN)


KOREAN = Language(
    code="ko",
    name="Korean",
    greeting="안녕하세요, 잘 지내세요?",
    script="Hangul",
    alphabet=_ALPHABET,
    is_open_script=True,
    espeak_voice="ko",
    espeak_repairs=(*((f"{letter}-", f"{letter}\u0348") for letter in "kpqst"), ("ʃh", "ʃʰ")),
    espeak_letters="\uac00-\ud7a3",
    open_reader=Reader,
    expand=_expand,
    num2words_code="ko",
    months=(
        *"1월 2월 3월 4월 5월 6월".split(),
        *"7월 8월 9월 10월 11월 12월".split(),
    ),
    date="{year}년 {month} {day}일",
    clock="{hour}시 {minute}분",
    full_hour="{hour}시",
    version=3,
    symbol_words=SymbolWords(
        minus="마이너스",
        point="점",
        percent="{} 퍼센트",
        ampersand="그리고",
        dollar="달러",
        euro="유로",
        pound="파운드",
    ),
)
