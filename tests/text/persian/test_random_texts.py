"""Ten thousand random texts: none fails, and no word is lost without a word about it."""

import random
import re

import pytest

from myxtts.text.cleaners import normalise
from myxtts.text.languages.persian.expansion import unify_letters
from myxtts.text.phonemes import open_reader, unreadable_characters

PIECES = [
    "ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءئؤآ",
    "كيةىأإەہ",
    "abcdefghijklmnopqrstuvwxyzABCUSBé",
    "0123456789۰۱۲۳۴۵۶۷۸۹٠١٢٣",
    ".,:;!?،؛؟%٪/\\-–—_()[]{}«»\"'…@#&*+=<>~^|°²½€$﷼",
    "\u200c\u200d\u200e\u200f\u202a\u202b\u0640\u064b\u064c\u064e\u064f\u0650\u0651\u0654",
    "😂❤👍🎂日本жщ",
]
WEIGHTS = [40, 6, 10, 12, 12, 8, 2]
PERSIAN = re.compile("[ابپتثجچحخدذرزژسشصضطظغفقکگلمن]{3,}")


def make_text(rng: random.Random) -> str:
    words = []
    for _ in range(rng.randint(1, 4)):
        kinds = rng.choices(PIECES, WEIGHTS, k=rng.randint(1, 3))
        words.append("".join(rng.choice(kind) for kind in kinds for _ in range(rng.randint(1, 4))))
    return " ".join(words)


@pytest.fixture(scope="module")
def texts():
    rng = random.Random(21)
    return [make_text(rng) for _ in range(10_000)]


@pytest.fixture(scope="module")
def normalised(texts):
    return [normalise(text, "fa") for text in texts]


def test_no_digit_is_left_and_no_persian_word_is_lost_by_normalising(texts, normalised):
    for text, clean in zip(texts, normalised, strict=True):
        assert not re.search(r"\d", clean), text
        joined = re.sub(r"[\s\u200c\u0650\u064b]", "", clean)
        for word in PERSIAN.findall(unify_letters(text)):
            assert word in joined, (text, clean)


def test_every_word_is_spoken_or_reported(normalised):
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    for clean, read in zip(normalised, open_reader("fa").read(normalised), strict=True):
        reported = set(unreadable_characters(clean, "fa"))
        for item in read.words:
            letters = {character for character in item.word.text if character.isalpha()}
            assert item.phonemes or letters <= reported, (clean, item)


def test_marks_of_direction_never_change_what_is_said(texts):
    for text in texts[:2000]:
        bare = re.sub("[\u200d\u200e\u200f\u202a\u202b]", "", text)
        marked = "\u202b" + "\u200f".join(bare) + "\u202c"
        assert normalise(marked, "fa") == normalise(bare, "fa")
