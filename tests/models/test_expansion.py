"""Tokens are expanded to frames, by hand."""

import numpy as np
import tensorflow as tf

from myxtts.models.expansion import (
    gather_tokens,
    places_in_tokens,
    spread_tokens,
    tokens_of_frames,
)

DURATIONS = tf.constant([[2, 0, 1]])


def test_frames_belong_to_the_tokens_that_last_so_long():
    np.testing.assert_array_equal(tokens_of_frames(DURATIONS, 4), [[0, 0, 2, 3]])


def test_a_frame_knows_its_place_in_its_token():
    place = places_in_tokens(DURATIONS, tokens_of_frames(DURATIONS, 4))
    log = 0.5 * np.log(2)
    expected = [[0.25, 0.75, log, 0], [0.75, 0.25, log, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(place[0], expected, atol=1e-6)


def test_synthesis_and_training_expand_tokens_to_the_same_bits():
    random = np.random.default_rng(0)
    values = tf.constant(random.normal(size=(3, 7, 33)).astype(np.float32))
    tokens = tokens_of_frames(tf.constant(random.integers(0, 5, (3, 7)), tf.int32), 40)
    expanded = gather_tokens(values, tokens)
    np.testing.assert_array_equal(expanded, spread_tokens(values, tokens))
    np.testing.assert_array_equal(expanded[0, 0], values[0, int(tokens[0, 0])])
    np.testing.assert_array_equal(expanded[:, -1], np.zeros((3, 33)))
