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
    pattern = rf"(?<![\d.,])(\d{{1,{_MOST}}})({marks})(?!\w)(?= ?([^\W\d_]*))"
    return re.sub(pattern, lambda match: _say(match, language), text)


def _say_dotted(text: str, language: Language) -> str:
    """Say "der 2. Mann", by the article before it, and "3. kat", where no ending depends on it."""
    code = language.num2words_code or "en"
    if language.has_plain_ordinals:
        pattern = r"(?<![\d.,])(\d{1,4})\.(?= [^\W\dA-Z_])"
        return re.sub(pattern, lambda m: _spaced(int(m[1]), language), text)
    articles = "|".join(filter(None, language.day_endings))
    if not articles:
        return text
    pattern = rf"(?i)\b({articles}) (\d{{1,4}})\.(?= \w)"

    def say(match: re.Match[str]) -> str:
        ending = language.day_endings[match[1].lower()]
        return f"{match[1]} {spell_number(int(match[2]), code, 'ordinal')}{ending}"

    return re.sub(pattern, say, text)


def _spaced(number: int, language: Language) -> str:
    words = spell_number(number, language.num2words_code or "en", "ordinal")
    for pattern, right in language.number_repairs:
        words = re.sub(pattern, right, words)
    return words


def _say(match: re.Match[str], language: Language) -> str:
    """Say one: what stands for its mark replaces the end of what num2words says."""
    special = language.special_ordinals.get(match[0])
    words = special or spell_number(int(match[1]), language.num2words_code or "en", "ordinal")
    end, instead = language.ordinal_marks[match[2]]
    words = words if special else re.sub(end + "$", instead, words)
    short = language.ordinals_before_nouns
    for full, cut in short.items():
        if match[3] and words.endswith(full):
            words = words.removesuffix(full) + cut
    return words
