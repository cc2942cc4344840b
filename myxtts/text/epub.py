"""EPUB: the chapters of a book, read from its archive without unpacking it.

Documents are read in the order of the spine. Every size is bounded by what was really unpacked, not
by what the archive claims, and nothing is written to the disk.
"""

import lzma
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from urllib.parse import unquote, urldefrag

from myxtts.text.bounded_xml import XmlError, parse_xml

CONTAINER = "META-INF/container.xml"
MOST_DOCUMENTS = 5000
MOST_DOCUMENT_BYTES = 1 << 24
MOST_TOTAL_BYTES = 1 << 28
_MOST_DIRECTORY_BYTES = 1 << 24  # of the archive's list of files: 100,000 of them
_LONGEST_NAME = 500  # of a book or an author
_ENCRYPTED = 0x1
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError),
)
_HEADINGS = ("h1", "h2")
_HIDDEN = ("head", "script", "style", "nav", "svg", "math", "audio", "video", "rt", "rp")
_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd div dl dt figcaption figure footer "
    "h1 h2 h3 h4 h5 h6 header hr li main ol p pre section table td th tr ul".split()
)


class EpubError(ValueError):
    """Why a book cannot be read, and what to do, without its name."""


@dataclass(frozen=True, slots=True)
class Epub:
    """Title and author, and the headings and text of every chapter."""

    title: str
    author: str
    chapters: list[tuple[list[str], str]]


def read_epub(content: bytes) -> Epub:
    """Read a book from the bytes of its archive."""
    _check_directory(content)
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return _read(_Archive(archive))
    except EpubError:
        raise
    except _DAMAGE as error:
        raise EpubError(f"its archive is damaged ({error}): copy the book again") from error


def _check_directory(content: bytes) -> None:
    """Raise for a list of files that would fill the memory before any of them is read."""
    end = content.rfind(b"PK\x05\x06")
    size = int.from_bytes(content[end + 12 : end + 16], "little") if end >= 0 else 0
    if size > _MOST_DIRECTORY_BYTES:
        raise EpubError(f"its list of files takes {size:,} bytes, which that of no book does")


def _read(archive: "_Archive") -> Epub:
    container = _Elements(("rootfile",))
    archive.parse(CONTAINER, container)
    places = [attributes.get("full-path", "") for _, attributes in container.found]
    if not places:
        raise EpubError("it names no package (rootfile): it is not an EPUB")
    package = _Elements(("item", "itemref"), ("title", "creator"))
    archive.parse(places[0], package)
    chapters = _Chapters()
    for name in _spine(package, posixpath.dirname(places[0])):
        archive.parse(name, _Page(chapters))
    text = package.texts
    return Epub(text.get("title", ""), text.get("creator", ""), chapters.close())


def _spine(package: "_Elements", folder: str) -> Iterator[str]:
    """The documents to be read, in order, without the table of contents."""
    items = {
        attributes.get("id"): attributes for name, attributes in package.found if name == "item"
    }
    references = [attributes for name, attributes in package.found if name == "itemref"]
    if len(references) > MOST_DOCUMENTS:
        raise EpubError(f"it has more than {MOST_DOCUMENTS:,} documents: divide it")
    for reference in references:
        item = items.get(reference.get("idref"), {})
        is_page = item.get("media-type") in ("application/xhtml+xml", "text/html")
        is_contents = "nav" in item.get("properties", "").split()
        if is_page and not is_contents and reference.get("linear") != "no":
            place = unquote(urldefrag(item.get("href", "")).url)
            yield posixpath.normpath(posixpath.join(folder, place))


class _Archive:
    """The files of an archive, within bounds."""

    def __init__(self, archive: zipfile.ZipFile):
        self._archive, self._left = archive, MOST_TOTAL_BYTES

    def parse(self, name: str, handler: "_Elements | _Page") -> None:
        """Give a document to a handler."""
        try:
            parse_xml(
                self._read(name),
                handler,
                may_have_doctype=True,
                most_bytes=MOST_DOCUMENT_BYTES,
            )
        except XmlError as error:
            raise EpubError(f"{name}, {error}") from error

    def _read(self, name: str) -> bytes:
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            raise EpubError(f"it has no {name}: it is not a whole EPUB") from None
        if info.flag_bits & _ENCRYPTED:
            raise EpubError(f"{name} is encrypted: a book with DRM cannot be read")
        most = min(self._left, MOST_DOCUMENT_BYTES)
        with self._archive.open(info) as file:
            content = file.read(most + 1)
        if len(content) > most:
            what, whole = name, MOST_DOCUMENT_BYTES
            if most < MOST_DOCUMENT_BYTES:
                what, whole = "the archive", MOST_TOTAL_BYTES
            raise EpubError(f"{what} unpacks to more than {whole:,} bytes, which is no book's size")
        self._left -= len(content)
        return content


@dataclass(slots=True)
class _Elements:
    """Collects elements with their attributes, and the first text of others, by local name."""

    wanted: tuple[str, ...]
    with_text: tuple[str, ...] = ()
    found: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    _open: str = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local in self.wanted:
            self.found.append((local, attributes))
        self._open = local if local in self.with_text and local not in self.texts else ""

    def end(self, name: str) -> None:
        self._open = ""

    def text(self, text: str) -> None:
        before = self.texts.get(self._open, "")
        if self._open and len(before) < _LONGEST_NAME:
            self.texts[self._open] = " ".join(f"{before} {text[:_LONGEST_NAME]}".split())


class _Chapters:
    """Collects chapters: a heading begins one, and headings without text between are one title."""

    def __init__(self) -> None:
        self._done: list[tuple[list[str], str]] = []
        self._titles: list[str] = []
        self._text: list[str] = []
        self._has_text = False

    def add_heading(self, title: str) -> None:
        if self._has_text:
            self._end()
        self._titles.append(title)

    def add_text(self, text: str) -> None:
        self._text.append(text)
        self._has_text = self._has_text or bool(text.strip())

    def close(self) -> list[tuple[list[str], str]]:
        """All chapters; text without a heading continues the one before it."""
        if self._titles or self._has_text:
            self._end()
        return self._done

    def _end(self) -> None:
        text = re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r"[^\S\n]+", " ", "".join(self._text)))
        self._done.append((self._titles, text.strip()))
        self._titles, self._text, self._has_text = [], [], False


class _Page:
    """Reads a page of XHTML: its headings and the text of its paragraphs."""

    def __init__(self, chapters: _Chapters):
        self._chapters = chapters
        self._num_hidden = 0
        self._heading: list[str] | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2].lower()
        if self._num_hidden or name in _HIDDEN:
            self._num_hidden += 1
        elif name in _HEADINGS and self._heading is None:
            self._heading = []
        elif name in _BLOCKS:
            self.text("\n", is_break=True)

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2].lower()
        if self._num_hidden:
            self._num_hidden -= 1
        elif name in _HEADINGS and self._heading is not None:
            title = " ".join("".join(self._heading).split())
            self._heading = None
            if title:
                self._chapters.add_heading(title)
        elif name in _BLOCKS:
            self.text("\n", is_break=True)

    def text(self, text: str, is_break: bool = False) -> None:
        if self._num_hidden:
            return
        if self._heading is not None:
            self._heading.append(" " if is_break else text)
        else:
            self._chapters.add_text("\n\n" if is_break else re.sub(r"\s+", " ", text))
