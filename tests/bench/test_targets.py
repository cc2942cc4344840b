from types import SimpleNamespace

import pytest

from myxtts.bench.loaders import NAIVE
from myxtts.bench.modes import AUTO, PRECOMPUTE, RUNTIME
from myxtts.bench.targets import Figures, mode_targets, summary, targets
from myxtts.bench.timing import Cost, Target

DEVICE = "a simulated accelerator, 20 ms a step"


def mode(utilisation, samples_per_second, cpu_percent=50.0, gpu_percent=None):
    return SimpleNamespace(
        utilisation=utilisation,
        samples_per_second=samples_per_second,
        cpu_percent=cpu_percent,
        gpu_percent=gpu_percent,
    )


class Modes(dict):
    device = DEVICE


class Loaders(dict):
    chosen = "cached, native"


def figures(step_ms=20.0, no_driver="TensorFlow sees no GPU here", gpu_percent=None) -> Figures:
    modes = Modes(
        {
            PRECOMPUTE: mode(0.99, 800.0, gpu_percent=gpu_percent),
            AUTO: mode(0.66, 500.0),
            RUNTIME: mode(0.11, 100.0),
        }
    )
    costs = {"cached, native": Cost(100, 10, 0.1, 0.25), NAIVE: Cost(100, 10, 1.0, 0.5)}
    loaders = Loaders({name: SimpleNamespace(cost=cost) for name, cost in costs.items()})
    return Figures(modes, loaders, SimpleNamespace(ratio=5.5), step_ms, no_driver)


def test_every_target_is_printed_with_its_measurement():
    assert list(map(str, targets(figures()))) == [
        "target: GPU utilisation, precompute (70-90 %), at least 70 %: "
        f"measured 99 % ({DEVICE}): met",
        f"target: GPU utilisation, auto (40-70 %), at least 40 %: measured 66 % ({DEVICE}): met",
        "target: GPU utilisation, runtime (20-50 %), at least 20 %: "
        f"measured 11 % ({DEVICE}): NOT met",
        "target: GPU % by the driver, precompute (70-90 %), at least 70 %: not measured: "
        "TensorFlow sees no GPU here",
        "target: CPU during training, precompute (40-60 %), at most 60 %: measured 50 % "
        "(loading alone: the step is simulated): met",
        "target: training speed, precompute over runtime (2-3 x), at least 2 x: measured 8 x: met",
        "target: step speed, graph over eager (5-10 x), at least 5 x: measured 5.5 x: met",
        "target: loading a batch (< 100 ms), at most 100 ms: measured 25 ms "
        "(reader 'cached, native', as fast as it goes): met",
        "target: loading speed over np.load per utterance (3-5 x), at least 3 x: "
        "measured 2 x: NOT met",
        "target: training speed over the earlier program (2-5 x), at least 2 x: not measured: "
        "the earlier program is not part of this one; its way of loading is the naive loader",
    ]
    assert summary(targets(figures())) == "6 of 10 targets met, 2 not met, 2 not measured"


def test_with_a_gpu_the_driver_is_the_source():
    found = targets(figures(step_ms=0.0, no_driver="", gpu_percent=64.0))
    by_driver = next(target for target in found if "driver" in target.what)
    assert (by_driver.measured, by_driver.is_met) == (64.0, False)
    assert "some kernel ran" in str(by_driver)
    silent = targets(figures(step_ms=0.0, no_driver=""))[3]
    assert str(silent).endswith("not measured: the driver does not report it")
    cpu = next(target for target in found if target.what.startswith("CPU"))
    assert cpu.note == ""  # the step itself ran


@pytest.mark.parametrize(
    ("at_most", "measured", "met"),
    [(False, 70.0, True), (False, 69.9, False), (True, 70.0, True), (True, 70.1, False)]
    + [(True, None, None)],
)
def test_a_rule_judges_what_was_measured(at_most, measured, met):
    assert Target("this", measured, 70.0, at_most).is_met is met


def test_precompute_has_to_be_best_and_at_20_ms_nearly_perfect():
    assert list(map(str, mode_targets(figures()))) == [
        "target: device busy, precompute at 20 ms a step, at least 98 %: measured 99 %: met",
        f"target: device busy, precompute over {AUTO}, at least 1 x: measured 1.5 x: met",
        "target: device busy, precompute over runtime, at least 1 x: measured 9 x: met",
    ]
    assert mode_targets(figures(step_ms=0.0)) == []
