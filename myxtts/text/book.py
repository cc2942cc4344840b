"""Books: text, Markdown or EPUB, divided into chapters."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UserError
from myxtts.files import read_regular
from myxtts.text.epub import EpubError, read_epub
from myxtts.text.markdown import plain_lines, plain_text

ENDINGS = (".txt", ".md", ".markdown", ".epub")
MOST_BYTES = 1 << 28
# A line by itself that begins with one of these words. After it comes a number and whatever else,
# or a title, which does not end as a sentence does.
_CHAPTER_WORDS = (
    "chapter|part|book|prologue|epilogue|preface|introduction|foreword|afterword|appendix|"
    "kapitel|chapitre|cap[ií]tulo|capitolo|hoofdstuk|kapitola|rozdział|fejezet|bölüm|глава|часть|"
    "فصل|بخش|الفصل|अध्याय"
)
_HEADING = re.compile(
    rf"(?:{_CHAPTER_WORDS})(?:\s+(?:\d{{1,4}}|[ivxlcdm]{{1,9}})\b.{{0,80}}|\b(?:.{{0,79}}[^.!?,;:\"”’])?)",
    re.IGNORECASE,
)
_CHINESE_HEADING = re.compile(r"第[0-9〇零一二三四五六七八九十百千]{1,8}[章回部卷節节][^\n]{0,40}")
_MARKDOWN_HEADING = re.compile(r"(#{1,6})[ \t]+(.{0,500}?)[ \t]*#*")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading and the text below it; both are spoken."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Book:
    """The chapters of a book, in order, and who wrote it if it says so."""

    title: str
    chapters: tuple[Chapter, ...]
    author: str = ""


def read_book(path: Path) -> Book:
    """Read a book; one without a heading is one chapter."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UserError(f"{path} is no book: it must end in one of {', '.join(ENDINGS)}")
    try:
        content = read_regular(path)
    except OSError as error:
        raise UserError(f"cannot read the book {path} ({error.strerror}): check it") from error
    if len(content) > MOST_BYTES:
        raise UserError(f"the book {path} is larger than {MOST_BYTES:,} bytes: divide it")
    book = _from_epub(content, path) if ending == ".epub" else _from_text(content, path)
    chapters = tuple(one for one in book.chapters if _has_letters(one.title + one.text))
    if not chapters:
        raise UserError(f"there is no text in the book {path}: check that it is the right file")
    return Book(book.title, chapters, book.author)


def _from_epub(content: bytes, path: Path) -> Book:
    try:
        found = read_epub(content)
    except EpubError as error:
        raise UserError(f"cannot read the book {path}: {error}") from error
    chapters = tuple(Chapter(_join(titles), text) for titles, text in found.chapters)
    return Book(found.title or path.stem, chapters, found.author)


def _from_text(content: bytes, path: Path) -> Book:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): save it as UTF-8") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    is_markdown = path.suffix.lower() != ".txt"
    parts = _markdown_chapters(lines) if is_markdown else _plain_chapters(lines)
    return Book(path.stem, tuple(parts))


def _plain_chapters(lines: list[str]) -> Iterator[Chapter]:
    """Divide at lines that stand alone and read like the heading of a chapter."""
    heads = {
        number: lines[number].strip()
        for number in range(len(lines))
        if _stands_alone(lines, number) and _is_heading(lines[number].strip())
    }
    return _divide(lines, heads)


def _stands_alone(lines: list[str], number: int) -> bool:
    before = number == 0 or not lines[number - 1].strip()
    return before and (number + 1 == len(lines) or not lines[number + 1].strip())


def _is_heading(line: str) -> bool:
    is_sentence = line[:1].islower()
    return not is_sentence and bool(_HEADING.fullmatch(line) or _CHINESE_HEADING.fullmatch(line))


def _markdown_chapters(lines: list[str]) -> Iterator[Chapter]:
    """Divide at headings of the highest level that there are several of."""
    lines = plain_lines(lines)
    found = {
        number: (len(match[1]), plain_text(match[2]))
        for number, line in enumerate(lines)
        if (match := _MARKDOWN_HEADING.fullmatch(line.strip()))
    }
    counts = Counter(level for level, _ in found.values())
    several = [level for level, count in counts.items() if count > 1]
    chapter_level = min(several, default=max(counts, default=1))
    heads = {number: title for number, (level, title) in found.items() if level <= chapter_level}
    below = {number: title for number, (level, title) in found.items() if level > chapter_level}
    body = [
        f"\n{below[number]}\n" if number in below else plain_text(line)
        for number, line in enumerate(lines)
    ]
    return _divide(body, heads)


def _divide(lines: list[str], heads: dict[int, str]) -> Iterator[Chapter]:
    """Yield what is before the first heading, and what follows each; empty ones join the next."""
    bounds = [*heads, len(lines)]
    yield Chapter("", _paragraphs(lines[: bounds[0]]))
    titles: list[str] = []
    for start, end in zip(bounds, bounds[1:], strict=False):
        titles.append(heads[start])
        text = _paragraphs(lines[start + 1 : end])
        if text or end == len(lines):
            yield Chapter(_join(titles), text)
            titles = []


def _paragraphs(lines: Iterable[str]) -> str:
    """Join the lines of each paragraph: a line break within one ends no sentence."""
    text = "\n".join(line.strip(" \t\f\v") for line in lines)
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n{2,}", text) if part.strip())


def _join(titles: Sequence[str]) -> str:
    """Make one title of headings that follow each other."""
    *before, last = titles or [""]
    stops = (title if title.endswith((".", "!", "?", ":")) else f"{title}." for title in before)
    return " ".join([*stops, last])


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)
