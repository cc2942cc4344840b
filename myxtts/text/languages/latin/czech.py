"""Czech."""

from myxtts.text.language import LATIN, Language, SymbolWords, words
from myxtts.text.languages.ordinals import genitive_ordinals

_UNITS = "prvního druhého třetího čtvrtého pátého šestého sedmého osmého devátého".split()
_TEENS = (
    "desátého jedenáctého dvanáctého třináctého čtrnáctého patnáctého šestnáctého sedmnáctého "
    "osmnáctého devatenáctého".split()
)
_DAYS = genitive_ordinals(_UNITS, _TEENS, ["dvacátého", "třicátého"])

# num2words joins the words of hundreds.
_HUNDREDS = "dvě(?=stě)|(tři|čtyři)(?=sta)|(pět|šest|sedm|osm|devět)(?=set)"

CZECH = Language(
    code="cs",
    name="Czech",
    greeting="Ahoj, jak se máš?",
    alphabet=LATIN + "áéíóúýčďěňřšťůž",
    espeak_voice="cs",
    num2words_code="cs",
    months=(
        *"ledna února března dubna května června".split(),
        *"července srpna září října listopadu prosince".split(),
    ),
    number_repairs=((_HUNDREDS, r"\g<0> "),),
    days=_DAYS,
    clock="{hour} {minute}",
    version=2,
    abbreviation_words={
        "Dr.": "doktor",
        "prof.": "profesor",
        "např.": "například",
        "tzv.": "takzvaný",
        "tj.": "to jest",
        "atd.": "a tak dále",
        "apod.": "a podobně",
        "č.": "číslo",
    },
    symbol_words=SymbolWords(
        minus="minus",
        point="celá",
        percent="{} procent",
        ampersand="a",
        dollar="dolarů",
        euro="eur",
        pound="liber",
        has_decimal_comma=True,
    ),
    abbreviations=words("např tzv tj dr mudr judr ing bc mgr prof"),
    has_dotted_ordinals=True,
    frequent_words=words(
        "a se v na je že to s z do o i ve jsem ale jako za po by pro k od si tak jak co jsou byl "
        "byla bylo byly být který která které kteří když už jen nebo až ještě také podle jeho "
        "její jejich při před mezi pod nad bez jsme jste jsi není má mají měl mít může tento "
        "tato toto této tom tím ten ta ty my vy on ona oni mě mi mu ho ji jí nás vás kde kdy "
        "proč protože aby pak tedy však velmi více něco nic nikdy vždy všechno všichni teď tady "
        "tam můj moje svůj své svou dva tři rok let den čas dům člověk život dobře ano ne pan "
        "paní řekl ze u ke"
    ),
)
