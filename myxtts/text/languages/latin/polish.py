"""Polish."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

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
    clock="{hour} {minute}",
    version=1,
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
