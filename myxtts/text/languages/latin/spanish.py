"""Spanish."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

# After these a number stands by itself: "treinta y uno de mayo".
_NOT_COUNTED = frozenset(
    "a al como con de del e el en es la más menos o para por que son u y".split()
)


def _agree(number: str, following: str) -> str:
    """Say "veintiún libros" and "veintiuna casas": the ending tells the gender well enough."""
    if not number.endswith("uno") or following in _NOT_COUNTED:
        return number
    if following.endswith(("a", "as")):
        return number[:-1] + "a"
    return number[:-3] + "ún" if number.endswith("veintiuno") else number[:-1]


SPANISH = Language(
    code="es",
    name="Spanish",
    greeting="Hola, ¿cómo estás?",
    alphabet=LATIN + "áéíñóúü",
    espeak_voice="es",
    num2words_code="es",
    months=(
        *"enero febrero marzo abril mayo junio".split(),
        *"julio agosto septiembre octubre noviembre diciembre".split(),
    ),
    ordinal_marks={"º": ("", ""), "ª": ("o", "a"), ".º": ("", ""), ".ª": ("o", "a")},
    ordinals_before_nouns={"primero": "primer", "tercero": "tercer"},
    agree=_agree,
    date="{day} de {month} de {year}",
    clock="{hour} {minute}",
    version=2,
    abbreviation_words={
        "Sr.": "señor",
        "Sra.": "señora",
        "Srta.": "señorita",
        "Dr.": "doctor",
        "Dra.": "doctora",
        "Prof.": "profesor",
        "Ud.": "usted",
        "Uds.": "ustedes",
        "etc.": "etcétera",
        "p. ej.": "por ejemplo",
    },
    symbol_words=SymbolWords(
        minus="menos",
        point="coma",
        percent="{} por ciento",
        ampersand="y",
        dollar="dólares",
        euro="euros",
        pound="libras",
        has_decimal_comma=True,
    ),
    abbreviations=words("sr sra srta dr dra prof ud uds d dña av"),
    frequent_words=words(
        "de la que el en y a los del se las por un para con no una su al lo como más pero sus le "
        "ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien "
        "desde todo nos durante todos uno les ni contra otros ese eso ante ellos e esto mí antes "
        "algunos qué unos yo otro otras otra él tanto esa estos mucho quienes nada muchos cual "
        "poco ella estar estas algunas algo nosotros mi mis tú te ti tu tus ellas es son era "
        "eran fue fueron ser está están estaba ha han había tiene tienen hacer hace puede pueden "
        "así bien aquí ahora siempre después cada aunque mientras dijo años día hombre vez dos "
        "tres casa nunca usted ustedes señor soy eres somos"
    ),
)
