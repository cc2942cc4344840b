import threading
from types import SimpleNamespace

import pytest

from myxtts.bench.modes import train_through
from myxtts.bench.step import GpuWatch, StepCosts, StepDevice, StepDevices, measure_steps
from myxtts.bench.timing import Cost
from myxtts.data.batches.training_data import TrainingData
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_model import tiny_config


def test_the_ratio_is_of_rounds_that_ran_side_by_side():
    graph = tuple(Cost(1, 1, 0.5, wall) for wall in (1.0, 2.0, 1.0))
    eager = tuple(Cost(1, 1, 2.0, wall) for wall in (5.0, 14.0, 6.0))
    costs = StepCosts("tiny", 16, 224, graph, eager)
    assert costs.ratio == 6
    assert str(costs).splitlines() == [
        "The training step of size tiny on a batch of 16 x 224 frames, median of 3 rounds",
        "| step  |     ms | CPU, ms |",
        "| ----- | -----: | ------: |",
        "| graph | 1000.0 |   500.0 |",
        "| eager | 6000.0 |  2000.0 |",
    ]


def test_a_real_device_is_busy_in_steps_and_idle_between_them():
    now = 0.0

    class Step:
        def __call__(self, batch, number):
            nonlocal now
            now += 1.0
            return number

        def read(self, metrics):
            nonlocal now
            now += 0.5
            return metrics

    device = StepDevice(Step(), clock=lambda: now)
    now += 9.0  # before the first step is start-up
    assert device.submit({}) == 1
    now += 0.25
    assert device.submit({}) == 2
    assert device.wait(1) == 1
    assert (device.busy_seconds, device.idle_seconds) == (2.5, 0.25)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> TrainingData:
    folder = tmp_path_factory.mktemp("step")
    corpus = make_corpus(folder / "corpus", 12, seconds=(0.6, 1.0))
    settings = {"cache_dir": str(folder / "cache"), "preprocessing_mode": "precompute"}
    config = tiny_config(data_path=str(corpus), batch_size=4, **settings)
    return TrainingData(config)


def test_a_device_takes_the_real_step_and_has_met_every_shape(data):
    devices = StepDevices(data.config, xla=False)
    device = devices(data, 6)
    met = devices.step.shapes
    assert met >= 1 and device.busy_seconds == 0
    run = train_through((batch for _, _, batch in data.stream()), device, 6)
    assert devices.step.shapes == met and devices.step.traces == 1
    assert 0 < run.busy_seconds <= run.seconds and run.samples == 2 * len(data.train)
    assert devices(data, 6).step is devices.step


def test_graph_and_eager_take_turns_on_one_batch(data):
    heard = []
    costs = measure_steps(data.config, data, 2, lambda done, total: heard.append((done, total)))
    assert len(costs.graph) == len(costs.eager) == 2
    assert costs.ratio > 0
    frames = sorted(data.train.plan(data.batch_options).frames.tolist())
    assert costs.frames == frames[len(frames) // 2]
    assert heard == [(number, 6) for number in range(1, 7)]


def test_the_driver_is_asked_until_the_block_ends():
    class Reader:
        asked, enough = 0, threading.Event()

        def read(self):
            self.asked += 1
            if self.asked == 3:
                self.enough.set()
            return tuple(
                SimpleNamespace(index=i, utilisation=load) for i, load in ((0, 50), (1, 0))
            )

    reader = Reader()
    with GpuWatch(reader, interval=0.001) as watch:
        assert reader.enough.wait(60)
    assert watch.percent == 50  # of the busier one
    assert not any(thread.name == "gpu" for thread in threading.enumerate())


def test_a_driver_that_does_not_tell_gives_no_figure():
    class Silent:
        def read(self):
            return (SimpleNamespace(index=0, utilisation=None),)

    with GpuWatch(Silent(), interval=0.001) as watch:
        pass
    assert watch.percent is None
