"""Books of text and Markdown in chapters."""

import pytest

from myxtts.errors import UserError
from myxtts.text.book import Chapter, read_book


def chapters(path, text: str) -> list[Chapter]:
    path.write_text(text, encoding="utf-8")
    return list(read_book(path).chapters)


def test_text_is_divided_at_headings_that_stand_alone(tmp_path):
    text = """\ufeffBy nobody.

CHAPTER I.

He came
and went.

Book in hand, he left.

Chapter 2: Who is it?

chapter two begins here
and goes on.

فصل سوم

پایان.
"""
    assert chapters(tmp_path / "a.txt", text) == [
        Chapter("", "By nobody."),
        Chapter("CHAPTER I.", "He came and went.\n\nBook in hand, he left."),
        Chapter("Chapter 2: Who is it?", "chapter two begins here and goes on."),
        Chapter("فصل سوم", "پایان."),
    ]


def test_headings_without_text_between_them_are_one_title(tmp_path):
    text = "Part One\n\nChapter 1\n\nText."
    assert chapters(tmp_path / "a.txt", text) == [Chapter("Part One. Chapter 1", "Text.")]


def test_a_book_without_headings_is_one_chapter(tmp_path):
    (tmp_path / "my book.txt").write_text("One.\r\n\r\nTwo.\r\n")
    book = read_book(tmp_path / "my book.txt")
    assert book.title == "my book" and book.chapters == (Chapter("", "One.\n\nTwo."),)


def test_markdown_is_divided_at_the_highest_heading_that_repeats(tmp_path):
    text = """---
title: x
---
# My *Book*

Intro.

## One

Text of [a link](http://x.y) and **bold**.

### Within

- first
- second

Two
---

End.
"""
    assert chapters(tmp_path / "a.md", text) == [
        Chapter("My Book", "Intro."),
        Chapter("One", "Text of a link and bold.\n\nWithin\n\nfirst\n\nsecond"),
        Chapter("Two", "End."),
    ]


@pytest.mark.parametrize(
    "name, content, complaint",
    [
        ("a.pdf", b"x", "a.pdf is no book: it must end in one of .txt, .md"),
        ("a.txt", b"\xff", "a.txt is not UTF-8"),
        ("a.txt", b" \n... \n", "there is no text in the book"),
        ("a.epub", b"no archive", "its archive is damaged"),
    ],
)
def test_what_is_no_book_is_an_error(tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=complaint):
        read_book(tmp_path / name)


def test_an_absent_book_and_a_folder_are_errors(tmp_path):
    with pytest.raises(UserError, match="cannot read the book .*absent.txt"):
        read_book(tmp_path / "absent.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(UserError, match="cannot read the book .*folder.txt"):
        read_book(tmp_path / "folder.txt")
