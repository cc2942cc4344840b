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
from tests.helpers.hostile_texts import texts

KIND = "texts"
COUNT, PER_CASE = 2400, 60
# The whole text, cut and encoded. Every digit of a huge number becomes a word, and each way to cut
# these words is tried: 100 microseconds a byte, however long the text is.
BOUNDS = Bounds(cpu_seconds=1.0, cpu_per_byte=200e-6, megabytes=200.0, memory_per_byte=100.0)
# The first sentence of a book does not wait for the last.
FIRST_SECONDS, FIRST_PER_BYTE = 0.5, 1e-6

_LONG, _LONG_SHARE = 300_000, 0.02
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
        if random.random() < _LONG_SHARE:
            name, text = f"{name}-long", text * (_LONG // max(1, len(text)) or 1)
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
    from tests.helpers.fake_voice import fake_voice

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
