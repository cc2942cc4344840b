import threading

import pytest

from myxtts.monitoring.timers import StageTimers
from tests.helpers.fake_clock import FakeClock


def test_seconds_add_up_by_name():
    clock = FakeClock()
    timers = StageTimers(clock)
    for seconds in (1.0, 2.0):
        with timers.time("read"):
            clock.advance(seconds)
    with timers.time("decode"):
        clock.advance(4.0)
    assert timers.totals() == {"read": 3.0, "decode": 4.0}


def test_a_stage_inside_another_counts_for_itself_alone():
    clock = FakeClock()
    timers = StageTimers(clock)
    with timers.time("batching"):
        clock.advance(1.0)
        with timers.time("tokens"):
            clock.advance(10.0)
        clock.advance(2.0)
    assert timers.totals() == {"batching": 3.0, "tokens": 10.0}


def test_what_raises_counts_as_well():
    clock = FakeClock()
    timers = StageTimers(clock)
    with pytest.raises(OSError), timers.time("read"):
        clock.advance(5.0)
        raise OSError
    with timers.time("read"):
        clock.advance(1.0)
    assert timers.totals() == {"read": 6.0}


def test_threads_add_to_the_same_totals_and_do_not_nest_in_each_other():
    clock = FakeClock()
    timers = StageTimers(clock)

    def work():
        with timers.time("decode"):
            pass

    with timers.time("batching"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        clock.advance(2.0)
    assert timers.totals() == {"batching": 2.0, "decode": 0.0}


def test_the_difference_to_earlier_totals_has_only_what_changed():
    clock = FakeClock()
    timers = StageTimers(clock)
    with timers.time("read"):
        clock.advance(1.0)
    before = timers.totals()
    with timers.time("decode"):
        clock.advance(2.0)
    assert timers.since(before) == {"decode": 2.0}


def test_what_a_graph_counts_is_added():
    clock = FakeClock()
    timers = StageTimers(clock)
    counted = [7.0]
    timers.add_source("features", lambda: counted[0])
    before = timers.totals()
    with timers.time("features"):
        clock.advance(1.0)
    counted[0] = 9.0
    assert timers.since(before) == {"features": 3.0}
