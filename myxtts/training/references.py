"""Which recording lends its voice to an utterance in training."""

import tensorflow as tf

# Three seconds identify a voice, and are what a user's reference has at least.
REFERENCE_FRAMES = 256


def with_references(batch: dict[str, tf.Tensor], seed: int, step: tf.Tensor) -> dict:
    """Add `reference` [batch, at most 256, mels] and `reference_lengths` to a batch.

    Where it has embeddings, the reference's is its `reference_embedding` [batch, dim].

    The reference is a segment of another utterance of the same speaker where the batch has one, and
    of the utterance itself otherwise. The choice depends on the seed and the step alone.
    """
    speaker, lengths = batch["speaker"], batch["mel_lengths"]
    size = tf.shape(speaker)[0]
    key = tf.stack([tf.cast(seed % 2**31, tf.int64), tf.cast(step, tf.int64)])
    draw = tf.random.stateless_uniform([size, size + 1], key)
    chosen = _another_of_the_same(speaker, draw[:, :size])
    room = tf.minimum(tf.shape(batch["mel"])[1], REFERENCE_FRAMES)
    taken = tf.gather(lengths, chosen)
    spare = tf.cast(tf.maximum(taken - room, 0), tf.float32)
    first = tf.cast(draw[:, size] * (spare + 1.0), tf.int32)
    at = tf.minimum(first[:, None] + tf.range(room)[None, :], tf.shape(batch["mel"])[1] - 1)
    where = tf.stack([tf.broadcast_to(chosen[:, None], tf.shape(at)), at], axis=-1)
    reference = tf.cast(tf.gather_nd(batch["mel"], where), tf.float32)
    batch = {**batch, "reference": reference, "reference_lengths": tf.minimum(taken, room)}
    if "embedding" in batch:  # of all of that utterance
        batch["reference_embedding"] = tf.gather(batch["embedding"], chosen)
    return batch


def own_references(batch: dict[str, tf.Tensor]) -> dict:
    """Each utterance's own beginning as its reference: always the same, for validation."""
    room = tf.minimum(tf.shape(batch["mel"])[1], REFERENCE_FRAMES)
    reference = tf.cast(batch["mel"][:, :room], tf.float32)
    lengths = tf.minimum(batch["mel_lengths"], room)
    batch = {**batch, "reference": reference, "reference_lengths": lengths}
    if "embedding" in batch:
        batch["reference_embedding"] = batch["embedding"]
    return batch


def _another_of_the_same(speaker: tf.Tensor, draw: tf.Tensor) -> tf.Tensor:
    """For each row a random other row of its speaker, or itself where there is none."""
    is_same = tf.cast(speaker[:, None] == speaker[None, :], tf.float32)
    is_self = tf.eye(tf.shape(speaker)[0])
    # Others draw from [1, 2), oneself gets .5, strangers 0: the highest wins.
    return tf.argmax(
        is_same * ((1.0 - is_self) * (1.0 + draw) + 0.5 * is_self), axis=1, output_type=tf.int32
    )
