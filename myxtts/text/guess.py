"""The language that texts are most likely in, by their script and their most frequent words."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from myxtts.text.languages import LANGUAGES

_MOST_TEXTS, _MOST_CHARACTERS = 2000, 1000
_FEWEST_LETTERS, _FEWEST_WORDS = 12, 40
_DOMINANT = 0.6  # share of letters that makes a script that of the texts
# Shares of words: a text of ordinary prose has .3 and more of its language's own, and below .1 of
# most others'. Lists of names or digits have few of any language.
_LEAST_SHARE, _LEAST_LEAD = 0.12, 0.5
_LEAST_KANA = 0.05  # of Japanese letters: the others are those of Chinese too
_LEAST_FORMS = 0.01  # of letters
_LEAST_PERSIAN = 0.004  # of letters: what Persian has and Arabic lacks is 3 %

_SCRIPTS = {
    "Latin": "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Arabic": "\u0620-\u063f\u0641-\u064a\u066e-\u06d3\u06fa-\u06fc\ufb50-\ufdfb\ufe70-\ufefc",
    "Cyrillic": "\u0400-\u052f",
    "Hangul": "\u1100-\u11ff\uac00-\ud7a3",
    "Kana": "\u3041-\u3096\u30a1-\u30fa",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff",
    "Devanagari": "\u0900-\u0963\u0971-\u097f",
}
SCRIPT_LETTERS = {name: re.compile(f"[{span}]") for name, span in _SCRIPTS.items()}
# Letters of languages that share the script and are not known here.
_OTHER_CYRILLIC, _OTHER_ARABIC = re.compile("[іїєґўјљњћђ]"), re.compile("[ٹڈڑےںھۓ]")
_PERSIAN_FORMS, _ARABIC_FORMS = re.compile("[کی]"), re.compile("[ةأإ]")
_PERSIAN = re.compile("[پچژگ]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


class Guess(NamedTuple):
    """A language, how far it is ahead of the next (0 to 1), and what speaks for it."""

    code: str
    confidence: float
    evidence: str


def guess_language(texts: Iterable[str]) -> Guess | None:
    """Guess the language of texts, or return None where nothing speaks clearly for one.

    At most 2,000 texts are looked at.
    """
    sample = [text[:_MOST_CHARACTERS] for text in islice(texts, _MOST_TEXTS)]
    joined = "\n".join(sample).lower()
    counts = {name: len(pattern.findall(joined)) for name, pattern in SCRIPT_LETTERS.items()}
    total = sum(counts.values())
    if total < _FEWEST_LETTERS:
        return None
    east_asian = counts["Kana"] + counts["Han"]
    if east_asian >= _DOMINANT * total:
        return _east_asian(counts["Kana"] / east_asian, east_asian / total)
    script = max(counts, key=counts.__getitem__)
    share = counts[script] / total
    if share < _DOMINANT:
        return None
    if script in _BY_SCRIPT:
        return _BY_SCRIPT[script](joined, share, counts[script])
    codes = [code for code, language in LANGUAGES.items() if language.script == script]
    if len(codes) > 1:
        return _by_words(joined, codes)
    return Guess(codes[0], share, f"{share:.0%} of the letters are {script}") if codes else None


def _east_asian(kana: float, share: float) -> Guess:
    if kana >= _LEAST_KANA:
        return Guess("ja", share, f"{kana:.0%} of the letters are Kana")
    return Guess("zh-cn", share, f"{share:.0%} of the letters are Han")


def _cyrillic(text: str, share: float, num_letters: int) -> Guess | None:
    if len(_OTHER_CYRILLIC.findall(text)) > 0.01 * num_letters:
        return None
    return Guess("ru", share, f"{share:.0%} of the letters are Cyrillic")


def _arabic(text: str, share: float, num_letters: int) -> Guess | None:
    if len(_OTHER_ARABIC.findall(text)) > 0.02 * num_letters:
        return None
    persian = len(_PERSIAN.findall(text)) / num_letters
    if persian >= _LEAST_PERSIAN:
        return Guess("fa", share, f"{persian:.1%} of the letters are پ, چ, ژ or گ")
    # The two languages have code points of their own for kaf and ye, but many keyboards mix them.
    persian, arabic = (len(pattern.findall(text)) for pattern in (_PERSIAN_FORMS, _ARABIC_FORMS))
    if max(persian, arabic) >= _LEAST_FORMS * num_letters and not min(persian, arabic):
        code, letters = ("fa", "ک and ی") if persian else ("ar", "ة, أ and إ")
        return Guess(code, share, f"the letters {letters} are frequent")
    return _by_words(text, ("fa", "ar"))


def _by_words(text: str, codes: Iterable[str]) -> Guess | None:
    """Compare how many of the words are frequent in each language; shared ones count less."""
    words = Counter(word.replace("’", "'") for word in _WORD.findall(text))
    total = sum(words.values())
    if total < _FEWEST_WORDS:
        return None
    shares = dict.fromkeys(codes, 0.0)
    for word, count in words.items():
        owners = [code for code in shares if word in LANGUAGES[code].frequent_words]
        for code in owners:
            shares[code] += count / len(owners) / total
    best, second = sorted(shares, key=shares.__getitem__, reverse=True)[:2]
    lead = 1.0 - shares[second] / shares[best] if shares[best] else 0.0
    if shares[best] < _LEAST_SHARE or lead < _LEAST_LEAD:
        return None
    own = LANGUAGES[best].frequent_words
    known = Counter({word: n for word, n in words.items() if word in own})
    shown = ", ".join(word for word, _ in known.most_common(5))
    return Guess(best, lead, f"their most frequent words are {shown}")


# Scripts whose languages are distinguished by letters.
_BY_SCRIPT = {"Cyrillic": _cyrillic, "Arabic": _arabic}
