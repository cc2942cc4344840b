"""Ordinals with their marks, "2e" and "3º", in words, through num2words."""

import re

from myxtts.text.language import Language
from myxtts.text.number_words import spell_number

_MOST = 4  # digits


def say_ordinals(text: str, language: Language) -> str:
    """Say numbers with one of the language's marks of ordinals as such."""
    if language.has_dotted_ordinals:
        text = _say_dotted(text, language)
    if not language.ordinal_marks:
        return text
    marks = "|".join(map(re.escape, sorted(language.ordinal_marks, key=len, reverse=True)))
    number = rf"\d{{1,3}}(?: \d{{3}}){{1,2}}|\d{{1,{_MOST}}}"
    pattern = rf"(?<![\d.,])({number})({marks})(?!\w)(?= ?([^\W\d_]*))"
    return re.sub(pattern, lambda match: _say(match, language), text)


def _say_dotted(text: str, language: Language) -> str:
    """Say "der 2. Mann", by the article before it, and "3. kat", where no ending depends on it."""
    if language.has_plain_ordinals:
        pattern = r"(?<![\d.,])(\d{1,4})\.(?= [^\W\dA-Z_])"
        return re.sub(pattern, lambda m: spell_ordinal(int(m[1]), language), text)
    if not language.day_endings:
        return text
    before = "|".join(filter(None, language.day_endings))
    numbers = r"(\d{1,2}\. (?:und|oder|bis) )?(\d{1,3})\."
    text = re.sub(
        rf"(?i)\b({before}) {numbers}(?= ([^\W\d_]+))",
        lambda m: m[0] if _begins(m[4], language) else _with_ending(m, language),
        text,
    )
    if not language.noun_endings:
        return text
    nouns = "|".join(language.noun_endings)
    return re.sub(
        rf"(?i)(?<![\w.,])(){numbers}(?= ({nouns})\b)",  # the empty group is the word before
        lambda m: _both(m, language.noun_endings[m[4].lower()], language),
        text,
    )


def _begins(word: str, language: Language) -> bool:
    """Whether a word after a number and a dot begins a sentence, and is no noun."""
    low = word.lower()
    return word[0].isupper() and low in language.frequent_words and low not in language.noun_endings


def _with_ending(match: re.Match[str], language: Language) -> str:
    """Take the ending by the word before; "der" before a feminine noun is of another case.

    Feminine nouns are those without a strong ending.
    """
    before, noun = match[1].lower(), match[4].lower()
    is_oblique = before == "der" and language.noun_endings.get(noun) == ""
    ending = "n" if is_oblique else language.day_endings[before]
    return f"{match[1]} {_both(match, ending, language)}"


def _both(match: re.Match[str], ending: str, language: Language) -> str:
    """Say the numbers of "18. und 19. Jahrhundert"."""
    said = re.sub(r"(\d+)\.", lambda m: spell_ordinal(int(m[1]), language) + ending, match[2] or "")
    return said + spell_ordinal(int(match[3]), language) + ending


def spell_ordinal(number: int, language: Language) -> str:
    """Say an ordinal as num2words does, with what it gets wrong put right."""
    words = spell_number(number, language.num2words_code or "en", "ordinal")
    for pattern, right in language.number_repairs:
        words = re.sub(pattern, right, words)
    return words


def _say(match: re.Match[str], language: Language) -> str:
    """Say one: what stands for its mark replaces the end of what num2words says."""
    special = language.special_ordinals.get(match[0])
    words = special or spell_ordinal(int(match[1].replace(" ", "")), language)
    end, instead = language.ordinal_marks[match[2]]
    words = words if special else re.sub(end + "$", instead, words)
    short = language.ordinals_before_nouns
    for full, cut in short.items():
        if match[3] and words.endswith(full):
            words = words.removesuffix(full) + cut
    return words
