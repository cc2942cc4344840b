"""XML from anyone: bounded in size and depth, and without entities of its own.

expat reads it in time that grows with its size alone. Entities that a document declares are
refused, so that none can expand; nothing outside the document is ever read.
"""

from collections.abc import Callable, Mapping
from html.entities import html5
from typing import Protocol
from xml.parsers import expat

MOST_BYTES, MOST_DEPTH = 1 << 22, 64


class XmlError(ValueError):
    """Why a document cannot be read, and where: lines and columns count from one."""

    def __init__(self, why: str, line: int = 1, column: int = 1, is_well_formed: bool = True):
        super().__init__(f"line {line}, column {column}: {why}")
        self.is_well_formed = is_well_formed


class Handler(Protocol):
    """What takes the elements and the text of a document; it may raise a ValueError."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """Text inside the element."""


def parse_xml(
    content: str | bytes,
    handler: Handler,
    *,
    may_have_doctype: bool = False,
    most_bytes: int = MOST_BYTES,
) -> None:
    """Read a document; a ValueError of the handler gets the place where it was raised.

    With a doctype come the named characters of HTML, such as `&nbsp;`.
    """
    if len(content) > most_bytes:
        raise XmlError(f"it is larger than {most_bytes:,} bytes")
    parser = expat.ParserCreate(*(("utf-8",) if isinstance(content, str) else ()))
    parser.buffer_text = True
    _connect(parser, handler, may_have_doctype)
    try:
        parser.Parse(content.encode() if isinstance(content, str) else content, True)
    except expat.ExpatError as error:
        why = f"it is not well-formed XML ({expat.errors.messages[error.code]})"
        raise XmlError(why, error.lineno, error.offset + 1, is_well_formed=False) from error


def _connect(parser: expat.XMLParserType, handler: Handler, may_have_doctype: bool) -> None:
    """Have a parser call a handler, within the bounds."""
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise ValueError(f"elements are nested more than {MOST_DEPTH} deep")
        handler.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name)

    def named(name: str, is_parameter: bool) -> None:
        handler.text(html5.get(f"{name};", ""))

    parser.StartElementHandler = _located(start, parser)
    parser.EndElementHandler = _located(end, parser)
    parser.CharacterDataHandler = _located(handler.text, parser)
    parser.EntityDeclHandler = _located(_refuse("entities of its own"), parser)
    if may_have_doctype:
        parser.UseForeignDTD(True)  # names that it does not declare are left to us
        parser.SkippedEntityHandler = named
    else:
        refuse = _refuse("a document type (DOCTYPE)")
        parser.StartDoctypeDeclHandler = _located(refuse, parser)


def _located(function: Callable[..., None], parser: expat.XMLParserType) -> Callable[..., None]:
    """Give a ValueError the place where it was raised."""

    def call(*arguments: object) -> None:
        try:
            function(*arguments)
        except ValueError as error:
            line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
            raise XmlError(str(error), line, column) from error

    return call


def _refuse(what: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise ValueError(f"it declares {what}, which could expand without end: remove that")

    return refuse
