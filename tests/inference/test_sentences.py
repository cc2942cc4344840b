"""Where text is cut: at the ends of sentences, and never through or around a word."""

import random

import pytest

from myxtts.inference.sentences import (
    CLAUSE,
    PARAGRAPH,
    PHRASE,
    SENTENCE,
    Segment,
    cut_clauses,
    cut_opening,
    cut_sentences,
    cut_text,
)


def always(text: str) -> bool:
    return True


def sentences(text: str, language: str = "en") -> list[str]:
    return [segment.text for segment in cut_text(text, language, always)]


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Mrs. Jones. They spoke.", ["Dr. Smith met Mrs. Jones.", "They spoke."]),
        ("It is 3.14. Version 1.2 is out.", ["It is 3.14.", "Version 1.2 is out."]),
        ("See example.com. Then go.", ["See example.com.", "Then go."]),
        ("J. R. Doe and I. Then we left.", ["J. R. Doe and I.", "Then we left."]),
        ("The U.S. Army, e.g. Bob. Yes.", ["The U.S. Army, e.g. Bob.", "Yes."]),
        ("Is no. 5 in? He said no. Then go.", ["Is no. 5 in?", "He said no.", "Then go."]),
        ('"Stop!" he cried. "Why?" He ran.', ['"Stop!" he cried.', '"Why?"', "He ran."]),
        ("Wait... what? Wait... What?!", ["Wait... what?", "Wait...", "What?!"]),
        ("He left (at last.) She stayed.", ["He left (at last.)", "She stayed."]),
        ("He told me. Then he left etc. Now.", ["He told me.", "Then he left etc.", "Now."]),
        ("hello. how are you? fine", ["hello.", "how are you?", "fine"]),
        ("1. Bread\n2. Milk and eggs", ["1. Bread", "2. Milk and eggs"]),
        ("no end", ["no end"]),
        ("  \n \n", []),
        ("", []),
    ],
)
def test_english_is_cut_at_sentences(text, parts):
    assert sentences(text) == parts


@pytest.mark.parametrize(
    "language, text, parts",
    [
        ("fa", "سلام. چطوری؟خوبم! برو۔ بله", ["سلام.", "چطوری؟", "خوبم!", "برو۔", "بله"]),
        ("fa", "سال ۱۳۰۲ ه. ش. بود. رفت.", ["سال ۱۳۰۲ ه. ش. بود.", "رفت."]),
        ("fa", "عدد ۳.۱۴ است. می‌روم.", ["عدد ۳.۱۴ است.", "می‌روم."]),
        ("zh-cn", "今天很好。你呢？“好！”走吧", ["今天很好。", "你呢？", "“好！”", "走吧"]),
        ("ja", "はい。いいえ。", ["はい。", "いいえ。"]),
        ("hi", "यह घर है। वह गया।", ["यह घर है।", "वह गया।"]),
        ("de", "Am 3. Mai kam Hr. Voß. Er ging.", ["Am 3. Mai kam Hr. Voß.", "Er ging."]),
        ("es", "El Sr. Ruiz vino. ¿Y tú? Sí.", ["El Sr. Ruiz vino.", "¿Y tú?", "Sí."]),
        ("ru", "Ул. Мира, дом 5. Да.", ["Ул. Мира, дом 5.", "Да."]),
    ],
)
def test_other_languages_are_cut_at_their_own_marks(language, text, parts):
    assert sentences(text, language) == parts


def test_segments_know_what_ends_with_them():
    text = "One, two. Three.\nFour.\n\n \nFive; six"
    segments = cut_text(text, "en", lambda part: len(part) < 9)
    assert [(segment.text, segment.ends) for segment in segments] == [
        ("One,", CLAUSE),
        ("two.", SENTENCE),
        ("Three.", SENTENCE),
        ("Four.", PARAGRAPH),
        ("Five;", CLAUSE),
        ("six", PARAGRAPH),
    ]


@pytest.mark.parametrize(
    "text, parts",
    [
        ("a bb, cc dd; ee ff", ["a bb, cc dd;", "ee ff"]),
        ("a bb, cc dd ee", ["a bb,", "cc dd ee"]),
        ("aaaa bbbb cccc dddd", ["aaaa bbbb", "cccc dddd"]),
        ("aaaaaaaaaaaaaaaa", ["aaaaaaaa", "aaaaaaaa"]),
        ("short", ["short"]),
    ],
)
def test_long_sentences_are_cut_at_the_strongest_mark_near_their_middle(text, parts):
    assert cut_clauses(text, lambda part: len(part) < 13) == parts


def test_a_letter_stays_with_its_marks():
    parts = cut_clauses("e\u0301" * 10, lambda part: len(part) < 8)
    assert "".join(parts) == "e\u0301" * 10
    assert all(part.startswith("e") for part in parts)


def test_what_can_never_fit_comes_to_an_end():
    assert "".join(cut_clauses("abcd", lambda part: False)) == "abcd"


@pytest.mark.parametrize("seed", range(20))
def test_no_word_is_lost(seed):
    rng = random.Random(seed)
    words = [
        "Dr.",
        "3.14",
        "no.",
        "سلام",
        "می‌روم،",
        "چرا؟",
        "好。",
        "a,",
        "b;",
        "(c)",
        "…",
        "\n",
        "I.",
    ]
    words += ["word", "Word", "x" * 40, "e.g.", '"Hi!"', "—", "\n\n", "..."]
    text = " ".join(rng.choices(words, k=200))
    segments = cut_text(text, rng.choice(["en", "fa", "zh-cn"]), lambda part: len(part) <= 30)
    said = "".join(segment.text for segment in segments)
    assert said.replace(" ", "") == "".join(text.split())
    assert all(0 < len(segment.text) <= 30 for segment in segments)


def test_the_parts_of_a_text_put_together_are_the_text():
    text = ' Dr. Who?  "No!" \n he said.\tWho... '
    assert "".join(cut_sentences(text)) == text


@pytest.mark.parametrize("unit", [" ", ".", "a. ", "a", "A b. ", "a, b; "])
def test_the_work_of_cutting_grows_with_the_length_of_the_text(unit):
    tried = []
    for length in (50_000, 100_000):
        seen = []
        text = unit * (length // len(unit))
        for _ in cut_text(
            text, "en", lambda part, seen=seen: seen.append(len(part)) or len(part) < 100
        ):
            pass
        tried.append(sum(seen))
    assert tried[1] <= 2.1 * tried[0] <= 30 * 50_000


class Read:
    """A text in parts that counts how much of it was read."""

    def __init__(self, text: str, size: int):
        self.text, self.size, self.count = text, size, 0

    def __iter__(self):
        for start in range(0, len(self.text), self.size):
            part = self.text[start : start + self.size]
            self.count += len(part)
            yield part


@pytest.mark.parametrize(
    "unit",
    [
        "A sentence of a book. ",
        "small letters only. ",
        "Jemand sagte etwas.\n\n",
        "سلام. حال شما چطور است؟ ",
        "never an end ",
        "x",
        "1.",
        "...",
        "Well... ",
        "a\u0301",
        "今天很好。",
    ],
)
@pytest.mark.parametrize("size", [7, 1000])
def test_the_first_segment_of_a_text_twice_as_long_needs_no_more_of_it(unit, size):
    counts = []
    for length in (50_000, 100_000):
        source = Read(unit * (length // len(unit)), size)
        next(cut_text(source, "en", lambda part: len(part) < 100))
        counts.append(source.count)
    assert counts[0] == counts[1] < 50_000


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_text_in_parts_is_cut_as_the_whole(size):
    text = 'Mr. Who said: "No!" he said.\r\n\r\nThen he left. ' * 3 + "پایان؟!. بله"
    whole = list(cut_text(text, "en", lambda part: len(part) < 20))
    assert list(cut_text(Read(text, size), "en", lambda part: len(part) < 20)) == whole


def test_a_sentence_without_an_end_is_cut_at_a_mark_within_the_window():
    text = "word " * 700 + "pause; " + "word " * 700
    first, second = cut_text(text, "en", always)
    assert first.text.endswith("pause;") and (first.ends, second.ends) == (CLAUSE, PARAGRAPH)
    assert f"{first.text} {second.text}" == text.strip()


# A short beginning


@pytest.mark.parametrize(
    "text, parts, ends",
    [
        (
            "Well, after all that time he came home.",
            ["Well, after all that time", "he came home."],
            PHRASE,
        ),
        (
            "After all that time, the man whom nobody knew came home.",
            ["After all that time,", "the man whom nobody knew came home."],
            CLAUSE,
        ),
        (
            "The man whom nobody in the town had ever seen came home.",
            ["The man whom nobody in the", "town had ever seen came home."],
            PHRASE,
        ),
        ("He came home: to stay.", ["He came home: to stay."], SENTENCE),
        ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", None, SENTENCE),
        ("Donaudampfschifffahrtsgesellschaftskapitän", None, SENTENCE),
    ],
)
def test_an_opening_ends_at_a_mark_or_between_two_words(text, parts, ends):
    following = Segment("Then he left.", PARAGRAPH)
    found = list(cut_opening([Segment(text, SENTENCE), following], 24))
    assert [part.text for part in found[:-1]] == (parts or [text])
    assert found[0].ends == ends and found[-2].ends == SENTENCE and found[-1] == following


def test_no_text_has_no_opening():
    assert list(cut_opening([], 24)) == []
