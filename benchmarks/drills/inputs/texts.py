"""Texts from strangers, in all languages: what is cut into sentences and becomes tokens."""

import math
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np

from benchmarks.drills.cases import UNBOUNDED
from benchmarks.drills.judging import Bad, Bounds, Input

KIND = "texts"
COUNT, PER_CASE = 2400, 60
# The whole text, cut and encoded.
BOUNDS = Bounds(cpu_seconds=1.0, cpu_per_byte=10e-6, megabytes=200.0, memory_per_byte=100.0)
# The first sentence of a book does not wait for the last.
FIRST_SECONDS, FIRST_PER_BYTE = 0.5, 1e-6

_LONG = 300_000
_MOST_LETTERS, _MOST_TOKENS = 260, 600


def set_up(folder: Path, seed: int) -> None:
    """Nothing: texts are made as they are used."""


def warm_up() -> None:
    """The tables of all languages, and what a first sentence imports."""
    from myxtts.text.languages import LANGUAGES

    _read_first("Hi.", "en", "characters", math.inf)

    for language in LANGUAGES:
        _tokenizer(language, "characters").encode_batch(["1 a."], language)


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    from myxtts.text.languages import LANGUAGES

    random = Random(f"languages {seed}")
    for name, text in texts(seed, count):
        language = random.choice(list(LANGUAGES))
        # Phonemes are espeak's: a part is enough, and of no long texts.
        units = "phonemes" if len(text) < 2000 and random.random() < 0.1 else "characters"
        size = len(text.encode("utf-8", "surrogatepass"))
        yield Input(f"{language}-{units}-{name}", size, _read(text, language, units))


def _read(text: str, language: str, units: str):
    def run(own: Path) -> None:
        from myxtts.inference.sentences import cut_text

        (own / "text").write_bytes(text.encode("utf-8", "surrogatepass"))
        _read_first(text, language, units)
        tokenizer = _tokenizer(language, units)

        def fits(part: str) -> bool:
            encoded = tokenizer.encode_batch([part], language)[0]
            return len(part) <= _MOST_LETTERS and len(encoded) <= _MOST_TOKENS

        for piece in cut_text(text, language, fits):
            tokenizer.encode_batch([piece.text], language)

    return run


def _read_first(text: str, language: str, units: str, most_seconds: float = FIRST_SECONDS) -> None:
    """Speak the first sentence, and see that the others cost little until then."""
    from myxtts.errors import UserError
    from myxtts.inference.synthesizer import Synthesizer

    began = time.process_time()
    try:
        next(Synthesizer(_voice(language, units), _hum).stream(text))
    except UserError:
        return  # nothing to say
    took = time.process_time() - began
    if took > most_seconds + FIRST_PER_BYTE * len(text.encode("utf-8", "surrogatepass")):
        raise Bad(UNBOUNDED, "CPU seconds before the first sentence beyond the bound")


@cache
def _tokenizer(language: str, units: str):
    from myxtts.text.tokenizer import Tokenizer

    return Tokenizer.build((language,), units)


@cache
def _voice(language: str, units: str) -> SimpleNamespace:
    from tests.inference.fake_voice import fake_voice

    voice = fake_voice((language,), _OneFrame())
    voice.tokenizer = _tokenizer(language, units)
    return voice


class _OneFrame:
    """A model that says every text in as many frames as it has tokens, at no cost."""

    wants_embeddings = False

    def synthesize(self, tokens, text_lengths, language, voice, speaking_rate):
        durations = np.ones(np.shape(tokens), np.int32)
        mel = np.zeros((*np.shape(tokens), 80), np.float32)
        return {"mel": mel, "mel_lengths": np.array(text_lengths), "durations": durations}

    def styled(self, voice, weights=None):
        return voice

    def encode_voice(self, mel, lengths):
        return np.zeros((len(mel), 4), np.float32)


def _hum(mel, spec, seed) -> np.ndarray:
    return np.sin(np.arange(len(mel) * spec.hop_length, dtype=np.float32))


_hum.name = "hum"


def texts(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Hostile texts: what they are made of, and the text."""
    random = Random(f"texts {seed}")
    for _ in range(count):
        name, make = random.choice(_SHAPES)
        text = make(random)
        if random.random() < 0.3:
            name, text = f"{name}-in-words", _between_words(random, text)
        if random.random() < 0.02:
            name, text = f"{name}-long", text * max(1, _LONG // max(1, len(text)))
        yield name, text


def _between_words(random: Random, text: str) -> str:
    words = [_word(random) for _ in range(random.randrange(2, 30))]
    words.insert(random.randrange(len(words)), text)
    return random.choice((" ", ", ", ". ", "\n", "\n\n", "\u200c")).join(words) + "."


def _word(random: Random) -> str:
    first, last = random.choice(_SCRIPTS)
    return "".join(chr(random.randint(first, last)) for _ in range(random.randrange(1, 12)))


def _some(random: Random, least: int = 1, most: int = 3000) -> int:
    return int(least * (most / least) ** random.random())


def _repeated(*parts: str):
    return lambda random: random.choice(parts) * _some(random)


def _digits(random: Random) -> str:
    zeros = random.choice((0x30, 0x660, 0x6F0, 0x966, 0xFF10))
    digits = [chr(zeros + random.randrange(10)) for _ in range(_some(random, 1, 10_000))]
    mark = random.choice(("", "", ",", ".", "/", ":", "-", " ", "\u066b", "\u066c"))
    every = random.choice((1, 2, 3, 4))
    groups = ["".join(digits[i : i + every]) for i in range(0, len(digits), every)]
    return random.choice(("", "-", "+", "$", "€", "#", "%", "№")) + mark.join(groups)


def _anything(random: Random) -> str:
    return "".join(chr(random.randrange(0x110000)) for _ in range(_some(random)))


def _script(random: Random) -> str:
    return " ".join(_word(random) for _ in range(_some(random, 1, 300)))


def _brackets(random: Random) -> str:
    return "".join(random.choice("([{<«“‘（】)]}>»”’") for _ in range(_some(random)))


def _markup(random: Random) -> str:
    tag = random.choice(("speak", "break", "prosody", "say-as", "script", "!ENTITY", "![CDATA["))
    values = ('time="1e9s"', 'rate="-999%"', 'src="file:///etc/passwd"', "", "/", 'x="')
    inner = "".join(f"<{tag} {random.choice(values)}>" for _ in range(_some(random, 1, 300)))
    return inner + "word" + f"</{tag}>" * _some(random, 1, 300)


def _abbreviated(random: Random) -> str:
    words = "Mr. Dr. e.g. U.S. No. 3. p.m. etc. ... ?! 1st 2.5kg 12:30 10/5/2020 Jan. $5m".split()
    return " ".join(random.choice(words) for _ in range(_some(random, 1, 500)))


_SCRIPTS = (
    (0x61, 0x7A),
    (0x41, 0x5A),
    (0xC0, 0x17F),
    (0x400, 0x4FF),
    (0x600, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x3040, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1FAFF),
    (0x1D400, 0x1D7FF),
    (0xD800, 0xDFFF),
    (0xE000, 0xE0FF),
    (0x2000, 0x206F),
    (0x2100, 0x23FF),
    (0x0, 0x1F),
)
_SHAPES = (
    ("digits", _digits),
    ("digits", _digits),
    ("anything", _anything),
    ("script", _script),
    ("script", _script),
    ("brackets", _brackets),
    ("markup", _markup),
    ("abbreviations", _abbreviated),
    ("nothing", lambda random: random.choice(("", " ", "\n" * 500, "\0", "\ufeff", "\u200b" * 99))),
    ("marks", _repeated(".", "!", "?", "…", ",", ";", "-", "—", "'", '"', "؟", "。", "*", "_")),
    ("spaced-marks", _repeated(". ", "! ", "? ", ", ", " - ", "a. ", "A. ", ".a")),
    ("combining", _repeated("e\u0301", "\u0301", "a" + "\u0308" * 50, "\u064b", "\u0e33")),
    ("bidi", _repeated("\u202e", "\u202da", "\u2067\u2069", "\u200f.", "\u061c1")),
    ("surrogates", _repeated("\ud800", "\udc00a", "\udfff\ud800")),
    ("joiners", _repeated("👩\u200d", "\u200ca", "\ufe0f", "🏴\U000e0067", "🇦")),
    ("ligatures", _repeated("ﷺ", "ﬃ", "㍿", "Ⅷ", "½", "①", "㎏", "ẞ", "İ", "ŉ")),
    ("controls", _repeated("\0", "\x1b[31m", "\x07", "\x85", "\u2028", "\u2029", "\x0b", "\x0c")),
    ("letters", _repeated("a", "A", "aB", "ی", "مم", "漢", "가", "я", "ß")),
    ("symbols", _repeated("$", "€5", "%", "&", "@a", "#1", "+", "=", "×", "÷", "°", "^", "~", "|")),
    ("addresses", _repeated("http://a.b/c?d=e&", "a@b.c ", "www.", "a.b.c.", "C:\\a\\")),
    ("ordinals", _repeated("1st ", "22nd", "3.º", "1. ", "I. ", "XIV ", "1e9", "0x1F ", "1,000.")),
    ("times", _repeated("12:30", "1/2/3 ", "12-5-99", "۱۲/۵/۱۳۶۸ ", "1:2:3:4", "٪۲۰ ", "5'10\" ")),
)
