"""Russian."""

from myxtts.text.language import Language, SymbolWords, words

_ALPHABET = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"

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
    clock="{hour} {minute}",
    version=1,
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
