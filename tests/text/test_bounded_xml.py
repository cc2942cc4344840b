"""XML that cannot expand, nest or grow without end."""

import pytest

from myxtts.text.bounded_xml import MOST_DEPTH, XmlError, parse_xml


class Texts:
    """Collects what it is given."""

    def __init__(self):
        self.seen: list[str] = []

    def start(self, name, attributes):
        if name == "bad":
            raise ValueError("a bad element")
        self.seen.append(f"<{name}>")

    def end(self, name):
        self.seen.append(f"</{name}>")

    def text(self, text):
        self.seen.append(text)


def parse(document, **options) -> list[str]:
    texts = Texts()
    parse_xml(document, texts, **options)
    return texts.seen


def test_elements_and_text_come_in_order():
    assert parse("<a>x<b/>&amp;é</a>") == ["<a>", "x", "<b>", "</b>", "&é", "</a>"]


def test_bytes_have_the_encoding_that_they_declare():
    document = '<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16")
    assert parse(document) == ["<a>", "é", "</a>"]


def test_names_of_html_are_known_where_a_doctype_may_stand():
    assert (
        "".join(parse("<!DOCTYPE html><a>x&nbsp;y</a>", may_have_doctype=True)) == "<a>x\xa0y</a>"
    )


LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]>\n<a>&c;</a>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>\n<a>&b;</a>'
PARAMETER = '<!DOCTYPE a [<!ENTITY % b "x">%b;]>\n<a></a>'


@pytest.mark.parametrize("document", [LAUGHS, OUTSIDE, PARAMETER])
@pytest.mark.parametrize("may_have_doctype", [False, True])
def test_entities_are_refused_before_they_expand(document, may_have_doctype):
    with pytest.raises(XmlError, match=r"line 1, column \d+: it declares .* expand without end"):
        parse(document, may_have_doctype=may_have_doctype)


@pytest.mark.parametrize(
    "document, complaint",
    [
        ("<a>\n<b></a>", r"line 2, column 6: it is not well-formed XML \(mismatched tag\)"),
        ("", "line 1, column 1: it is not well-formed"),
        ("plain", "line 1, column 1: it is not well-formed"),
        ("<a>\n x<bad/></a>", "line 2, column 3: a bad element"),
        ("<a>" * (MOST_DEPTH + 1), f"nested more than {MOST_DEPTH} deep"),
        ("<a>&nbsp;</a>", "undefined entity"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(document, complaint):
    with pytest.raises(XmlError, match=complaint):
        parse(document)


def test_a_document_has_a_largest_size():
    with pytest.raises(XmlError, match="larger than 10 bytes"):
        parse("<a>aaaaaaaaa</a>", most_bytes=10)
