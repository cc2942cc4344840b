from dataclasses import replace

import pytest

from myxtts.bench.cluster.figures import GIVEN
from myxtts.bench.cluster.measure import Given, make_recordings, with_given
from myxtts.bench.cluster.network import fit, gradient_bytes
from myxtts.bench.cluster.scale import LABELS, measure_scale
from myxtts.bench.cluster.simulation import Asked, cluster_of, forecast, micro_batches
from myxtts.bench.cluster.step import Measured
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.plan import BatchOptions
from myxtts.data.corpus.corpus import read_corpus
from myxtts.errors import UserError
from tests.helpers.cluster_figures import FIGURES


def test_the_ring_of_two_takes_as_long_as_was_measured():
    network = fit(nothing=0.002, one=0.012, gradients=0.016, size=10_000_000)
    assert network.bandwidth == pytest.approx(1e9)
    assert network.latency == pytest.approx(0.001)
    assert network.messages == pytest.approx(1 + (0.016 - 0.010) / 0.002)
    # The gradients, and the counts before them.
    assert network.seconds(10_000_000, 2) == pytest.approx(0.016 + 0.002)
    assert network.seconds(10_000_000, 1) == 0.0
    assert gradient_bytes(((2, 3), (5,), ())) == 4 * 12


def test_steps_of_one_part_and_of_four_give_the_line():
    found = Measured(0.5, 1.4, 1.5, 4, 0.0, 0.0, 0.0, (), 500.0, True)
    assert found.line == pytest.approx((0.2, 0.3))


def test_what_is_given_replaces_what_was_measured():
    given = Given(step_ms=50.0, latency_us=5.0, disk_gbps=3.0)
    figures = with_given(FIGURES, given, part_utterances=8)
    # Eight utterances took 0.8 s here, and take 0.05 s there.
    assert figures.step.part == 0.05 and figures.step.utterances == 8
    assert figures.step.fixed == pytest.approx(0.1 / 16)
    assert figures.step.evaluate == pytest.approx(0.02 / 16)
    assert not figures.step.is_on_cpu
    assert figures.network == replace(FIGURES.network, latency=5e-6)
    assert figures.disk_bandwidth == 3e9
    assert {figures.origins[name] for name in ("step", "network", "disk_bandwidth")} == {GIVEN}
    assert with_given(FIGURES, Given(), 8) == FIGURES


def test_workers_must_be_able_to_share_the_parts():
    assert micro_batches(XTTSConfig(), 1024) == 1024
    assert micro_batches(XTTSConfig(micro_batches=24), 6) == 24
    with pytest.raises(UserError, match="24 micro-batches cannot be shared by 16 workers"):
        micro_batches(XTTSConfig(micro_batches=24), 16)


def test_a_limit_of_frames_makes_batches_smaller():
    config = XTTSConfig(batch_size=64, max_frames_per_batch=8000)
    assert cluster_of(config, Asked(1000, 2), FIGURES).batch_size == 16  # of 500 frames each
    assert cluster_of(XTTSConfig(batch_size=64), Asked(1000, 2), FIGURES).batch_size == 64


def test_a_pretrained_speaker_encoder_is_rejected_at_once():
    config = XTTSConfig(use_pretrained_speaker_encoder=True)
    with pytest.raises(UserError, match="cannot measure a pretrained speaker encoder"):
        forecast(config, Asked(1000, 2), has_corpus=False)


def test_made_up_recordings_are_a_corpus(tmp_path):
    corpus = read_corpus(make_recordings(tmp_path, 8, 8000), val_fraction=0.0)
    assert len(corpus.utterances) == 8


def test_every_utterance_of_a_large_corpus_costs_something(tmp_path):
    cost = measure_scale(tmp_path, BatchOptions(), read=300, sizes=(1000, 3000))
    assert cost.read_seconds > 0 and cost.plan_seconds > 0
    assert cost.corpus_bytes > 200 and cost.index_bytes > 100


def test_the_reader_has_as_many_labels_as_are_counted():
    from myxtts.data.batches.graph_reader import LABELS as read

    assert len(read) == LABELS
