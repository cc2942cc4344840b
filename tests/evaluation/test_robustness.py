import numpy as np
import pytest

from myxtts.evaluation.asr import error_rates
from myxtts.evaluation.robustness import compare_lengths, is_complete, lost, stuck


def test_lengths_are_compared_in_sum_and_one_by_one():
    found = compare_lengths([40, 100, 210, 100], [100, 100, 100, 50])
    # 450 of 350 in all; half or twice the length is still accepted.
    assert found.ratio == pytest.approx(450 / 350)
    assert (found.lowest, found.highest) == (0.4, 2.1)
    assert (found.too_short, found.too_long) == ({0}, {2})


def test_a_sound_that_does_not_end_is_found():
    durations = [np.array([5, 9, 100]), np.array([5, 101])]
    assert stuck(durations, frame_seconds=0.01) == {1}


def test_a_sentence_of_which_half_the_words_are_gone_is_lost():
    pytest.importorskip("jiwer")
    said = ["one two three four", "five six seven eight"]
    recorded = error_rates(said, ["one two three four", "five six seven"])
    # Two of four are just enough; one of the three that the recording gave is not.
    assert lost(error_rates(said, ["one two", "five"]), recorded) == {1}


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
def test_an_alignment_is_complete_when_no_token_is_left_out(frame_tokens, complete):
    assert is_complete(np.array(frame_tokens), 3) is complete
