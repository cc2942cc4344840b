"""Marks in a text, and how IPA between brackets becomes one."""

import pytest

from myxtts.text.marks import Mark, Marks, carrier, mark_inline, without_places


def cut(parts, marks: Marks) -> list:
    return marks.cut("".join(parts))


def test_ipa_in_brackets_becomes_a_mark():
    marks = Marks()
    text = mark_inline("say [[ wɜːld ]], then [[/wɜːld/]]", marks)
    world = Mark("wɜːld", "nana", "wɜːld")
    assert marks.cut(text) == ["say ", world, ", then ", world]
    assert len(text) == len("say X, then X")


def test_letters_next_to_brackets_stand_apart():
    marks = Marks()
    assert marks.cut(mark_inline("a[[ b ]]c", marks)) == ["a ", Mark("b", "nana", "b"), " c"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_text_in_parts_has_the_same_marks(size):
    text = "one [ two ] [[ wɜːld ]] three [[a]] [ [[ open"
    whole, parts = Marks(), Marks()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    expected = whole.cut(mark_inline(text, whole))
    assert "".join(map(repr, cut(mark_inline(iter(pieces), parts), parts))) == "".join(
        map(repr, expected)
    )


def test_brackets_that_are_never_closed_do_not_hold_a_text_back():
    parts = list(mark_inline(iter(["[[ a"] + ["b" * 100] * 20), Marks()))
    assert "".join(parts) == "[[ a" + "b" * 2000
    assert len(parts) > 1


def test_characters_of_a_text_cannot_pose_as_marks():
    marks = Marks()
    marks.add(Mark("x", "y"))
    assert without_places("a\U000f0000b") == mark_inline("a\U000f0000b", marks) == "ab"


def test_a_carrier_begins_as_the_sound_does():
    assert (carrier("ˈæpəl"), carrier("ˈtɛst"), carrier("")) == ("anna", "nana", "nana")
