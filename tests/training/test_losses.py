"""Losses against numbers worked out by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import XTTSConfig
from myxtts.models.decoder import natural_mel
from myxtts.models.segments import DRAWS
from myxtts.models.xtts import TAIL_GROUPS
from myxtts.training import losses
from myxtts.training.losses import XTTSLoss
from tests.helpers.tiny_model import tiny_config

LN2 = math.log(2)


def numbers(*values) -> tf.Tensor:
    return tf.constant(values, tf.float32)


def contrastive_loss(voices, speaker, temperature: float, margin: float) -> tf.Tensor:
    """The loss of a whole batch, by its own count."""
    lengths = tf.zeros_like(speaker)
    batch = {"speaker": speaker, "mel_lengths": lengths, "text_lengths": lengths}
    batch["pitch"] = tf.zeros([len(lengths), 1])
    count = losses.Counts.of(batch, 2).contrasted
    return losses.contrastive_loss(voices, speaker, temperature, margin, count)


def test_a_mean_counts_only_what_is_real():
    found = losses.masked_mean(numbers([1, 2, 9], [3, 9, 9]), tf.constant([2, 1]), 3.0)
    assert float(found) == 2.0
    assert float(losses.masked_mean(numbers([5, 5]), tf.constant([0]), 0.0)) == 0.0


def test_the_mel_loss_is_the_mean_absolute_difference():
    mel = tf.zeros([1, 2, 2])
    # The prediction has a tail, which is not compared: (1 + 3 + 0 + 2) / 4.
    predicted = tf.constant([[[1.0, -3.0], [0.0, 2.0], [50.0, 50.0]]])
    assert float(losses.mel_loss(predicted, mel, tf.constant([2]), 2.0)) == 1.5
    assert float(losses.mel_loss(predicted, mel, tf.constant([1]), 1.0)) == 2.0


def test_the_alignment_loss_compares_each_frame_with_its_token():
    mu = tf.constant([[[0.0, 0.0], [1.0, 1.0]]])
    mel = natural_mel(tf.constant([[[0.0, 2.0], [1.0, 1.0], [3.0, 1.0]]]))
    # Frame 0 with token 0: (0 + 4) / 2; frames 1 and 2 with token 1: 0 and (4 + 0) / 2.
    tokens = tf.constant([[0, 1, 1]])
    for frames, expected in ((3, 4 / 3), (2, 1.0)):
        found = losses.alignment_loss(mu, mel, tokens, tf.constant([frames]), float(frames))
        assert float(found) == pytest.approx(expected)


def test_the_duration_loss_is_of_logarithms():
    # Tokens of 1 and 2 frames, both predicted as 1: (0 + ln² 2) / 2, and 2 frames in all instead
    # of 3; the third token is padding.
    lengths = tf.constant([2])
    counts = losses.Counts(*numbers(*[0] * 8))._replace(tokens=2.0, utterances=1.0)
    found = losses.duration_loss(numbers([0, 0, 9]), tf.constant([[1, 2, 0]]), lengths, counts)
    assert float(found) == pytest.approx(LN2**2 / 2 + math.log(3 / 2) ** 2)


def test_the_prosody_loss_is_a_mean_square():
    found = losses.prosody_loss(numbers([1, 2, 9]), numbers([0, 4, 0]), tf.constant([2]), 2.0)
    assert float(found) == pytest.approx((1 + 4) / 2)


@pytest.mark.parametrize("groups", [6, 11])
@pytest.mark.parametrize(("frames", "last"), [(3, 2), (4, 2), (1, 1)])
def test_speech_has_ended_from_its_last_group_into_the_tail(groups, frames, last):
    # Undecided everywhere: a group before the end costs ln 2, one of the end five times that.
    logits = tf.zeros([1, groups])
    positives = 1 + TAIL_GROUPS
    expected = LN2 * ((last - 1) + 5 * positives) / (last - 1 + positives)
    found = losses.stop_loss(logits, tf.constant([frames]), 2, 5.0, float(last + TAIL_GROUPS))
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_each_group_of_the_stop_loss_pulls_in_its_direction():
    logits = tf.Variable(tf.fill([1, 9], 0.1))
    with tf.GradientTape() as tape:
        loss = losses.stop_loss(logits, tf.constant([6]), 2, 5.0, 7.0)
    # Three groups of speech, the last of them an end; four of tail; two that do not count.
    direction = np.sign(tape.gradient(loss, logits).numpy()[0])
    np.testing.assert_array_equal(direction, [1, 1, -1, -1, -1, -1, -1, 0, 0])


def test_voice_similarity_is_one_minus_the_cosine():
    reference = numbers([1, 0], [1, 0], [1, 0])
    output = numbers([2, 0], [0, 3], [-1, 0])
    each = [losses.voice_similarity_loss(output[i : i + 1], reference[:1], 1.0) for i in range(3)]
    np.testing.assert_allclose(each, [0, 1, 2], atol=1e-6)
    assert float(losses.voice_similarity_loss(output, reference, 3.0)) == pytest.approx(1.0)


def test_the_speaker_loss_is_a_cross_entropy():
    found = losses.speaker_loss(tf.zeros([2, 5]), tf.constant([0, 4]), 2.0)
    assert float(found) == pytest.approx(math.log(5))


def test_the_total_is_the_sum_of_the_weighted_terms():
    total, weighted = losses.weighted_sum(
        {"a": tf.constant(2.0), "b": tf.constant(3.0)}, {"a": 0.5, "b": 2.0}
    )
    assert float(total) == 7.0
    assert {name: float(value) for name, value in weighted.items()} == {"a": 1.0, "b": 6.0}


def test_terms_and_weights_must_be_of_the_same_names():
    with pytest.raises(ValueError, match="a.*b.*differ"):
        losses.weighted_sum({"a": tf.constant(1.0)}, {"b": 1.0})


def test_factors_scale_the_weights_that_they_name():
    assert losses.scaled_weights({"a": 2.0, "b": 3.0}, {"a": 0.5}) == {"a": 1.0, "b": 3.0}


def test_the_weights_are_the_configured_ones():
    config = XTTSConfig(mel_loss_weight=3.0, stop_loss_weight=0.0, decoder_reduction=4)
    loss = XTTSLoss.from_config(config)
    assert loss.weights["mel_loss"] == 3.0 and loss.weights["stop_loss"] == 0.0
    assert loss.weights.keys() == losses.WEIGHTS.keys()
    assert loss.reduction == 4 and loss.stop_positive_weight == 5.0


def test_the_voice_asked_for_learns_nothing_from_the_voice_heard():
    """Else both would agree on a vector that says nothing."""
    asked = tf.Variable([[1.0, 0.0]])
    heard = tf.Variable([[0.0, 1.0]])
    batch, outputs = one_of_each()
    with tf.GradientTape() as tape:
        terms = XTTSLoss.from_config(tiny_config()).terms(
            batch,
            {
                **outputs,
                "reference_embedding": tf.identity(asked),
                "output_embedding": tf.identity(heard),
            },
        )
        loss = terms["voice_similarity_loss"]
    gradients = tape.gradient(loss, [asked, heard])
    assert gradients[0] is None and np.abs(gradients[1]).max() > 0


def test_where_nothing_is_heard_the_voice_loss_is_exactly_0():
    batch, outputs = one_of_each()
    nothing = {"reference_embedding": None, "output_embedding": None}
    terms = XTTSLoss.from_config(tiny_config()).terms(batch, outputs | nothing)
    assert float(terms["voice_similarity_loss"]) == 0.0


# Three voices, two of which are one speaker's: their cosines are .6, 0 and .8.
VOICES, SPEAKER = numbers([2, 0], [0.6, 0.8], [0, 3]), tf.constant([0, 0, 1])


def entropy(own: float, *others: float) -> float:
    """Of choosing the first among logits."""
    return math.log(sum(math.exp(x) for x in (own, *others))) - own


@pytest.mark.parametrize(
    ("temperature", "margin", "first", "second"),
    [
        (1.0, 0.0, (0.6, 0.0), (0.6, 0.8)),
        (0.5, 0.0, (1.2, 0.0), (1.2, 1.6)),
        (1.0, 0.2, (0.4, 0.0), (0.4, 0.8)),
        (0.1, 0.2, (4.0, 0.0), (4.0, 8.0)),
    ],
)
def test_the_contrastive_loss_finds_a_companion_among_strangers(temperature, margin, first, second):
    # Who is alone counts only as somebody else's stranger.
    expected = (entropy(*first) + entropy(*second)) / 2
    found = contrastive_loss(VOICES, SPEAKER, temperature, margin)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_of_several_companions_any_will_do():
    voices = numbers([1, 0], [0.6, 0.8], [0.8, 0.6], [0, 1])
    speaker = tf.constant([4, 4, 4, 7])
    # Cosines of .6, .8 and 0; .6, .96 and .8; .8, .96 and .6: the last is the stranger's.
    rows = [(0.6, 0.8, 0.0), (0.6, 0.96, 0.8), (0.8, 0.96, 0.6)]
    expected = [
        math.log(sum(map(math.exp, row))) - math.log(math.exp(row[0]) + math.exp(row[1]))
        for row in rows
    ]
    found = contrastive_loss(voices, speaker, 1.0, 0.0)
    assert float(found) == pytest.approx(sum(expected) / 3, rel=1e-5)


@pytest.mark.parametrize("speaker", [[0, 0, 0], [0, 1, 2], [-1, -1, -1], [-1, -1, 0]])
def test_without_companions_or_without_strangers_there_is_no_contrast(speaker):
    assert float(contrastive_loss(VOICES, tf.constant(speaker), 0.1, 0.2)) == 0.0
    alone = contrastive_loss(VOICES[:1], tf.constant(speaker[:1]), 0.1, 0.2)
    assert float(alone) == 0.0


def test_who_has_no_number_is_nobodys_companion_but_a_stranger():
    voices = numbers([1, 0], [0.6, 0.8], [0, 1], [0, 1])
    # The first two have two strangers each; those, of whom nothing is known, have no row.
    expected = (entropy(0.6, 0.0, 0.0) + entropy(0.6, 0.8, 0.8)) / 2
    found = contrastive_loss(voices, tf.constant([0, 0, -1, -1]), 1.0, 0.0)
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("speaker", [[0, 0, 1], [0, 1, 2], [-1, -1, -1]])
@pytest.mark.parametrize("voices", [VOICES, tf.ones([3, 2]), tf.zeros([3, 2])])
def test_the_contrast_has_a_gradient_of_numbers(voices, speaker):
    voices = tf.Variable(voices)
    with tf.GradientTape() as tape:
        loss = contrastive_loss(voices, tf.constant(speaker), 0.1, 0.2)
    gradient = tape.gradient(loss, voices)
    assert np.isfinite(gradient).all()
    if speaker != [0, 0, 1]:
        assert not gradient.numpy().any()


def test_the_contrast_brings_companions_together():
    voices = tf.Variable(VOICES)
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = contrastive_loss(voices, SPEAKER, 0.5, 0.0)
        voices.assign_sub(0.5 * tape.gradient(loss, voices))
    unit = tf.math.l2_normalize(voices, axis=1).numpy()
    assert unit[0] @ unit[1] > 0.9 and unit[1] @ unit[2] < 0.6


def test_the_contrast_is_that_of_the_settings():
    batch, outputs = one_of_each()
    batch["speaker"], outputs["voice"] = SPEAKER, VOICES
    outputs["speaker_logits"] = None
    config = tiny_config(contrastive_loss_temperature=0.5, contrastive_loss_margin=0.1)
    found = XTTSLoss.from_config(config).terms(batch, outputs)["contrastive_loss"]
    assert found == contrastive_loss(VOICES, SPEAKER, 0.5, 0.1)


def one_of_each() -> tuple[dict, dict]:
    """A batch of one utterance of two frames and one token, and outputs for it."""
    one = tf.constant([1])
    batch = {"mel": tf.zeros([1, 2, 2], tf.float16), "mel_lengths": tf.constant([2])}
    batch |= {"text_lengths": one, "speaker": one, "pitch": tf.zeros([1, 2])}
    per_token = ("log_durations", "pitch", "energy", "token_pitch", "token_energy")
    outputs = {name: tf.zeros([1, 1]) for name in per_token}
    outputs |= {"durations": tf.constant([[2]]), "frame_states": tf.constant([[0, 0]])}
    outputs |= {"mel": tf.ones([1, 10, 2]), "stop": tf.zeros([1, 5]), "mu": tf.zeros([1, 1, 2])}
    names = ("voice", "reference_embedding", "output_embedding")
    outputs |= {name: tf.ones([1, 2]) for name in names}
    return batch, outputs | {"speaker_logits": tf.zeros([1, 3])}


def test_all_terms_are_there_in_float32_for_a_stored_mel_of_float16():
    total, terms, weighted = XTTSLoss.from_config(tiny_config())(*one_of_each())
    assert terms.keys() == weighted.keys() == losses.WEIGHTS.keys()
    assert all(value.dtype == tf.float32 for value in (total, *terms.values()))
    assert float(terms["mel_loss"]) == 1.0
    assert float(total) == pytest.approx(sum(float(value) for value in weighted.values()))


def test_the_counts_of_parts_add_up_to_those_of_the_batch_cut_there():
    batch = {
        "mel_lengths": tf.constant([3, 4, 5]),
        "text_lengths": tf.constant([1, 2, 3]),
        "speaker": tf.constant([0, 0, 1]),
        # What lies behind an utterance's end does not count.
        "pitch": tf.constant([[9.0, 0, 0, 9, 9], [9, 9, 0, 0, 9], [0, 0, 0, 0, 9]]),
    }
    whole = losses.Counts.of(batch, 2)
    groups = 2 + 2 + 3 + 3 * TAIL_GROUPS
    assert [float(one) for one in whole] == [12.0, groups, 6.0, 3.0, 2.0, 3.0, 12.0 * DRAWS, 4.0]
    # In parts of two and one, nobody has both a companion and a stranger.
    cut = losses.Counts.of({**batch, "part": tf.constant([0, 0, 1])}, 2)
    assert [float(one) for one in cut] == [*map(float, whole[:4]), 0.0, 3.0, 12.0 * DRAWS, 4.0]


def test_the_flow_loss_is_the_mean_square_over_the_real_frames_of_segments():
    # Two draws of one utterance of two frames; the third is padding.
    flow = tf.constant([[[1.0, 3.0], [0.0, 0.0], [9.0, 9.0]], [[0.0, 0.0], [2.0, 0.0], [9.0, 9.0]]])
    found = losses.flow_loss(flow, tf.zeros_like(flow), tf.constant([2]), 2, 4.0)
    assert float(found) == pytest.approx((5.0 + 0.0 + 0.0 + 2.0) / 4)
    nothing = tf.zeros([2, 0, 2])
    assert float(losses.flow_loss(nothing, nothing, tf.constant([2]), 2, 4.0)) == 0.0
