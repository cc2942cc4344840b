"""The updates of a vocoder: that it learns by them, how they run, and whose weights they move."""

from dataclasses import dataclass

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import restore, variables_of
from myxtts.training.steps import CompiledStep
from myxtts.training.vocoder.losses import (
    SpectralLoss,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)
from myxtts.training.vocoder.steps import (
    ADVERSARIAL_WEIGHTS,
    SPECTRAL_WEIGHTS,
    completed,
    generate,
    make_adversarial_step,
    make_spectral_step,
    make_vocoder_evaluation,
)
from tests.helpers.runs import assert_equal_states
from tests.helpers.tiny_vocoder import SMALL, make_pieces, tiny_vocoder

LOSS = SpectralLoss(SMALL)
FRAMES = 32


def signature() -> dict[str, tf.TensorSpec]:
    return {
        "mel": tf.TensorSpec([None, FRAMES, SMALL.n_mels], tf.float16),
        "pitch": tf.TensorSpec([None, FRAMES], tf.float32),
        "waveform": tf.TensorSpec([None, FRAMES * SMALL.hop_length], tf.int16),
        "first_frame": tf.TensorSpec([], tf.int32),
        "index": tf.TensorSpec([None], tf.int64),
    }


def values(model: keras.Model) -> list[np.ndarray]:
    return [weight.numpy() for weight in model.trainable_variables]


# On spectra alone.


@dataclass
class Training:
    """A vocoder after thirty steps on one batch."""

    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    step: CompiledStep
    states: list[dict[str, np.ndarray]]  # at first, after twenty steps, and after thirty
    history: list[dict[str, float]]

    def take(self, steps: range) -> list[dict[str, float]]:
        batch = make_pieces(3, FRAMES)
        return [self.step.read(self.step(batch, number)) for number in steps]

    def state(self) -> dict[str, np.ndarray]:
        named = variables_of(self.model, self.optimizer)
        return {name: variable.numpy().copy() for name, variable in named.items()}


@pytest.fixture(scope="module")
def trained() -> Training:
    model, optimizer = tiny_vocoder(SMALL, noise=0.0), keras.optimizers.Adam(2e-2)
    step = make_spectral_step(model, optimizer, LOSS, signature())
    training = Training(model, optimizer, step, [], [])
    for steps in (range(0), range(1, 21), range(21, 31)):
        training.history += training.take(steps)
        training.states.append(training.state())
    return training


def test_one_batch_is_learnt(trained):
    first, last = trained.history[0], trained.history[-1]
    assert last["loss"] < 0.8 * first["loss"]
    assert last["mel_loss"] < 0.8 * first["mel_loss"]
    assert last["pitch_loss"] < 0.5 * first["pitch_loss"]
    assert last["stft_loss"] < first["stft_loss"]


def test_every_weight_moves(trained):
    first, *_, last = trained.states
    weights = [name for name in first if name.startswith("model/")]
    assert len(weights) == len(trained.model.trainable_variables)
    assert [name for name in weights if np.array_equal(first[name], last[name])] == []


def test_from_a_saved_state_the_same_steps_come_to_the_same_end(trained):
    _, middle, last = trained.states
    restore(variables_of(trained.model, trained.optimizer), middle)
    assert trained.take(range(21, 31)) == trained.history[20:]
    assert_equal_states(trained.state(), last)


def test_in_one_call_the_same_steps_come_to_the_same_end(trained):
    _, middle, last = trained.states
    restore(variables_of(trained.model, trained.optimizer), middle)
    many = make_spectral_step(trained.model, trained.optimizer, LOSS, signature(), takes_many=True)
    found = many.read_all(many.take_all([make_pieces(3, FRAMES)] * 10, 21))
    assert found == trained.history[20:]
    assert_equal_states(trained.state(), last)


def test_one_trace_serves_the_smaller_last_batch_too(trained):
    before = trained.state()
    trained.step(make_pieces(2, FRAMES), 31)
    restore(variables_of(trained.model, trained.optimizer), before)
    assert (trained.step.traces, trained.step.shapes) == (1, 2)
    assert not trained.step.is_eager and not trained.step.is_xla


def test_the_metrics_are_the_loss_its_terms_and_their_weighted_shares(trained):
    metrics, terms = trained.history[5], list(SPECTRAL_WEIGHTS)
    shares = [f"weighted/{name}" for name in terms]
    assert list(metrics) == ["loss", "learning_rate", "gradient_norm", *terms, *shares]
    for name, weight in SPECTRAL_WEIGHTS.items():
        assert metrics[f"weighted/{name}"] == pytest.approx(weight * metrics[name], rel=1e-5)
    assert metrics["loss"] == pytest.approx(sum(metrics[name] for name in shares), rel=1e-5)
    assert metrics["learning_rate"] == pytest.approx(2e-2)
    assert metrics["gradient_norm"] > 0


# What is compared.


def test_waveforms_lie_between_minus_one_and_one():
    batch = make_pieces(1, FRAMES)
    extremes = tf.constant([[-32768, 0, 16384, 32767]], tf.int16)
    found = completed({**batch, "waveform": extremes})
    np.testing.assert_allclose(found["waveform"], [[-1.0, 0.0, 0.5, 1.0]], atol=1e-4)
    assert found["mel"].dtype == tf.float32
    np.testing.assert_array_equal(found["mel"], tf.cast(batch["mel"], tf.float32))


@pytest.mark.parametrize(("frames", "kept"), [(17, 9), (16, 16), (40, 32)])
def test_ends_without_neighbours_do_not_count_where_there_is_enough_left(frames, kept):
    batch, model = completed(make_pieces(2, frames)), tiny_vocoder(SMALL)
    generated, recorded, terms = generate(model, batch)
    cut, hop = (frames - kept) // 2, SMALL.hop_length
    expected = batch["waveform"][:, cut * hop : (cut + kept) * hop]
    np.testing.assert_array_equal(recorded, expected)
    said = model(batch["mel"], batch["pitch"], first_frame=7, projections=0)["waveform"]
    np.testing.assert_array_equal(generated, said[:, cut * hop : (cut + kept) * hop])
    assert list(terms) == ["pitch_loss"]


def test_scoring_changes_nothing_and_is_not_helped_by_the_true_pitch():
    model = tiny_vocoder(SMALL)
    before = values(model)
    evaluate = make_vocoder_evaluation(model, LOSS, signature(), graph=False)
    batch = make_pieces(2, FRAMES)
    metrics = evaluate.read(evaluate(batch, 0))
    assert list(metrics) == ["loss", "mel_loss", "stft_loss"]
    assert metrics["loss"] == metrics["mel_loss"] > 0
    for weight, value in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    other = {**batch, "pitch": 2.0 * batch["pitch"]}
    assert evaluate.read(evaluate(other, 0)) == metrics
    # The rest is heard.
    for name in ("mel", "waveform"):
        other = {**batch, name: batch[name] // 2}
        assert evaluate.read(evaluate(other, 0))["loss"] != metrics["loss"]


# Against discriminators.


class Judge(keras.Model):
    """One convolution over the samples: its activations, and the scores that it makes of them."""

    def __init__(self):
        super().__init__(name="judge")
        self.listen = keras.layers.Conv1D(4, 16, strides=8, activation="tanh", name="listen")
        self.score = keras.layers.Dense(1, name="score")
        self.listen.build((None, None, 1))
        self.score.build((None, None, 4))
        self.built = True

    def call(self, waveform, training=False):
        heard = self.listen(waveform[..., None])
        return [(self.score(heard)[..., 0], [heard])]


@pytest.fixture(scope="module")
def contest():
    """Two judges after ten steps against a vocoder that does not learn."""
    keras.utils.set_random_seed(0)
    model, judges = tiny_vocoder(SMALL, noise=0.0), [Judge(), Judge()]
    batch = make_pieces(2, FRAMES)
    step = make_adversarial_step(
        *(model, keras.optimizers.SGD(0.0), judges, keras.optimizers.Adam(1e-2)),
        *(LOSS, signature()),
    )
    start = [values(one) for one in (model, *judges)]
    generated, recorded, _ = generate(model, completed(batch))
    said = [[part for one in judges for part in one(x)] for x in (recorded, generated)]
    history = [step.read(step(batch, number)) for number in range(1, 11)]
    return step, model, judges, start, said, history


def test_judges_learn_to_tell_a_vocoder_that_stays_as_it_is(contest):
    step, model, judges, start, said, history = contest
    for value, before in zip(values(model), start[0], strict=True):
        np.testing.assert_array_equal(value, before)
    for judge, own in zip(judges, start[1:], strict=True):
        for value, before in zip(values(judge), own, strict=True):
            assert not np.array_equal(value, before)
    found = [metrics["discriminator_loss"] for metrics in history]
    assert found[0] == pytest.approx(float(discriminator_loss(*said)), rel=1e-5)
    assert float(discriminator_loss(*said[::-1])) != pytest.approx(found[0], rel=1e-3)
    assert found[-1] < found[0]
    assert step.traces == 1


def test_the_vocoder_is_heard_by_judges_who_have_just_learnt(contest):
    _, model, judges, *_, history = contest
    generated, recorded, _ = generate(model, completed(make_pieces(2, FRAMES)))
    said = [[part for one in judges for part in one(x)] for x in (recorded, generated)]
    found = float(adversarial_loss(said[1])), float(feature_loss(*said))
    last = history[-1]["adversarial_loss"], history[-1]["feature_loss"]
    assert found == pytest.approx(last, rel=1e-3)


def test_the_vocoder_answers_for_its_own_terms_and_not_for_the_judges(contest):
    *_, history = contest
    shares = [f"weighted/{name}" for name in ADVERSARIAL_WEIGHTS]
    for metrics in history:
        assert metrics["loss"] == pytest.approx(sum(metrics[name] for name in shares), rel=1e-5)
    assert "weighted/discriminator_loss" not in history[0]
    for name, weight in ADVERSARIAL_WEIGHTS.items():
        expected = weight * history[3][name]
        assert history[3][f"weighted/{name}"] == pytest.approx(expected, rel=1e-5)


def test_the_vocoder_moves_every_weight_against_judges_who_stay_as_they_are():
    keras.utils.set_random_seed(0)
    model, judge = tiny_vocoder(SMALL, noise=0.0), Judge()
    step = make_adversarial_step(
        *(model, keras.optimizers.Adam(1e-3), [judge], keras.optimizers.SGD(0.0)),
        *(LOSS, signature()),
        graph=False,
    )
    start, own = values(model), values(judge)
    step(make_pieces(2, FRAMES), 1)
    for value, before in zip(values(model), start, strict=True):
        assert not np.array_equal(value, before)
    for value, before in zip(values(judge), own, strict=True):
        np.testing.assert_array_equal(value, before)
