"""Phoneme errors, ezafes and homographs of annotated sentences."""

import pytest

from myxtts.text.languages.persian.alignment import align, can_be
from myxtts.text.languages.persian.annotations import annotate
from myxtts.text.languages.persian.inventory import GE2PE, as_espeak_codes, from_espeak
from myxtts.text.languages.persian.judging import Hypothesis, System, edit_distance, judge
from tests.helpers.shared_data import shared


def test_written_and_spoken_words_are_paired_by_their_consonants():
    pairs = align(["کتاب", "به", "عنوان"], ["ketɒb", "beʔonvɒn"])
    assert pairs == [(slice(0, 1), slice(0, 1)), (slice(1, 3), slice(1, 2))]
    assert can_be("مرداد", "mordɒd") and not can_be("مرداد", "pænd͡ʒ")


def test_ezafes_and_homographs_are_read_from_their_marks():
    found = annotate("مرد خانه بزرگ", "m/rde12 xaneye1 bozorg", GE2PE)
    assert found.ezafes == [True, True, False]
    assert found.homographs == [True, False, False]
    assert found.spoken == ["mærd", "xɒne", "bozorɡ"]
    assert found.phonemes == ["mærde", "xɒneje", "bozorɡ"]


def test_a_mark_behind_a_silent_he_without_a_glide_is_no_ezafe():
    assert annotate("نامه آمد", "name1 @am/d", GE2PE).ezafes == [False, False]


def test_a_mark_behind_the_e_of_a_silent_he_is_an_ezafe():
    found = annotate("نامه او", "namee1 @u", GE2PE)
    assert found.ezafes == [True, False] and found.spoken[0] == "nɒme"


def test_phonemes_are_written_in_the_codes_of_espeak():
    assert as_espeak_codes("ɒjˈɒ, t͡ʃetˈor ʒˈɒle?") == "[[Aj'A]], [[tSet'oR Z'Ale]]?"


def test_espeak_is_written_in_the_inventory():
    assert from_espeak("ketˈɑb d͡ʒˌaɣeː") == "ketɒb d͡ʒæqe"


def test_edits_are_counted():
    assert edit_distance("abc", "abc") == 0 and edit_distance("abc", "xbcd") == 2


def test_the_figures_of_a_system_are_those_worked_out_by_hand():
    sentence = annotate("مرد خانه بزرگ", "m/rde12 xaneye1 bozorg", GE2PE)
    # Of 18 phonemes one is missing; of two ezafes one is found, and one where none is.
    said = Hypothesis(["mærd", "xɒne", "bozorɡ"], [True, False, True], "mærde xɒneje bozor")
    score = judge([sentence], ["x"], System("x", lambda texts: [said], lambda _, one: one))
    assert score.phoneme_errors == pytest.approx(1 / 17)
    assert (score.precision, score.recall, score.f1) == (0.5, 0.5, 0.5)
    assert score.homographs == 1.0


def test_the_front_end_meets_its_bars_on_the_test_sets():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    from myxtts.text.showing import judge as judge_language

    rows = judge_language("fa", shared("persian") / "ge2pe")[1:]
    kasre, kasre_espeak, homographs, homographs_espeak = rows
    assert float(kasre[5]) >= 0.80 > 0.3 > float(kasre_espeak[5])
    assert float(kasre[2]) <= 5.0 < float(kasre_espeak[2])
    assert float(homographs[6]) >= 60.0 > float(homographs_espeak[6])
