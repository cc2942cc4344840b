"""Spanish."""

import re

from myxtts.text.language import LATIN, Language, SymbolWords, words

# Before these a number stands by itself: "treinta y uno de mayo".
_NOT_COUNTED = words(
    "a al ante como con contra cuando de del desde donde e el en entre era es está están fue ha "
    "hacia han hasta hay la más menos ni o para pero por que se según si sin sino sobre son "
    "también tras u y ya"
)
# After these it is a name: "el capítulo uno explica".
_NUMBERED = words(
    "acto apartado art artículo canal cap capítulo caso día ejercicio escena fase figura grupo "
    "habitación lección línea nivel no núm número opción pág página parte paso pregunta puerta "
    "punto sala sección tabla tema tomo unidad versión volumen vuelo º"
)
_MASCULINE = words(
    "aroma cinema clima cometa diagrama dilema diploma dogma drama día enigma esquema estigma "
    "fantasma gorila idioma lema mapa mediodía panorama pijama planeta poema poeta prisma problema "
    "programa sistema síntoma telegrama tema tranvía trauma"
)
_FEMININE = words(
    "calle clase flor foto frase imagen imágenes ley leyes llave luz luce mano moto mujer "
    "nave noche nube parte radio red serie tarde vez vece voz voce"
)
_FEMININE_END = re.compile(r"\w+(?:[cgstx]ión|[cgstx]iones|[dt]ad(?:es)?|tud(?:es)?|as?)")
_STRESSED_A = words("agua alma ancla arma aula hacha hada hambre águila área")


def _agree(number: str, following: str, before: str) -> str:
    """Say "veintiún libros" and "veintiuna casas", by the ending of the noun and lists."""
    if following in _NOT_COUNTED or before in _NUMBERED:
        return number
    if _is_feminine(following) and not (number == "uno" and following in _STRESSED_A):
        number = number if "mil" in number else re.sub(r"(cient|quinient)os\b", r"\1as", number)
        return re.sub("uno$", "una", number)
    if not number.endswith("uno"):
        return number
    return number[:-3] + "ún" if number.endswith("veintiuno") else number[:-1]


def _is_feminine(noun: str) -> bool:
    one = noun.removesuffix("s")
    if one in _MASCULINE or noun in _MASCULINE:
        return False
    return bool({noun, one, noun.removesuffix("es")} & _FEMININE or _FEMININE_END.fullmatch(noun))


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
    hours={1: "una", 21: "veintiuna"},
    version=3,
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
