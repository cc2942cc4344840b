"""Which words stand near each reading of a homograph, from HomoRich."""

import csv
import math
from collections import Counter, defaultdict
from pathlib import Path

from myxtts.text.cleaners import normalise
from myxtts.text.languages.persian.homographs import context_of
from myxtts.text.languages.persian.tokens import split_words

# Columns of HomoRich: the sentence, the homograph in it, and how it is read here.
SENTENCE, HOMOGRAPH, READING = "Grapheme", "Homograph Grapheme", "Homograph Phoneme"
_SMOOTHING = 1.0
_LEAST_COUNT, _MOST_CUES = 3, 60
_LEAST_WEIGHT, _MOST_WEIGHT = 0.3, 3.0


def write(source: Path, target: Path) -> None:
    """Write the readings of each homograph with the words that speak for them."""
    counts: defaultdict[str, defaultdict[str, Counter[str]]]
    counts = defaultdict(lambda: defaultdict(Counter))
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, reading, context in _examples(source):
        totals[word][reading] += 1
        counts[word][reading].update(context)
    lines = ["# word, phonemes, prior, places, cues; made from HomoRich (CC0)"]
    for word in sorted(counts):
        lines += [
            _row(word, reading, counts[word], totals[word]) for reading in sorted(counts[word])
        ]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _examples(source: Path):
    """Yield homographs, their readings and the words around them."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = {SENTENCE, HOMOGRAPH, READING} - set(rows.fieldnames or ())
        if missing:
            raise SystemExit(f"{source} lacks the columns {', '.join(sorted(missing))}")
        for row in rows:
            wanted = normalise(row[HOMOGRAPH] or "", "fa")
            words = split_words(normalise(row[SENTENCE], "fa"))[1]
            for place, word in enumerate(words):
                if wanted and word.text == wanted:
                    yield wanted, row[READING].strip(), context_of(words, place)


def _row(word: str, reading: str, counts: dict[str, Counter], totals: Counter[str]) -> str:
    """Score each neighbour by how much more often it stands near this reading than near others."""
    own, others = counts[reading], sum((counts[r] for r in counts if r != reading), Counter())
    num_own, num_others = totals[reading], sum(totals.values()) - totals[reading]
    weights = {}
    for cue, count in own.items():
        if count >= _LEAST_COUNT:
            here = (count + _SMOOTHING) / (num_own + 2 * _SMOOTHING)
            there = (others[cue] + _SMOOTHING) / (num_others + 2 * _SMOOTHING)
            weights[cue] = min(math.log(here / there), _MOST_WEIGHT)
    best = sorted(
        (c for c in weights if weights[c] >= _LEAST_WEIGHT), key=lambda c: (-weights[c] * own[c], c)
    )
    cues = " ".join(f"{cue}={weights[cue]:.2f}" for cue in best[:_MOST_CUES])
    return f"{word}\t{reading}\t{num_own / sum(totals.values()):.3f}\t-\t{cues}"
