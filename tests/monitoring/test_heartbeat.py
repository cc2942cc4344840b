import threading

import pytest

from myxtts.monitoring.heartbeat import Activities, heartbeat


@pytest.fixture
def moments():
    """The time, to be set by hand."""
    return [0.0]


@pytest.fixture
def activities(moments):
    return Activities(lambda: moments[0])


def test_silence_is_broken_by_the_activity_and_its_duration(activities, moments):
    with activities.doing("step 3 of 200"):
        moments[0] = 29.9
        assert activities.overdue(30.0) == ""
        moments[0] = 45.0
        assert activities.overdue(30.0) == "step 3 of 200: 45 s so far"
        assert activities.overdue(30.0) == ""
        moments[0] = 75.0
        assert activities.overdue(30.0) == "step 3 of 200: 75 s so far"


def test_what_is_shown_otherwise_puts_the_line_off(activities, moments):
    with activities.doing("preparing"):
        moments[0] = 29.0
        activities.shown()
        moments[0] = 58.0
        assert activities.overdue(30.0) == ""


def test_the_innermost_activity_is_named_and_a_new_name_starts_its_time(activities, moments):
    with activities.doing("step 1 of 9") as step:
        moments[0] = 10.0
        step.rename("step 2 of 9")
        with activities.doing("validating after step 2"):
            moments[0] = 40.0
            assert activities.overdue(30.0) == "validating after step 2: 30 s so far"
        moments[0] = 71.0
        assert activities.overdue(30.0) == "step 2 of 9: 61 s so far"
    assert activities.current() is None


def test_nothing_is_said_where_nothing_runs(activities, moments):
    moments[0] = 1e6
    assert activities.overdue(30.0) == ""


def test_a_heartbeat_speaks_while_its_block_lasts(activities, moments):
    said, has_said = [], threading.Event()

    def say(line):
        said.append(line)
        has_said.set()

    with activities.doing("compiling the step"), heartbeat(say, 0.001, activities):
        moments[0] = 31.0
        assert has_said.wait(60)
    assert said == ["compiling the step: 31 s so far"]
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}
