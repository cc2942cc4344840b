"""Japanese."""

from myxtts.text.language import Language, SymbolWords, span
from myxtts.text.languages.japanese.reading import Reader

_ALPHABET = span(0x3041, 0x3096) + span(0x30A1, 0x30FA) + "ー"

JAPANESE = Language(
    code="ja",
    name="Japanese",
    greeting="こんにちは。おげんきですか。",
    script="Kana",
    alphabet=_ALPHABET,
    is_open_script=True,
    espeak_voice="ja",
    open_reader=Reader,
    reader_packages=("fugashi", "unidic_lite"),
    reader_letters="\u3400-\u4dbf\u4e00-\u9fff",
    reader_extra="japanese",
    num2words_code="ja",
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
