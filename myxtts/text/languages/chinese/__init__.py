"""Chinese."""

from myxtts.text.dates import say_dates, say_times
from myxtts.text.language import LATIN, Language, SymbolWords
from myxtts.text.languages.chinese.numbers import say_signs, say_years
from myxtts.text.languages.chinese.reading import Reader
from myxtts.text.numbers import expand_numbers


def _expand(text: str) -> str:
    text = say_times(say_dates(say_signs(text), CHINESE), CHINESE)
    return expand_numbers(say_years(text), CHINESE)


CHINESE = Language(
    code="zh-cn",
    name="Chinese",
    greeting="你好，你好吗？",
    script="Han",
    alphabet=LATIN,
    is_open_script=True,
    espeak_voice="cmn",
    expand=_expand,
    open_reader=Reader,
    reader_packages=("jieba", "pypinyin"),
    espeak_repairs=(
        ("s.", "ʂ"),
        ("i.", "ɨ"),
        ("o-", "ɤ"),
        ("o͡n͡ɡ", "oŋ"),
        ("ə͡r", "ɚ"),
        ("ɜ", "3"),  # the third tone; espeak's IPA gives tones one and four the same sign
    ),
    espeak_letters="\u3400-\u4dbf\u4e00-\u9fff",
    months=(
        *"1月 2月 3月 4月 5月 6月".split(),
        *"7月 8月 9月 10月 11月 12月".split(),
    ),
    date="{year}年{month}{day}日",
    clock="{hour}点{minute}分",
    full_hour="{hour}点",
    version=4,
    symbol_words=SymbolWords(
        minus="负",
        point="点",
        percent="百分之{}",
        ampersand="和",
        dollar="美元",
        euro="欧元",
        pound="英镑",
    ),
)
