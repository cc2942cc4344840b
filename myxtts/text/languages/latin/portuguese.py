"""Portuguese."""

from myxtts.text.language import LATIN, Language, SymbolWords, words

_FEMININE = {"um": "uma", "dois": "duas"}
_NOT_COUNTED = frozenset("e de da a para".split())


def _agree(number: str, following: str) -> str:
    """Say "vinte e uma casas": the ending of a noun tells its gender well enough."""
    *head, last = number.split(" ")
    if last in _FEMININE and following.endswith(("a", "as")) and following not in _NOT_COUNTED:
        last = _FEMININE[last]
    return " ".join([*head, last])


PORTUGUESE = Language(
    code="pt",
    name="Portuguese",
    greeting="Olá, como você está?",
    alphabet=LATIN + "àáâãçéêíóôõúü",
    espeak_voice="pt-br",
    num2words_code="pt_BR",
    months=(
        *"janeiro fevereiro março abril maio junho".split(),
        *"julho agosto setembro outubro novembro dezembro".split(),
    ),
    number_repairs=((",", ""),),
    ordinal_marks={"º": ("", ""), "ª": ("o", "a")},
    agree=_agree,
    date="{day} de {month} de {year}",
    clock="{hour} e {minute}",
    version=2,
    abbreviation_words={
        "Sr.": "senhor",
        "Sra.": "senhora",
        "Srta.": "senhorita",
        "Dr.": "doutor",
        "Dra.": "doutora",
        "Prof.": "professor",
        "Profa.": "professora",
        "etc.": "et cetera",
    },
    symbol_words=SymbolWords(
        minus="menos",
        point="vírgula",
        percent="{} por cento",
        ampersand="e",
        dollar="dólares",
        euro="euros",
        pound="libras",
        has_decimal_comma=True,
    ),
    abbreviations=words("sr sra srta dr dra prof profa exmo av"),
    frequent_words=words(
        "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao "
        "ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até "
        "isso ela entre era depois sem mesmo aos ter seus quem nas me esse eles estão você tinha "
        "foram essa num nem suas meu às minha têm numa pelos elas havia seja qual será nós tenho "
        "lhe deles essas esses pelas este dele tu te vocês vos lhes meus minhas teu tua nosso "
        "nossa dela esta estes estas aquele aquela isto aquilo estou estamos são somos fui tudo "
        "todos toda onde ainda sempre nunca agora aqui então porque fazer disse dois três anos "
        "dia homem casa vida tempo bem outro outra outros cada sobre pouco coisa"
    ),
)
