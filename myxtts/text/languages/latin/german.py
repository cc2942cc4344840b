"""German."""

import re

from myxtts.text.language import LATIN, Language, SymbolWords, words

_BEFORE_DATIVE = "ab an auf aus bei in mit nach seit unter von vor zu anfang ende mitte".split()
# Nouns that ordinals often stand before, by gender.
_MASCULINE = "geburtstag platz rang satz spieltag stock tag teil versuch weltkrieg".split()
_FEMININE = (
    "auflage bundesliga etage folge generation halbzeit klasse liga minute person phase reihe "
    "runde staffel stelle strophe stufe stunde woche".split()
)
_NEUTER = "jahr jahrhundert jahrtausend kapitel mal obergeschoss quartal semester".split()
# "So. 3" may be the end of a sentence; before the day of a date or a time, it is Sunday.
_WEEKDAYS = {
    **{"Mo": "Montag", "Di": "Dienstag", "Mi": "Mittwoch", "Do": "Donnerstag", "Fr": "Freitag"},
    **{"Sa": "Samstag", "So": "Sonntag"},
}
_WEEKDAY = re.compile(
    rf"\b({'|'.join(_WEEKDAYS)})\.(?=,? (?:den )?\d{{1,2}}(?::\d\d|\. ?(?:\d{{1,2}}\.|[^\W\d])))"
)


def _prepare(text: str) -> str:
    """Tell "Fr. 3. Mai", a Friday, and "Fr. 20", an amount in francs, from "Fr. Meier"."""
    text = _WEEKDAY.sub(lambda match: _WEEKDAYS[match[1]], text)
    return re.sub(r"\bFr\.(?= ?\d)", "Franken", text)


GERMAN = Language(
    code="de",
    name="German",
    greeting="Hallo, wie geht es dir?",
    alphabet=LATIN + "ßäöü",
    espeak_voice="de",
    num2words_code="de",
    months=(
        *"januar februar märz april mai juni".split(),
        *"juli august september oktober november dezember".split(),
    ),
    day_endings={
        "": "r",
        **dict.fromkeys("der dieser jeder das ins dieses die diese eine jede".split(), ""),
        **dict.fromkeys("am beim im vom zum zur dem den des bis ab seit".split(), "n"),
        **dict.fromkeys("diesem diesen einem einen einer eines jedem jeden".split(), "n"),
        **dict.fromkeys((f"{one} der" for one in _BEFORE_DATIVE), "n"),
    },
    noun_endings={
        **dict.fromkeys(_MASCULINE, "r"),
        **dict.fromkeys(_FEMININE, ""),
        **dict.fromkeys(_NEUTER, "s"),
    },
    prepare=_prepare,
    says_hundreds=True,
    date="{ordinal} {month} {year}",
    clock="{hour} uhr {minute}",
    full_hour="{hour} uhr",
    version=3,
    abbreviation_words={
        "Dr.": "doktor",
        "Prof.": "professor",
        "Hr.": "herr",
        "Fr.": "frau",
        "Frl.": "fräulein",
        "St.": "sankt",
        "Nr.": "nummer",
        "Str.": "straße",
        "bzw.": "beziehungsweise",
        "ca.": "circa",
        "usw.": "und so weiter",
        "evtl.": "eventuell",
        "ggf.": "gegebenenfalls",
        "inkl.": "inklusive",
        "vgl.": "vergleiche",
        "z. B.": "zum beispiel",
        "z.B.": "zum beispiel",
        "d. h.": "das heißt",
        "d.h.": "das heißt",
    },
    symbol_words=SymbolWords(
        minus="minus",
        point="komma",
        percent="{} prozent",
        ampersand="und",
        dollar="dollar",
        euro="euro",
        pound="pfund",
        has_decimal_comma=True,
    ),
    abbreviations=words("hr hrn fr frl dr prof st bzw ca evtl ggf inkl sog vgl zzgl"),
    has_dotted_ordinals=True,
    frequent_words=words(
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch "
        "es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über "
        "einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde sei hatte "
        "kann gegen vom können schon wenn habe seine mark ihre dann unter wir soll ich eines "
        "jahr zwei diese dieser wieder keine seiner worden will zwischen immer was sagte gibt "
        "alle doch jetzt etwas weil mir mich dir dich ihm ihn ihr uns euch mein dein kein sehr "
        "hier dort wo wer warum jedoch damit ohne heute morgen abend abends muss müssen kannst "
        "hast bist du hab gehen gehe kommen gewesen würde wäre ganz ja nein viel viele andere "
        "anderen nichts"
    ),
)
