"""German."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

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
        **dict.fromkeys("der dieser jeder".split(), ""),
        **dict.fromkeys("am vom zum dem den bis ab des seit".split(), "n"),
    },
    says_hundreds=True,
    date="{ordinal}r {month} {year}",
    clock="{hour} uhr {minute}",
    full_hour="{hour} uhr",
    version=2,
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
