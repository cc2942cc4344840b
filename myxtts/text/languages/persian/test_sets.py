"""The test sets of GE2PE: where they are, and a table of how well they are read."""

from pathlib import Path

from myxtts.text.cleaners import normalise
from myxtts.text.errors import TextError
from myxtts.text.language import Speak
from myxtts.text.languages.persian.annotations import annotate, read_pairs
from myxtts.text.languages.persian.inventory import GE2PE
from myxtts.text.languages.persian.judging import (
    Score,
    System,
    from_espeak_ipa,
    from_reader,
    judge,
)
from myxtts.text.languages.persian.reading import Reader

# No table of the front end is made from these.
TEST_SETS = ("Kasre_test.csv", "Homograph_test.csv")
_HEADER = ["test set", "reader", "PER %", "ezafe P", "R", "F1", "homographs %", "sentences/s"]


def judge_test_sets(folder: Path, speak: Speak) -> list[list[str]]:
    """Read the test sets with the front end and with espeak alone; return a table of figures."""
    rows = [_HEADER]
    reader = Reader(speak)
    systems = (
        System("front end", reader.read, from_reader),
        System("espeak-ng alone", lambda texts: [speak(t, "fa") for t in texts], from_espeak_ipa),
    )
    for name in TEST_SETS:
        pairs = list(read_pairs(_find(folder, name)))
        texts = [normalise(written, "fa") for written, _ in pairs]
        sentences = [
            annotate(text, spoken, GE2PE) for text, (_, spoken) in zip(texts, pairs, strict=True)
        ]
        rows += [_row(name, system.name, judge(sentences, texts, system)) for system in systems]
    return rows


def _find(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.exists():
        raise TextError(
            f"the test set {path} is missing: take {' and '.join(TEST_SETS)} from the repository "
            "Sharif-SLPL/GE2PE, and give their folder with --test-sets or in MYXTTS_TEST_SETS"
        )
    return path


def _row(test_set: str, system: str, score: Score) -> list[str]:
    cells = (score.precision, score.recall, score.f1)
    return [
        *(test_set, system, f"{score.phoneme_errors:.2%}".rstrip("%")),
        *("-" if value is None else f"{value:.3f}" for value in cells),
        "-" if score.homographs is None else f"{score.homographs:.1%}".rstrip("%"),
        f"{score.sentences_per_second:,.0f}",
    ]
