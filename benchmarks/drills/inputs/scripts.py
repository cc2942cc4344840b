"""SSML, lexicons and books from strangers: what is parsed before it is spoken."""

import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random

from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bounds, Input
from tests.helpers.make_epub import make_epub

KIND = "scripts and books"
COUNT, PER_CASE = 1800, 60
# An archive of some kilobytes may unpack to what a page is allowed: 16 MB.
BOUNDS = Bounds(cpu_seconds=4.0, cpu_per_byte=100e-6, megabytes=300.0, memory_per_byte=500.0)

_SSML = """<speak xml:lang="en"><p><s>One <phoneme ph="təˈm">tomato</phoneme>, 5:30.</s></p>
I <prosody rate="slow" volume="+6dB">am</prosody> <voice name="ben">Ben.</voice><break time="1s"/>
<say-as interpret-as="date" format="dmy">3/5/2024</say-as> <sub alias="a b">WWW</sub></speak>"""
_LEXICON = (
    "# names\nSiobhan = shivawn\nNguyen = /wˈɪn/\n[fa]\nعلی = الی\n[en]\nNew York = noo york\n"
)
_MARKDOWN = """---\na: b\n---\n# A\n\nText *b* [c](d) `e` <!-- f -->\n\n- g\n- h\n\n## I\n\n```\nj\n
```\n> k\n\nL\n===\n\nm | n\n--|--\n\nChapter 1\n\nThe end.\n"""
_PAGES = "<h1>One</h1><p>a&nbsp;b <b>c</b></p>", "<div>d<br/>e</div><h2>Two</h2><p>f</p>"
_ENDLESS = (
    *("<p>", "<speak>", "<s/>", "<break/>", "<a ", "<!--", "<![CDATA[", "&amp;", "&", "]]>"),
    *("[[", "[[a]]", "]]", "*", "`", "[a](b", "![", "> ", "# x\n\n", "- a\n", "_a", "<b", "=\n"),
    *("a = b\n", "/", "[en]\n", "a ", "1/2 ", "Chapter 1\n\n", "<h1>a</h1>", "\\", "'s "),
)
_LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))


def set_up(folder: Path, seed: int) -> None:
    """Nothing: files are made as they are used."""


def warm_up() -> None:
    for ending, data in _plain().items():
        _use(ending, data)(Path("/nonexistent"))


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"scripts {seed}")
    for _ in range(count):
        ending = random.choice(list(_plain()))
        draw = random.random()
        if draw < 0.5:
            name, data = mutated(random, _plain()[ending])
        elif draw < 0.8:
            name, data = _endless(random, ending)
        else:
            name, data = _bomb(random, ending)
        yield Input(f"{ending}-{name}", len(data), _use(ending, data))


@cache
def _plain() -> dict[str, bytes]:
    texts = {"ssml": _SSML, "lexicon": _LEXICON, "md": _MARKDOWN, "txt": _MARKDOWN}
    return {name: text.encode() for name, text in texts.items()} | {"epub": make_epub(*_PAGES)}


def _endless(random: Random, ending: str) -> tuple[str, bytes]:
    """The same few characters, very often, at the start or in the middle."""
    part = random.choice(_ENDLESS)
    many = part * (random.choice((100, 10_000, 200_000)) // len(part))
    if ending == "epub":
        return f"endless-{part!r}", make_epub(_PAGES[0] + many)
    text = _plain()[ending].decode()
    at = random.choice((0, text.find(">") + 1, len(text) // 2))
    return f"endless-{part!r}", (text[:at] + many + text[at:]).encode()


def _bomb(random: Random, ending: str) -> tuple[str, bytes]:
    """Entities that expand, and archives that unpack to far more than they are."""
    laughs = f'<!DOCTYPE a [<!ENTITY a0 "ha">{_LAUGHS}]>'
    if ending != "epub":
        return "laughs", f"{laughs}<speak>&a9;</speak>".encode()
    kind = random.choice(("laughs", "large", "many", "names", "climbs"))
    book = make_epub(*_PAGES)
    if kind == "large":
        return kind, make_epub("a" * random.choice((1 << 20, 1 << 25)))
    if kind == "many":
        return kind, make_epub(*["<p>a</p>"] * random.choice((100, 6000)))
    changes = {
        "laughs": ("<!DOCTYPE html>", laughs),
        "names": ("page%20", "page%00%20"),
        "climbs": ("page%20", "../../../../etc/page%20"),
    }
    return kind, _changed(book, *changes[kind])


def _changed(book: bytes, old: str, new: str) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(book)) as source, zipfile.ZipFile(out, "w") as target:
        for info in source.infolist():
            target.writestr(info.filename, source.read(info).decode().replace(old, new))
    return out.getvalue()


def _use(ending: str, data: bytes) -> Callable[[Path], None]:
    def run(own: Path) -> None:
        from myxtts.text.book import read_book
        from myxtts.text.lexicon import read_lexicon
        from myxtts.text.ssml import parse_ssml

        path = own / f"input.{ending}"
        if own.exists():
            path.write_bytes(data)
        if ending == "ssml":
            parse_ssml(data.decode("utf-8", "replace"), "en")
        elif not own.exists():
            return
        elif ending == "lexicon":
            _read_with(read_lexicon(path))
        else:
            read_book(path)

    return run


def _read_with(lexicon) -> None:
    """Read a text with a lexicon, and find its words."""
    from myxtts.text.reading import Reader

    reader = Reader(_tokenizer(), "en", lexicon)
    assert reader.read(reader.mark("Siobhan's New York, a of Nguyen.")).units


@cache
def _tokenizer():
    from myxtts.text.tokenizer import Tokenizer

    return Tokenizer.build(("en", "fa"))
