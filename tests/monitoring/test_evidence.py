import numpy as np
import pytest

from myxtts.monitoring.evidence import Recorder, slowing
from myxtts.monitoring.timeline import CALL, COPY, GATHER, HOOKS, WAIT, StepTimes


def times(device=20.0, compile_ms=0.0, shape="2 x 32", **idle) -> StepTimes:
    names = {"wait": WAIT, "copy": COPY, "gather": GATHER, "hooks": HOOKS, "call": CALL}
    lost = {names[name]: ms for name, ms in idle.items()}
    return StepTimes(
        wait_ms=idle.get("wait", 0.0),
        call_ms=device,
        host_ms=1.0,
        device_ms=device,
        compile_ms=compile_ms,
        idle=lost,
        shape=shape,
    )


def test_the_first_step_stands_apart():
    recorder = Recorder()
    recorder.add(1, times(device=900.0, compile_ms=880.0))
    recorder.add_hook("LogHook", 0.5)
    recorder.add(2, times(wait=4.0, copy=1.0, gather=0.2, hooks=2.0, call=3.0))
    recorder.add(3, times(device=30.0))
    found = recorder.evidence()
    assert recorder.first.compile_ms == 880.0 and recorder.steps.tolist() == [2, 3]
    assert (found.steps, found.device_ms, found.compile_ms) == (2, 25.0, 0.0)
    assert (found.wait_ms, found.copy_ms, found.hooks_ms, found.host_ms) == (2.0, 0.5, 1.0, 1.5)
    assert found.gather_ms == pytest.approx(0.1)
    assert found.wall_ms == pytest.approx(25 + 2 + 0.5 + 0.1 + 1 + 1.5)
    assert found.hooks == {"LogHook": 0.25} and found.load_ms == 2.0


def test_compilations_are_counted_with_their_shapes_and_cost():
    recorder = Recorder()
    for step, (shape, cost) in enumerate([("a", 9.0), ("b", 7.0), ("a", 0.0), ("b", 5.0)]):
        recorder.add(step, times(shape=shape, compile_ms=cost))
    found = recorder.evidence()
    assert recorder.shapes == {"a": 2, "b": 2} and recorder.compiled == {"a": 9.0, "b": 12.0}
    assert (found.shapes, found.compilations) == (2, 3)
    assert found.compile_ms == pytest.approx(12.0 / 3)  # the first step's is apart


def test_what_happens_before_the_first_step_is_no_hooks_time():
    recorder = Recorder()
    recorder.add_hook("LogHook", 100.0)
    recorder.add(1, times())
    recorder.add(2, times())
    assert recorder.evidence().hooks == {}


def test_a_device_that_slows_down_is_seen_whatever_the_shapes():
    random = np.random.default_rng(0)
    shapes = random.integers(0, 3, 400)
    steps = np.array([10.0, 20.0, 40.0])[shapes] * random.uniform(1.0, 1.1, 400)
    slowdown, best = slowing(steps, shapes)
    assert slowdown == pytest.approx(1.0, abs=0.05) and best == pytest.approx(steps.mean(), rel=0.1)
    steps[200:] *= 3.0
    slowdown, best = slowing(steps, shapes)
    assert slowdown == pytest.approx(3.0, rel=0.06)
    assert best == pytest.approx(steps.mean() / 2.0, rel=0.08)  # (1 + 3) / 2 over 1


def test_single_slow_steps_and_short_runs_are_no_slowdown():
    steps = np.full(400, 10.0)
    steps[::10] = 500.0
    assert slowing(steps, np.zeros(400))[0] == pytest.approx(1.0)
    assert slowing([10.0] * 20 + [90.0] * 20, [0] * 40)[0] == 1.0
    assert slowing([], []) == (1.0, 0.0)


def test_a_recorder_without_counted_steps_has_nothing_to_say():
    found = Recorder().evidence()
    assert (found.steps, found.wall_ms, found.utilisation) == (0, 0.0, 0.0)
