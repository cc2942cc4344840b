"""Monotonic alignment search: which token each mel frame belongs to, found inside the graph.

Everything is computed in float32 whatever the precision policy: in half precision the sums over
hundreds of frames lose the differences that decide the path.
"""

import tensorflow as tf

# Steps in one round of a loop. A round costs more than the arithmetic within it, but compiled by
# XLA a long one is slow, and slow to compile, because fusion repeats its work.
STEPS_PER_ROUND = 8

PRIOR_SHARPNESS = 1600.0


def monotonic_alignment(scores, text_lengths, mel_lengths):
    """Return the token of each frame, int32 [batch, frames], on the path with the largest score.

    `scores` [batch, tokens, frames] say how well a token explains a frame. The path begins at the
    first token, ends at the last and skips none, which takes text_lengths <= mel_lengths.
    Frames past the end belong to the last token. No gradient flows.
    """
    steps = _scores_by_step(tf.stop_gradient(tf.cast(scores, tf.float32)))
    frame = tf.range(tf.shape(steps)[0])[:, None]
    goes_on = frame + 1 < tf.cast(mel_lengths, tf.int32)
    is_advance = _advances(steps) & goes_on[:, None, :]
    tokens = _follow_back(is_advance, tf.cast(text_lengths, tf.int32))
    # A path cannot be further than this; one through NaN or -inf scores may claim to be.
    tokens = tf.minimum(tokens, frame)
    return _by_item(tokens[: tf.shape(scores)[2]])


def durations(frame_tokens, mel_lengths, num_tokens):
    """Return how many frames each token got, int32 [batch, num_tokens]."""
    counts = tf.sequence_mask(mel_lengths, tf.shape(frame_tokens)[1], tf.int32)
    return _sums_by_token(counts, frame_tokens, num_tokens)


def token_means(values, frame_tokens, mel_lengths, num_tokens, where):
    """Return the mean of `values` [batch, frames] over each token's frames, [batch, num_tokens].

    Only frames where `where` [batch, frames] is true count; a token without any gets 0.
    """
    is_counted = where & tf.sequence_mask(mel_lengths, tf.shape(frame_tokens)[1])
    # tf.where, not a product: a NaN in a frame that does not count must not spread.
    values = tf.where(is_counted, tf.cast(values, tf.float32), 0.0)
    sums = _sums_by_token(values, frame_tokens, num_tokens)
    counts = _sums_by_token(tf.cast(is_counted, tf.float32), frame_tokens, num_tokens)
    return tf.math.divide_no_nan(sums, counts)


def diagonal_prior(text_lengths, mel_lengths, num_tokens, num_frames):
    """Return 1600 (token/text_length - frame/mel_length)^2, [batch, num_tokens, num_frames]."""
    token = _places(text_lengths, num_tokens)[:, :, None]
    frame = _places(mel_lengths, num_frames)[:, None, :]
    return PRIOR_SHARPNESS * tf.square(token - frame)


def gaussian_scores(mu, mel):
    """Return -|mel - mu|^2 / 2 up to a constant per frame, [batch, tokens, frames].

    `mu` is [batch, tokens, mels], `mel` [batch, frames, mels]. What depends on the frame alone
    changes no path, hence |mel|^2 is dropped.
    """
    mu = tf.cast(mu, tf.float32)
    products = tf.matmul(mu, tf.cast(mel, tf.float32), transpose_b=True)
    return products - 0.5 * tf.reduce_sum(tf.square(mu), axis=2, keepdims=True)


def _scores_by_step(scores):
    """Return the scores of what each step leads to, [steps, tokens, batch], in whole rounds.

    Step s leads from frame s to frame s + 1: the first frame is the first token's on every path.
    """
    missing = -tf.shape(scores)[2] % STEPS_PER_ROUND
    return tf.transpose(tf.pad(scores[:, :, 1:], [[0, 0], [0, 0], [0, missing + 1]]), [2, 1, 0])


def _advances(scores):
    """Return where the best path to a token steps from the one before it.

    `scores` and the result, which is bool, are [steps, tokens, batch].
    """
    num_steps, num_tokens, batch = tf.unstack(tf.shape(scores))
    rounds = tf.reshape(scores, [-1, STEPS_PER_ROUND, num_tokens, batch])
    num_rounds = num_steps // STEPS_PER_ROUND
    nowhere = tf.fill([1, batch], float("-inf"))
    start = tf.concat([tf.zeros([1, batch]), tf.fill([num_tokens - 1, batch], float("-inf"))], 0)

    def one_round(index, stay, decisions):
        is_advance = []
        for step in tf.unstack(rounds[index], STEPS_PER_ROUND):
            advance = tf.concat([nowhere, stay[:-1]], 0)
            is_advance.append(advance > stay)
            stay = tf.maximum(advance, stay) + step
        return index + 1, stay, decisions.write(index, tf.stack(is_advance))

    _, _, decisions = tf.while_loop(
        lambda index, *_: index < num_rounds,
        one_round,
        [0, start, tf.TensorArray(tf.bool, num_rounds)],
        shape_invariants=[tf.TensorShape([]), scores.shape[1:], None],
        parallel_iterations=1,
    )
    return tf.reshape(decisions.stack(), [num_steps, num_tokens, batch])


def _follow_back(is_advance, text_lengths):
    """Return the token before each step, [steps, batch], found from the last to the first."""
    num_steps, num_tokens, batch = tf.unstack(tf.shape(is_advance))
    # A cell is token * batch + item; each step maps the cells behind it to those before it.
    cell = tf.reshape(tf.range(num_tokens * batch), [num_tokens, batch])
    previous = tf.where(is_advance, cell - batch, cell)
    rounds = tf.reshape(previous, [-1, STEPS_PER_ROUND, num_tokens * batch])
    num_rounds = num_steps // STEPS_PER_ROUND
    last_token = tf.clip_by_value(text_lengths - 1, 0, num_tokens - 1)
    last_cells = last_token * batch + tf.range(batch)

    def one_round(index, cells, path):
        before = []
        for step in reversed(tf.unstack(rounds[index], STEPS_PER_ROUND)):
            cells = tf.gather(step, cells)
            before.append(cells)
        return index - 1, cells, path.write(index, tf.stack(before[::-1]))

    _, _, path = tf.while_loop(
        lambda index, *_: index >= 0,
        one_round,
        [num_rounds - 1, last_cells, tf.TensorArray(tf.int32, num_rounds)],
        parallel_iterations=1,
    )
    return tf.reshape(path.stack(), [num_steps, batch]) // batch


def _by_item(tokens):
    """Turn [frames, batch] into [batch, frames]: oneDNN complains when integers are transposed."""
    num_frames, batch = tf.unstack(tf.shape(tokens))
    place = tf.range(num_frames)[None, :] * batch + tf.range(batch)[:, None]
    return tf.gather(tf.reshape(tokens, [-1]), place)


def _places(lengths, size):
    """Return position / length for each position, [batch, size]."""
    lengths = tf.maximum(tf.cast(lengths, tf.float32), 1.0)
    return tf.range(size, dtype=tf.float32) / lengths[:, None]


def _sums_by_token(values, frame_tokens, num_tokens):
    """Return the sums of `values` [batch, frames] by token, [batch, num_tokens]."""
    batch = tf.shape(values)[0]
    segments = frame_tokens + tf.range(batch)[:, None] * num_tokens
    sums = tf.math.unsorted_segment_sum(values, segments, batch * num_tokens)
    return tf.reshape(sums, [batch, num_tokens])
