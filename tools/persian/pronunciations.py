"""The pronunciations of words that annotated texts agree on."""

from collections import Counter, defaultdict
from pathlib import Path

from myxtts.text.languages.persian.alignment import can_be
from tools.persian.annotated import Sentence

_LEAST_SHARE = 0.8  # of a word's readings that are the same


def write(sentences: list[Sentence], path: Path) -> None:
    """Write words that are read in one way, and by themselves."""
    readings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, spoken in zip(sentence.words, sentence.spoken, strict=True):
            if spoken and word.is_persian and can_be(word.text, spoken):
                readings[word.text][spoken] += 1
    rows = []
    for word, counts in sorted(readings.items()):
        spoken, count = counts.most_common(1)[0]
        if count >= _LEAST_SHARE * sum(counts.values()):
            rows.append(f"{word}\t{spoken}")
    path.write_text("\n".join(["# word, phonemes", *rows]) + "\n", encoding="utf-8")
