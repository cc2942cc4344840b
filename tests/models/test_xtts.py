"""The whole model: what it depends on, what it must not depend on, and that all of it learns."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models import alignment, xtts
from myxtts.models.decoder import DECODERS, scaled_mel
from myxtts.models.prosody import scaled_pitch
from myxtts.training.losses import XTTSLoss
from myxtts.training.references import own_references
from tests.helpers.tiny_model import (
    N_MELS,
    SPEAKERS,
    VOCAB,
    make_batch,
    padded,
    rows,
    tiny_config,
    tiny_model,
    with_reference,
)

STRATEGIES = tuple(DECODERS)
FRAMES, TOKENS = [20, 13, 17], [6, 4, 5]
# What each output has a row of.
PER_TOKEN = ("mu", "log_durations", "pitch", "energy", "durations", "token_pitch", "token_energy")
PER_FRAME = ("mel", "frame_states", "frame_tokens", "frames")
PER_UTTERANCE = ("voice", "output_embedding", "reference_embedding", "speaker_logits")


@pytest.fixture(scope="module", params=STRATEGIES)
def model(request) -> xtts.XTTS:
    return tiny_model(decoder_strategy=request.param, use_gst=request.param == "parallel")


@pytest.fixture(scope="module")
def batch() -> dict[str, tf.Tensor]:
    return make_batch(FRAMES, TOKENS, [0, 0, 1])


def assert_same(found, expected, frames=FRAMES, tokens=TOKENS) -> None:
    """Compare outputs where there is something real, row by row."""
    for row, (length, count) in enumerate(zip(frames, tokens, strict=True)):
        ends = {name: length for name in PER_FRAME} | {name: count for name in PER_TOKEN}
        ends |= {name: None for name in PER_UTTERANCE}
        ends["stop"] = -(-length // 2) + xtts.TAIL_GROUPS
        assert ends.keys() == found.keys() == expected.keys()
        for name, end in ends.items():
            np.testing.assert_allclose(
                found[name][row][:end], expected[name][row][:end], atol=2e-5, err_msg=name
            )


def test_the_outputs_have_the_shapes_that_the_docstring_promises(model, batch):
    shapes = {name: tuple(x.shape) for name, x in model(with_reference(batch)).items()}
    groups = 20 // 2 + xtts.TAIL_GROUPS
    assert shapes == {
        "mel": (3, 2 * groups, N_MELS),
        "frames": (3, 2 * groups, 16 + model.harmonics.bands + xtts.POSITION_FEATURES),
        "stop": (3, groups),
        "mu": (3, 6, N_MELS),
        "frame_states": (3, 20),
        "frame_tokens": (3, 20),
        **{name: (3, 6) for name in PER_TOKEN if name != "mu"},
        "voice": (3, 8),
        "output_embedding": (3, 8),
        "reference_embedding": (3, 8),
        "speaker_logits": (3, SPEAKERS),
    }


@pytest.mark.parametrize("more", [{"tokens": 3}, {"frames": 5}, {"tokens": 1, "frames": 12}])
def test_padding_changes_no_output_and_no_loss(model, batch, more):
    inputs, wider = with_reference(batch), with_reference(padded(batch, **more))
    outputs, found = model(inputs), model(wider)
    assert_same(found, outputs)
    loss = XTTSLoss.from_config(tiny_config())
    terms, padded_terms = loss.terms(inputs, outputs), loss.terms(wider, found)
    for name in terms:
        np.testing.assert_allclose(padded_terms[name], terms[name], atol=1e-5, err_msg=name)


def test_an_utterance_is_the_same_alone_and_in_a_batch(model, batch):
    together = model(with_reference(batch))
    for row in range(3):
        alone = model(with_reference(make_alone(batch, row)))
        part = {name: value[row : row + 1] for name, value in together.items()}
        assert_same(alone, part, FRAMES[row : row + 1], TOKENS[row : row + 1])


def make_alone(batch, row: int) -> dict[str, tf.Tensor]:
    """One utterance as the readers would pad it alone."""
    one = rows(batch, row)
    one["tokens"] = one["tokens"][:, : TOKENS[row]]
    for name in ("mel", "energy", "pitch"):
        one[name] = one[name][:, : FRAMES[row]]
    return one


def test_changing_any_single_token_changes_the_mel_also_of_padded_text(model, batch):
    """The mask's sign was once inverted: with padding, the text made no difference at all."""
    count = TOKENS[1]
    many = rows(padded(batch, tokens=4), *[1] * (count + 1))
    tokens = many["tokens"].numpy()
    for position in range(count):
        tokens[position + 1, position] = (tokens[0, position] + 3) % (VOCAB - 1) + 1
    mel = model(with_reference({**many, "tokens": tf.constant(tokens)}))["mel"][:, : FRAMES[1]]
    changes = np.abs(mel[1:] - mel[:1]).max(axis=(1, 2))
    assert (changes > 1e-3).all(), changes


def test_the_mel_follows_language_and_reference(model, batch):
    inputs = with_reference(batch)
    mel = model(inputs)["mel"]
    for changed in (
        {"language": 1 - inputs["language"]},
        {"reference": inputs["reference"][:, ::-1] + 1.0},
    ):
        assert np.abs(model({**inputs, **changed})["mel"] - mel).max() > 1e-3


def test_the_alignment_leaves_no_token_out_and_adds_up(model, batch):
    outputs = model(with_reference(batch))
    durations = outputs["durations"].numpy()
    np.testing.assert_array_equal(durations.sum(axis=1), FRAMES)
    for row, count in enumerate(TOKENS):
        assert (durations[row, :count] >= 1).all()
        assert (np.diff(outputs["frame_tokens"][row, : FRAMES[row]]) >= 0).all()


def test_a_strong_prior_aligns_along_the_diagonal(model, batch):
    durations = model(with_reference(batch, prior_weight=1e4))["durations"]
    # 13 frames for 4 tokens: frame s goes to the token t whose t/4 is nearest to s/13.
    nearest = np.abs(np.arange(13)[:, None] / 13 - np.arange(4) / 4).argmin(axis=1)
    np.testing.assert_array_equal(durations[1], np.bincount(nearest, minlength=6))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("use_gst", [False, True])
def test_every_trainable_weight_gets_a_gradient(strategy, use_gst, batch):
    # As it starts: a weight that begins at zero must find a way out of it.
    model = tiny_model(decoder_strategy=strategy, use_gst=use_gst, noise=0.0)
    loss = XTTSLoss.from_config(tiny_config())
    inputs = with_reference(batch)
    with tf.GradientTape() as tape:
        total, _, _ = loss(inputs, model(inputs, training=True))
    weights = model.trainable_variables
    gradients = tape.gradient(total, weights)
    dead = [
        weight.path
        for weight, gradient in zip(weights, gradients, strict=True)
        if gradient is None or not np.abs(tf.convert_to_tensor(gradient)).max() > 0
    ]
    # The bias of attention's keys shifts all scores of a query alike: it has no effect at all.
    assert [path for path in dead if not path.endswith("attention/key/bias")] == []


def test_the_voice_of_a_reference_is_trained(batch):
    """Once no reference reached the model, and cloning was never learnt."""
    model = tiny_model(noise=0.0)
    inputs = with_reference(batch)
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        # Not by telling speakers apart: through the mel itself.
        mel = tf.reduce_mean(tf.abs(outputs["mel"][:, :20] - inputs["mel"]))
    modulation = model.decoder.blocks[0].modulation.voice.kernel
    assert np.abs(tape.gradient(mel, modulation)).max() > 0


def test_among_one_speaker_nobody_listens_to_what_was_said(batch):
    model = tiny_model(speakers=1)
    outputs = model(with_reference({**batch, "speaker": tf.zeros([3], tf.int32)}))
    assert outputs["output_embedding"] is None and outputs["reference_embedding"] is None


def test_a_saved_model_says_the_same_after_loading(model, batch, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected, found = model(with_reference(batch)), loaded(with_reference(batch))
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    np.testing.assert_array_equal(speak(loaded)["mel"], speak(model)["mel"])


def test_weights_are_named_after_their_layers(model):
    paths = [weight.path for weight in model.trainable_variables]
    assert len(set(paths)) == len(paths)
    assert all(path.startswith("xtts/") for path in paths)
    assert "xtts/decoder/block_0/conv/kernel" in paths


# Speaking


def speak(model, tokens=((1, 2, 3, 4), (5, 6, 0, 0)), lengths=(4, 2), rate=1.0, voice=None):
    size = len(tokens)
    if voice is None:
        voice = np.random.default_rng(2).normal(size=(size, 8))
    said = model.synthesize(
        tf.constant(tokens, tf.int32),
        tf.constant(lengths, tf.int32),
        tf.zeros([size], tf.int32),
        tf.constant(voice, tf.float32),
        tf.fill([size], rate),
    )
    return {name: value.numpy() for name, value in said.items()}


def test_speaking_gives_every_token_time_and_ends_near_its_text(model):
    said = speak(model)
    durations, lengths = said["durations"], said["mel_lengths"]
    np.testing.assert_array_equal(durations > 0, [[1, 1, 1, 1], [1, 1, 0, 0]])
    tail = xtts.TAIL_GROUPS * 2
    assert (np.abs(lengths - durations.sum(axis=1)) <= tail + 1).all()
    assert said["mel"].shape[0] == 2 and said["mel"].shape[1] >= lengths.max()
    assert np.isfinite(said["mel"]).all()


def test_speaking_does_not_depend_on_padding_or_company(model):
    voice = np.random.default_rng(3).normal(size=(2, 8))
    together = speak(model, voice=voice)
    alone = speak(model, tokens=((5, 6, 9),), lengths=(2,), voice=voice[1:])
    end = int(alone["mel_lengths"][0])
    assert together["mel_lengths"][1] == end
    np.testing.assert_allclose(together["mel"][1, :end], alone["mel"][0, :end], atol=2e-5)


def test_changing_any_single_token_changes_what_is_said(model):
    tokens = np.tile([1, 2, 3, 4, 0, 0], (5, 1))
    tokens[np.arange(1, 5), np.arange(4)] += 5
    voice = np.ones((5, 8))
    said = speak(model, tokens=tokens, lengths=[4] * 5, voice=voice)
    for row in range(1, 5):
        same_length = (said["durations"][row] == said["durations"][0]).all()
        assert not same_length or np.abs(said["mel"][row] - said["mel"][0]).max() > 1e-3


def test_half_the_speaking_rate_takes_about_twice_as_long(model):
    model.prosody.out.bias.assign([2.0, 0.0, 0.0])  # e^2 = 7.4 frames, or so
    usual, slow = (speak(model, rate=rate)["durations"].sum() for rate in (1.0, 0.5))
    assert 1.8 < slow / usual < 2.2


def test_speaking_is_traced_once_for_all_shapes_and_repeats_itself():
    model = tiny_model(text_encoder_conv_layers=0, text_encoder_layers=0, decoder_layers=1)
    first = speak(model)
    speak(model, tokens=((1, 2, 3, 4, 5, 6, 7),), lengths=(7,))
    for name, value in speak(model).items():
        np.testing.assert_array_equal(value, first[name])
    assert model.synthesize.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_speaking_has_no_product_that_is_compiled_for_each_pair_of_lengths(strategy):
    """oneDNN keeps the code of products in three dimensions for every shape and every thread."""
    model = tiny_model(decoder_strategy=strategy, text_encoder_layers=0, use_gst=False)
    operations = model.synthesize.get_concrete_function().graph.get_operations()
    assert not [one.name for one in operations if one.type == "BatchMatMulV2"]


def test_encode_voice_is_the_voice_that_training_uses(model, batch):
    expected = model(with_reference(batch))["voice"]
    found = model.styled(model.encode_voice(batch["mel"], batch["mel_lengths"]))
    np.testing.assert_allclose(found, expected, atol=1e-5)


# Precision


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_half_precision_applies_and_keeps_what_must_be_exact(policy, strategy, batch):
    full = tiny_model(decoder_strategy=strategy)
    keras.config.set_dtype_policy(policy)
    try:
        half = tiny_model(decoder_strategy=strategy)
        expected, found = full(with_reference(batch)), half(with_reference(batch))
    finally:
        keras.config.set_dtype_policy("float32")
    name = policy.removeprefix("mixed_")
    for layer in (half.text_encoder.blocks[0].conv, half.decoder.blocks[0].conv):
        assert layer.compute_dtype == name and layer.variable_dtype == "float32"
    for output in ("mel", "stop", "mu", "log_durations", "pitch", "energy", "voice"):
        assert found[output].dtype == tf.float32, output
        np.testing.assert_allclose(found[output], expected[output], atol=0.25, err_msg=output)
    assert not np.array_equal(found["mel"], expected["mel"])  # it really computed in less


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_in_half_precision_the_alignment_is_the_one_of_the_float32_mel(policy, batch):
    """Of rounded mels, or summed in bfloat16, paths are silently wrong."""
    keras.config.set_dtype_policy(policy)
    try:
        found = tiny_model()(with_reference(batch, prior_weight=0.01))
    finally:
        keras.config.set_dtype_policy("float32")
    mel, lengths = batch["mel"], (batch["text_lengths"], batch["mel_lengths"])
    scores = alignment.gaussian_scores(found["mu"], scaled_mel(mel))
    scores -= 0.01 * alignment.diagonal_prior(*lengths, 6, 20)
    expected = alignment.monotonic_alignment(scores, *lengths)
    np.testing.assert_array_equal(found["frame_tokens"], expected)
    # The true pitch of a token, to more digits than half precision has.
    voiced = batch["pitch"] > 0
    pitch = alignment.token_means(
        scaled_pitch(batch["pitch"]), expected, lengths[1], 6, where=voiced
    )
    np.testing.assert_allclose(found["token_pitch"], pitch, atol=1e-5)


# Helpers, by hand


def test_ends_of_tokens_are_rounded_and_durations_bounded():
    # Ends at 1.4, 2.8, 4.2 and 5.6 become 1, 3, 4 and 6; padding has none.
    logs, mask = tf.math.log([[1.4] * 4 + [5.0]]), tf.constant([[1.0] * 4 + [0.0]])
    found = xtts.whole_durations(logs, mask, tf.constant([1.0]))
    np.testing.assert_array_equal(found, [[1, 2, 1, 2, 0]])
    # .1 is at least 1 frame, e^20 at most the longest.
    logs = tf.constant([[np.log(0.1), 20.0]], tf.float32)
    found = xtts.whole_durations(logs, tf.ones([1, 2]), tf.constant([1.0]))
    np.testing.assert_array_equal(found, [[1, xtts.LONGEST_TOKEN]])
    # Twice as fast: 10 frames become 5.
    found = xtts.whole_durations(tf.math.log([[10.0]]), tf.ones([1, 1]), tf.constant([2.0]))
    np.testing.assert_array_equal(found, [[5]])


@pytest.mark.parametrize(
    ("stops", "expected"),
    [
        ([], 20),  # no end predicted: that of the text
        ([9], 20),  # in the text's last group
        ([11], 24),  # in the tail
        ([11, 13], 24),  # the first counts
        ([7], 16),  # shortly before: within a tail of it
        ([2], 20),  # in mid-sentence: not an end
        ([13], 28),
    ],
)
def test_the_end_is_where_the_stop_head_hears_it_near_the_texts_end(stops, expected):
    logits = np.full((1, 14), -3.0, np.float32)
    logits[0, stops] = 3.0
    found = xtts._trimmed(tf.constant(logits), tf.constant([20]), 2)
    np.testing.assert_array_equal(found, [expected])


def test_behind_a_mel_its_last_frame_lasts():
    found = xtts._held(tf.constant([[[1.0], [2.0], [0.0]]]), tf.constant([2]), 5)
    np.testing.assert_array_equal(found[0, :, 0], [1, 2, 2, 2, 2])


def test_an_unknown_decoder_is_rejectd_by_name():
    with pytest.raises(ValueError, match="parallel.*autoregressive"):
        ModelConfig(decoder_strategy="sequential")


def test_weights_that_overflow_give_a_short_mel_that_is_not_finite():
    model = tiny_model()
    for weight in model.trainable_variables:
        weight.assign(weight * 1e20)
    tokens, one = tf.ones([1, 4], tf.int32), tf.ones([1])
    voice = tf.ones([1, model.speaker_embedding_dim])
    said = model.synthesize(tokens, tf.constant([4]), tf.constant([0]), voice, one)
    assert not np.isfinite(said["mel"]).all()
    assert 4 <= said["mel"].shape[1] <= 4 * xtts.LONGEST_TOKEN + 2 * xtts.TAIL_GROUPS


def test_an_end_behind_its_own_tail_does_not_count():
    """The shorter of two sentences: what the decoder says of its padding is no end."""
    spoken, tail = tf.constant([8, 20]), xtts.TAIL_GROUPS
    stop = np.full((2, 10 + tail), -1.0, np.float32)
    stop[0, 4 + tail] = 1.0  # the first group behind the tail of the first sentence
    assert xtts._trimmed(tf.constant(stop), spoken, 2).numpy().tolist() == [8, 20]
    stop[0, 3 + tail] = 1.0  # the last group of its tail
    assert xtts._trimmed(tf.constant(stop), spoken, 2).numpy().tolist() == [8 + 2 * tail, 20]


# Refining


def refined(model, seed=0, temperature=0.7, steps=2, rows=slice(None)) -> dict:
    tokens, lengths = ((1, 2, 3, 4), (5, 6, 0, 0)), (4, 2)
    voice = np.random.default_rng(2).normal(size=(2, 8))
    size = len(tokens[rows])
    said = model.synthesize_refined(
        tf.constant(tokens[rows], tf.int32),
        tf.constant(lengths[rows], tf.int32),
        tf.zeros([size], tf.int32),
        tf.constant(voice[rows], tf.float32),
        tf.ones([size]),
        seed,
        temperature,
        steps,
    )
    return {name: value.numpy() for name, value in said.items()}


@pytest.fixture(scope="module")
def refining() -> xtts.XTTS:
    return tiny_model(refiner_layers=2)


def test_refining_changes_the_mel_and_nothing_else(refining):
    coarse, fine = speak(refining), refined(refining)
    for name in ("durations", "mel_lengths"):
        np.testing.assert_array_equal(fine[name], coarse[name])
    assert not np.allclose(fine["mel"], coarse["mel"])
    np.testing.assert_array_equal(refined(refining, steps=0)["mel"], coarse["mel"])


def test_a_refined_sentence_does_not_depend_on_its_neighbours(refining):
    both, alone = refined(refining), refined(refining, rows=slice(1, 2))
    length = int(alone["mel_lengths"][0])
    np.testing.assert_allclose(
        both["mel"][1, :length], alone["mel"][0, :length], rtol=1e-4, atol=1e-4
    )


def test_a_model_without_a_refiner_has_no_weights_for_it(refining):
    plain = tiny_model(refiner_layers=0)
    names = {weight.path.removeprefix("xtts/") for weight in plain.trainable_variables}
    more = {weight.path.removeprefix("xtts/") for weight in refining.trainable_variables}
    assert names < more and all(name.startswith("refiner/") for name in more - names)


def test_a_refiner_learns_only_when_it_is_told_to(refining):
    batch = own_references(make_batch([20, 14], [5, 4]))
    batch |= {"prior_weight": tf.constant(0.0), "flow_key": tf.constant([1, 2])}
    on, off = (refining({**batch, "refines": tf.constant(x)}) for x in (True, False))
    assert on["flow"].shape[1] > 0 and off["flow"].shape[1] == 0
    del batch["flow_key"]
    assert "flow" not in refining(batch)


def test_under_a_shared_text_voice_only_what_follows_the_text_depends_on_who_speaks():
    model = tiny_model(text_voice="shared")
    tokens, lengths, language = tf.constant([[3, 4, 5, 6]]), tf.constant([4]), tf.constant([0])
    one, other = tf.ones([1, 8]), -tf.ones([1, 8])
    text, mask = model._encode(tokens, lengths, language, one, False)
    again, _ = model._encode(tokens, lengths, language, other, False)
    np.testing.assert_array_equal(text, again)
    lengths_of = [model.prosody(text, mask, voice)["log_durations"] for voice in (one, other)]
    assert np.abs(lengths_of[0] - lengths_of[1]).max() > 1e-3
    own = tiny_model()
    differences = own._encode(tokens, lengths, language, one, False)[0]
    differences -= own._encode(tokens, lengths, language, other, False)[0]
    assert np.abs(differences).max() > 1e-3
