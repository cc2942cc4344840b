import pytest

from myxtts.bench.modes import train_through
from myxtts.bench.step import StepCosts, TimedStep, TimedSteps, measure_steps
from myxtts.bench.timing import Cost
from myxtts.data.batches.training_data import TrainingData
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

    step = TimedStep(Step(), clock=lambda: now)
    now += 9.0  # before the first step is start-up
    assert step({}, 1) == 1
    now += 0.25
    assert step({}, 2) == 2
    assert step.read(1) == 1
    assert (step.busy_seconds, step.idle_seconds) == (2.5, 0.25)


CORPUS = {"count": 12, "seconds": (0.6, 1.0)}


@pytest.fixture(scope="module")
def data(shared_corpus, tmp_path_factory) -> TrainingData:
    cache = tmp_path_factory.mktemp("cache")
    settings = {"cache_dir": str(cache), "preprocessing_mode": "precompute"}
    config = tiny_config(data_path=str(shared_corpus), batch_size=4, **settings)
    return TrainingData(config)


def test_the_real_step_is_timed_once_it_has_met_every_shape(data):
    steps = TimedSteps(data.config, xla=False)
    timed = steps(data, 6)
    met = steps.step.shapes
    assert met >= 1 and timed.busy_seconds == 0
    run = train_through((batch for _, _, batch in data.stream()), timed, 6)
    assert steps.step.shapes == met and steps.step.traces == 1
    assert 0 < run.busy_seconds <= run.seconds and run.samples == 2 * len(data.train)
    assert steps(data, 6).step is steps.step


def test_graph_and_eager_take_turns_on_one_batch(data):
    reported = []
    costs = measure_steps(data.config, data, 2, lambda done, total: reported.append((done, total)))
    assert len(costs.graph) == len(costs.eager) == 2
    assert costs.ratio > 0
    frames = sorted(data.train.plan(data.batch_options).frames.tolist())
    assert costs.frames == frames[len(frames) // 2]
    assert reported == [(number, 6) for number in range(1, 7)]
