"""A voice that speaks: text of any length becomes samples, sentence by sentence or in batches."""

import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from myxtts.audio.postfilter import sharpen
from myxtts.audio.threads import single_threaded_blas
from myxtts.checkpoints.voices import ONNX
from myxtts.data.padding import pad_rows
from myxtts.inference.errors import SynthesisError
from myxtts.inference.sentences import CLAUSE, PARAGRAPH, PHRASE, SENTENCE, cut_opening, cut_text
from myxtts.inference.speaking_options import Delivery, SpeakingOptions, find_language, look_up
from myxtts.inference.speech import (
    Sentence,
    Speech,
    at_volume,
    fade_ends,
    followed_by_pause,
    join_speech,
    set_level,
)
from myxtts.inference.vocoders import (
    AUTO,
    GRIFFIN_LIM,
    Vocoder,
    check_name,
    check_samples,
    choose_vocoder,
    exported_vocoder,
)
from myxtts.monitoring.cores import available_cores
from myxtts.text.foreign import describe_foreign
from myxtts.text.marks import MarkedText
from myxtts.text.reading import Reader, Reading

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice

logger = logging.getLogger(__name__)

Report = Callable[[int, int], None]  # (done, total)
Text = str | Iterable[str] | MarkedText  # whole, in parts, or with pronunciations in it

PAUSE_SECONDS = {PHRASE: 0.0, CLAUSE: 0.1, SENTENCE: 0.25, PARAGRAPH: 0.6}
BATCH_SENTENCES = 16

# Readers say 14 to 17 letters a second: a segment is no longer than the recordings trained on.
_LETTERS_PER_SECOND = 14.0
# A letter of Chinese, Japanese or Korean is a syllable or more.
_LETTERS_PER_WIDE_LETTER = 3
# The slowest reading takes .15 s a token. A pause adds half a second to one, a recording's edges a
# second to each end: what exceeds this by far is a drone.
_MAX_TOKEN_SECONDS, _MAX_EDGE_SECONDS = 0.5, 2.0
_LOUDEST_LOG_MEL = 50.0  # of a full-scale tone it is 5; at 88 its exponential overflows
# A pause follows every line but the last: so many silent segments are searched for a next line.
_SILENT_AHEAD = 64
_REMEMBERED_SEGMENTS = 256


@dataclass(frozen=True, slots=True)
class Line:
    """A segment of text with its tokens, how to say it, and how long to pause after it.

    One without words is a pause alone.
    """

    reading: Reading
    delivery: Delivery
    pause_seconds: float
    gain_db: float = 0.0

    @property
    def text(self) -> str:
        return self.reading.text

    @property
    def tokens(self) -> np.ndarray:
        return self.reading.ids


class Synthesizer:
    """Speaks with one voice. A sentence sounds the same whatever stands around it.

    The `options` of a text are the fields of `SpeakingOptions`. The vocoder is given itself, or by
    a name that `choose_vocoder` finds. Speech that takes far too long is an error, unless it
    `may_be_endless`: an evaluation counts how often that happens.
    """

    def __init__(
        self, voice: "Voice", vocoder: "str | Vocoder" = GRIFFIN_LIM, may_be_endless: bool = False
    ):
        self.voice, self.may_be_endless = voice, may_be_endless
        self.spec = voice.config.data.audio_spec
        if isinstance(vocoder, str) and voice.engine == ONNX:
            vocoder = exported_vocoder(vocoder, voice)
        elif isinstance(vocoder, str):
            vocoder = choose_vocoder(vocoder, voice.folder.parent, self.spec)
        self.vocoder = vocoder
        self._has_warned = False

    @classmethod
    def load(
        cls, voice: "str | Path | Voice", vocoder: str = AUTO, may_be_endless: bool = False
    ) -> "Synthesizer":
        """Load a voice (its folder, its run's, or a loaded one), ready for its first sentence."""
        from myxtts.checkpoints import load_voice

        check_name(vocoder)
        loaded = load_voice(voice) if isinstance(voice, str | Path) else voice
        synthesizer = cls(loaded, vocoder, may_be_endless)
        synthesizer.warm_up()
        return synthesizer

    def warm_up(self) -> None:
        """Let the model compile, so that the first sentence takes no longer than the others."""
        nobody = np.zeros((1, self.voice.config.model.speaker_embedding_dim), np.float32)
        one, zero = np.ones(1, np.int32), np.zeros(1, np.int32)
        inputs = one[None], one, zero, nobody, np.ones(1, np.float32)
        if self.voice.config.model.refiner_layers:
            self.voice.model.synthesize_refined(*inputs, 0, 0.0, 1)
        else:
            self.voice.model.synthesize(*inputs)

    def speak(self, text: Text, **options: Any) -> Speech:
        """Say a text."""
        return join_speech(list(self.stream(text, **options)))

    def stream(self, text: Text, **options: Any) -> Iterator[Speech]:
        """Say a text sentence by sentence; put together, it is what `speak` returns.

        A text that comes in parts is read no further than the next sentence or two, so that the
        first one of a book comes at once. What cannot be said at all is an error right away.
        """
        return (next(self.say([line])) for line in self.plan(text, **options))

    def plan(self, text: Text, opening: int | None = None, **options: Any) -> Iterator[Line]:
        """The lines of a text as `stream` says them, read no further than they are asked for.

        With an `opening`, a first sentence that is longer than so many letters is cut near there,
        so that its beginning can be heard soon.
        """
        delivery = look_up(SpeakingOptions(**options), self.voice)
        lines = self._lines(text, delivery, opening)
        return chain([next(lines)], lines)

    def say(self, lines: Sequence[Line], map: Callable[..., Iterable] = map) -> Iterator[Speech]:
        """Say lines of one or several texts in one batch, each with the pause after it.

        They come in their order, each as soon as its samples are there. `map` may vocode them on
        several cores.
        """
        spoken = self._mels([line for line in lines if line.reading.words])
        samples = map(lambda said: self._samples(said[0], said[1].delivery.seed), spoken)
        following = zip(spoken, samples, strict=True)
        for line in lines:
            if not line.reading.words:
                yield self._pause(line)
                continue
            (mel, _, durations), sound = next(following)
            speech = _speech(line, mel, durations, sound, self.spec.sample_rate)
            yield followed_by_pause(at_volume(speech, line.gain_db), line.pause_seconds, self.spec)

    def speak_many(
        self,
        texts: Sequence[str],
        progress: Report = lambda done, total: None,
        **options: Any,
    ) -> list[Speech]:
        """Say many texts, several sentences at a time; `progress` is called with (done, total).

        It is what `speak` says of each, but for rounding in the model, whose batches differ.
        """
        delivery = look_up(SpeakingOptions(**options), self.voice)
        plans = [list(self._lines(text, delivery)) for text in texts]
        spoken = self._say_all([line for lines in plans for line in lines], progress)
        following = iter(spoken)
        return [join_speech([next(following) for _ in lines]) for lines in plans]

    def nothing_to_say(self, texts: Sequence[str], language: str | None = None) -> list[int]:
        """Return the indices of texts that have no sound in a language, or in the voice's first."""
        code = find_language(language, self.voice)
        encoded = self.voice.tokenizer.encode_batch(texts, code)
        return [index for index, tokens in enumerate(encoded) if not len(tokens)]

    def _lines(self, text: Text, delivery: Delivery, opening: int | None = None) -> Iterator[Line]:
        """Cut a text into lines without what has no sound; if that leaves none, it is an error."""
        held, num_silent, beginning, has_sound = None, 0, "", False
        for line in self._segments(text, delivery, opening):
            beginning = beginning or line.text
            if len(line.tokens):
                if held:
                    yield held
                held, num_silent, has_sound = line, 0, True
                continue
            num_silent += 1
            if held and num_silent == _SILENT_AHEAD:
                yield held
                held = None
        if held:
            yield replace(held, pause_seconds=0.0)
        if not has_sound:
            self.voice.tokenizer.encode(beginning, delivery.language)  # says why

    def _segments(self, text: Text, delivery: Delivery, opening: int | None) -> Iterator[Line]:
        """Cut a text into segments that fit, each with its tokens, of which there may be none."""
        language = delivery.language
        reader = Reader(self.voice.tokenizer, language, delivery.lexicon)
        # Cutting looks up the same segment more than once; a long text has any number of them.
        read = lru_cache(_REMEMBERED_SEGMENTS)(reader.read)
        most_letters, most_tokens = self._limits()

        def fits(part: str) -> bool:
            return num_letters(part) <= most_letters and len(read(part).ids) <= most_tokens

        segments = cut_text(reader.mark(text), language, fits)
        for segment in cut_opening(segments, opening) if opening else segments:
            reading = read(segment.text)
            self._warn_of_foreign(reading.text, language)
            yield Line(reading, delivery, PAUSE_SECONDS[segment.ends] / delivery.speaking_rate)

    def _warn_of_foreign(self, text: str, language: str) -> None:
        """Warn once of words that the voice has no letters for."""
        if self._has_warned or not (words := self.voice.tokenizer.foreign_words(text, language)):
            return
        self._has_warned = True
        logger.warning("the text has %s", describe_foreign(words, language))

    def _limits(self) -> tuple[float, int]:
        """Return how many letters and how many tokens a segment may have."""
        data = self.voice.config.data
        seconds = data.max_mel_frames * data.hop_length / data.sample_rate
        return seconds * _LETTERS_PER_SECOND, data.max_text_length

    def _say_all(self, lines: Sequence[Line], progress: Report) -> list[Speech]:
        """Say lines in batches of about one length, which pads little, and vocode on all cores."""
        order = sorted(range(len(lines)), key=lambda index: len(lines[index].tokens))
        spoken: dict[int, Speech] = {}
        with single_threaded_blas(), ThreadPoolExecutor(available_cores()) as pool:
            for start in range(0, len(order), BATCH_SENTENCES):
                batch = order[start : start + BATCH_SENTENCES]
                said = self.say([lines[index] for index in batch], pool.map)
                spoken.update(zip(batch, said, strict=True))
                progress(len(spoken), len(lines))
        return [spoken[index] for index in range(len(lines))]

    def _samples(self, mel: np.ndarray, seed: int) -> np.ndarray:
        samples = check_samples(self.vocoder(mel, self.spec, seed), self.vocoder.name)
        return set_level(fade_ends(samples, self.spec.sample_rate), self.spec.sample_rate)

    def _mels(self, lines: Sequence[Line]) -> list[tuple[np.ndarray, Line, np.ndarray]]:
        """Log-mels and durations of lines, without padding; those of one noise are a batch."""
        found: dict[int, tuple[np.ndarray, Line, np.ndarray]] = {}
        for how in dict.fromkeys(map(_noise, lines)):
            batch = [n for n, line in enumerate(lines) if _noise(line) == how]
            alike = [lines[n] for n in batch]
            out = self._run([line.tokens for line in alike], [line.delivery for line in alike])
            outputs = (np.asarray(out[key]) for key in ("mel", "mel_lengths", "durations"))
            for number, line, *said in zip(batch, alike, *outputs, strict=True):
                found[number] = self._without_padding(line, *said)
        return [found[number] for number in range(len(lines))]

    def _without_padding(
        self, line: Line, mel: np.ndarray, num_frames: int, durations: np.ndarray
    ) -> tuple[np.ndarray, Line, np.ndarray]:
        mel = mel[:num_frames]
        self._check(mel, line, line.delivery.speaking_rate)
        if line.delivery.gains is not None:
            mel = sharpen(mel, line.delivery.gains)
        return mel, line, durations[: len(line.tokens)]

    def _run(self, tokens: Sequence[np.ndarray], deliveries: Sequence[Delivery]) -> Any:
        """Run the model on a padded batch."""
        inputs = (
            pad_rows(tokens, np.int32),
            np.array([len(row) for row in tokens], np.int32),
            np.array([one.language_index for one in deliveries], np.int32),
            np.stack([one.voice for one in deliveries]),
            np.array([one.speaking_rate for one in deliveries], np.float32),
        )
        first = deliveries[0]
        if first.refine_steps:
            how = first.seed % 2**31, first.temperature, first.refine_steps
            return self.voice.model.synthesize_refined(*inputs, *how)
        if first.variation:
            seed = first.seed % 2**31
            return self.voice.model.synthesize_varied(*inputs, seed, first.variation)
        return self.voice.model.synthesize(*inputs)

    def _pause(self, line: Line) -> Speech:
        """A pause that follows no words, with a sentence of none that keeps its time."""
        samples, mel = np.zeros(0, np.float32), np.zeros((0, self.spec.n_mels), np.float32)
        none = np.zeros(0, np.int32)
        spoken = (Sentence(line.reading, none, 0),)
        speech = Speech(samples, self.spec.sample_rate, mel, (), none, none, spoken=spoken)
        return followed_by_pause(speech, line.pause_seconds, self.spec)

    def _check(self, mel: np.ndarray, line: Line, rate: float) -> None:
        """Raise where a line came out empty, endless or not a number."""
        seconds = len(mel) * self.spec.hop_length / self.spec.sample_rate
        most = (_MAX_EDGE_SECONDS + _MAX_TOKEN_SECONDS * len(line.tokens)) / rate
        advice = "train the voice for longer, or take another checkpoint"
        if len(mel) == 0:
            raise SynthesisError(f"the voice says nothing for {line.text!r}: {advice}")
        if seconds > most and not self.may_be_endless:
            raise SynthesisError(
                f"the voice takes {seconds:.1f} s for {line.text!r}, where {most:.1f} s are more "
                f"than enough: {advice}"
            )
        if not np.isfinite(mel).all() or mel.max() > _LOUDEST_LOG_MEL:
            raise SynthesisError(f"the voice gives no numbers (NaN) for {line.text!r}: {advice}")


def _noise(line: Line) -> tuple[float, ...] | None:
    """What a whole batch shares, if there is chance in it."""
    how = line.delivery
    has_noise = how.refine_steps or how.variation
    return (how.refine_steps, how.temperature, how.variation, how.seed) if has_noise else None


def _speech(
    line: Line, mel: np.ndarray, durations: np.ndarray, samples: np.ndarray, rate: int
) -> Speech:
    """A line as it was spoken, without the pause after it."""
    spoken = (Sentence(line.reading, durations, len(mel)),)
    return Speech(samples, rate, mel, (line.text,), line.tokens, durations, spoken=spoken)


def num_letters(text: str) -> int:
    """Count letters by how long they take to say, in those of an alphabet."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide * (_LETTERS_PER_WIDE_LETTER - 1)
