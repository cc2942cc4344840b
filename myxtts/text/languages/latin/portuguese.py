"""Portuguese."""

import re

from myxtts.text.language import LATIN, Language, SymbolWords, words

_FEMININE = {"um": "uma", "dois": "duas"}
# Before these a number stands by itself.
_NOT_COUNTED = words("a agora as contra da das ela elas era fora mas na nas nada para pela pelas")
# After these it is a name: "o capítulo um trata".
_NUMBERED = words(
    "ato art artigo canal cap capítulo caso dia etapa exercício fase figura grupo item lição linha "
    "no nível número opção parte passo pergunta ponto porta pág página quarto sala seção secção "
    "tabela tema tomo unidade versão volume voo º"
)
_MASCULINE = words(
    "aroma cinema clima coma cometa coração corações diagrama dia dilema diploma dogma drama "
    "enigma esquema fantasma grama idioma lema mapa panorama pijama planeta poema poeta problema "
    "programa quilograma sintoma sistema telegrama tema trauma"
)
_FEMININE_NOUNS = words(
    "classe flor foto frase mulher mão moto noite nuvem nuvens parte rede série tarde vez voz"
)
_FEMININE_END = re.compile(r"\w{2,}(?:[çs]ão|[çs]ões|[dt]ades?|tudes?|[aiu]ge(?:m|ns))|\w+as?")


def _agree(number: str, following: str, before: str) -> str:
    """Say "vinte e uma casas", by the ending of the noun and lists."""
    if following in _NOT_COUNTED or before in _NUMBERED or not _is_feminine(following):
        return number
    if "mil" not in number:
        number = re.sub(r"([zch]ent)os\b", r"\1as", number)
    *head, last = number.split(" ")
    return " ".join([*head, _FEMININE.get(last, last)])


def _is_feminine(noun: str) -> bool:
    one = noun.removesuffix("s")
    if one in _MASCULINE or noun in _MASCULINE:
        return False
    return bool({noun, one, noun.removesuffix("es")} & _FEMININE_NOUNS) or bool(
        _FEMININE_END.fullmatch(noun)
    )


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
    hours={1: "uma", 2: "duas", 21: "vinte e uma", 22: "vinte e duas"},
    version=3,
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
