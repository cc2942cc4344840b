"""Hungarian."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

_DAYS = (
    "elseje másodika harmadika negyedike ötödike hatodika hetedike nyolcadika kilencedike "
    "tizedike tizenegyedike tizenkettedike tizenharmadika tizennegyedike tizenötödike "
    "tizenhatodika tizenhetedike tizennyolcadika tizenkilencedike huszadika huszonegyedike "
    "huszonkettedike huszonharmadika huszonnegyedike huszonötödike huszonhatodika "
    "huszonhetedike huszonnyolcadika huszonkilencedike harmincadika harmincegyedike".split()
)

HUNGARIAN = Language(
    code="hu",
    name="Hungarian",
    greeting="Szia, hogy vagy?",
    alphabet=LATIN + "áéíóöúüőű",
    espeak_voice="hu",
    num2words_code="hu",
    months=(
        *"január február március április május június".split(),
        *"július augusztus szeptember október november december".split(),
    ),
    date="{year} {month} {day}",
    days=dict(enumerate(_DAYS, start=1)),
    clock="{hour} óra {minute}",
    full_hour="{hour} óra",
    version=2,
    abbreviation_words={
        "Dr.": "doktor",
        "dr.": "doktor",
        "prof.": "professzor",
        "pl.": "például",
        "stb.": "és a többi",
        "kb.": "körülbelül",
        "ill.": "illetve",
    },
    symbol_words=SymbolWords(
        minus="mínusz",
        point="egész",
        percent="{} százalék",
        ampersand="és",
        dollar="dollár",
        euro="euró",
        pound="font",
        has_decimal_comma=True,
    ),
    abbreviations=words("dr prof pl ill ún ifj"),
    has_dotted_ordinals=True,
    has_plain_ordinals=True,
    frequent_words=words(
        "a az és hogy nem is egy ez de van volt csak már meg azt ha mint ezt el ő te én mi ti ők "
        "még mert vagy kell lesz lehet minden ki be fel le át nagyon itt ott most akkor aki ami "
        "amely ahol amikor mit után előtt között alatt fölött nélkül volna lenne voltak vannak "
        "vagyok vagyunk lett egyik másik más sok kevés jó nagy két három év nap ember idő ház "
        "élet ma tegnap holnap soha mindig semmi valami valaki senki úgy így olyan ilyen hát "
        "igen pedig azonban tehát szerint által neki nekem neked őket engem téged magát saját "
        "első új ne sem sincs nincs tudom kérem"
    ),
)
