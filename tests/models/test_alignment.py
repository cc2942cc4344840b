"""Alignment search against every possible path, and against the same programme in plain NumPy."""

from itertools import combinations

import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.alignment import (
    diagonal_prior,
    durations,
    gaussian_scores,
    monotonic_alignment,
    token_means,
)


def random_scores(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def align(scores, text_lengths, mel_lengths) -> np.ndarray:
    return monotonic_alignment(
        tf.constant(scores), tf.constant(text_lengths), tf.constant(mel_lengths)
    ).numpy()


def best_of_all_paths(scores: np.ndarray) -> np.ndarray:
    """The best of all ways to cut [tokens, frames] into one run of frames per token."""
    tokens, frames = scores.shape

    def path(cuts):
        return np.searchsorted(cuts, np.arange(frames), side="right")

    paths = [path(cuts) for cuts in combinations(range(1, frames), tokens - 1)]
    return max(paths, key=lambda path: scores[path, np.arange(frames)].sum(dtype=np.float64))


def best_path(scores: np.ndarray) -> np.ndarray:
    """The best path by dynamic programming, cell by cell in float64."""
    tokens, frames = scores.shape
    sums = np.full((tokens, frames), -np.inf)
    sums[0, 0] = scores[0, 0]
    for frame in range(1, frames):
        for token in range(tokens):
            before = sums[max(token - 1, 0) : token + 1, frame - 1].max()
            sums[token, frame] = before + scores[token, frame]
    path = [tokens - 1]
    for frame in range(frames - 2, -1, -1):
        token = path[-1]
        is_advance = token > 0 and sums[token - 1, frame] > sums[token, frame]
        path.append(token - is_advance)
    return np.array(path[::-1])


@pytest.mark.parametrize(("tokens", "frames"), [(1, 1), (1, 5), (2, 2), (3, 7), (4, 9), (6, 6)])
def test_the_path_is_the_best_of_all_paths(tokens, frames):
    scores = random_scores(tokens, 5, tokens, frames)
    found = align(scores, [tokens] * 5, [frames] * 5)
    np.testing.assert_array_equal(found, [best_of_all_paths(item) for item in scores])


def test_long_utterances_of_many_lengths_follow_the_plain_programme():
    text_lengths, mel_lengths = [1, 17, 40, 23], [31, 17, 97, 64]
    scores = 30 * random_scores(0, 4, 40, 97)
    found = align(scores, text_lengths, mel_lengths)
    for item, (tokens, frames) in enumerate(zip(text_lengths, mel_lengths, strict=True)):
        expected = best_path(scores[item, :tokens, :frames])
        np.testing.assert_array_equal(found[item, :frames], expected)
        np.testing.assert_array_equal(found[item, frames:], tokens - 1)


def test_a_path_worked_out_by_hand():
    scores = [[[9, 9, 0, 9, 0], [0, 0, 9, 1, 0], [9, 0, 0, 0, 9]]]
    np.testing.assert_array_equal(align(np.float32(scores), [3], [5]), [[0, 0, 1, 1, 2]])


@pytest.mark.parametrize("padding", [0.0, 1e6, -1e6, np.nan])
def test_padding_changes_nothing(padding):
    scores = random_scores(1, 2, 5, 11)
    padded = np.full((2, 9, 30), padding, np.float32)
    padded[:, :5, :11] = scores
    found = align(padded, [5, 5], [11, 11])
    np.testing.assert_array_equal(found[:, :11], align(scores, [5, 5], [11, 11]))


@pytest.mark.parametrize("hopeless", [np.nan, -np.inf, -1e30])
def test_scores_that_decide_nothing_still_give_every_token_a_frame(hopeless):
    found = align(np.full((1, 4, 10), hopeless, np.float32), [4], [10])[0]
    assert found[0] == 0
    assert found[-1] == 3
    assert set(np.diff(found)) <= {0, 1}


def test_more_tokens_than_frames_and_empty_texts_stay_within_the_tokens():
    found = align(random_scores(2, 3, 6, 4), [6, 0, 2], [4, 4, 0])
    np.testing.assert_array_equal(found, [[0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 1, 1]])


def test_compiled_by_xla_the_paths_are_the_same():
    compiled = tf.function(monotonic_alignment, jit_compile=True)
    scores = random_scores(3, 3, 6, 21)
    lengths = tf.constant([6, 4, 2]), tf.constant([21, 9, 2])
    np.testing.assert_array_equal(compiled(scores, *lengths), align(scores, *lengths))


def test_one_trace_serves_every_shape():
    lengths = tf.TensorSpec([None], tf.int32)
    signature = [tf.TensorSpec([None, None, None]), lengths, lengths]
    graph = tf.function(monotonic_alignment, input_signature=signature)
    for batch, tokens, frames in ((1, 2, 3), (2, 5, 16), (3, 4, 33)):
        scores = random_scores(frames, batch, tokens, frames)
        given = scores, [tokens] * batch, [frames] * batch
        np.testing.assert_array_equal(graph(*given), align(*given))
    assert graph.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_scores_are_summed_in_float32(dtype):
    # Offsets of which half precision keeps no decimals once they are added up.
    half = tf.cast(random_scores(4, 2, 30, 200) - 20, dtype)
    given = tf.constant([30, 25]), tf.constant([200, 190])
    expected = monotonic_alignment(tf.cast(half, tf.float32), *given)
    np.testing.assert_array_equal(monotonic_alignment(half, *given), expected)


def test_no_gradient_flows_into_the_scores():
    scores = tf.Variable(random_scores(5, 1, 3, 8))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(monotonic_alignment(scores, [3], [8]), tf.float32))
    assert tape.gradient(loss, scores) is None


def test_durations_count_the_frames_of_each_token_up_to_the_end():
    frame_tokens = tf.constant([[0, 0, 1, 2, 2, 2], [0, 1, 1, 1, 1, 1]])
    found = durations(frame_tokens, tf.constant([6, 3]), 4)
    assert found.dtype == tf.int32
    np.testing.assert_array_equal(found, [[2, 1, 3, 0], [1, 2, 0, 0]])


def test_durations_of_a_path_add_up_and_leave_no_token_out():
    text_lengths, mel_lengths = tf.constant([7, 3]), tf.constant([25, 12])
    path = monotonic_alignment(random_scores(6, 2, 7, 25), text_lengths, mel_lengths)
    found = durations(path, mel_lengths, 7).numpy()
    np.testing.assert_array_equal(found.sum(axis=1), [25, 12])
    np.testing.assert_array_equal((found > 0).sum(axis=1), [7, 3])


def test_token_means_take_only_the_frames_that_count():
    frame_tokens = tf.constant([[0, 0, 1, 2, 2], [0, 1, 1, 1, 1]])
    values = tf.constant([[2.0, 4.0, np.nan, 5.0, 100.0], [1.0, 2.0, 4.0, 100.0, 100.0]])
    where = tf.constant([[True, True, False, True, False], [True] * 5])
    found = token_means(values, frame_tokens, tf.constant([5, 3]), 3, where)
    np.testing.assert_array_equal(found, [[3.0, 0.0, 5.0], [1.0, 3.0, 0.0]])


def test_the_diagonal_prior_is_the_squared_distance_from_the_diagonal():
    found = diagonal_prior(tf.constant([2, 4]), tf.constant([4, 4]), 3, 4).numpy()
    assert found.shape == (2, 3, 4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, 0], [0.0, 100.0, 400.0, 900.0])
    np.testing.assert_allclose(found[0, 1], [400.0, 100.0, 0.0, 100.0])
    np.testing.assert_allclose(found[1, 2], [400.0, 100.0, 0.0, 100.0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16])
def test_gaussian_scores_are_the_distance_up_to_a_constant_per_frame(dtype):
    mu = tf.cast(random_scores(7, 2, 3, 8), dtype)
    mel = tf.cast(random_scores(8, 2, 5, 8), dtype)
    found = gaussian_scores(mu, mel).numpy()
    assert found.dtype == np.float32
    apart = tf.cast(mel, tf.float32)[:, None] - tf.cast(mu, tf.float32)[:, :, None]
    expected = -0.5 * tf.reduce_sum(apart**2, axis=-1).numpy()
    difference = found - expected
    np.testing.assert_allclose(difference, difference[:, :1].repeat(3, axis=1), atol=1e-5)
