"""A model of a few thousand weights, and batches for it, for tests of models and of training."""

import keras
import numpy as np
import tensorflow as tf

from myxtts.config.config import AudioSpec, ModelConfig, XTTSConfig
from myxtts.models.xtts import XTTS, build_xtts

N_MELS, VOCAB, LANGUAGES, SPEAKERS = 8, 20, 2, 3

TINY = {
    "use_gst": False,
    "token_states": 1,
    "pitch_contour": "token",
    "text_encoder_dim": 16,
    "text_encoder_conv_layers": 1,
    "text_encoder_layers": 1,
    "text_encoder_heads": 2,
    "decoder_dim": 16,
    "decoder_layers": 2,
    "decoder_reduction": 2,
    "audio_encoder_dim": 16,
    "audio_encoder_layers": 2,
    "speaker_embedding_dim": 8,
    "gst_num_style_tokens": 4,
    "gst_style_token_dim": 8,
    "gst_style_embedding_dim": 8,
    "gst_num_heads": 2,
}


def tiny_model(*, speakers: int = SPEAKERS, seed: int = 1, noise: float = 0.1, **settings) -> XTTS:
    """A tiny model of which no weight is zero, so that every input can be felt."""
    keras.utils.set_random_seed(seed)
    model = build_xtts(
        ModelConfig(**{**TINY, **settings}), AudioSpec(n_mels=N_MELS), VOCAB, LANGUAGES, speakers
    )
    random = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        weight.assign(weight + noise * random.normal(size=weight.shape))
    return model


def tiny_config(**settings) -> XTTSConfig:
    """A configuration of the tiny model."""
    own = {**TINY, "adversarial_loss_weight": 0.0, "n_mels": N_MELS}
    return XTTSConfig(**{**own, **settings})


def make_batch(
    frames: list[int],
    tokens: list[int],
    speakers: list[int] | None = None,
    *,
    seed: int = 0,
    multiple: int = 1,
) -> dict[str, tf.Tensor]:
    """A batch as the readers make it, of random speech of given lengths, padded with zeros."""
    size, room = len(frames), -(-max(frames) // multiple) * multiple
    text_room = -(-max(tokens) // multiple) * multiple
    batch = {
        "tokens": np.zeros((size, text_room), np.int32),
        "text_lengths": np.array(tokens, np.int32),
        "mel": np.zeros((size, room, N_MELS), np.float32),
        "mel_lengths": np.array(frames, np.int32),
        "energy": np.zeros((size, room), np.float32),
        "pitch": np.zeros((size, room), np.float32),
        "speaker": np.array(speakers or [0] * size, np.int32),
        "language": np.arange(size, dtype=np.int32) % LANGUAGES,
        "index": np.arange(size, dtype=np.int64),
    }
    random = np.random.default_rng(seed)
    for row, (length, count) in enumerate(zip(frames, tokens, strict=True)):
        batch["tokens"][row, :count] = random.integers(1, VOCAB, count)
        batch["mel"][row, :length] = random.normal(-5, 2, (length, N_MELS))
        batch["energy"][row, :length] = random.uniform(0, 20, length)
        voiced = random.uniform(size=length) < 0.7
        batch["pitch"][row, :length] = voiced * random.uniform(90, 250, length)
    return {name: tf.constant(value) for name, value in batch.items()}


def padded(batch: dict[str, tf.Tensor], tokens: int = 0, frames: int = 0) -> dict[str, tf.Tensor]:
    """The same batch with more padding behind its texts and mels, which is not even zeros."""
    batch = dict(batch)
    batch["tokens"] = tf.pad(batch["tokens"], [[0, 0], [0, tokens]], constant_values=7)
    for name in ("mel", "energy", "pitch"):
        rest = [[0, 0]] * (len(batch[name].shape) - 2)
        batch[name] = tf.pad(batch[name], [[0, 0], [0, frames], *rest], constant_values=3.0)
    return batch


def rows(batch: dict[str, tf.Tensor], *chosen: int) -> dict[str, tf.Tensor]:
    """Some rows of a batch, with its padding."""
    return {name: tf.gather(value, chosen) for name, value in batch.items()}


def with_reference(batch: dict[str, tf.Tensor], prior_weight: float = 0.0) -> dict[str, tf.Tensor]:
    """What the model is called with: here every utterance is its own reference."""
    return {
        **batch,
        "reference": batch["mel"],
        "reference_lengths": batch["mel_lengths"],
        "prior_weight": tf.constant(prior_weight),
    }
