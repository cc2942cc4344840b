import numpy as np
import pytest

from myxtts.evaluation.metrics.robustness import (
    Attempt,
    FaultCounts,
    UsualDurations,
    count_faults,
    find_faults,
    is_complete,
    lost,
    repeated_words,
    stuck,
    usual_durations,
)


def test_a_sound_that_does_not_end_is_found():
    durations = [np.array([5, 9, 100]), np.array([5, 101])]
    assert stuck(durations, frame_seconds=0.01).tolist() == [False, True]


def test_a_sentence_without_half_of_its_words_is_lost():
    recorded = ["one two three four", "five six seven"]
    # Two of four are just enough; one of the three that the recording gave is not.
    assert lost(["one two", "five"], recorded, "en").tolist() == [False, True]


@pytest.mark.parametrize(
    "frame_tokens, complete",
    [
        ([0, 0, 1, 2, 2], True),
        ([0, 2, 2], False),  # a token is jumped over
        ([0, 1, 0, 1, 2], False),  # back again
        ([1, 2, 2], False),  # the first is missing
        ([0, 1, 1], False),  # the last is missing
    ],
)
def test_an_alignment_is_complete_when_no_token_is_skipped(frame_tokens, complete):
    assert is_complete(np.array(frame_tokens), 3) is complete


def test_usual_durations_are_medians_per_token_and_over_all_for_rare_ones():
    tokens = [np.array([1, 2, 1, 1]), np.array([1, 1, 3, 2, 2, 2, 2])]
    durations = [np.array([4, 10, 5, 6]), np.array([7, 80, 1, 11, 12, 13, 14])]
    usual = usual_durations(tokens, durations)
    # 1 has 4 5 6 7 80, 2 has 10 11 12 13 14, and 3 was said once.
    assert usual == UsualDurations({1: 6.0, 2: 12.0}, 10.0)
    assert usual.expected(np.array([2, 3, 9])).tolist() == [12.0, 10.0, 10.0]


USUAL = UsualDurations({1: 8.0, 2: 2.0}, 5.0)
# 8 + 2 + 8 + 8 + 2 + 8 + 8 + 2: at this usual they have 46 frames.
TOKENS = np.array([1, 2, 1, 1, 2, 1, 1, 2])


def attempt(durations, kind="numbers", heard=None, frames=None) -> Attempt:
    durations = np.array(durations)
    frames = durations.sum() if frames is None else frames
    return Attempt(kind, "one two", TOKENS, durations, frames, heard)


@pytest.mark.parametrize(
    "durations, skipped, endless",
    [
        ([8, 2, 8, 8, 2, 8, 8, 2], False, False),
        ([3, 1, 3, 3, 1, 4, 6, 2], False, False),  # 23 of 46: fast, and just not too short
        ([3, 1, 3, 3, 1, 4, 5, 2], True, False),  # 22
        ([9, 3, 9, 1, 0.4, 1, 9, 3], True, False),  # three tokens in a row have no time
        ([9, 3, 1, 1, 2, 1, 9, 3], False, False),  # two and one are not three
        ([16, 4, 16, 16, 4, 16, 16, 4], False, False),  # slow: just not too long
        ([16, 4, 16, 16, 4, 16, 16, 5], False, True),
        ([8, 2, 8, 51, 2, 8, 1, 2], False, True),  # a sound of 1.02 s, in 82 of 92 frames
    ],
)
def test_faults_are_found_without_a_recording(durations, skipped, endless):
    (found,) = find_faults([attempt(durations)], USUAL, frame_seconds=0.02, language="en")
    assert (found.is_skipped, found.is_endless, found.repeated) == (skipped, endless, None)
    assert found.is_faultless is not (skipped or endless)


def test_truncated_speech_is_skipped_by_its_length():
    (found,) = find_faults([attempt([8, 2, 8, 8, 2, 8, 8, 2], frames=20)], USUAL, 0.02, "en")
    assert found.is_skipped


@pytest.mark.parametrize(
    "said, heard, repeated",
    [
        ("We saw the cat.", "we saw the cat", ""),
        ("We saw the cat.", "We saw, we saw the cat!", "we saw"),
        ("We saw the cat.", "we saw the cat we saw the cat", "we saw the cat"),
        ("We saw the cat.", "we saw saw the cat", "saw"),
        ("We saw the cat.", "the cat", ""),
        ("We saw the cat.", "wee sore a cat or two", ""),  # wrong, but nothing twice
        ("It is to two.", "it is to to", ""),  # a word for another
        ("Last of the men, down to the sea.", "last of the men out of the sea", ""),  # or two
        ("No, no, no, no!", "no no no no", ""),
        ("No, no, no, no!", "no no no no no no", "no no no no"),
        ("No, no, no, no!", "no no no", ""),
        ("Row after row.", "row after row after row", "row after row"),
        ("We have 2 cats.", "we have two two cats", "two"),
        ("Why?", "why why why", "why"),
        ("Why?", "", ""),
    ],
)
def test_words_more_often_in_the_transcript_than_in_the_text_are_repeated(said, heard, repeated):
    assert repeated_words(said, heard, "en") == repeated


def test_faults_are_counted_by_kind_and_in_total():
    good, short, long = [8, 2, 8, 8, 2, 8, 8, 2], [2] * 8, [80] * 8
    attempts = [
        attempt(good, "numbers", heard="one two"),
        attempt(short, "numbers", heard="two"),
        attempt(long, "names"),
        attempt(long, "numbers", heard="one one one two"),
    ]
    counts = count_faults(find_faults(attempts, USUAL, 0.02, "en"))
    assert counts == [
        FaultCounts("numbers", texts=3, skipped=1, endless=1, repeated=1, faulty=2),
        FaultCounts("names", texts=1, skipped=0, endless=1, repeated=None, faulty=1),
        FaultCounts("all", texts=4, skipped=1, endless=2, repeated=1, faulty=3),
    ]
    assert count_faults([]) == [FaultCounts("all", 0, 0, 0, None, 0)]
