"""The compiled steps: what they compute, how they really run, and that a model learns by them."""

import numpy as np
import pytest
import tensorflow as tf

from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.losses import WEIGHTS, XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.steps import (
    batch_signature,
    complete,
    make_eval_step,
    make_train_step,
    prior_weight,
)
from tests.helpers.tiny_model import N_MELS, make_batch, padded, tiny_config, tiny_model

# Few layers: tracing a step takes longer than a hundred of its steps.
FEW = {
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 1,
    "decoder_layers": 1,
    "audio_encoder_layers": 1,
    "dropout": 0.0,
}
# Utterances of three speakers: each is its own reference, whatever is drawn.
BATCH = ([20, 13, 17], [6, 4, 5], [0, 1, 2])


def make_step(model=None, settings=(), **how):
    """A training step and its model; learning begins at once."""
    values = {"learning_rate": 5e-3, "warmup_steps": 0, "lr_schedule": "constant"}
    config = tiny_config(**{**values, **dict(settings)})
    model = model or tiny_model(noise=0.0, **FEW)
    step = make_train_step(
        model,
        build_optimizer(config.training, 100),
        XTTSLoss.from_config(config),
        batch_signature(make_batch(*BATCH), N_MELS),
        **{"seed": 1, "prior_steps": 10, **how},
    )
    return step, model


KINDS = {
    "parallel": {},
    "autoregressive": {"decoder_strategy": "autoregressive"},
    "states and contours": {"token_states": 2, "pitch_contour": "frame"},
}


@pytest.fixture(scope="module", params=KINDS)
def trained(request):
    """A model after eighty steps on one batch: the step, the model, its start and all metrics."""
    kind = KINDS[request.param]
    model = tiny_model(noise=0.0, use_gst=True, **kind, **FEW)
    start = [weight.numpy() for weight in model.trainable_variables]
    # The alignment needs no help to stay where it is: only what is learnt lowers the loss.
    states = {"token_states": kind.get("token_states", 1)}
    step, model = make_step(model, {"learning_rate": 2e-2, **states})
    batch = make_batch(*BATCH)
    history = [step.read(step(batch, number)) for number in range(1, 81)]
    return step, model, start, history


def test_one_batch_is_learnt_by_heart(trained):
    *_, history = trained
    assert history[-1]["mel_loss"] < 0.5 * history[0]["mel_loss"]
    for name in ("alignment_loss", "duration_loss", "stop_loss", "speaker_loss"):
        assert history[-1][name] < history[0][name], name


def test_every_trainable_weight_moves(trained):
    _, model, start, _ = trained
    still = [
        weight.path
        for weight, before in zip(model.trainable_variables, start, strict=True)
        if np.array_equal(weight.numpy(), before)
    ]
    # A bias of attention's keys shifts all scores of a query alike: it cannot matter.
    assert [path for path in still if not path.endswith("attention/key/bias")] == []


def test_one_trace_serves_all_shapes_and_the_step_says_how_it_runs(trained):
    step, *_ = trained
    step(make_batch([9], [3]), 81)
    step(make_batch([30, 31], [8, 9]), 82)
    step(make_batch([30, 31], [8, 9]), 83)
    assert (step.traces, step.shapes) == (1, 3)
    assert not step.is_eager and not step.is_xla


def test_the_metrics_are_the_loss_its_terms_and_their_weighted_shares(trained):
    *_, history = trained
    weighted = [f"weighted/{name}" for name in WEIGHTS]
    own = ["loss", "learning_rate", "gradient_norm"]
    assert list(history[0]) == [*own, *WEIGHTS, "padding", *weighted]
    shares = [history[3][f"weighted/{name}"] for name in WEIGHTS]
    assert history[3]["loss"] == pytest.approx(sum(shares), rel=1e-5)
    assert history[3]["learning_rate"] == pytest.approx(2e-2)
    assert history[3]["gradient_norm"] > 0


@pytest.fixture(scope="module")
def graph():
    """Three steps of a graph without XLA: what the other ways of running must give."""
    return run_three(graph=True)


def run_three(**how):
    # Of one shape: XLA takes long to compile each.
    step, model = make_step(tiny_model(noise=0.0, **{**FEW, "text_encoder_layers": 0}), **how)
    batches = [make_batch(*BATCH, seed=seed) for seed in range(3)]
    history = [step.read(step(batch, number)) for number, batch in enumerate(batches, 1)]
    return step, history, [weight.numpy() for weight in model.trainable_variables]


def assert_same_run(found, expected) -> None:
    for step, (metrics, others) in enumerate(zip(found[1], expected[1], strict=True)):
        assert metrics.keys() == others.keys()
        for name in metrics:
            assert metrics[name] == pytest.approx(others[name], rel=1e-3, abs=1e-4), (step, name)


def test_compiled_by_xla_it_computes_the_same(graph):
    found = run_three(graph=True, xla=True)
    step = found[0]
    assert step.is_xla and not step.is_eager
    assert (step.traces, step.shapes) == (1, 1)
    assert_same_run(found, graph)


@pytest.mark.parametrize("kind", ["states and contours", "accumulated"])
def test_several_steps_in_a_call_have_the_bits_of_single_ones(kind):
    few = {**FEW, "dropout": 0.1, **KINDS.get(kind, {})}
    model = tiny_model(noise=0.0, use_gst=True, **few)
    settings = {"ema_decay": 0.9, "token_states": few.get("token_states", 1)}
    if kind == "accumulated":
        settings["gradient_accumulation_steps"] = 2
    config = tiny_config(learning_rate=5e-3, warmup_steps=2, **settings)
    optimizer = build_optimizer(config.training, 100)
    batches = [make_batch(*BATCH, seed=seed) for seed in range(4)]
    longer = make_batch([28, 13, 17], [9, 4, 5], [0, 1, 2])

    def make(takes_many: bool):
        return make_train_step(
            model,
            optimizer,
            XTTSLoss.from_config(config),
            batch_signature(batches[0], N_MELS),
            seed=1,
            prior_steps=10,
            takes_many=takes_many,
        )

    single, many = make(False), make(True)
    variables = [*model.variables, *optimizer.variables]
    start = [variable.numpy() for variable in variables]
    expected = [single.read(single(batch, 1 + at)) for at, batch in enumerate([*batches, longer])]
    end = [variable.numpy() for variable in variables]
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    found = many.read_all(many.take_all(batches[:3], 1))
    found += many.read_all(many.take_all(batches[3:], 4)) + [many.read(many(longer, 5))]
    assert found == expected
    for variable, value in zip(variables, end, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value, err_msg=variable.path)
    assert many.traces == 1 and many.shapes == 2 and not many.is_xla


def test_convolutions_in_half_are_the_training_s_alone():
    batch, models = make_batch(*BATCH), [tiny_model(noise=0.1, **FEW) for _ in range(2)]
    full, half = (
        make_step(model, graph=False, convolutions=kind)[0]
        for model, kind in zip(models, ("float32", "bfloat16"), strict=True)
    )
    loss = XTTSLoss.from_config(tiny_config())
    scores = [
        make_eval_step(model, loss, batch_signature(batch, N_MELS), graph=False) for model in models
    ]
    assert scores[0].read(scores[0](batch, 0)) == scores[1].read(scores[1](batch, 0))
    losses = [step.read(step(batch, 1))["loss"] for step in (full, half)]
    assert losses[0] != losses[1] == pytest.approx(losses[0], rel=0.02)
    for one, other in zip(*(model.trainable_variables for model in models), strict=True):
        assert other.dtype == "float32"
        np.testing.assert_allclose(other.numpy(), one.numpy(), atol=2.1 * 5e-3)  # Adam's steps


def test_run_eagerly_it_computes_the_same(graph):
    found = run_three(graph=False)
    step = found[0]
    assert step.is_eager and not step.is_xla and step.traces == 0
    assert_same_run(found, graph)


def test_adaptive_weights_are_applied_and_logged():
    config = tiny_config()
    balance = AdaptiveWeights(XTTSLoss.from_config(config).weights)
    step, _ = make_step(balance=balance, graph=False)
    metrics = step.read(step(make_batch(*BATCH), 1))
    weights = XTTSLoss.from_config(config).weights
    for name, weight in weights.items():
        factor = metrics[f"factor/{name}"]
        assert 0.25 <= factor <= 4
        assert metrics[f"weighted/{name}"] == pytest.approx(factor * weight * metrics[name])
    means = dict(zip(weights, balance.means.numpy().tolist(), strict=True))
    assert means.pop("contrastive_loss") == 0  # nobody in this batch has a companion
    assert all(mean > 0 for mean in means.values())


def test_scoring_a_batch_changes_nothing_and_padding_does_not_count():
    model = tiny_model(**FEW)
    before = [variable.numpy() for variable in model.variables]
    loss = XTTSLoss.from_config(tiny_config())
    batch = make_batch(*BATCH)
    evaluate = make_eval_step(model, loss, batch_signature(batch, N_MELS), graph=False)
    metrics = evaluate.read(evaluate(batch, 0))
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert evaluate.read(evaluate(padded(batch, 3, 9), 0)) == pytest.approx(metrics, rel=1e-4)
    # The inputs are the real ones: another text and another reference score otherwise.
    for name, other in (("tokens", batch["tokens"] * 0 + 3), ("mel", batch["mel"] + 1.0)):
        assert evaluate.read(evaluate({**batch, name: other}, 0))["loss"] != metrics["loss"]


def test_the_prior_fades():
    found = [float(prior_weight(tf.constant(step, tf.int64), 200)) for step in (0, 50, 200, 900)]
    assert found == pytest.approx([1.0, 0.75, 0.0, 0.0])
    assert float(prior_weight(tf.constant(1, tf.int64), 0)) == 0.0


def test_a_corpus_without_pitch_trains_on_silence():
    batch = make_batch(*BATCH)
    del batch["pitch"]
    found = complete({**batch, "mel": tf.cast(batch["mel"], tf.float16)})
    assert found["mel"].dtype == tf.float32
    np.testing.assert_array_equal(found["pitch"], np.zeros((3, 20)))


def test_the_signature_leaves_all_but_the_mels_open():
    found = batch_signature(make_batch(*BATCH), N_MELS)
    assert found["mel"] == tf.TensorSpec([None, None, N_MELS], tf.float32)
    assert found["tokens"] == tf.TensorSpec([None, None], tf.int32)
    assert found["index"] == tf.TensorSpec([None], tf.int64)
