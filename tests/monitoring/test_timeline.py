"""Moments of a loop on a clock that the tests move, with a device that computes in the call or
behind it."""

import pytest

from myxtts.bench.simulated import SimulatedStep
from myxtts.monitoring.timeline import COPY, HOOKS, OTHER, WAIT, StepTimes, Timeline
from tests.helpers.fake_clock import FakeClock

MS = 1e-3


def timeline_of(clock: FakeClock, is_async: bool = False) -> Timeline:
    return Timeline(is_async, clock, clock.cpu_clock)


def synchronous(clock, timeline, *, wait=0.0, copy=0.0, call=0.0, hooks=0.0, is_new=False):
    """One turn of a loop whose device computes in the call."""
    clock.advance(wait * MS)
    timeline.mark(WAIT)
    clock.advance(copy * MS)
    timeline.mark(COPY)
    timeline.calling()
    clock.advance(call * MS, cpu=True)
    timeline.called(10, "1 x 10", is_new)
    times = timeline.fetched()
    clock.advance(hooks * MS)
    timeline.mark(HOOKS)
    return times


def near(times: dict[str, float]) -> dict:
    return {name: pytest.approx(value) for name, value in times.items()}


def test_a_device_that_computes_in_the_call_is_idle_all_the_rest():
    clock = FakeClock()
    timeline = timeline_of(clock)
    first = synchronous(clock, timeline, wait=50, call=20, hooks=3)
    assert first.idle == {}  # nothing was before it
    second = synchronous(clock, timeline, wait=5, copy=2, call=20)
    assert second.idle == near({HOOKS: 3, WAIT: 5, COPY: 2})
    assert (second.wait_ms, second.copy_ms) == (pytest.approx(5), pytest.approx(2))
    assert second.device_ms == pytest.approx(20) and second.compute_ms == pytest.approx(20)
    assert second.host_ms == pytest.approx(20) and second.stall_ms == pytest.approx(10)


def test_what_a_new_shape_takes_beyond_the_usual_is_compiling():
    clock = FakeClock()
    timeline = timeline_of(clock)
    synchronous(clock, timeline, call=900, is_new=True)
    for _ in range(3):
        synchronous(clock, timeline, call=20)
    times = synchronous(clock, timeline, call=520, is_new=True)
    assert (times.device_ms, times.compile_ms) == (pytest.approx(20), pytest.approx(500))
    assert synchronous(clock, timeline, call=20).compile_ms == 0.0


class AsyncLoop:
    """A loop like the one of training, over a simulated GPU and a clock that stands still."""

    def __init__(self, step_ms: float):
        self.clock = FakeClock()
        self.timeline = timeline_of(self.clock, is_async=True)
        self.step = SimulatedStep(step_ms, self.clock, self.clock.advance)
        self.last = None
        self.times: list[StepTimes] = []

    def turn(self, wait=0.0, call=0.5, hooks=0.0, seen=False):
        self.clock.advance(wait * MS)
        self.timeline.mark(WAIT)
        self.timeline.calling()
        handle = self.step()
        self.clock.advance(call * MS, cpu=True)
        self.timeline.called(10)
        self.fetch()
        self.clock.advance(hooks * MS)
        self.timeline.mark(HOOKS)
        self.last = handle
        if seen:
            self.fetch()
            self.timeline.mark(OTHER)

    def fetch(self):
        if self.last is None:
            return
        self.timeline.mark(OTHER)
        self.step.read(self.last)
        self.last = None
        self.times.append(self.timeline.fetched())


def test_waits_behind_a_busy_device_cost_nothing():
    loop = AsyncLoop(step_ms=20)
    for _ in range(10):
        loop.turn(wait=15)
    loop.fetch()
    assert all(one.wait_ms == pytest.approx(15) for one in loop.times)
    assert all(one.stall_ms == pytest.approx(0, abs=1e-6) for one in loop.times[1:])
    assert all(one.device_ms == pytest.approx(20) for one in loop.times)


def test_a_slow_loader_starves_the_device_by_what_is_longer_than_a_step():
    loop = AsyncLoop(step_ms=20)
    for _ in range(3):
        loop.turn(seen=True)  # the first steps show how long the device takes
    for _ in range(10):
        loop.turn(wait=50)
    loop.fetch()
    stalled = loop.times[4:-1]
    # A step is called every 50.5 ms and computes for 20.
    assert all(one.device_ms == pytest.approx(20) for one in stalled)
    assert all(one.idle[WAIT] == pytest.approx(30.5, abs=0.6) for one in stalled)
    idle = sum(one.stall_ms for one in loop.times) * MS
    assert idle == pytest.approx(loop.step.idle_seconds, abs=2 * MS)


def test_a_slow_hook_starves_the_device_too_and_is_distinguished_from_data():
    loop = AsyncLoop(step_ms=20)
    for _ in range(3):
        loop.turn(seen=True)
    for _ in range(10):
        loop.turn(wait=1, hooks=60)
    loop.fetch()
    for one in loop.times[5:]:
        assert one.idle[HOOKS] > 35 and one.idle.get(WAIT, 0.0) <= 1.0 + 1e-6
        assert one.device_ms == pytest.approx(20)


def test_without_a_step_that_was_seen_to_the_end_the_device_counts_as_busy():
    loop = AsyncLoop(step_ms=20)
    for _ in range(5):
        loop.turn(wait=100)
    assert all(one.stall_ms == pytest.approx(0, abs=1e-6) for one in loop.times)
