"""A book in an archive, as small as EPUB allows."""

import zipfile
from io import BytesIO

_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
_PAGE = (
    '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html>'
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>'
    "<body>{}</body></html>"
)


def make_epub(*bodies: str) -> bytes:
    """The bytes of a book whose pages have these bodies."""
    numbers = range(len(bodies))
    items = "".join(
        f'<item id="p{n}" href="page%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in numbers
    )
    spine = "".join(f'<itemref idref="p{n}"/>' for n in numbers)
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>The Book</dc:title><dc:creator>A. Writer</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", _CONTAINER)
        archive.writestr("OEBPS/book.opf", package)
        for n, body in enumerate(bodies):
            archive.writestr(f"OEBPS/page {n}.xhtml", _PAGE.format(body))
    return out.getvalue()
