"""The tables of the Persian front end: how they are made, and that they are small."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from myxtts.text.languages.persian import homographs, table_files
from myxtts.text.languages.persian.tokens import split_words
from tools.persian.arrays import write_arrays
from tools.persian.treebank import read_treebank
from tools.persian.treebank_classes import treebank_classes

ROOT = Path(__file__).parents[2]
TREE = """# text = کتاب خوب مردی در خانه
1	کتاب	کتاب	NOUN	_	_	0	root	_	_
2	خوب	خوب	ADJ	_	_	1	amod	_	_
3	مردی	مرد	NOUN	_	_	1	nmod	_	_
4	بزرگ	بزرگ	ADJ	_	_	3	amod	_	_
5	در	در	ADP	_	_	6	case	_	_
6	خانه	خانه	NOUN	_	_	1	nmod	_	_
"""


def test_all_tables_together_are_small_and_have_their_licences():
    sizes = [path.stat().st_size for path in table_files.TABLES.iterdir()]
    assert sum(sizes) <= 3_000_000
    names = {path.name for path in table_files.TABLES.iterdir()}
    assert {"LICENSE-ge2pe", "LICENSE-taggers", "README.md"} <= names


def test_ezafes_follow_from_the_trees_of_a_treebank(tmp_path):
    (tmp_path / "a.conllu").write_text(TREE, encoding="utf-8")
    (sentence,) = read_treebank(tmp_path / "a.conllu")
    # The noun and its adjective have one; an indefinite noun and a word before a preposition none.
    assert sentence.ezafes == [True, True, False, False, False, False]


def test_homorich_becomes_a_table_that_reads_homographs(tmp_path, monkeypatch):
    rows = ["Grapheme,Homograph Grapheme,Phoneme,Homograph Phoneme"]
    rows += ["پرنده با بال شکسته پرید,بال,,bAl"] * 4 + ["رقص باله در سالن بال,بال,,bol"] * 4
    source = tmp_path / "HomoRich.csv"
    source.write_text("\n".join(rows) + "\n", encoding="utf-8")
    command = [sys.executable, "tools/persian_tables.py", "--homorich", str(source)]
    subprocess.run([*command, "--output", str(tmp_path)], cwd=ROOT, check=True)
    monkeypatch.setenv("MYXTTS_PERSIAN_TABLES", str(tmp_path))
    homographs._homographs.cache_clear()
    try:
        for text, expected in (("پرنده بال زد", "bɒl"), ("رقص بال بود", "bol")):
            words = split_words(text)[1]
            assert homographs.choose_reading(words, 1, 0.0).phonemes == expected
    finally:
        homographs._homographs.cache_clear()


def test_the_bytes_of_a_table_depend_on_its_arrays_alone(tmp_path):
    for name in "ab":
        write_arrays(tmp_path / name, numbers=np.arange(9), scale=0.5)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert np.load(tmp_path / "a")["scale"] == 0.5


def test_classes_of_words_can_come_from_the_treebank_alone(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(f"{TREE}\n{TREE}\n" * 3, encoding="utf-8")
    classes = treebank_classes([path], list(read_treebank(path)))
    book = classes["کتاب"]
    assert (book.part, book.second, book.lean) == ("N", "N", 4)  # (6 + .5) / 7 of them has one
    assert classes["خوب"].asks == 4 and classes["خانه"].asks == 1  # .5 / 7
    path.write_text(TREE, encoding="utf-8")  # too rare to be known
    assert set(treebank_classes([path], list(read_treebank(path)))) == {"را"}
