"""Golden sentences: how each language says numbers, dates, money and abbreviations."""

from pathlib import Path

import pytest

from myxtts.inference.sentences import cut_sentences
from myxtts.text.cleaners import normalise
from myxtts.text.languages import LANGUAGES

FOLDER = Path(__file__).with_name("golden")
CATEGORIES = {"numbers", "dates", "money", "abbreviations", "sentence ends"}
SENTENCE_END = "sentence ends"


def read_golden(code: str) -> list[tuple[str, str, str]]:
    lines = (FOLDER / f"{code}.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("# ")]
    return [(category, text, expected) for category, text, expected in rows]


GOLDEN = {path.stem: read_golden(path.stem) for path in sorted(FOLDER.glob("*.tsv"))}
READ = [
    (code, text, said)
    for code, rows in GOLDEN.items()
    for kind, text, said in rows
    if kind != SENTENCE_END
]
CUT = [
    (code, text, said)
    for code, rows in GOLDEN.items()
    for kind, text, said in rows
    if kind == SENTENCE_END
]


@pytest.mark.parametrize(("code", "text", "expected"), READ)
def test_a_golden_sentence_is_read_as_people_say_it(code, text, expected):
    assert normalise(text, code) == expected


@pytest.mark.parametrize(("code", "text", "expected"), CUT)
def test_a_golden_text_is_cut_into_sentences(code, text, expected):
    assert [piece.strip() for piece in cut_sentences(text, code)] == expected.split(" | ")


def test_every_language_has_golden_sentences_of_every_kind():
    assert GOLDEN.keys() == LANGUAGES.keys()
    for code, rows in GOLDEN.items():
        kinds = {kind for kind, _, _ in rows}
        assert CATEGORIES <= kinds, f"{code} lacks {CATEGORIES - kinds}"


def test_persian_has_three_hundred():
    assert len({text for _, text, _ in GOLDEN["fa"]}) >= 300
