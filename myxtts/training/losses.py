"""Losses as pure functions of tensors, and their weighted sum, written once.

Every term is a mean over what is real: a sum in which masks from the lengths keep padding out,
divided by a count. The counts follow from the batch alone, so a batch may be computed in parts that
are divided by the counts of the whole: their terms and gradients then add up to those of the batch.
All of it is float32, whatever the model computes in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import keras
import tensorflow as tf

from myxtts.config.config import TrainingConfig
from myxtts.models.decoder import scaled_mel
from myxtts.models.layers import sequence_mask
from myxtts.models.prosody import scaled_pitch
from myxtts.models.segments import segment_lengths
from myxtts.models.xtts import TAIL_GROUPS

Terms = dict[str, tf.Tensor]

# Each term, and the setting that holds its weight.
WEIGHTS = {
    "mel_loss": "mel_loss_weight",
    "stop_loss": "stop_loss_weight",
    "alignment_loss": "alignment_loss_weight",
    "duration_loss": "duration_loss_weight",
    "pitch_loss": "pitch_loss_weight",
    "energy_loss": "energy_loss_weight",
    "voice_similarity_loss": "voice_similarity_loss_weight",
    "contrastive_loss": "contrastive_loss_weight",
    "speaker_loss": "speaker_classification_loss_weight",
}
# A term that only models with a refiner have.
FLOW = "flow_loss"


def loss_weights(config: TrainingConfig) -> dict[str, float]:
    """The weight of each term, as configured."""
    return {term: getattr(config, setting) for term, setting in WEIGHTS.items()}


def weighted_sum(terms: Terms, weights: Mapping[str, float]) -> tuple[tf.Tensor, Terms]:
    """The total, and each term's share of it."""
    if terms.keys() != weights.keys():
        raise ValueError(f"terms {sorted(terms)} and weights {sorted(weights)} differ")
    weighted = {name: weights[name] * terms[name] for name in terms}
    return tf.add_n(list(weighted.values())), weighted


def scaled_weights(weights: Mapping[str, float], factors: Terms) -> dict:
    """The weights with a factor on some of them."""
    return {name: weight * factors.get(name, 1.0) for name, weight in weights.items()}


class Counts(NamedTuple):
    """What the terms are means over, as float32 scalars; none is below 1."""

    frames: tf.Tensor
    groups: tf.Tensor  # of frames, for which the decoder says whether the speech has ended
    tokens: tf.Tensor
    utterances: tf.Tensor
    contrasted: tf.Tensor  # utterances that have both a companion and a stranger
    identified: tf.Tensor  # utterances of speakers that have a number
    refined: tf.Tensor  # frames of the refiner's segments
    voiced: tf.Tensor  # frames that have a pitch

    @classmethod
    def of(cls, batch: Mapping[str, tf.Tensor], reduction: int, states: int = 1) -> "Counts":
        """The counts of a batch, or, where it has a `part` [batch], the sums of its parts'."""
        frames, speaker = batch["mel_lengths"], batch["speaker"]
        room = tf.shape(batch["pitch"])[1]
        found = (
            tf.reduce_sum(frames),
            tf.reduce_sum(_groups(frames, reduction)),
            states * tf.reduce_sum(batch["text_lengths"]),
            tf.shape(speaker)[0],
            tf.math.count_nonzero(_contrasts(speaker, batch.get("part")).is_counted),
            tf.math.count_nonzero(speaker >= 0),
            tf.reduce_sum(segment_lengths(frames, reduction)),
            tf.math.count_nonzero(batch["pitch"] * sequence_mask(frames, room)),
        )
        return cls(*(tf.cast(one, tf.float32) for one in found))


def mel_loss(predicted, mel, lengths, count):
    """Mean absolute difference of log-mels [batch, frames, mels], in natural-log units."""
    # Padding the truth needs no gradient; cutting the prediction would.
    tail = tf.shape(predicted)[1] - tf.shape(mel)[1]
    truth = tf.pad(mel, [[0, 0], [0, tail], [0, 0]])
    difference = tf.abs(tf.cast(predicted, tf.float32) - truth)
    return masked_mean(tf.reduce_mean(difference, axis=-1), lengths, count)


def alignment_loss(mu, mel, frame_states, lengths, count):
    """Mean square between each frame and what its state expects, on the model's own scale."""
    expected = tf.gather(mu, frame_states, batch_dims=1)
    square = tf.reduce_mean(tf.square(scaled_mel(mel) - expected), axis=-1)
    return masked_mean(square, lengths, count)


def duration_loss(log_durations, durations, lengths, counts: Counts):
    """Mean square of log-durations [batch, tokens], and of the log-length of the whole.

    The second keeps sentences from running short: the mean of a logarithm is below that of what
    it is taken of.
    """
    truth = tf.math.log(tf.maximum(tf.cast(durations, tf.float32), 1.0))
    mask = sequence_mask(lengths, tf.shape(log_durations)[1])
    whole, true_whole = (
        tf.math.log(tf.reduce_sum(tf.exp(tf.minimum(x, 10.0)) * mask, axis=1))
        for x in (log_durations, truth)
    )
    of_tokens = masked_mean(tf.square(log_durations - truth), lengths, counts.tokens)
    return of_tokens + _mean(tf.square(whole - true_whole), counts.utterances)


def prosody_loss(predicted, truth, lengths, count):
    """Mean square of a quantity of tokens [batch, tokens]."""
    return masked_mean(tf.square(predicted - truth), lengths, count)


def contour_loss(pitch, voicing, truth, lengths, counts: Counts):
    """Mean absolute difference of scaled pitch where there is one, and cross-entropy of that."""
    size = tf.shape(truth)[1]
    is_voiced = tf.cast(truth > 0.0, tf.float32)
    off = tf.abs(pitch[:, :size] - scaled_pitch(truth)) * is_voiced
    wrong = tf.nn.sigmoid_cross_entropy_with_logits(is_voiced, voicing[:, :size])
    return masked_mean(off, lengths, counts.voiced) + masked_mean(wrong, lengths, counts.frames)


def stop_loss(logits, mel_lengths, reduction: int, positive_weight: float, count):
    """Cross-entropy of having ended, [batch, groups]: true from the last group of speech on."""
    groups = _groups(mel_lengths, reduction)
    at = tf.range(tf.shape(logits)[1])[None, :]
    truth = tf.cast(at >= groups[:, None] - TAIL_GROUPS - 1, tf.float32)
    losses = tf.nn.weighted_cross_entropy_with_logits(truth, logits, positive_weight)
    return masked_mean(losses, groups, count)


def flow_loss(flow, target, mel_lengths, reduction: int, count):
    """Mean square of velocities [draws x batch, segment, mels]; 0 where there are no segments."""
    square = tf.reduce_mean(tf.square(flow - target), axis=-1)
    return masked_mean(square, segment_lengths(mel_lengths, reduction), count)


def voice_similarity_loss(output, reference, count):
    """1 - cosine of the output's and the reference's speaker embeddings, [batch, dim] each.

    0 where the model embeds nothing (both are None).
    """
    if output is None:
        return tf.constant(0.0)
    reference = tf.stop_gradient(reference)
    return _mean(1.0 + keras.losses.cosine_similarity(reference, output), count)


def contrastive_loss(voices, speaker, temperature: float, margin: float, count):
    """Cross-entropy of finding each voice's own speaker among all others of the batch.

    A pair of one speaker must be nearer than pairs of two by `margin`, as a cosine; 0 where nobody
    in the batch has both a companion and a stranger.
    """
    unit = tf.math.l2_normalize(tf.cast(voices, tf.float32), axis=-1)
    pairs = _contrasts(speaker)
    cosine = tf.matmul(unit, unit, transpose_b=True)
    logits = (cosine - margin * tf.cast(pairs.is_companion, tf.float32)) / temperature
    own = tf.reduce_logsumexp(tf.where(pairs.is_companion, logits, -1e9), axis=1)
    everybody = tf.reduce_logsumexp(tf.where(pairs.is_self, -1e9, logits), axis=1)
    return _mean(tf.where(pairs.is_counted, everybody - own, 0.0), count)


def speaker_loss(logits, speaker, count):
    """Cross-entropy of telling speakers apart; 0 where there is one only (`logits` is None).

    A speaker of validation alone has no number and does not count.
    """
    if logits is None:
        return tf.constant(0.0)
    is_known = tf.cast(speaker >= 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.maximum(speaker, 0), logits=logits
    )
    return _mean(losses * is_known, count)


def masked_mean(values: tf.Tensor, lengths: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """The sum of values [batch, time] up to each row's length, divided by a count."""
    return _mean(values * sequence_mask(lengths, tf.shape(values)[1]), count)


def _mean(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(values) / tf.maximum(count, 1.0)


def _groups(mel_lengths: tf.Tensor, reduction: int) -> tf.Tensor:
    """The groups of frames of each utterance, with its tail."""
    return -(-mel_lengths // reduction) + TAIL_GROUPS


class _Contrasts(NamedTuple):
    """Who is whose companion, [batch, batch], and who has a companion and a stranger, [batch]."""

    is_self: tf.Tensor
    is_companion: tf.Tensor
    is_counted: tf.Tensor


def _contrasts(speaker: tf.Tensor, part: tf.Tensor | None = None) -> _Contrasts:
    """The pairs of a batch; where it is computed in parts, only within each."""
    is_same = speaker[:, None] == speaker[None, :]
    is_self = tf.eye(tf.shape(speaker)[0], dtype=tf.bool)
    is_near = tf.constant(True) if part is None else part[:, None] == part[None, :]
    is_companion = is_near & is_same & ~is_self & (speaker >= 0)[:, None]
    has_stranger = tf.reduce_any(is_near & ~is_same, axis=1)
    is_counted = tf.reduce_any(is_companion, axis=1) & has_stranger
    return _Contrasts(is_self, is_companion, is_counted)


@dataclass(frozen=True)
class XTTSLoss:
    """All terms of a model's outputs against its batch, and their weighted sum."""

    weights: Mapping[str, float]
    reduction: int = 2
    states: int = 1
    stop_positive_weight: float = 5.0
    temperature: float = 0.1
    margin: float = 0.2

    @classmethod
    def from_config(cls, config) -> "XTTSLoss":
        """The losses of an XTTSConfig."""
        weights = loss_weights(config.training)
        if config.model.refiner_layers:
            weights[FLOW] = config.training.flow_loss_weight
        return cls(
            weights,
            config.model.decoder_reduction,
            config.model.token_states,
            config.training.stop_token_positive_weight,
            config.training.contrastive_loss_temperature,
            config.training.contrastive_loss_margin,
        )

    def counts(self, batch: Mapping[str, tf.Tensor]) -> Counts:
        """What the terms of a batch are means over."""
        return Counts.of(batch, self.reduction, self.states)

    def terms(
        self,
        batch: Mapping[str, tf.Tensor],
        outputs: Mapping[str, tf.Tensor],
        counts: Counts | None = None,
    ) -> Terms:
        """Every term, raw; of a part of a batch, its share of them, by the counts of the whole."""
        counts = counts or self.counts(batch)
        mel, speaker = tf.cast(batch["mel"], tf.float32), batch["speaker"]
        frames, tokens = batch["mel_lengths"], self.states * batch["text_lengths"]
        pitch, energy = outputs["pitch"], outputs["energy"]
        flow = {}
        if FLOW in self.weights:
            flow[FLOW] = flow_loss(
                outputs["flow"], outputs["flow_target"], frames, self.reduction, counts.refined
            )
        return {
            "mel_loss": mel_loss(outputs["mel"], mel, frames, counts.frames),
            "stop_loss": stop_loss(
                outputs["stop"], frames, self.reduction, self.stop_positive_weight, counts.groups
            ),
            "alignment_loss": alignment_loss(
                outputs["mu"], mel, outputs["frame_states"], frames, counts.frames
            ),
            "duration_loss": duration_loss(
                outputs["log_durations"], outputs["durations"], tokens, counts
            ),
            "pitch_loss": (
                contour_loss(pitch, outputs["voicing"], batch["pitch"], frames, counts)
                if "voicing" in outputs
                else prosody_loss(pitch, outputs["token_pitch"], tokens, counts.tokens)
            ),
            "energy_loss": prosody_loss(energy, outputs["token_energy"], tokens, counts.tokens),
            "voice_similarity_loss": voice_similarity_loss(
                outputs["output_embedding"], outputs["reference_embedding"], counts.utterances
            ),
            "contrastive_loss": contrastive_loss(
                outputs["voice"], speaker, self.temperature, self.margin, counts.contrasted
            ),
            "speaker_loss": speaker_loss(outputs["speaker_logits"], speaker, counts.identified),
            **flow,
        }

    def __call__(self, batch, outputs) -> tuple[tf.Tensor, Terms, Terms]:
        """The total, the raw terms and the weighted ones."""
        terms = self.terms(batch, outputs)
        total, weighted = weighted_sum(terms, self.weights)
        return total, terms, weighted
