"""Polish."""

from myxtts.text.language import LATIN, Language, SymbolWords, words
from myxtts.text.languages.ordinals import genitive_ordinals, genitive_year

_UNITS = (
    "pierwszego drugiego trzeciego czwartego piątego szóstego siódmego ósmego dziewiątego".split()
)
_TEENS = (
    "dziesiątego jedenastego dwunastego trzynastego czternastego piętnastego szesnastego "
    "siedemnastego osiemnastego dziewiętnastego".split()
)
_TENS = (
    "dwudziestego trzydziestego czterdziestego pięćdziesiątego sześćdziesiątego "
    "siedemdziesiątego osiemdziesiątego dziewięćdziesiątego".split()
)
_ORDINALS = genitive_ordinals(_UNITS, _TEENS, _TENS)
_CENTURIES = {
    18: ("tysiąc osiemsetnego", "tysiąc osiemset"),
    19: ("tysiąc dziewięćsetnego", "tysiąc dziewięćset"),
    20: ("dwutysięcznego", "dwa tysiące"),
}
_HOURS = (
    "pierwsza druga trzecia czwarta piąta szósta siódma ósma dziewiąta dziesiąta jedenasta "
    "dwunasta trzynasta czternasta piętnasta szesnasta siedemnasta osiemnasta "
    "dziewiętnasta dwudziesta".split()
)
_HOURS += [f"dwudziesta {unit}" for unit in _HOURS[:3]]


def _year(year: int) -> str:
    return genitive_year(year, _ORDINALS, _CENTURIES, "roku")


POLISH = Language(
    code="pl",
    name="Polish",
    greeting="Cześć, jak się masz?",
    alphabet=LATIN + "óąćęłńśźż",
    espeak_voice="pl",
    num2words_code="pl",
    months=(
        *"stycznia lutego marca kwietnia maja czerwca".split(),
        *"lipca sierpnia września października listopada grudnia".split(),
    ),
    days=_ORDINALS,
    year_words=_year,
    hours=dict(enumerate(_HOURS, start=1)),
    clock="{hour} {minute}",
    version=2,
    abbreviation_words={
        "dr": "doktor",
        "Dr": "doktor",
        "Dr.": "doktor",
        "prof.": "profesor",
        "np.": "na przykład",
        "tzn.": "to znaczy",
        "tzw.": "tak zwany",
        "itd.": "i tak dalej",
        "itp.": "i tym podobne",
    },
    symbol_words=SymbolWords(
        minus="minus",
        point="przecinek",
        percent="{} procent",
        ampersand="i",
        dollar="dolarów",
        euro="euro",
        pound="funtów",
        has_decimal_comma=True,
    ),
    abbreviations=words("np tzn tzw dr prof im ul al św"),
    has_dotted_ordinals=True,
    frequent_words=words(
        "i w nie na się z do to że jest a jak o za co od po tak ale czy dla mnie ja ty on ona "
        "ono my wy oni mi ci go jej ich jego już przez tylko jeszcze był była było były być są "
        "jestem jesteś tego tym ten ta te tej tych temu który która które których przy pod nad "
        "przed bez kiedy gdy gdzie bardzo może można sobie coś ktoś nic nigdy zawsze wszystko "
        "wszyscy teraz tutaj tam więc lub oraz także też aby żeby bo ponieważ jednak niż mój "
        "moja moje swoje swój swoją nasz dwa trzy rok lat dzień czas dom człowiek życie ma mam "
        "miał mieć będzie chcę dobrze pan pani proszę we ze u"
    ),
)
