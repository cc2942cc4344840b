"""What a run shares with other workers, and that one device pays nothing for it."""

from collections import Counter
from types import SimpleNamespace

import pytest
import tensorflow as tf

from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.data.batches.parts import Share
from myxtts.errors import UserError
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.run import TrainingRun
from myxtts.training.steps import batch_signature, make_train_step
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import run_config

CORPUS = {"count": 6, "speakers": 2, "seconds": (0.3, 0.5)}


class Second(Replicas):
    """The second of two."""

    rank, count = 1, 2


def share_of(micro_batches=0, replicas=ALONE, known=None, source=None) -> Share | None:
    """The parts that a run takes of its batches; `known` are those that its checkpoint names."""
    run = object.__new__(TrainingRun)
    settings = {"exact_sums": False, "steps_per_call": 1}
    training = SimpleNamespace(micro_batches=micro_batches, **settings)
    run.config = SimpleNamespace(training=training)
    run.replicas = replicas
    facts = {} if known is None else {"micro_batches": known}
    saved = SimpleNamespace(facts=facts, path="step-7") if known != 0 else None
    return run._share_of(source or SimpleNamespace(stream=iter), saved)


# Shares


@pytest.mark.parametrize(("asked", "known"), [(0, 0), (1, 0), (0, 1), (0, None), (1, 1)])
def test_one_device_computes_whole_batches(asked, known):
    assert share_of(asked, known=known) is None


@pytest.mark.parametrize(
    ("asked", "replicas", "known", "expected"),
    [
        (4, ALONE, 0, Share(4)),
        (4, Second(), 0, Share(4, 1, 2)),
        (0, Second(), 0, Share(8, 1, 2)),
        (0, Second(), 4, Share(4, 1, 2)),  # as the run began
        (0, ALONE, 4, Share(4)),
    ],
)
def test_parts_are_as_asked_or_as_the_run_began_or_the_usual(asked, replicas, known, expected):
    assert share_of(asked, replicas, known) == expected


def test_other_parts_than_those_of_the_checkpoint_are_logged(caplog):
    assert share_of(4, known=8) == Share(4)
    assert caplog.messages == [
        "step-7 was trained with 8 micro-batches: the same batches are now cut into 4"
    ]
    caplog.clear()
    share_of(4, known=4)
    assert caplog.messages == []


@pytest.mark.parametrize("known", [1, None])
def test_a_run_of_whole_batches_must_be_told_how_several_workers_share_them(known):
    with pytest.raises(UserError, match="1 micro-batches cannot be shared by 2 workers"):
        share_of(0, Second(), known)


def test_only_the_batches_of_a_corpus_can_be_shared():
    assert share_of(source=[1, 2]) is None
    with pytest.raises(UserError, match="only the batches of a corpus can be cut"):
        share_of(4, source=[1, 2])


# One device


def operations(step) -> Counter:
    """How often each kind of operation is in the graph of a step, its functions included."""
    (concrete,) = step.function._list_all_concrete_functions()
    graph = concrete.graph.as_graph_def()
    functions = [node for function in graph.library.function for node in function.node_def]
    return Counter(node.op for node in [*graph.node, *functions])


def test_one_device_runs_the_step_of_whole_batches_and_no_strategy(
    shared_corpus, tmp_path, monkeypatch
):
    def never(*args, **options):
        raise AssertionError("one device needs no strategy")

    for name in ("MultiWorkerMirroredStrategy", "MirroredStrategy", "OneDeviceStrategy"):
        monkeypatch.setattr(getattr(tf.distribute, name), "__init__", never)
    wired = []
    wire = XTTSTrainer.wire
    monkeypatch.setattr(
        XTTSTrainer, "wire", lambda *args: wired.append((args, wire(*args))) or wired[-1][1]
    )
    config = run_config(shared_corpus, tmp_path / "run", max_steps=1, val_fraction=0.0)
    trainer = XTTSTrainer(config)
    assert trainer.train() == "finished"
    ((_, batch, schedule), wiring) = wired[0]
    assert "part" not in batch and not (tmp_path / "run" / "workers").exists()
    expected = make_train_step(
        trainer.model,
        build_optimizer(config.training, schedule.total_steps),
        XTTSLoss.from_config(config),
        batch_signature(batch, config.data.n_mels),
        seed=config.training.seed,
        prior_steps=config.training.alignment_prior_steps,
        convolutions=trainer.convolutions,
    )
    expected.function.get_concrete_function()
    found = operations(wiring.step)
    assert found == operations(expected)
    assert [op for op in found if "Collective" in op] == []
