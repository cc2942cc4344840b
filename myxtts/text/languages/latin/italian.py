"""Italian."""

import re

from myxtts.text.language import LATIN, Language, SymbolWords, words

_MONTHS = (
    *"gennaio febbraio marzo aprile maggio giugno".split(),
    *"luglio agosto settembre ottobre novembre dicembre".split(),
)
# Before a month, and before a few nouns that are counted so, the sign of degrees is an ordinal's.
_COUNTED = "anno giorno grado livello piano posto premio secolo turno".split()
_ORDINAL = re.compile(rf"(?i)(?<=\d)°(?= (?:{'|'.join((*_MONTHS, *_COUNTED))})\b)")
_DEGREES = re.compile(r"(?<![\d.,])(\d+(?:[.,]\d+)*)\s?°(?:\s?([CF])\b)?")
_SCALES = {"C": " Celsius", "F": " Fahrenheit"}


def _prepare(text: str) -> str:
    """Tell degrees from ordinals: "30°" and "1° maggio"."""
    return _DEGREES.sub(_degrees, _ORDINAL.sub("º", text))


def _degrees(match: re.Match[str]) -> str:
    words = "un grado" if match[1] == "1" else f"{match[1]} gradi"
    return words + _SCALES.get(match[2], "")


ITALIAN = Language(
    code="it",
    name="Italian",
    greeting="Ciao, come stai?",
    alphabet=LATIN + "àèéìíîòóùú",
    espeak_voice="it",
    num2words_code="it",
    prepare=_prepare,
    months=_MONTHS,
    ordinal_marks={"º": ("", ""), "ª": ("o", "a")},
    days={1: "primo"},
    clock="{hour} e {minute}",
    version=3,
    abbreviation_words={
        "Sig.": "signor",
        "Sig.ra": "signora",
        "Dott.": "dottor",
        "dott.": "dottor",
        "Dott.ssa": "dottoressa",
        "Prof.": "professor",
        "Avv.": "avvocato",
        "ecc.": "eccetera",
    },
    symbol_words=SymbolWords(
        minus="meno",
        point="virgola",
        percent="{} per cento",
        ampersand="e",
        dollar="dollari",
        euro="euro",
        pound="sterline",
        has_decimal_comma=True,
    ),
    abbreviations=words("sig sigg dott prof avv ing geom"),
    frequent_words=words(
        "di che è e la il un a per in non una sono mi ho si ma ha lo cosa con le ti da se come "
        "no ci questo qui hai sei del bene tu sì me più al mio perché solo so te era gli tutto "
        "della così mia fatto detto quando chi va suo loro quello io stato ora niente anche nel "
        "alla prima sua dei delle degli allo alle dal dalla nella nelle sul sulla sulle questa "
        "questi queste quella quelli molto poi noi voi lui lei essere avere fare dove ancora "
        "sempre mai senza tra fra dopo ogni altro altra altri altre due tre anni giorno uomo "
        "casa vita tempo hanno aveva erano fu può siamo siete abbiamo c'è cos'è dell'altro "
        "l'altro perciò quindi però oggi già tutti tutte ed"
    ),
)
