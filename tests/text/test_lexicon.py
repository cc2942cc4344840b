"""Lexicons: what a line means, what is found in a text, and what is wrong with a file."""

import pytest

from myxtts.text.errors import TextError
from myxtts.text.lexicon import Lexicon, parse_lexicon, read_lexicon
from myxtts.text.marks import Mark, Marks
from myxtts.text.tokenizer import Tokenizer

LETTERS = Tokenizer.build(["en", "fa"])
PHONEMES = Tokenizer.build(["en"], "phonemes")


def marked(lexicon: Lexicon, text: str, language: str = "en", tokenizer=LETTERS) -> list:
    marks = Marks()
    return marks.cut(lexicon.for_voice(tokenizer, language).mark(text, marks))


def test_a_word_is_respelled_wherever_it_stands_whole():
    lexicon = parse_lexicon("# names\n\nsiobhan = shivawn  # Irish\n")
    siobhan = Mark("Siobhan", "shivawn")
    assert marked(lexicon, "(Siobhan), Siobhans") == ["(", siobhan, "), Siobhans"]


def test_capitals_mean_that_spelling_alone():
    lexicon = parse_lexicon("US = you ess\npolish = pollish\nPolish = poalish")
    assert marked(lexicon, "us US") == ["us ", Mark("US", "you ess")]
    assert [mark.read for mark in marked(lexicon, "Polish polish POLISH") if mark != " "] == [
        "poalish",
        "pollish",
        "pollish",
    ]


def test_several_words_win_over_one():
    lexicon = parse_lexicon("york = yok\nNew York = noo yawk\ndon’t = doant")
    assert marked(lexicon, "New York, york don't") == [
        Mark("New York", "noo yawk"),
        ", ",
        Mark("york", "yok"),
        " ",
        Mark("don't", "doant"),
    ]


def test_a_section_is_for_one_language_and_wins_over_the_rest():
    lexicon = parse_lexicon("ali = alley\n[fa]\nali = علی\n")
    assert marked(lexicon, "ali") == [Mark("ali", "alley")]
    lexicon = parse_lexicon("[fa]\nali = علی\n[en]\nali = alley")
    assert marked(lexicon, "ali", "fa") == [Mark("ali", "علی")]


def test_an_english_entry_holds_for_its_possessive():
    lexicon = parse_lexicon("Siobhan = shivawn\nMax = /mˈæks/\nPat = /pˈæt/\nAnna = /ˈænə/")
    assert marked(parse_lexicon("Siobhan = shivawn"), "Siobhan’s") == [
        Mark("Siobhan’s", "shivawn's")
    ]
    found = marked(lexicon, "Max's Pat's Anna's", tokenizer=PHONEMES)
    assert [mark.ipa for mark in found if mark != " "] == ["mˈæksᵻz", "pˈæts", "ˈænəz"]


def test_ipa_stands_between_slashes():
    lexicon = parse_lexicon("Nguyen = /wˈɪn/")
    assert marked(lexicon, "Nguyen", tokenizer=PHONEMES) == [Mark("Nguyen", "Nguyen", "wˈɪn")]


def test_a_voice_of_characters_refuses_ipa_by_its_line():
    with pytest.raises(TextError, match=r"names.txt, line 2: the voice reads characters.*respell"):
        parse_lexicon("a = b\nc = /d/", "names.txt").for_voice(LETTERS, "en")


@pytest.mark.parametrize(
    "line, tokenizer, complaint",
    [
        ("x = /aǃ/", PHONEMES, r"the voice has no symbol 'ǃ' \(U\+01C3\).*the IPA of 'x'"),
        ("x = 你", LETTERS, r"the voice has no '你' \(U\+4F60\).*the respelling of 'x'"),
        ("x = ...", LETTERS, "the respelling of 'x' has no sound"),
    ],
)
def test_what_a_voice_cannot_say_is_named_with_its_line(line, tokenizer, complaint):
    with pytest.raises(TextError, match=f"names.txt, line 2: {complaint}"):
        parse_lexicon(f"a = b\n{line}", "names.txt").for_voice(tokenizer, "en")


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("word", "'word' is not an entry"),
        ("word =", "'word =' is not an entry"),
        ("= said", "'' has no letters"),
        ("word, = said", "'word,' begins or ends with a mark"),
        ("word = //", "nothing stands between the slashes"),
        ("[xx]", "unknown language 'xx'"),
    ],
)
def test_a_line_that_is_no_entry_is_named(line, complaint):
    with pytest.raises(TextError, match=f"the lexicon, line 3: {complaint}"):
        parse_lexicon(f"a = b\n\n{line}\n")


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(TextError, match="cannot read the lexicon .*absent.txt"):
        read_lexicon(tmp_path / "absent.txt")
    with pytest.raises(TextError, match="cannot read the lexicon"):
        read_lexicon(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"a = b\nc = \xff\n")
    with pytest.raises(TextError, match="a.txt, line 2: it is not UTF-8"):
        read_lexicon(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_text("\ufeffa = b\r\n", encoding="utf-8")
    assert [entry.word for entry in read_lexicon(tmp_path / "b.txt").entries] == ["a"]
