"""Dutch."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

DUTCH = Language(
    code="nl",
    name="Dutch",
    greeting="Hallo, hoe gaat het met je?",
    alphabet=LATIN + "áäèéëíïóöúü",
    espeak_voice="nl",
    num2words_code="nl",
    months=(
        *"januari februari maart april mei juni".split(),
        *"juli augustus september oktober november december".split(),
    ),
    ordinal_marks=dict.fromkeys(("e", "de", "ste"), ("", "")),
    says_hundreds=True,
    clock="{hour} uur {minute}",
    full_hour="{hour} uur",
    version=2,
    abbreviation_words={
        "Dr.": "doctor",
        "dr.": "doctor",
        "dhr.": "de heer",
        "mevr.": "mevrouw",
        "mw.": "mevrouw",
        "prof.": "professor",
        "bijv.": "bijvoorbeeld",
        "enz.": "enzovoort",
        "ca.": "circa",
    },
    symbol_words=SymbolWords(
        minus="min",
        point="komma",
        percent="{} procent",
        ampersand="en",
        dollar="dollar",
        euro="euro",
        pound="pond",
        has_decimal_comma=True,
    ),
    abbreviations=words("dhr mevr mw dr drs prof mr bijv ca"),
    frequent_words=words(
        "de het een en van ik te dat die in is je niet zijn op aan met als voor had er maar om "
        "hem dan zou of wat mijn men dit zo door over ze zich bij ook tot mij uit der daar haar "
        "naar heb hoe heeft hebben deze u want nog zal me zij nu ge geen omdat iets worden toch "
        "al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja eens hier wie "
        "werd altijd doch wordt wezen kunnen ons zelf tegen na reeds wil kon niets uw iemand "
        "geweest andere was hij wij jij jullie we heel erg goed moeten gaan komen weer waar "
        "waarom tussen nooit twee drie jaar dag man huis tijd leven eerste deed zei"
    ),
)
