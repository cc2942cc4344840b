"""Speaker embeddings of a published encoder: frozen and computed beforehand, or trained along."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.config import AudioSpec
from myxtts.models.speaker_encoders.encoder_features import EncoderFeatures
from myxtts.models.speaker_encoders.published_voice import WINDOW_FRAMES, PublishedVoice
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.steps import batch_signature, make_train_step
from tests.helpers import stand_in_encoder
from tests.helpers.stand_in_encoder import DIM, KIND
from tests.helpers.tiny_model import N_MELS, make_batch, tiny_config, tiny_model, with_reference

SPEC = AudioSpec(n_mels=N_MELS)
# Few layers: tracing a step takes longer than its steps.
FEW = {
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 0,
    "decoder_layers": 1,
    "dropout": 0.0,
}
ENCODER = {f"{KIND}/{part}" for part in ("hidden/kernel", "hidden/bias", "out/kernel", "out/bias")}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    stand_in_encoder.install(monkeypatch)


def make_layer(frozen: bool = True) -> PublishedVoice:
    keras.utils.set_random_seed(0)
    layer = PublishedVoice(KIND, 6, SPEC, frozen, name="published_voice")
    layer.build()
    return layer


def make_model(frozen: bool = True, **settings):
    flags = {"use_pretrained_speaker_encoder": True, "freeze_speaker_encoder": frozen}
    return tiny_model(**{**FEW, "noise": 0.0, **flags, **settings})


def embeddings(count: int, seed: int = 0) -> np.ndarray:
    """Vectors that have much in common, as those of voices do."""
    random = np.random.default_rng(seed)
    return (2.0 + random.normal(size=(count, DIM))).astype(np.float32)


def described_batch() -> dict[str, tf.Tensor]:
    """Two speakers with two utterances each."""
    batch = make_batch([20, 13, 17, 16], [6, 4, 5, 5], [0, 0, 1, 1])
    return {**batch, "embedding": tf.constant(embeddings(4))}


def inputs_of(batch: dict) -> dict:
    return {**with_reference(batch), "reference_embedding": batch["embedding"]}


def mel(*lengths: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(-5.0, 1.0, (len(lengths), max(lengths), N_MELS)).astype(np.float32)


# The layer.


def test_a_voice_is_a_projection_of_what_is_not_common_to_all():
    layer, given = make_layer(), embeddings(3)
    centre = np.random.default_rng(1).normal(size=DIM).astype(np.float32)
    layer.centre.assign(centre)
    units = given / np.linalg.norm(given, axis=1, keepdims=True)
    kernel, bias = (weight.numpy() for weight in layer.project.weights)
    projected = (units - centre) * np.sqrt(DIM) @ kernel + bias
    expected = projected / np.sqrt(np.mean(projected**2, axis=1, keepdims=True))
    np.testing.assert_allclose(layer(given), expected, atol=1e-5)


def test_how_long_an_embedding_is_says_nothing():
    layer, given = make_layer(), embeddings(2)
    np.testing.assert_allclose(layer(30.0 * given), layer(given), atol=1e-5)


def test_what_voices_have_in_common_is_the_mean_of_their_directions():
    layer, given = make_layer(), embeddings(5)
    assert not layer.centre.numpy().any()
    before = layer(given).numpy()
    layer.adapt(given)
    units = given / np.linalg.norm(given, axis=1, keepdims=True)
    np.testing.assert_allclose(layer.centre, units.mean(axis=0), atol=1e-6)
    # Now they differ by more than before.
    after = layer(given).numpy()
    assert np.corrcoef(after).mean() < 0.5 < np.corrcoef(before).mean()
    layer.adapt(3.0 * given.astype(np.float64))
    np.testing.assert_allclose(layer.centre, units.mean(axis=0), atol=1e-6)


def test_embeddings_of_another_encoder_are_rejectd():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="not compatible"):
        make_layer()(tf.ones([2, DIM + 1]))


@pytest.mark.parametrize("frozen", [True, False])
def test_only_what_learns_is_trainable(frozen):
    layer = make_layer(frozen)
    names = {weight.path for weight in layer.trainable_weights}
    own = {f"published_voice/project/{part}" for part in ("kernel", "bias")}
    assert names == (own if frozen else own | ENCODER)
    assert len(layer.weights) == 7  # with the centre, all of which a checkpoint holds


# EncoderFeatures a mel.


def test_of_a_long_mel_the_middle_is_embedded():
    layer, given = make_layer(), mel(400)
    features, counts = EncoderFeatures(KIND, SPEC)(given, tf.constant([400]))
    first = (int(counts[0]) - WINDOW_FRAMES) // 2
    expected = layer.encoder(features[:, first : first + WINDOW_FRAMES])
    np.testing.assert_allclose(layer.embed(given, tf.constant([400])), expected, atol=1e-6)
    # 1.6 s of it, in the middle: what lies outside does not matter but by the mean.
    assert int(counts[0]) == 465 and first == 152


def test_a_short_mel_ends_in_silence():
    layer, given = make_layer(), mel(50)
    features, counts = EncoderFeatures(KIND, SPEC)(given, tf.constant([50]))
    count = int(counts[0])
    padded = tf.pad(features[:, :count], [[0, 0], [0, WINDOW_FRAMES - count], [0, 0]])
    expected = layer.encoder(padded)
    np.testing.assert_allclose(layer.embed(given, tf.constant([50])), expected, atol=1e-6)


def test_padding_does_not_change_the_result():
    layer, given = make_layer(), mel(300, 40, 190)
    lengths = [300, 40, 190]
    together = layer.embed(given, tf.constant(lengths))
    for row, length in enumerate(lengths):
        alone = layer.embed(given[row : row + 1, :length], tf.constant([length]))
        np.testing.assert_allclose(together[row], alone[0], atol=1e-4)


def test_a_frozen_ear_still_hands_a_gradient_to_the_mel():
    layer, given = make_layer(), tf.Variable(mel(30))
    with tf.GradientTape() as tape:
        embedding = layer.embed(given, tf.constant([30]))
        loss = tf.reduce_sum(embedding * np.arange(DIM, dtype=np.float32))
    gradient = tape.gradient(loss, given).numpy()
    assert np.isfinite(gradient).all() and (np.abs(gradient[0]).max(axis=1) > 0).all()


@pytest.mark.parametrize(("kind", "dim"), [("resemblyzer", 256), ("coqui", 512)])
def test_the_published_networks_hear_what_is_made_for_them(kind, dim):
    layer = PublishedVoice(kind, 6, AudioSpec(), True)
    layer.build()
    given = np.random.default_rng(0).normal(-5.0, 1.0, (2, 30, 80)).astype(np.float32)
    embedding = layer.embed(given, tf.constant([30, 12]))
    assert embedding.shape == (2, dim) == (2, layer.dim) and np.isfinite(embedding).all()
    assert layer(embedding).shape == (2, 6)


# The model.


def test_a_frozen_encoder_wants_embeddings_and_others_want_mels():
    batch = described_batch()
    frozen, unfrozen, plain = make_model(), make_model(frozen=False), tiny_model(**FEW)
    assert [m.wants_embeddings for m in (frozen, unfrozen, plain)] == [True, False, False]
    inputs = inputs_of(batch)
    voices = frozen.embed({"reference_embedding": batch["embedding"]})
    np.testing.assert_array_equal(voices, frozen.published_voice(batch["embedding"]))
    np.testing.assert_array_equal(frozen.encode_embedding(batch["embedding"]), voices)
    embedding = unfrozen.published_voice.embed(batch["mel"], batch["mel_lengths"])
    expected = unfrozen.published_voice(embedding)
    np.testing.assert_allclose(unfrozen.embed(inputs), expected, atol=1e-5)
    found = unfrozen.encode_voice(batch["mel"], batch["mel_lengths"])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert plain.published_voice is None and frozen.audio_encoder is None


@pytest.mark.parametrize("frozen", [True, False])
def test_the_reference_decides_the_voice(frozen):
    model = make_model(frozen, noise=0.1)
    inputs = inputs_of(described_batch())
    said = model(inputs)["mel"]
    other = {
        **inputs,
        "reference_embedding": inputs["reference_embedding"][::-1],
        "reference": inputs["reference"][::-1] + tf.linspace(0.0, 3.0, N_MELS),
        "reference_lengths": inputs["reference_lengths"][::-1],
    }
    assert np.abs(model(other)["mel"] - said).max() > 1e-3
    # Where it is frozen the mel of the reference is only listened to afterwards.
    only_mel = {**other, "reference_embedding": inputs["reference_embedding"]}
    assert np.allclose(model(only_mel)["mel"], said, atol=1e-6) == frozen


def test_output_and_reference_are_embedded_by_the_same_encoder():
    model = make_model(noise=0.1)
    inputs = inputs_of(described_batch())
    outputs = model(inputs)
    embed = model.published_voice.embed
    expected = embed(inputs["reference"], inputs["reference_lengths"])
    np.testing.assert_allclose(outputs["reference_embedding"], expected, atol=1e-5)
    said = embed(outputs["mel"][:, :20], inputs["mel_lengths"])
    np.testing.assert_allclose(outputs["output_embedding"], said, atol=1e-5)
    model.embeds_output = False
    outputs = model(inputs)
    assert outputs["output_embedding"] is None and outputs["reference_embedding"] is None


def test_a_style_is_added_to_the_voice_and_can_be_chosen():
    model = make_model(use_gst=True, noise=0.1)
    voice = model.encode_embedding(tf.constant(embeddings(2)))
    assert np.abs(model.styled(voice) - voice).max() > 1e-3
    first, second = (model.styled(voice, tf.constant([w] * 2)) for w in np.eye(4)[:2])
    assert np.abs(first - second).max() > 1e-3
    style = model.style.from_weights(np.eye(4)[:1])
    np.testing.assert_allclose(first, voice + model.style_to_voice(style), atol=1e-6)
    assert make_model().styled(voice) is voice


# Training.


def train(model, batch, steps: int = 12) -> dict[str, np.ndarray]:
    """Take some steps; return by how much each weight has moved."""
    config = tiny_config(
        learning_rate=5e-3,
        warmup_steps=0,
        lr_schedule="constant",
        contrastive_loss_weight=0.1,
    )
    before = {weight.path: weight.numpy() for weight in model.weights}
    step = make_train_step(
        model,
        build_optimizer(config.training, steps),
        XTTSLoss.from_config(config),
        batch_signature(batch, N_MELS),
        seed=1,
        prior_steps=10,
    )
    history = [step.read(step(batch, number)) for number in range(1, steps + 1)]
    assert history[-1]["loss"] < history[0]["loss"]
    assert history[0]["contrastive_loss"] > 0 and history[0]["voice_similarity_loss"] > 0
    return {w.path: np.abs(w.numpy() - before[w.path]).max() for w in model.weights}


def still(moved: dict[str, float]) -> set[str]:
    # A bias of attention's keys shifts all scores of a query alike: it cannot matter.
    return {
        path
        for path, size in moved.items()
        if size == 0 and not path.endswith(("attention/key/bias", "/seed_generator_state"))
    }


def test_a_frozen_encoder_stays_and_all_else_moves():
    model = make_model(use_gst=True)
    model.published_voice.adapt(embeddings(4))
    moved = train(model, described_batch())
    assert still(moved) == ENCODER | {"xtts/published_voice/centre"}
    assert not ENCODER & {weight.path for weight in model.trainable_variables}


def test_an_unfrozen_encoder_moves_with_all_else():
    model = make_model(frozen=False, use_gst=True)
    batch = described_batch()
    del batch["embedding"]
    assert still(train(model, batch)) == {"xtts/published_voice/centre"}


def test_the_reference_trains_an_unfrozen_encoder_through_the_mel():
    model = make_model(frozen=False, noise=0.1)
    batch = described_batch()
    inputs = with_reference(batch)
    with tf.GradientTape() as tape:
        said = model(inputs, training=True)["mel"]
        loss = tf.reduce_mean(tf.abs(said[:, :20] - inputs["mel"]))
    gradients = tape.gradient(loss, model.published_voice.encoder.trainable_variables)
    assert len(gradients) == 4 and all(np.abs(one).max() > 0 for one in gradients)


def test_a_saved_model_says_the_same_after_loading(tmp_path):
    model = make_model(noise=0.1)
    model.published_voice.adapt(embeddings(4))
    inputs = inputs_of(described_batch())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected, found = model(inputs), loaded(inputs)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_in_half_precision_voices_are_described_in_full():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = make_model()
    finally:
        keras.config.set_dtype_policy("float32")
    given = tf.constant(embeddings(2))
    voice = model.encode_embedding(given)
    assert voice.dtype == tf.float32
    plain = make_model()
    np.testing.assert_array_equal(voice, plain.encode_embedding(given))
    embedding = model.published_voice.embed(mel(30), tf.constant([30]))
    assert embedding.dtype == tf.float32
