from types import SimpleNamespace

import numpy as np
import pytest

from myxtts.evaluation import alignment
from myxtts.evaluation.alignment import (
    Alignment,
    align,
    alignment_facts,
    duration_correlation,
    heard_sounds,
)
from myxtts.text.tokenizer import Tokenizer

tf = pytest.importorskip("tensorflow")


class Model:
    """Gives each frame the token of its own number, and each token two frames."""

    wants_embeddings = False
    token_states = 1

    def __init__(self):
        self.calls = []

    def __call__(self, inputs):
        self.calls.append({name: value.numpy() for name, value in inputs.items()})
        batch, tokens = inputs["tokens"].shape
        last = inputs["text_lengths"][:, None] - 1
        frames = tf.range(inputs["mel"].shape[1])[None, :]
        return {
            "frame_tokens": tf.minimum(frames, last),
            "log_durations": tf.fill([batch, tokens], float(np.log(2.0))),
        }


@pytest.fixture
def voice():
    tokenizer = Tokenizer.build(("de", "en"), "characters")
    return SimpleNamespace(tokenizer=tokenizer, languages=("de", "en"), model=Model())


def test_each_alignment_ends_with_its_own_recording_and_text(voice):
    mels = [np.full((9, 80), -1.0, np.float32), np.full((6, 80), -2.0, np.float32)]
    long, short = align(voice, mels, ["at", "a"], "en")
    # BOS, a, t, EOS and BOS, a, EOS
    assert long.frame_tokens.tolist() == [0, 1, 2, 3, 3, 3, 3, 3, 3]
    assert short.frame_tokens.tolist() == [0, 1, 2, 2, 2, 2]
    assert short.durations == pytest.approx([2.0, 2.0, 2.0])
    assert short.tokens.tolist() == voice.tokenizer.encode("a", "en").tolist()


def test_a_frozen_encoder_embeds_the_recording_from_its_mel(voice):
    mean = lambda mel, lengths: tf.reduce_mean(mel, axis=1)[:, :3]  # noqa: E731
    voice.model.wants_embeddings = True
    voice.model.published_voice = SimpleNamespace(embed=mean)
    align(voice, [np.full((5, 80), -1.0, np.float32)] * 2, ["a", "at"], "en")
    assert voice.model.calls[0]["reference_embedding"].tolist() == [[-1.0] * 3] * 2


def test_the_model_gets_the_recording_as_its_own_reference(voice):
    align(voice, [np.full((5, 80), -1.0, np.float32)] * 2, ["a", "at"], "en")
    (inputs,) = voice.model.calls
    assert np.array_equal(inputs["reference"], inputs["mel"])
    assert inputs["mel_lengths"].tolist() == inputs["reference_lengths"].tolist() == [5, 5]
    assert inputs["text_lengths"].tolist() == [3, 4]
    assert inputs["language"].tolist() == [1, 1]
    assert inputs["prior_weight"] == 0.0


def test_many_recordings_are_aligned_in_several_batches(voice, monkeypatch):
    monkeypatch.setattr(alignment, "BATCH", 2)
    found = align(voice, [np.zeros((4 + n, 80), np.float32) for n in range(5)], ["a"] * 5, "en")
    assert [len(one.frame_tokens) for one in found] == [4, 5, 6, 7, 8]
    assert len(voice.model.calls) == 3


def test_aligned_durations_count_frames():
    found = Alignment(np.arange(4), np.array([0, 1, 1, 3]), np.ones(4))
    assert found.aligned_durations.tolist() == [1, 2, 0, 1]


def test_alignments_are_checked_for_holes_and_long_sounds():
    frames = np.repeat(np.arange(4), 5)
    durations = np.array([1.0, 2.0, 3.0, 4.0])
    whole = Alignment(np.arange(4), frames, durations)
    without_first = Alignment(np.arange(4), frames[frames > 0], durations)
    found = alignment_facts([whole, without_first], 256 / 22050)
    assert found["alignments monotonic and complete"] == "1 of 2"
    assert found["longest sound in an alignment, s"] == pytest.approx(5 * 256 / 22050)


def test_durations_in_the_same_proportions_correlate():
    frames = np.repeat(np.arange(3), (2, 4, 8))
    alike = Alignment(np.arange(3), frames, np.array([1.0, 2.0, 4.0]))
    opposite = Alignment(np.arange(3), frames, np.array([4.0, 2.0, 1.0]))
    assert duration_correlation([alike]) == pytest.approx(1.0)
    assert duration_correlation([opposite]) == pytest.approx(-1.0)


def test_a_sound_of_the_front_end_is_heard_if_it_is_longer_than_two_frames():
    places = {"one": [1, 3], "two": [2], "none": []}
    tokenizer = SimpleNamespace(added_sounds=lambda text, language: places[text])
    durations = [np.array([9, 3, 9, 2]), np.array([9, 9, 5]), np.array([1, 1])]
    voice = SimpleNamespace(tokenizer=tokenizer)
    assert heard_sounds(voice, list(places), durations, "fa") == (2, 3)
