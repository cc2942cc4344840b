import pytest

from myxtts.bench.simulated import Handle, SimulatedStep


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self):
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def step(clock) -> SimulatedStep:
    return SimulatedStep(250, clock, clock.sleep)


def test_steps_queue_up_behind_each_other(step, clock):
    assert [step() for _ in range(3)] == [
        Handle(0.0, 0.25),
        Handle(0.25, 0.5),
        Handle(0.5, 0.75),
    ]
    assert clock.slept == []  # submitting never blocks
    assert (step.busy_seconds, step.idle_seconds) == (0.75, 0.0)


def test_the_steps_of_a_call_follow_each_other(step, clock):
    step()
    handle = step.take_all([{}, {}, {}], 2)
    assert handle == Handle(0.25, 1.0, 3)
    assert step.read_all(handle) == [{"end": 0.5}, {"end": 0.75}, {"end": 1.0}]
    assert clock.now == 1.0 and step.utilisation == 1.0


def test_waiting_blocks_until_the_end_of_that_step(step, clock):
    first, second = step(), step()
    assert step.read(first)["end"] == 0.25 and clock.now == 0.25
    assert step.read(second)["end"] == 0.5 and clock.now == 0.5
    assert step.read(first)["end"] == 0.25 and clock.slept == [0.25, 0.25]


def test_a_late_batch_leaves_it_idle_and_one_in_time_does_not(step, clock):
    clock.now = 7.0  # before the first step is start-up, and no idleness
    step()
    clock.now = 7.125
    step()  # in time: it starts at 7.25
    clock.now = 8.0
    step()  # half a second after the second has ended
    assert (step.busy_seconds, step.idle_seconds) == (0.75, 0.5)


def test_a_host_that_prepares_during_a_step_hides_its_work(step, clock):
    """One step in flight, as a training loop has it: 0.2 s of work per batch cost nothing."""
    before = step()
    for _ in range(4):
        clock.sleep(0.2)
        handle = step()
        step.read(before)
        before = handle
    assert step.read(before)["end"] == pytest.approx(1.25)
    assert step.idle_seconds == 0.0
    assert step.busy_seconds == 1.25


def test_a_host_slower_than_the_step_is_what_it_waits_for(step, clock):
    before = step()
    for _ in range(4):
        clock.sleep(0.5)
        handle = step()
        step.read(before)
        before = handle
    assert (step.busy_seconds, step.idle_seconds) == (1.25, 1.0)


def test_a_sleep_that_ends_early_is_continued(clock):
    step = SimulatedStep(1000, clock, lambda seconds: clock.sleep(min(seconds, 0.5)))
    assert step.read(step())["end"] == 1.0
    assert clock.slept == [0.5, 0.5]


def test_a_step_without_length_is_rejectd():
    with pytest.raises(ValueError, match="more than 0 ms, got 0"):
        SimulatedStep(0)
