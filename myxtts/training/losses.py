"""Losses as pure functions of tensors, and their weighted sum, written once.

Every term is a mean over what is real: a mask from the lengths keeps padding out of it. All of it
is float32, whatever the model computes in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from myxtts.config.config import TrainingConfig
from myxtts.models.decoder import scaled_mel
from myxtts.models.layers import sequence_mask
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


def mel_loss(predicted, mel, lengths):
    """Mean absolute difference of log-mels [batch, frames, mels], in natural-log units."""
    size = tf.shape(mel)[1]
    difference = tf.abs(tf.cast(predicted[:, :size], tf.float32) - mel)
    return masked_mean(tf.reduce_mean(difference, axis=-1), lengths)


def alignment_loss(mu, mel, frame_tokens, lengths):
    """Mean square between each frame and what its token expects, on the model's own scale."""
    expected = tf.gather(mu, frame_tokens, batch_dims=1)
    return masked_mean(tf.reduce_mean(tf.square(scaled_mel(mel) - expected), axis=-1), lengths)


def duration_loss(log_durations, durations, lengths):
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
    return masked_mean(tf.square(log_durations - truth), lengths) + tf.reduce_mean(
        tf.square(whole - true_whole)
    )


def prosody_loss(predicted, truth, lengths):
    """Mean square of a quantity of tokens [batch, tokens]."""
    return masked_mean(tf.square(predicted - truth), lengths)


def stop_loss(logits, mel_lengths, reduction: int, positive_weight: float):
    """Cross-entropy of having ended, [batch, groups]: true from the last group of speech on."""
    last = -(-mel_lengths // reduction)
    at = tf.range(tf.shape(logits)[1])[None, :]
    truth = tf.cast(at >= last[:, None] - 1, tf.float32)
    losses = tf.nn.weighted_cross_entropy_with_logits(truth, logits, positive_weight)
    return masked_mean(losses, last + TAIL_GROUPS)


def voice_similarity_loss(heard, asked):
    """How far the voice heard is from the voice asked for, [batch, dim] each: 1 - cosine.

    0 where nothing is heard (both are None).
    """
    if heard is None:
        return tf.constant(0.0)
    asked = tf.stop_gradient(asked)
    return tf.reduce_mean(1.0 + keras.losses.cosine_similarity(asked, heard))


def contrastive_loss(voices, speaker, temperature: float, margin: float):
    """Cross-entropy of finding each voice's own speaker among all others of the batch.

    A pair of one speaker must be nearer than pairs of two by `margin`, as a cosine; 0 where nobody
    in the batch has both a companion and a stranger.
    """
    unit = tf.math.l2_normalize(tf.cast(voices, tf.float32), axis=-1)
    is_same = speaker[:, None] == speaker[None, :]
    is_self = tf.eye(tf.shape(speaker)[0], dtype=tf.bool)
    is_companion = is_same & ~is_self & (speaker >= 0)[:, None]
    cosine = tf.matmul(unit, unit, transpose_b=True)
    logits = (cosine - margin * tf.cast(is_companion, tf.float32)) / temperature
    own = tf.reduce_logsumexp(tf.where(is_companion, logits, -1e9), axis=1)
    everybody = tf.reduce_logsumexp(tf.where(is_self, -1e9, logits), axis=1)
    counts = tf.reduce_any(is_companion, axis=1) & tf.reduce_any(~is_same, axis=1)
    counts = tf.cast(counts, tf.float32)
    return tf.math.divide_no_nan(
        tf.reduce_sum(tf.where(counts > 0, everybody - own, 0.0)), tf.reduce_sum(counts)
    )


def speaker_loss(logits, speaker):
    """Cross-entropy of telling speakers apart; 0 where there is one only (`logits` is None).

    Who has no number, being heard in validation alone, does not count.
    """
    if logits is None:
        return tf.constant(0.0)
    is_known = tf.cast(speaker >= 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.maximum(speaker, 0), logits=logits
    )
    return tf.math.divide_no_nan(tf.reduce_sum(losses * is_known), tf.reduce_sum(is_known))


def masked_mean(values: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """The mean of values [batch, time] up to each row's length."""
    mask = sequence_mask(lengths, tf.shape(values)[1])
    return tf.reduce_sum(values * mask) / tf.maximum(tf.reduce_sum(mask), 1.0)


@dataclass(frozen=True)
class XTTSLoss:
    """All terms of a model's outputs against its batch, and their weighted sum."""

    weights: Mapping[str, float]
    reduction: int = 2
    stop_positive_weight: float = 5.0
    temperature: float = 0.1
    margin: float = 0.2

    @classmethod
    def from_config(cls, config) -> "XTTSLoss":
        """The losses of an XTTSConfig."""
        return cls(
            loss_weights(config.training),
            config.model.decoder_reduction,
            config.training.stop_token_positive_weight,
            config.training.contrastive_loss_temperature,
            config.training.contrastive_loss_margin,
        )

    def terms(self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]) -> Terms:
        """Every term, raw."""
        mel = tf.cast(batch["mel"], tf.float32)
        frames, tokens = batch["mel_lengths"], batch["text_lengths"]
        return {
            "mel_loss": mel_loss(outputs["mel"], mel, frames),
            "stop_loss": stop_loss(
                outputs["stop"], frames, self.reduction, self.stop_positive_weight
            ),
            "alignment_loss": alignment_loss(outputs["mu"], mel, outputs["frame_tokens"], frames),
            "duration_loss": duration_loss(outputs["log_durations"], outputs["durations"], tokens),
            "pitch_loss": prosody_loss(outputs["pitch"], outputs["token_pitch"], tokens),
            "energy_loss": prosody_loss(outputs["energy"], outputs["token_energy"], tokens),
            "voice_similarity_loss": voice_similarity_loss(
                outputs["output_embedding"], outputs["reference_embedding"]
            ),
            "contrastive_loss": contrastive_loss(
                outputs["voice"], batch["speaker"], self.temperature, self.margin
            ),
            "speaker_loss": speaker_loss(outputs["speaker_logits"], batch["speaker"]),
        }

    def __call__(self, batch, outputs) -> tuple[tf.Tensor, Terms, Terms]:
        """The total, the raw terms and the weighted ones."""
        terms = self.terms(batch, outputs)
        total, weighted = weighted_sum(terms, self.weights)
        return total, terms, weighted
