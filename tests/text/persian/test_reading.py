"""Persian texts as they are read: words, ezafes, homographs, phonemes and vowels."""

import pytest

from myxtts.text.cleaners import normalise
from myxtts.text.languages.persian.ezafe import with_ezafe, without_ezafe
from myxtts.text.languages.persian.homographs import choose_reading
from myxtts.text.languages.persian.inventory import PHONEMES, split_phonemes
from myxtts.text.languages.persian.stress import stress
from myxtts.text.languages.persian.tagger import ezafe_probabilities
from myxtts.text.languages.persian.tokens import split_words
from myxtts.text.languages.persian.vowels import mark_word
from myxtts.text.symbols import phoneme_symbols


def ezafes(text: str) -> list[str]:
    words = split_words(normalise(text, "fa"))[1]
    (found,) = ezafe_probabilities([words])
    return [word.text for word, chance in zip(words, found, strict=True) if chance > 0.5]


def reading(text: str, word: str) -> str:
    words = split_words(normalise(text, "fa"))[1]
    place = [item.text for item in words].index(word)
    return choose_reading(words, place, 0.0).phonemes


@pytest.fixture(scope="module")
def spoken():
    pytest.importorskip("espeakng_loader", reason="the extra `phonemes` is not installed")
    from myxtts.text.phonemes import phonemize

    return lambda text: phonemize([normalise(text, "fa")], "fa")[0]


def test_words_are_cut_at_half_spaces_but_keep_their_affixes():
    words = split_words("می\u200cروم به\u200cعنوان کتاب\u200cهای خانه\u200cی ما")[1]
    texts = [word.text for word in words]
    assert texts == ["می\u200cروم", "به", "عنوان", "کتاب\u200cهای", "خانه", "ما"]
    assert [word.has_ezafe for word in words] == [False] * 4 + [True, False]
    assert [word.is_joined for word in words] == [False, True] + [False] * 4


def test_marks_stay_between_the_words_and_before_the_first():
    lead, words = split_words("(سلام, دنیا)")
    assert lead == "(" and [word.gap for word in words] == [", ", ")"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("کتاب خوب را خواندم", ["کتاب"]),
        ("رئیس دانشگاه تهران آمد", ["رئیس", "دانشگاه"]),
        ("او به خانه رفت", []),
        ("نمایندگان مردم تهران در مجلس", ["نمایندگان", "مردم"]),
    ],
)
def test_the_tagger_finds_the_ezafes_of_plain_sentences(text, expected):
    assert ezafes(text) == expected


def test_nothing_has_an_ezafe_before_a_pause_or_at_the_end():
    assert ezafes("کتاب, خوب") == [] and ezafes("کتاب") == []


def test_an_ezafe_sounds_e_after_a_consonant_and_je_after_a_vowel():
    assert with_ezafe("کتاب", "ketɒb") == "ketɒbe"
    assert with_ezafe("خانه", "xɒne") == "xɒneje"
    assert with_ezafe("صندلی", "sændæli") == "sændælije"
    assert with_ezafe("کتاب\u200cهای", "ketɒbhɒ") == "ketɒbhɒje"
    assert with_ezafe("هوای", "hævɒj") == "hævɒje"
    assert without_ezafe("جای", "d͡ʒɒ") == "d͡ʒɒj"


def test_stress_is_on_the_last_vowel_or_on_the_prefix_of_a_verb():
    assert stress("کتاب", "ketɒb") == "ketˈɒb"
    assert stress("می\u200cروم", "miræværm") == "mˈiræværm"
    assert stress("از", "æz") == "æz"


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("چاقوی تیز و برنده", "برنده", "borænde"),
        ("برنده جایزه نوبل", "برنده", "bærænde"),
        ("کرم خاکی در خاک", "کرم", "kerm"),
        ("کرم مرطوب کننده پوست", "کرم", "kerem"),
        ("دویست گرم شکر", "گرم", "ɡeræm"),
        ("هوا خیلی گرم است", "گرم", "ɡærm"),
        ("دو تن گندم خرید", "تن", "ton"),
        ("سمت روستا و ده بالا", "ده", "deh"),
        ("غیبت دانش‌آموز در کلاس", "غیبت", "qejbæt"),
        ("غیبت گناه است و تهمت هم", "غیبت", "qibæt"),
    ],
)
def test_neighbours_decide_how_a_homograph_is_read(text, word, expected):
    assert reading(text, word) == expected


def test_all_phonemes_of_the_inventory_have_tokens():
    assert set(PHONEMES) <= set(phoneme_symbols())


def test_a_sentence_has_only_phonemes_of_the_inventory(spoken):
    said = spoken("دوستِ خوبِ ما چگونه ژاکت قرمزش را در خیابان گم کرد؟")
    assert said.startswith("dˈuste xˈube mˈɒ")
    assert set(split_phonemes(said)) <= {*PHONEMES, "ˈ", " ", "?"}


def test_a_latin_word_is_read_as_english(spoken):
    assert "ɹᵻpˈɔː͡ɹt" in spoken("فایل report را ببین")


def test_colloquial_forms_stay_as_they_are_written(spoken):
    assert spoken("می\u200cخوام برم خونه") == "mˈixɒm berˈæm xunˈe"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("پانزدهم خرداد", "pɒnzdæhˈome xordˈɒd"),
        ("هفتم مهر", "hæftˈome mˈehr"),
        ("نهم دی", "nohˈome dˈej"),
        ("دهم آبان", "dæhˈome ɒbˈɒn"),
        ("سی\u200cامین روز", "siʔomˈin rˈuz"),
        ("دوم و سوم", "dovvˈom o sevvˈom"),
        ("سهم یک سیم", "sˈæhme jˈek sˈim"),
    ],
)
def test_ordinals_end_in_om_and_words_that_look_like_them_do_not(spoken, text, expected):
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("۱۳۲ نفر", "sˈæd o sˈi jo dˈo næfˈær"),
        ("رفت و آمد", "rˈæft o ɒmˈæd"),
        ("او رفت و من آمدم", "ˈu rˈæft væ mˈæn ɒmædˈæm"),
        ("دو، و سه", "dˈo, væ sˈe"),
    ],
)
def test_and_is_short_in_numbers_and_fixed_pairs(spoken, text, expected):
    assert spoken(text) == expected


def test_the_digit_nine_is_not_read_as_no(spoken):
    assert spoken("۰۹۱۲۳۴۵۶۷۸۹").startswith("sˈefr nˈoh jˈek dˈo")
    assert spoken("ساعت نه بود. نه، نمی\u200cآیم.").endswith("bˈud. nˈæ, nˈemiɒjæm.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("می\u200cرویم", "mˈirævim"),
        ("می\u200cبینم", "mˈibinæm"),
        ("نمی\u200cدهم", "nˈemidæhæm"),
        ("می\u200cخورد", "mˈixoræd"),
        ("می\u200cرسم", "mˈiresæm"),
        ("می\u200cگویید", "mˈiɡujid"),
        ("می\u200cرفتند", "mˈiræftænd"),
    ],
)
def test_verbs_of_the_present_have_their_stem(spoken, text, expected):
    assert spoken(text) == expected


def test_the_whole_part_of_a_decimal_has_no_ezafe(spoken):
    assert spoken("۲۴٫۷ درصد").startswith("bˈist o t͡ʃæhˈɒr momæjjˈez")


@pytest.mark.parametrize(
    ("word", "phonemes", "expected"),
    [
        ("کتاب", "ketɒb", "کِتاب"),
        ("معلم", "moʔællem", "مُعَلِّم"),
        ("خانه", "xɒne", "خانه"),
        ("است", "æst", "اَست"),
        ("کتاب", "xxx", "کتاب"),
    ],
)
def test_short_vowels_are_written_where_letters_fit_the_sounds(word, phonemes, expected):
    assert mark_word(word, phonemes) == expected
