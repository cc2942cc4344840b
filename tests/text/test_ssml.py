"""SSML in pieces: what is said, how, and with which pauses."""

import pytest

from myxtts.text.errors import TextError
from myxtts.text.marks import Mark
from myxtts.text.ssml import Piece, parse_ssml
from myxtts.text.ssml_values import Manner, break_seconds, gain_of, rate_of


def pieces(body: str) -> tuple[Piece, ...]:
    return parse_ssml(f"<speak>{body}</speak>", "en").pieces


def texts(body: str) -> list[str]:
    return [piece.text.text for piece in pieces(body)]


def parts(body: str) -> list:
    (piece,) = pieces(body)
    return piece.text.marks.cut(piece.text.text)


def test_a_plain_document_is_one_piece_and_its_line_breaks_are_spaces():
    (piece,) = pieces("\n  One.\n\n  Two &amp; three.\n")
    assert piece.text.text == "One. Two & three." and piece.manner == Manner()
    assert (piece.ends, piece.break_seconds) == ("sentence", None)


def test_sentences_and_paragraphs_end_where_they_are_closed():
    assert texts("<p><s>One</s> <s>Two</s></p><p>Three</p>") == ["One\nTwo\n\nThree"]


@pytest.mark.parametrize(
    "element, seconds",
    [
        ('<break time="500ms"/>', 0.5),
        ('<break time="1.5s"/>', 1.5),
        ('<break strength="x-strong"/>', 1.2),
        ('<break strength="none"/>', 0.0),
        ("<break/>", 0.4),
    ],
)
def test_a_break_ends_a_piece(element, seconds):
    first, second = pieces(f"One{element}two.")
    assert (first.text.text, first.break_seconds) == ("One", seconds)
    assert (second.text.text, second.break_seconds) == ("two.", None)


def test_a_break_may_come_first():
    assert [
        (piece.text.text, piece.break_seconds) for piece in pieces("<break time='1s'/>One")
    ] == [
        ("", 1.0),
        ("One", None),
    ]


def test_words_that_are_read_otherwise_are_marks():
    body = 'A <phoneme alphabet="ipa" ph="təˈmɑːtəʊ">tomato</phoneme>, <sub alias="w w w">W3</sub>.'
    tomato, www = Mark("tomato", "tomato", "təˈmɑːtəʊ"), Mark("W3", "w w w")
    assert parts(body) == ["A ", tomato, ", ", www, "."]
    assert parts('<say-as interpret-as="ordinal">3</say-as>') == [Mark("3", "third")]
    assert parts('<phoneme ph="æ"/>') == [Mark("æ", "anna", "æ")]


def test_manners_nest_and_end():
    body = """a <prosody rate="200%" volume="+6dB">b <prosody rate="fast">c</prosody></prosody>
    <voice name="ben">d <lang xml:lang="fa-IR">e</lang></voice> f"""
    found = [(piece.text.text, piece.manner) for piece in pieces(body)]
    assert found == [
        ("a", Manner()),
        ("b", Manner(2.0, 6.0)),
        ("c", Manner(pytest.approx(2.66), 6.0)),
        ("d", Manner(speaker="ben")),
        ("e", Manner(speaker="ben", language="fa")),
        ("f", Manner()),
    ]


def test_a_sentence_that_ends_with_a_manner_pauses_as_a_sentence():
    first, second, third = pieces("<s>One</s><voice name='b'>Two,</voice><p>Three</p>")
    assert (first.ends, second.ends, third.ends) == ("sentence", "paragraph", "paragraph")
    (first, _) = pieces("so <voice name='b'>it</voice>")
    assert first.ends is None


def test_unknown_elements_are_read_and_warned_of_once():
    script = parse_ssml(
        "<speak><emphasis>One</emphasis> <emphasis>two</emphasis> <prosody pitch='high'>x</prosody>"
        "<metadata>not <b>read</b></metadata></speak>",
        "en",
    )
    assert [piece.text.text for piece in script.pieces] == ["One two x"]
    assert script.warnings == (
        "<emphasis> is not known: its text is read as it is",
        "'pitch' of <prosody> has no effect",
    )


@pytest.mark.parametrize(
    "document, complaint",
    [
        ("<speak>One", r"line 1, column 11: it is not well-formed.*close every element"),
        ("<speak>\na & b</speak>", "line 2, column 4: it is not well-formed.*&amp;"),
        ("<p>One</p>", "line 1, column 1: the outermost element is <p>"),
        ('<!DOCTYPE speak [<!ENTITY a "b">]><speak>&a;</speak>', "it declares a document type"),
        ("<speak><break time='soon'/></speak>", "line 1, column 8: the time 'soon'"),
        ("<speak><break time='61s'/></speak>", "the longest is 60 s"),
        ("<speak><break strength='big'/></speak>", "the strength 'big' is none of"),
        ("<speak><prosody rate='zoom'>a</prosody></speak>", "the rate 'zoom'"),
        ("<speak><prosody rate='-100%'>a</prosody></speak>", "leaves no speed"),
        ("<speak><prosody volume='11'>a</prosody></speak>", "the volume '11'"),
        ("<speak><phoneme>a</phoneme></speak>", "<phoneme> has no sounds"),
        ("<speak><phoneme alphabet='x-sampa' ph='a'/></speak>", "the alphabet 'x-sampa'"),
        ("<speak><sub>a</sub></speak>", "<sub> has no alias"),
        ("<speak xml:lang='tlh'>a</speak>", "unknown language 'tlh'"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(document, complaint):
    with pytest.raises(TextError, match=complaint):
        parse_ssml(document, "en")


def test_values_are_read():
    assert [rate_of(value) for value in ("x-slow", "0.5", "50%", "+50%", "-25%")] == [
        *(0.5, 0.5, 0.5, 1.5, 0.75)
    ]
    assert [gain_of(value) for value in ("soft", "+6dB", "-3.5dB", "default")] == [-6, 6, -3.5, 0]
    assert break_seconds({"time": ".25s", "strength": "none"}) == 0.25
