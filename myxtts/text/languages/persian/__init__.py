"""Persian, whose letters, numbers and signs are read by rules of their own."""

from myxtts.text.language import Language, words
from myxtts.text.languages.persian.entrances import judge, open_reader, vowelise
from myxtts.text.languages.persian.expansion import expand
from myxtts.text.languages.persian.hard_sentences import HARD_SENTENCES
from myxtts.text.languages.persian.inventory import as_espeak_codes
from myxtts.text.languages.persian.latin import spell_latin
from myxtts.text.languages.persian.signs import say_lost_signs

PERSIAN = Language(
    code="fa",
    name="Persian",
    greeting="سلام، حال شما چطور است؟",
    script="Arabic",
    alphabet="آابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءئؤ\u064b\u200c",
    espeak_voice="fa",
    espeak_letters="\u0650",  # ends a word with an ezafe
    espeak_repairs=(("q1", "q"),),
    prepare=say_lost_signs,
    expand=expand,
    has_joiners=True,
    spell_latin=spell_latin,
    open_reader=open_reader,
    as_espeak_codes=as_espeak_codes,
    foreign_forms={"ي": "ی", "ى": "ی", "ك": "ک"},
    vowelise=vowelise,
    judge=judge,
    version=5,
    hard_sentences=HARD_SENTENCES,
    # Persian and Arabic are often typed without the letters that distinguish them.
    frequent_words=words(
        "و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شد شود بود دارد اما یا "
        "هر ما من او آنها پس بعد اگر چه همه دو سه کند کرده شده باشد شما روی بین هیچ باید دیگر "
        "وقتی چون پیش نیست هستند بودند خواهد"
    ),
)
