"""`myxtts text` and `myxtts language`."""

import pytest


@pytest.fixture(autouse=True)
def espeak():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")


def test_show_prints_ezafes_homographs_and_how_sure_they_are(myxtts):
    code, out, _ = myxtts("text", "show", "--language", "fa", "کتاب خوب را ۳ بار خواندم")
    assert code == 0
    assert "کتاب خوب را سه بار خواندم" in out and "ketˈɒbe xˈub rɒ sˈe bˈɒr" in out
    assert "ezafe 8" in out or "ezafe 9" in out
    assert "not mord" in myxtts("text", "show", "--language", "fa", "آن مرد آمد")[1]


def test_show_names_what_is_not_spoken(myxtts):
    out = myxtts("text", "show", "--language", "en", "hello 日本")[1]
    assert "normalised  hello 日本" in out and "2 characters are not spoken" in out


def test_vowelise_writes_short_vowels_and_ezafes(myxtts):
    code, out, _ = myxtts("text", "show", "--language", "fa", "--vowelise", "کتاب معلم ما")
    assert (code, out) == (0, "کِتابِ مُعَلِّمِ ما\n")


def test_vowelise_is_refused_where_no_vowels_are_left_out(myxtts):
    code, _, err = myxtts("text", "show", "--language", "de", "--vowelise", "Hallo")
    assert code == 2 and "German (de) is not vowelised: choose one of fa" in err


def test_evaluate_names_missing_test_sets(myxtts, tmp_path):
    code, _, err = myxtts("text", "evaluate", "--language", "fa", "--test-sets", tmp_path)
    assert code == 2 and "Kasre_test.csv is missing" in err and "MYXTTS_TEST_SETS" in err
    code, _, err = myxtts("text", "evaluate", "--language", "de")
    assert code == 2 and "no test sets: choose one of fa" in err


def test_evaluate_prints_the_front_end_and_espeak(myxtts, tmp_path):
    for name in ("Kasre_test.csv", "Homograph_test.csv"):
        rows = "Grapheme,Phoneme\nکتاب خوب را خواندم,ketabe1 xub ra xand/m\n"
        (tmp_path / name).write_text(rows, encoding="utf-8")
    code, out, _ = myxtts("text", "evaluate", "--test-sets", tmp_path)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and len(lines) == 5
    assert "1.000" in lines[1] and "0.000" in lines[2]  # espeak says no ezafe here


def test_language_check_lists_what_holds_and_what_is_lacking(myxtts):
    code, out, _ = myxtts("language", "check", "fa")
    assert code == 0 and out.endswith("nothing is lacking\n")
    code, out, _ = myxtts("language", "check", "hi")
    assert code == 0 and "lacking: ordinals, front end" in out
