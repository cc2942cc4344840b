"""Japanese."""

from myxtts.text.dates import say_dates, say_times
from myxtts.text.language import Language, SymbolWords, span
from myxtts.text.languages.japanese.counters import say_counted
from myxtts.text.languages.japanese.numbers import say_dates_in_kana, say_signs
from myxtts.text.languages.japanese.reading import Reader
from myxtts.text.numbers import expand_numbers

_ALPHABET = span(0x3041, 0x3096) + span(0x30A1, 0x30FA) + "ー"

# What numbers are written with; without its reader, a voice has to find them in kana.
_NUMERALS = dict(
    pair.split(":")
    for pair in (
        "零:れい 一:いち 二:に 三:さん 四:よん 五:ご 六:ろく 七:なな 八:はち 九:きゅう 十:じゅう "
        "百:ひゃく 千:せん 万:まん 億:おく 兆:ちょう 点:てん"
    ).split()
)


def _expand(text: str) -> str:
    text = say_times(say_dates(say_signs(text), JAPANESE), JAPANESE)
    return expand_numbers(say_counted(say_dates_in_kana(text)), JAPANESE)


JAPANESE = Language(
    code="ja",
    name="Japanese",
    greeting="こんにちは。おげんきですか。",
    script="Kana",
    alphabet=_ALPHABET,
    is_open_script=True,
    espeak_voice="ja",
    espeak_spellings=_NUMERALS,
    expand=_expand,
    open_reader=Reader,
    reader_packages=("fugashi", "unidic_lite"),
    reader_letters="\u3400-\u4dbf\u4e00-\u9fff",
    reader_extra="japanese",
    num2words_code="ja",
    months=(
        *"1がつ 2がつ 3がつ 4がつ 5がつ 6がつ".split(),
        *"7がつ 8がつ 9がつ 10がつ 11がつ 12がつ".split(),
    ),
    date="{year}ねん{month}{day}にち",
    clock="{hour}じ{minute}ふん",
    full_hour="{hour}じ",
    version=4,
    symbol_words=SymbolWords(
        minus="マイナス",
        point="点",
        percent="{}パーセント",
        ampersand="と",
        dollar="ドル",
        euro="ユーロ",
        pound="ポンド",
    ),
)
