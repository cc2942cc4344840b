"""Text ids to samples in one graph, with the inputs and outputs of a piper voice.

Speakers, language and post-filter are inside. Ids of padding between the sounds are dropped, so
that players may put them wherever they are used to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.config.model import USUAL_REFINE_STEPS, USUAL_TEMPERATURE
from myxtts.export.conversion import convert
from myxtts.export.graphs import argument_names, speaking_method, traced_anew
from myxtts.export.istft import RealISTFT
from myxtts.export.postfilter import Sharpening
from myxtts.models.vocoders.istft import ISTFTVocoder
from myxtts.text.symbols import PAD_ID

SLOWEST, FASTEST = 0.25, 4.0  # rates, as a synthesizer takes them
OUTPUTS = ("output", "output_durations")

Pairs = Mapping[tuple[int, int], int]  # ids of a letter and of a mark behind it -> of both as one


@dataclass(frozen=True)
class SingleFile:
    """A voice and a prepared vocoder that has weights; `pairs` are ids that belong together.

    Ids from `vocab_size` on are marks that the voice knows only as a part of such pairs. By the
    third scale, noise_w, which some players set without being asked, it `varies` melody and tempo.
    """

    voice: Any
    vocoder: Any
    language: str
    pairs: Pairs = field(default_factory=dict)
    varies: bool = False

    def graph(self) -> Any:
        """The ONNX model: input, input_lengths, scales and, of several speakers, sid."""
        inputs = [
            tf.TensorSpec([1, None], tf.int64, name="input"),
            tf.TensorSpec([1], tf.int64, name="input_lengths"),
            tf.TensorSpec([3], tf.float32, name="scales"),
        ]
        if len(self.voice.speakers) > 1:
            inputs.append(tf.TensorSpec([1], tf.int64, name="sid"))
        _ = self.vectors  # now: in the graph they have no values
        return convert(self.speak, inputs, OUTPUTS)

    def speak(self, ids, lengths, scales, sid=None) -> list[tf.Tensor]:
        """Samples [1, 1, samples], and the frames [1, ids] that each id has."""
        ids = tf.cast(ids[0, : lengths[0]], tf.int32)
        ids, is_token = self._merged(ids)
        tokens = tf.boolean_mask(ids, is_token)
        said = self._said(tokens, scales, sid)
        mel = said["mel"][0, : said["mel_lengths"][0]]
        if self.voice.gains is not None and not self._is_refined:
            mel = Sharpening(self.voice.gains)(mel)
        place = tf.maximum(tf.cumsum(tf.cast(is_token, tf.int32)) - 1, 0)
        frames = tf.where(is_token, tf.gather(said["durations"][0], place), 0)
        samples = self._samples(mel)
        return [samples[:, None, :], tf.cast(frames, tf.float32)[None]]

    def _said(self, tokens, scales, sid) -> Mapping[str, tf.Tensor]:
        voice, model = self.voice, self.voice.model
        speaker = tf.zeros([1], tf.int32) if sid is None else tf.cast(sid, tf.int32)
        rate = 1.0 / tf.clip_by_value(scales[1:2], 1.0 / FASTEST, 1.0 / SLOWEST)
        given = {
            "tokens": tokens[None],
            "text_lengths": tf.shape(tokens)[:1],
            "language": tf.constant([voice.languages.index(self.language)]),
            "voice": tf.gather(self.vectors, speaker),
            "speaking_rate": rate,
            "seed": tf.constant(0),
            "temperature": scales[0],
            "steps": tf.constant(USUAL_REFINE_STEPS),
            "variation": scales[2] if self.varies else tf.constant(0.0),
        }
        method = speaking_method(model)
        return traced_anew(method, *(given[name] for name in argument_names(method)))

    @cached_property
    def vectors(self) -> np.ndarray:
        """The embeddings [speakers, dim] of the speakers, with their styles."""
        return np.asarray(self.voice.model.styled(tf.constant(self.voice.voices)))

    @property
    def temperature(self) -> float:
        """The usual one of a voice, which piper calls noise_scale."""
        return USUAL_TEMPERATURE if self._is_refined else 0.0

    @property
    def _is_refined(self) -> bool:
        return self.voice.model.refiner is not None

    def _merged(self, ids) -> tuple[tf.Tensor, tf.Tensor]:
        """Ids with letters for pairs of a letter and its mark, and which of them are tokens."""
        is_token = (ids != PAD_ID) & (ids < self.voice.tokenizer.vocab_size)
        if not self.pairs:
            return ids, is_token
        # The mark behind a letter is the next id that is not padding.
        at = tf.where(ids != PAD_ID)[:, 0]
        kept = tf.gather(ids, at)
        behind = tf.concat([kept[1:], [PAD_ID]], axis=0)
        table = np.array([(*pair, whole) for pair, whole in self.pairs.items()], np.int32)
        matches = (kept[:, None] == table[:, 0]) & (behind[:, None] == table[:, 1])
        whole = tf.reduce_sum(tf.cast(matches, tf.int32) * table[:, 2], axis=1)
        kept = tf.where(tf.reduce_any(matches, axis=1), whole, kept)
        place = tf.maximum(tf.cumsum(tf.cast(ids != PAD_ID, tf.int32)) - 1, 0)
        return tf.where(ids != PAD_ID, tf.gather(kept, place), PAD_ID), is_token

    def _samples(self, mel) -> tf.Tensor:
        if isinstance(self.vocoder, ISTFTVocoder):
            start = tf.constant(0), tf.zeros([1]), tf.constant(0)
            return RealISTFT(self.vocoder)(mel[None], *start)["waveform"]
        return self.vocoder.waveform(mel[None])


def with_padding(tokens: Sequence[int]) -> np.ndarray:
    """Ids [1, ids] as piper writes tokens from BOS to EOS: with padding between them."""
    first, *inner, last = (int(token) for token in tokens)
    padded = [first, PAD_ID]
    for token in inner:
        padded += [token, PAD_ID]
    return np.array([[*padded, last]], np.int64)
