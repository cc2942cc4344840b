"""A voice as one LiteRT file, from token ids to samples, of LiteRT's own operations alone.

Lengths stay open. What LiteRT lacks is traced in another way: sums of float64 become exact sums of
whole numbers, and GELU has the form that the converter knows.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
import tensorflow as tf

from myxtts.export.istft import RealISTFT
from myxtts.export.postfilter import Sharpening
from myxtts.models.vocoders.istft import BEAT, BEATS, ISTFTVocoder, middles, product
from myxtts.models.xtts import LONGEST_TOKEN

INPUTS = ("tokens", "language", "speaker", "speaking_rate")
OUTPUTS = ("samples", "durations")
# Fractions of frames and of cycles, as whole numbers whose sums stay below 2**31.
_FRAME_PARTS, _CYCLE_PARTS = 1 << 20, 1 << 24


@dataclass(frozen=True)
class LiteVoice:
    """A voice and a prepared vocoder that has weights, for one sentence at a time."""

    voice: Any
    vocoder: Any

    def convert(self) -> bytes:
        """The LiteRT model: tokens [1, n], language [1], speaker [1] and speaking_rate [1]."""
        kinds = ([1, None], tf.int32), ([1], tf.int32), ([1], tf.int32), ([1], tf.float32)
        inputs = [tf.TensorSpec(*kind, name=name) for kind, name in zip(kinds, INPUTS, strict=True)]
        _ = self.vectors  # now: in the graph they have no values
        module = tf.Module()
        variables = [*self.voice.model.variables, *self.vocoder.variables]
        module.weights = [variable.value for variable in variables]
        module.speak = tf.function(self.speak, input_signature=inputs, autograph=False)
        with _of_its_operations():
            traced = module.speak.get_concrete_function()
        return tf.lite.TFLiteConverter.from_concrete_functions([traced], module).convert()

    def speak(self, tokens, language, speaker, speaking_rate) -> dict[str, tf.Tensor]:
        """Samples [1, samples], and the frames [1, n] that each token has."""
        said = self.voice.model.synthesize.python_function(
            tokens,
            tf.reshape(tf.shape(tokens)[1], [1]),
            language,
            tf.gather(self.vectors, speaker),
            speaking_rate,
        )
        mel = said["mel"][0, : said["mel_lengths"][0]]
        if self.voice.gains is not None:
            mel = Sharpening(self.voice.gains)(mel)
        found = self._samples(mel[None]), said["durations"]
        return dict(zip(OUTPUTS, found, strict=True))

    @cached_property
    def vectors(self) -> np.ndarray:
        """The embeddings [speakers, dim] of the speakers, with their styles."""
        return np.asarray(self.voice.model.styled(tf.constant(self.voice.voices)))

    def _samples(self, mel) -> tf.Tensor:
        if isinstance(self.vocoder, ISTFTVocoder):
            return RealISTFT(self.vocoder)(mel, None, None, tf.constant(0))["waveform"]
        return self.vocoder.waveform(mel)


class LiteSpeaker:
    """A LiteRT model, run by TensorFlow's interpreter, by default with its delegate XNNPACK."""

    def __init__(self, content: bytes, delegates: bool = True):
        kinds = tf.lite.experimental.OpResolverType
        kind = kinds.AUTO if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its deletion, which TensorFlow 2.20 was to bring
            made = tf.lite.Interpreter(model_content=content, experimental_op_resolver_type=kind)
        self._run = made.get_signature_runner()

    def __call__(self, tokens, language: int, speaker: int, speaking_rate: float) -> dict:
        given = (
            np.asarray(tokens, np.int32)[None],
            np.array([language], np.int32),
            np.array([speaker], np.int32),
            np.array([speaking_rate], np.float32),
        )
        return self._run(**dict(zip(INPUTS, given, strict=True)))


def _whole_durations(log_durations, mask, speaking_rate):
    """`models.xtts.whole_durations`, with the fractions of frames added up as whole numbers."""
    longest = np.float32(np.log(LONGEST_TOKEN))
    frames = tf.exp(tf.minimum(log_durations, longest)) * mask / speaking_rate[:, None]
    full = tf.floor(frames)
    parts = tf.cast(tf.round((frames - full) * _FRAME_PARTS), tf.int32)
    carried = (tf.cumsum(parts, axis=1) + _FRAME_PARTS // 2) // _FRAME_PARTS
    ends = tf.cumsum(tf.cast(full, tf.int32), axis=1) + carried
    whole = ends - tf.pad(ends[:, :-1], [[0, 0], [1, 0]])
    return tf.maximum(whole, 1) * tf.cast(mask, tf.int32)


def _cycles(vocoder: ISTFTVocoder, pitch, first_frame):
    """`ISTFTVocoder._cycles` of a whole mel, whose clock starts anew with every beat.

    From beat to beat it turns a whole number of times, so that no longer sums are needed.
    """
    before = tf.concat([pitch[:, :1], pitch[:, :-1]], axis=1)
    behind = tf.concat([pitch[:, 1:], pitch[:, -1:]], axis=1)
    within = product(tf.stack([before, pitch, behind], axis=-1), vocoder.cycles)
    within, whole = within[..., :-1], within[0, :, -1]
    frames = tf.shape(whole)[0]
    parts = tf.cast(tf.round((whole - tf.floor(whole)) * _CYCLE_PARTS), tf.int32)
    parts = tf.reshape(tf.pad(parts, [[0, tf.math.floormod(-frames, BEAT)]]), [-1, BEAT])
    lacks = _lacks(parts, frames)
    clock = _fraction(tf.cumsum(parts, axis=1, exclusive=True))
    clock += tf.cumsum(lacks, axis=1, exclusive=True)
    clock, lacks = (tf.reshape(one, [-1])[:frames] for one in (clock, lacks))
    return within + (lacks[:, None] * middles(vocoder.spec))[None], clock[None]


def _lacks(parts, frames):
    """What frames lack [beats, BEAT] in cycles, of whose parts they turn so many."""
    lacks = tf.zeros(tf.shape(parts))
    for length, number in BEATS:
        sums = tf.reduce_sum(tf.reshape(parts, [-1, length]), axis=1)
        # So far all frames of such a step lack the same.
        so_far = tf.reshape(lacks, [-1, length])[:, 0]
        turned = number * (_fraction(sums) + length * so_far)
        is_whole = (tf.range(tf.shape(sums)[0]) + 1) * length <= frames
        more = tf.where(is_whole, (tf.round(turned) - turned) / (number * length), 0.0)
        lacks += tf.reshape(tf.repeat(more, length), tf.shape(parts))
    return lacks


def _fraction(parts):
    return tf.cast(tf.math.floormod(parts, _CYCLE_PARTS), tf.float32) / _CYCLE_PARTS


def _gelu(x):
    """What the converter makes one operation of."""
    return 0.5 * x * (1.0 + tf.math.erf(x * np.float32(np.sqrt(0.5))))


@contextlib.contextmanager
def _of_its_operations() -> Iterator[None]:
    """Trace what LiteRT lacks in another way meanwhile."""
    with (
        patch("myxtts.models.layers.gelu", _gelu),
        patch("myxtts.models.xtts.whole_durations", _whole_durations),
        patch.object(ISTFTVocoder, "_cycles", _cycles),
    ):
        yield
