"""Classes of words from a treebank alone, for tables that owe nothing to a tagger."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from myxtts.text.languages.persian.expansion import unify_letters
from myxtts.text.languages.persian.word_classes import WordClass
from tools.persian.annotated import Sentence

_PARTS = {"NOUN": "N", "PROPN": "N", "ADJ": "AJ", "VERB": "V", "AUX": "V", "NUM": "NUM"}
_PARTS |= {"ADV": "ADV", "CCONJ": "CONJ", "SCONJ": "CONJ", "ADP": "P", "PRON": "PRO", "DET": "DET"}
_PARTS |= {"INTJ": "INT", "PUNCT": "PUNC"}
_OTHER = "RES"
_LEAST = 2  # a rarer word stays unknown, so that the tagger learns what to do with such
_LEAST_MARKS = 6
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_NO_LEVEL = 6


def treebank_classes(paths: Sequence[Path], sentences: Sequence[Sentence]) -> dict[str, WordClass]:
    """Class the words of CoNLL-U files; how they lean to an ezafe is counted in sentences."""
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if fields[0].isdigit():
                parts[unify_letters(fields[1])][_PARTS.get(fields[3], _OTHER)] += 1
    parts["را"] = Counter({"POSTP": _LEAST})
    own, before = _count_marks(sentences)
    return {
        word: _class(found, own[word], before[word])
        for word, found in parts.items()
        if found.total() >= _LEAST
    }


def _class(parts: Counter[str], own: Counter[bool], before: Counter[bool]) -> WordClass:
    ranked = [part for part, _ in parts.most_common(2)]
    return WordClass(ranked[0], ranked[-1], _level(own), _level(before))


def _count_marks(sentences: Sequence[Sentence]) -> tuple[dict, dict]:
    """Count how often a word has an ezafe, and how often the word before it has one."""
    own: dict[str, Counter[bool]] = defaultdict(Counter)
    before: dict[str, Counter[bool]] = defaultdict(Counter)
    for sentence in sentences:
        following = [*sentence.words[1:], None]
        for word, mark, after in zip(sentence.words, sentence.ezafes, following, strict=True):
            if mark is not None:
                own[word.text][mark] += 1
                if after is not None:
                    before[after.text][mark] += 1
    return own, before


def _level(marks: Counter[bool]) -> int:
    total = marks.total()
    if total < _LEAST_MARKS:
        return _NO_LEVEL
    share = (marks[True] + 0.5) / (total + 1)
    return sum(share > level for level in _LEVELS)
