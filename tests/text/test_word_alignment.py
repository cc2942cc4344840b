"""Units of a text and the words that they belong to."""

import pytest

from myxtts.text.word_alignment import place_words


def split(text: str) -> list[str]:
    return list(text)


def found(alone: list[str], spoken: str) -> list[tuple[str, bool]]:
    places = place_words([split(word) for word in alone], split(spoken))
    return [(spoken[place.start : place.stop], place.is_exact) for place in places]


def test_words_that_sound_as_alone_are_found_without_their_punctuation():
    assert found(["hello,", "(world)."], "hello, (world).") == [("hello", True), ("world", True)]


def test_a_number_is_all_the_words_that_it_became():
    spoken = "at five thirty he left"
    words = found(["at", "five thirty", "he", "left"], spoken)
    assert words == [("at", True), ("five thirty", True), ("he", True), ("left", True)]


def test_merged_words_are_divided_where_their_sounds_meet():
    words = found(["wʌn", "ʌv", "ðə", "bɛst"], "wʌn ʌvðə bɛst")
    assert words == [("wʌn", True), ("ʌv", True), ("ðə", True), ("bɛst", True)]


def test_a_changed_word_is_exact_between_two_that_are_recognised():
    assert found(["tuː", "eɪ", "dɔɡ"], "tuː ɐ dɔɡ")[1] == ("ɐ", True)


def test_words_that_change_together_are_paired_one_by_one():
    words = found(["lʊk", "tuː", "eɪ", "dɔɡ"], "lʊk tʊ ɐ dɔɡ")
    assert words == [("lʊk", True), ("tʊ", True), ("ɐ", True), ("dɔɡ", True)]


def test_merged_words_that_sound_otherwise_are_a_guess():
    words = found(["kʌp", "ʌv", "eɪ", "tiː"], "kʌp əvə tiː")
    assert [is_exact for _, is_exact in words] == [True, False, False, True]


def test_words_that_change_places_are_a_guess_and_their_neighbours_are_not():
    spoken = "paid five million dollars at once"
    words = found(["paid", "five dollars", "million", "at", "once"], spoken)
    assert words == [
        ("paid", True),
        ("five", False),
        ("million dollars", False),
        ("at", True),
        ("once", True),
    ]


def test_stress_length_and_ties_do_not_matter():
    alone, spoken = ["wˌʌn", "fˈɔː͡ɹ"], ["w", "ˈʌ", "n", " ", "f", "ˈɔ", "ɹ"]
    places = place_words([split(word) for word in alone], spoken)
    assert [(place.start, place.stop) for place in places] == [(0, 3), (4, 7)]


def test_a_silent_word_has_no_units_and_stands_where_the_one_before_it_ends():
    places = place_words([split("so"), [], split("it")], split("so it"))
    assert [(place.start, place.stop) for place in places] == [(0, 2), (2, 2), (3, 5)]


def test_a_word_of_which_nothing_is_left_has_no_units():
    assert found(["one", "gone", "two"], "one two") == [("one", True), ("", False), ("two", True)]


def test_nothing_is_placed_where_nothing_is_said():
    assert place_words([], []) == []
    assert [(p.start, p.stop) for p in place_words([[], []], split("..."))] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("text", ["x" * 3000, "ab " * 1000, "12 " * 700])
def test_every_unit_of_a_long_text_stays_in_order(text):
    words = text.split()
    places = place_words([split(word) for word in words], split(text.strip()))
    starts = [place.start for place in places]
    assert starts == sorted(starts) and len(places) == len(words)
    assert all(a.stop <= b.start for a, b in zip(places, places[1:], strict=False))
