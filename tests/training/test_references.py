"""Whose voice an utterance borrows in training."""

import numpy as np
import tensorflow as tf

from myxtts.training.references import REFERENCE_FRAMES, own_references, with_references


def make_batch(speakers: list[int], lengths: list[int]) -> dict[str, tf.Tensor]:
    """Frames that tell where they come from: row 2, frame 7 is 2007; padding is -1."""
    mel = np.full((len(lengths), max(lengths) + 5, 1), -1.0, np.float32)
    for row, length in enumerate(lengths):
        mel[row, :length, 0] = 1000 * row + np.arange(length)
    return {
        "mel": tf.constant(mel),
        "mel_lengths": tf.constant(lengths),
        "speaker": tf.constant(speakers),
    }


def sources(batch, seed: int, step: int) -> tuple[list[int], list[int]]:
    """The row that each reference is from, and its first frame, after checking all of it."""
    found = with_references(batch, seed, tf.constant(step, tf.int64))
    rows, firsts = [], []
    for reference, length in zip(
        found["reference"].numpy()[:, :, 0], found["reference_lengths"].numpy(), strict=True
    ):
        real = reference[:length]
        np.testing.assert_array_equal(np.diff(real), 1)
        rows.append(int(real[0]) // 1000)
        firsts.append(int(real[0]) % 1000)
        assert int(real[-1]) // 1000 == rows[-1]
    return rows, firsts


def test_the_reference_is_another_utterance_of_the_speaker_or_oneself():
    batch = make_batch([0, 1, 0, 2, 0], [20, 30, 25, 40, 22])
    seen = [sources(batch, 7, step)[0] for step in range(40)]
    by_row = [{rows[row] for rows in seen} for row in range(5)]
    assert by_row == [{2, 4}, {1}, {0, 4}, {3}, {0, 2}]


def test_the_choice_is_that_of_the_seed_and_the_step():
    batch = make_batch([0] * 6, [20] * 6)
    assert sources(batch, 1, 5) == sources(batch, 1, 5)
    assert sources(batch, 1, 5) != sources(batch, 1, 6)
    assert sources(batch, 1, 5) != sources(batch, 2, 5)


def test_a_long_recording_lends_a_piece_from_anywhere_in_it():
    length = REFERENCE_FRAMES + 50
    batch = make_batch([0, 1], [length, 30])
    found = [sources(batch, 3, step) for step in range(60)]
    firsts = [first[0] for _, first in found]
    assert min(firsts) < 10 and 40 < max(firsts) <= 50
    lengths = with_references(batch, 3, tf.constant(1, tf.int64))["reference_lengths"]
    np.testing.assert_array_equal(lengths, [REFERENCE_FRAMES, 30])


def test_in_validation_everyone_begins_with_the_own_beginning():
    batch = make_batch([0, 0], [REFERENCE_FRAMES + 9, 12])
    found = own_references(batch)
    np.testing.assert_array_equal(found["reference_lengths"], [REFERENCE_FRAMES, 12])
    np.testing.assert_array_equal(found["reference"], batch["mel"][:, :REFERENCE_FRAMES])


def test_the_embedding_is_that_of_the_utterance_that_lends_its_voice():
    batch = make_batch([0, 1, 0, 2, 0], [20, 30, 25, 40, 22])
    batch["embedding"] = tf.constant([[100.0 * row, row] for row in range(5)])
    for step in range(10):
        rows, _ = sources(batch, 7, step)
        found = with_references(batch, 7, tf.constant(step, tf.int64))["reference_embedding"]
        np.testing.assert_array_equal(found, [[100.0 * row, row] for row in rows])
    own = own_references(batch)["reference_embedding"]
    np.testing.assert_array_equal(own, batch["embedding"])


def test_without_embeddings_references_have_none():
    batch = make_batch([0, 0], [20, 30])
    for found in (with_references(batch, 7, tf.constant(0, tf.int64)), own_references(batch)):
        assert "reference_embedding" not in found
