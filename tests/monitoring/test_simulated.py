import pytest

from myxtts.monitoring.simulated import Handle, SimulatedDevice


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
def device(clock) -> SimulatedDevice:
    return SimulatedDevice(250, clock, clock.sleep)


def test_steps_queue_up_behind_each_other(device, clock):
    assert [device.submit() for _ in range(3)] == [
        Handle(0.0, 0.25),
        Handle(0.25, 0.5),
        Handle(0.5, 0.75),
    ]
    assert clock.slept == []  # submitting never blocks
    assert (device.busy_seconds, device.idle_seconds) == (0.75, 0.0)


def test_waiting_blocks_until_the_end_of_that_step(device, clock):
    first, second = device.submit(), device.submit()
    assert device.wait(first) == 0.25 and clock.now == 0.25
    assert device.wait(second) == 0.5 and clock.now == 0.5
    assert device.wait(first) == 0.25 and clock.slept == [0.25, 0.25]


def test_a_late_batch_leaves_it_idle_and_one_in_time_does_not(device, clock):
    clock.now = 7.0  # before the first step is start-up, and no idleness
    device.submit()
    clock.now = 7.125
    device.submit()  # in time: it starts at 7.25
    clock.now = 8.0
    device.submit()  # half a second after the second has ended
    assert (device.busy_seconds, device.idle_seconds) == (0.75, 0.5)


def test_a_host_that_prepares_during_a_step_hides_its_work(device, clock):
    """One step in flight, as a training loop has it: 0.2 s of work per batch cost nothing."""
    before = device.submit()
    for _ in range(4):
        clock.sleep(0.2)
        handle = device.submit()
        device.wait(before)
        before = handle
    assert device.wait(before) == pytest.approx(1.25)
    assert device.idle_seconds == 0.0
    assert device.busy_seconds == 1.25


def test_a_host_slower_than_the_step_is_what_it_waits_for(device, clock):
    before = device.submit()
    for _ in range(4):
        clock.sleep(0.5)
        handle = device.submit()
        device.wait(before)
        before = handle
    assert (device.busy_seconds, device.idle_seconds) == (1.25, 1.0)


def test_sleep_that_ends_early_goes_on(clock):
    device = SimulatedDevice(1000, clock, lambda seconds: clock.sleep(min(seconds, 0.5)))
    assert device.wait(device.submit()) == 1.0
    assert clock.slept == [0.5, 0.5]


def test_a_step_without_length_is_refused():
    with pytest.raises(ValueError, match="more than 0 ms, got 0"):
        SimulatedDevice(0)
