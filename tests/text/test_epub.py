"""EPUB: chapters, and archives made to exhaust the machine."""

import re
import zipfile
from io import BytesIO

import pytest

from myxtts.text import epub
from myxtts.text.epub import EpubError, read_epub
from tests.helpers.make_epub import make_epub


def test_chapters_follow_the_spine_and_its_headings():
    book = read_epub(
        make_epub(
            "<p>Cover</p>",
            "<h1>Part&nbsp;One</h1><h2>Al<b>pha</b></h2><p>Text <i>a</i>.</p><p>More.</p>",
            "<div>continued<br/>here</div><style>p {}</style>",
            "<h2>Beta</h2><ul><li>x</li><li>y</li></ul><h2>Gamma</h2>",
        )
    )
    assert (book.title, book.author) == ("The Book", "A. Writer")
    assert book.chapters == [
        ([], "Cover"),
        (["Part One", "Alpha"], "Text a.\n\nMore.\n\ncontinued\n\nhere"),
        (["Beta"], "x\n\ny"),
        (["Gamma"], ""),
    ]


def test_contents_and_pages_outside_the_order_are_not_read():
    book = make_epub("<p>One</p>", "<p>Two</p>", "<p>Three</p>")
    book = changed(book, "OEBPS/book.opf", 'id="p0"', 'id="p0" properties="nav"')
    book = changed(book, "OEBPS/book.opf", 'idref="p2"', 'idref="p2" linear="no"')
    assert read_epub(book).chapters == [([], "Two")]


def changed(book: bytes, name: str, old: str, new: str | None) -> bytes:
    """A book with something else in one of its files, or without that file."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(book)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            content = source.read(info).decode()
            if info.filename == name:
                if new is None:
                    continue
                assert old in content
                content = content.replace(old, new)
            target.writestr(info.filename, content)
    return out.getvalue()


def test_a_page_that_unpacks_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(epub, "MOST_DOCUMENT_BYTES", 1 << 16)
    bomb = make_epub("a" * (1 << 20))
    assert len(bomb) < 1 << 16
    with pytest.raises(EpubError, match="OEBPS/page 0.xhtml unpacks to more than 65,536 bytes"):
        read_epub(bomb)


def test_many_pages_are_refused_in_sum_and_in_number(monkeypatch):
    monkeypatch.setattr(epub, "MOST_TOTAL_BYTES", 1 << 16)
    with pytest.raises(EpubError, match="the archive unpacks to more than 65,536 bytes"):
        read_epub(make_epub(*["a" * 10_000] * 10))
    monkeypatch.setattr(epub, "MOST_DOCUMENTS", 3)
    with pytest.raises(EpubError, match="more than 3 documents"):
        read_epub(make_epub(*["<p>a</p>"] * 4))


def test_a_list_of_files_that_fills_the_memory_is_refused():
    book = bytearray(make_epub("<p>One</p>"))
    end = book.rfind(b"PK\x05\x06")
    book[end + 12 : end + 16] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(EpubError, match="its list of files takes 1,073,741,824 bytes"):
        read_epub(bytes(book))


LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;">]><html><p>&c;</p></html>'


@pytest.mark.parametrize(
    "name, old, new, complaint",
    [
        ("META-INF/container.xml", "", None, "it has no META-INF/container.xml"),
        ("META-INF/container.xml", "rootfile ", "other ", "it names no package"),
        ("OEBPS/page 0.xhtml", "", None, "it has no OEBPS/page 0.xhtml"),
        ("OEBPS/book.opf", "page%200", "../../../etc/passwd", "it has no ../../etc/passwd"),
        ("OEBPS/page 0.xhtml", "<p>", "<p><b>", "page 0.xhtml, line 1, column .*mismatched tag"),
        ("OEBPS/page 0.xhtml", "<!DOCTYPE html>", LAUGHS[: LAUGHS.index("<html>")], "entities"),
    ],
)
def test_what_is_wrong_with_a_book_is_named(name, old, new, complaint):
    with pytest.raises(EpubError, match=complaint):
        read_epub(changed(make_epub("<p>One</p>"), name, old, new))


def test_every_cut_and_every_flipped_byte_is_a_clear_error_or_a_book():
    book = make_epub("<h1>One</h1><p>Some text.</p>")
    damaged = [book[:size] for size in range(0, len(book), 37)]
    damaged += [
        book[:at] + bytes([book[at] ^ 0xFF]) + book[at + 1 :] for at in range(0, len(book), 11)
    ]
    for content in damaged:
        try:
            read_epub(content)
        except EpubError as error:
            assert re.search(r"\w", str(error))


def test_an_encrypted_book_is_refused():
    book = bytearray(make_epub("<p>One</p>"))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := book.find(signature, at + 1)) >= 0:
            book[at + flags] |= 1
    with pytest.raises(EpubError, match="encrypted"):
        read_epub(bytes(book))
