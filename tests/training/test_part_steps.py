"""Batches in parts: their update is that of the whole batch, whoever computes which part."""

import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoints import seeds_of
from myxtts.cluster.replicas import ALONE, REPORT, Replicas
from myxtts.cluster.sums import tree_sum
from myxtts.data.batches.parts import Share, part_numbers
from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.adversary import ADVERSARIAL, FEATURES, Adversary
from myxtts.training.losses import WEIGHTS, XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.part_steps import make_parts_step
from myxtts.training.steps import batch_signature, make_train_step
from tests.helpers.tiny_model import N_MELS, make_batch, padded, rows, tiny_config, tiny_model

# Few layers: run eagerly, every operation counts.
FEW = {
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 0,
    "decoder_layers": 1,
    "audio_encoder_layers": 1,
}
# Every utterance has a speaker of its own, and is its own reference, whatever is drawn.
STRANGERS = ([12, 7, 9, 10, 8, 11], [5, 3, 4, 4, 3, 5], [0, 1, 2, 3, 4, 5])
# Companions and strangers in every part of two.
FRIENDS = ([12, 7, 9, 10, 8, 11, 9, 8], [5, 3, 4, 4, 3, 5, 4, 3], [0, 0, 1, 1, 0, 0, 2, 2])
PARTS = 4


class Pair(Replicas):
    """One of two replicas that are threads of this process; sums wait for the other."""

    count = 2

    def __init__(self, rank: int, shared: dict, barrier: threading.Barrier):
        self.rank, self._shared, self._barrier = rank, shared, barrier
        self.exchanges = self.sums = 0

    def sum(self, tensors, is_exact=False):
        self.sums += 1
        return self._add_up(list(tensors))

    def exchange(self, values):
        self.exchanges += 1
        (total,) = self._add_up([values])
        return total, tf.zeros([2, len(REPORT)])

    def _add_up(self, tensors):
        self._shared[self.rank] = tensors
        self._barrier.wait(60)
        total = [a + b for a, b in zip(self._shared[0], self._shared[1], strict=True)]
        self._barrier.wait(60)
        return total


class Trained:
    """A model and the step that trains it: of whole batches, or of a share of their parts."""

    def __init__(
        self, share=None, replicas=ALONE, adaptive=False, settings=(), judged=False, **model
    ):
        values = {"learning_rate": 5e-3, "warmup_steps": 0, "lr_schedule": "constant"}
        config = tiny_config(**{**values, **dict(settings)})
        self.share, self.replicas = share, replicas
        keras.utils.set_random_seed(1)
        self.model = tiny_model(speakers=6, noise=0.0, **{**FEW, "dropout": 0.0, **model})
        self.optimizer = build_optimizer(config.training, 100)
        loss = XTTSLoss.from_config(config)
        self.balance = AdaptiveWeights(loss.weights) if adaptive else None
        batch = make_batch(*STRANGERS)
        weights = {ADVERSARIAL: 0.1, FEATURES: 0.5}
        self.adversary = Adversary(N_MELS, 2, weights, 1e-3, 0, 1) if judged else None
        how = {"seed": 1, "prior_steps": 10, "balance": self.balance, "graph": False}
        how["adversary"] = self.adversary
        built = (self.model, self.optimizer, loss)
        if share:
            signature = batch_signature({**batch, "part": tf.constant([0])}, N_MELS)
            self.step = make_parts_step(*built, signature, replicas, share, **how)
        else:
            self.step = make_train_step(*built, batch_signature(batch, N_MELS), **how)

    def train(self, batches) -> list[dict[str, float]]:
        """Make a step from each batch, and return their metrics."""
        own = [own_rows(batch, self.share) for batch in batches] if self.share else batches
        steps = enumerate(own, 1)
        return [self.step.read(self.step(batch, number)) for number, batch in steps]

    @property
    def weights(self) -> dict[str, np.ndarray]:
        return {one.path: one.numpy() for one in self.model.trainable_variables}

    @property
    def seeds(self) -> list[list[int]]:
        return [one.numpy().tolist() for one in seeds_of(self.model)]


def own_rows(batch: dict, share: Share) -> dict:
    """The rows of a batch that a replica computes, as the readers deliver them."""
    part = part_numbers(len(batch["index"]), share.parts)
    (own,) = np.nonzero((part >= share.first) & (part < share.first + share.own))
    return {
        **{name: tf.gather(value, own) for name, value in batch.items()},
        "part": tf.constant(part[own] - share.first),
    }


def train_alone(
    batches, parts: int = PARTS, is_exact: bool = False, **how
) -> tuple[Trained, list[dict]]:
    one = Trained(Share(parts, is_exact=is_exact), **how)
    return one, one.train(batches)


def train_in_pairs(
    batches, parts: int = PARTS, is_exact: bool = False, **how
) -> tuple[list[Trained], list[list[dict]]]:
    """Train on two replicas at a time, each with a model of its own."""
    shared: dict = {}
    barrier = threading.Barrier(2)
    shares = [Share(parts, rank, 2, is_exact) for rank in range(2)]
    pair = [Trained(own, Pair(own.rank, shared, barrier), **how) for own in shares]
    return pair, at_once(pair, batches)


def at_once(pair: list[Trained], batches) -> list[list[dict]]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda one: one.train(batches), pair))


def batches_of(lengths, count: int = 2) -> list[dict]:
    return [make_batch(*lengths, seed=seed) for seed in range(count)]


def assert_same_metrics(found: list[dict], expected: list[dict], rel: float) -> None:
    for step, (metrics, others) in enumerate(zip(found, expected, strict=True)):
        for name, value in others.items():
            assert metrics[name] == pytest.approx(value, rel=rel, abs=1e-6), (step, name)


def assert_same_weights(found: Trained, expected: Trained, atol: float) -> None:
    weights = expected.weights
    for path, value in found.weights.items():
        np.testing.assert_allclose(value, weights[path], rtol=0, atol=atol, err_msg=path)


# Parts and the whole


def without_repetition() -> dict:
    """A batch of two utterances in which no token and no language comes twice.

    An embedding's gradient has a row for each use. Keras takes two rows of one token for those of
    two tokens, so only here is the update of a whole batch what the sum of its parts must be.
    """
    batch = make_batch([12, 7], [5, 3], [0, 1])
    tokens = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]], np.int32)
    return {**batch, "tokens": tf.constant(tokens)}


def test_a_batch_in_parts_is_the_whole_batch():
    batches = [without_repetition()] * 3
    expected = Trained()
    history = expected.train(batches)
    alone, metrics = train_alone(batches, parts=2)
    pair, of_pair = train_in_pairs(batches, parts=2)
    for one, own in zip([alone, *pair], [metrics, *of_pair], strict=True):
        assert_same_metrics(own, history, rel=1e-5)
        assert_same_weights(one, expected, atol=1e-5)


@pytest.fixture(scope="module")
def whole() -> tuple[Trained, list[dict]]:
    """Two steps of whole batches, each of which is one part."""
    return train_alone(batches_of(STRANGERS), parts=1)


@pytest.mark.parametrize("parts", [2, 4])
def test_any_number_of_parts_makes_the_same_update(whole, parts):
    expected, history = whole
    found, metrics = train_alone(batches_of(STRANGERS), parts)
    assert_same_metrics(metrics, history, rel=1e-5)
    assert_same_weights(found, expected, atol=1e-5)


def test_two_replicas_make_the_update_of_one(whole):
    expected, history = whole
    pair, metrics = train_in_pairs(batches_of(STRANGERS))
    for one, own in zip(pair, metrics, strict=True):
        assert_same_metrics(own, history, rel=1e-5)
        assert_same_weights(one, expected, atol=1e-5)
        # Counts once, gradients and terms once: each costs a journey through the network.
        assert (one.replicas.exchanges, one.replicas.sums) == (2, 2)


def test_two_replicas_teach_the_discriminator_what_one_does():
    expected, history = train_alone(batches_of(STRANGERS), judged=True)
    pair, metrics = train_in_pairs(batches_of(STRANGERS), judged=True)
    assert all(line["discriminator_loss"] > 0 for line in history)
    for one, own in zip(pair, metrics, strict=True):
        assert_same_metrics(own, history, rel=1e-5)
        assert_same_weights(one, expected, atol=1e-5)
        both = zip(one.adversary.variables, expected.adversary.variables, strict=True)
        for found, wanted in both:
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=0, atol=1e-5)


def test_metrics_of_workers_appear_where_there_are_several():
    _, metrics = train_in_pairs(batches_of(STRANGERS, 1))
    own = ["loss", "learning_rate", "gradient_norm", *WEIGHTS, "padding"]
    own += [f"weighted/{name}" for name in WEIGHTS]
    workers = [f"worker/{rank}/{name}" for name in REPORT[1:] for rank in range(2)]
    assert list(metrics[0][0]) == [*own, "asked_to_end", *workers, "reduce_ms"]
    assert list(train_alone(batches_of(STRANGERS, 1))[1][0]) == own


def test_padding_does_not_change_the_update(whole):
    expected, history = whole
    found, metrics = train_alone([padded(batch, 3, 6) for batch in batches_of(STRANGERS)])
    paddings = [one.pop("padding") for one in metrics]
    assert paddings[0] > history[0]["padding"]
    known = [{name: x for name, x in one.items() if name != "padding"} for one in history]
    assert_same_metrics(metrics, known, rel=1e-4)
    assert_same_weights(found, expected, atol=1e-4)


# Who computes what


@pytest.fixture(scope="module")
def alone() -> tuple[Trained, list[dict]]:
    """Two steps of four parts, with dropout and companions, on one replica."""
    return train_alone(batches_of(FRIENDS), dropout=0.2, adaptive=True)


def test_what_is_random_follows_the_part_and_not_the_replica(alone):
    expected, history = alone
    pair, metrics = train_in_pairs(batches_of(FRIENDS), dropout=0.2, adaptive=True)
    for one, own in zip(pair, metrics, strict=True):
        assert_same_metrics(own, history, rel=1e-5)
        assert_same_weights(one, expected, atol=1e-5)
        assert one.seeds == expected.seeds


def test_replicas_stay_equal_to_the_bit():
    pair, metrics = train_in_pairs(batches_of(FRIENDS), dropout=0.2, adaptive=True)
    first, second = ({name: x.tobytes() for name, x in one.weights.items()} for one in pair)
    assert first == second
    assert pair[0].balance.means.numpy().tobytes() == pair[1].balance.means.numpy().tobytes()
    shared = [{name: x for name, x in own[-1].items() if "ms" not in name} for own in metrics]
    assert shared[0] == shared[1]


def test_exact_sums_are_those_of_one_replica_to_the_bit(alone):
    batches = [*batches_of(FRIENDS), rows(batches_of(FRIENDS, 1)[0], 0, 1, 2)]
    refiner = {"refiner_layers": 1}
    how = {"dropout": 0.2, "adaptive": True, "is_exact": True, "settings": refiner, **refiner}
    expected, history = train_alone(batches, **how)
    pair, metrics = train_in_pairs(batches, **how)
    for one, own in zip(pair, metrics, strict=True):
        for found, known in zip(own, history, strict=True):
            assert {name: found[name] for name in known} == known
        for path, value in expected.weights.items():
            np.testing.assert_array_equal(one.weights[path], value, path)
    assert all(one["flow_loss"] > 0 for one in history)
    # In another order they are the same sums but for rounding, and a refiner changes no other.
    known = [{name: x for name, x in one.items() if name in WEIGHTS} for one in alone[1]]
    assert_same_metrics(history[:1], known[:1], rel=1e-5)


def test_a_tree_sum_adds_up_neighbours_first():
    # Float32 has steps of 8 at 1e8. One after the other these would add up to 16.
    rows = tf.constant([[1e8], [1.0], [5.0], [5.0], [-1e8], [0.0], [0.0], [0.0]])
    for add_up in (tree_sum, tf.function(tree_sum)):
        assert add_up(rows, 8).numpy().tolist() == [8.0]
        halves = tf.stack([add_up(rows[:4], 4), add_up(rows[4:], 4)])
        assert add_up(halves, 2).numpy().tolist() == [8.0]


def test_every_part_of_every_step_draws_something_else(alone):
    trained, _ = alone
    seeds = trained.seeds
    assert seeds and {place for _, place in seeds} == {3 * PARTS * 16}  # after step 2
    batch = batches_of(FRIENDS, 1)[0]
    same = {**batch, **{name: tf.repeat(value[:1], 8, 0) for name, value in batch.items()}}
    one = Trained(Share(PARTS), dropout=0.5)
    losses = [one.step.read(one.step(own_rows(same, one.share), n))["mel_loss"] for n in (1, 2)]
    assert losses[0] != losses[1]


def test_companions_are_looked_for_within_a_part(alone):
    _, history = alone
    assert all(one["contrastive_loss"] == 0 for one in history)  # two of one speaker in each part
    _, (metrics,) = train_alone(batches_of(FRIENDS, 1), parts=2)
    assert metrics["contrastive_loss"] > 0


def test_adaptive_weights_follow_the_steps_before(alone):
    trained, history = alone
    weights = XTTSLoss.from_config(tiny_config()).weights
    assert all(history[0][f"factor/{name}"] == 1.0 for name in weights)
    first = {name: weights[name] * history[0][name] for name in weights}
    alive = [value for value in first.values() if value > 0]
    mean = sum(alive) / len(alive)
    for name, value in first.items():
        expected = min(4.0, max(0.25, mean / value)) if value else 1.0
        assert history[1][f"factor/{name}"] == pytest.approx(expected, rel=1e-5)
        weighted = expected * weights[name] * history[1][name]
        assert history[1][f"weighted/{name}"] == pytest.approx(weighted, rel=1e-5, abs=1e-7)
        seen = 0.99 * value + 0.01 * weights[name] * history[1][name]
        index = trained.balance.active.index(name)
        assert trained.balance.means.numpy()[index] == pytest.approx(seen, rel=1e-4, abs=1e-7)


# Parts without rows


@pytest.mark.parametrize("size", [1, 2])
def test_a_part_and_a_replica_may_have_nothing_to_do(size):
    batches = [rows(batch, *range(size)) for batch in batches_of(STRANGERS)]
    expected, history = train_alone(batches, parts=1)
    found, metrics = train_alone(batches)
    pair, of_pair = train_in_pairs(batches)
    for one, own in zip([found, *pair], [metrics, *of_pair], strict=True):
        assert_same_metrics(own, history, rel=1e-5)
        assert_same_weights(one, expected, atol=1e-5)
    own = [len(own_rows(batches[0], one.share)["index"]) for one in pair]
    assert own == ([1, 0] if size == 1 else [1, 1])


def test_a_batch_of_which_nothing_is_left_teaches_nothing():
    one = Trained(Share(PARTS), settings={"ema_decay": 0.0})
    before = one.weights
    empty = {name: value[:0] for name, value in batches_of(STRANGERS, 1)[0].items()}
    metrics = one.step.read(one.step({**empty, "part": tf.zeros([0], tf.int32)}, 1))
    assert metrics["loss"] == metrics["gradient_norm"] == 0
    for path, value in one.weights.items():
        np.testing.assert_array_equal(value, before[path], path)


# Float16


@pytest.fixture
def float16():
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy("float32")


def test_losses_are_scaled_for_float16_and_gradients_added_up_before_they_are_unscaled(float16):
    expected, history = train_alone(batches_of(STRANGERS, 1))
    pair, metrics = train_in_pairs(batches_of(STRANGERS, 1))
    assert isinstance(pair[0].optimizer, keras.optimizers.LossScaleOptimizer)
    for one, own in zip(pair, metrics, strict=True):
        assert_same_metrics(own, history, rel=2e-2)
        # Adam's first step is as long as the rate, wherever a gradient is not tiny.
        assert_same_weights(one, expected, atol=1.1e-2)
        assert own[0]["gradient_norm"] == pytest.approx(history[0]["gradient_norm"], rel=2e-2)


def test_gradients_that_overflow_on_one_replica_are_skipped_by_all(float16):
    shared, barrier = {}, threading.Barrier(2)
    pair = [Trained(Share(2, rank, 2), Pair(rank, shared, barrier)) for rank in range(2)]
    before = [one.weights for one in pair]
    batch = make_batch(*STRANGERS)
    mel = batch["mel"].numpy()
    mel[-1, 0] = 1e30  # in the part of the second
    at_once(pair, [{**batch, "mel": tf.constant(mel)}])
    for one, weights in zip(pair, before, strict=True):
        for path, value in one.weights.items():
            np.testing.assert_array_equal(value, weights[path], path)
        assert float(one.optimizer.dynamic_scale) < float(one.optimizer.initial_scale)
