"""Sentences to read aloud: few of them hold all sounds."""

import pytest

from myxtts.text.guess import SCRIPT_LETTERS
from myxtts.text.prompts import OWN, choose_prompts


def test_the_sentence_with_most_new_sounds_for_its_length_comes_first():
    sentences = ["one", "two", "three"]
    sounds = ["aaaaaaaaaaaaaaaaaaaaaaaaaa", "abcdefghijklmnopqrstuvwxyz", "zzzzzzzzzzzzzzzzzzzzäz"]
    assert choose_prompts(sentences, sounds, 3) == ["two", "three", "one"]


def test_equally_good_sentences_keep_their_order():
    assert choose_prompts(["x", "y", "z"], ["ab", "ab", "ab"], 2) == ["x", "y"]


def test_pauses_and_marks_are_no_sounds():
    assert choose_prompts(["marks", "sound"], ["!?,.:;", "a"], 1) == ["sound"]


@pytest.mark.parametrize("language, script", [("en", "Latin"), ("fa", "Arabic")])
def test_our_own_sentences_are_of_their_language_and_differ(language, script):
    assert len(set(OWN[language])) == len(OWN[language])
    for sentence in OWN[language]:
        assert SCRIPT_LETTERS[script].search(sentence) and len(sentence) < 80


def test_few_chosen_sentences_hold_all_letters_of_a_language():
    pool = [one.lower() for one in OWN["en"]]
    chosen = choose_prompts(pool, pool, 6)
    assert len({letter for one in chosen for letter in one if letter.isalpha()}) == 26
