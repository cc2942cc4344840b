from types import SimpleNamespace

import pytest

from myxtts.bench.loaders import NAIVE
from myxtts.bench.modes import AUTO, PRECOMPUTE, RUNTIME
from myxtts.bench.targets import Figures, Target, bars, summary, targets
from myxtts.bench.timing import Cost

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


def test_every_target_stands_beside_what_was_measured():
    assert list(map(str, targets(figures()))) == [
        f"target: GPU utilisation, precompute, 70-90 %: measured 99 % ({DEVICE}): met, "
        "the rule being at least 70 %",
        f"target: GPU utilisation, auto, 40-70 %: measured 66 % ({DEVICE}): met, "
        "the rule being at least 40 %",
        f"target: GPU utilisation, runtime, 20-50 %: measured 11 % ({DEVICE}): NOT met, "
        "the rule being at least 20 %",
        "target: GPU % by the driver, precompute, 70-90 %: not measured: "
        "TensorFlow sees no GPU here",
        "target: CPU during training, precompute, 40-60 %: measured 50 % "
        "(loading alone, for the step is simulated): met, the rule being at most 60 %",
        "target: training speed, precompute over runtime, 2-3 x: measured 8 x: met, "
        "the rule being at least 2 x",
        "target: step speed, graph over eager, 5-10 x: measured 5.5 x: met, "
        "the rule being at least 5 x",
        "target: loading a batch, < 100 ms: measured 25 ms "
        "(reader 'cached, native', as fast as it goes): met, the rule being below 100 ms",
        "target: loading speed over np.load per utterance, 3-5 x: measured 2 x: NOT met, "
        "the rule being at least 3 x",
        "target: training speed over the earlier program, 2-5 x: not measured: the earlier program "
        "is not part of this one; its way of loading is the naive loader",
    ]
    assert summary(targets(figures())) == "6 of 10 targets met, 2 not met, 2 not measured"


def test_with_a_gpu_the_driver_has_its_say():
    found = targets(figures(step_ms=0.0, no_driver="", gpu_percent=64.0))
    by_driver = next(target for target in found if "driver" in target.what)
    assert (by_driver.measured, by_driver.is_met) == (64.0, False)
    assert "some kernel ran" in str(by_driver)
    silent = targets(figures(step_ms=0.0, no_driver=""))[3]
    assert str(silent).endswith("not measured: the driver does not tell")
    cpu = next(target for target in found if target.what.startswith("CPU"))
    assert cpu.note == ""  # the step itself ran


@pytest.mark.parametrize(
    ("rule", "measured", "met"),
    [
        ("at least", 70.0, True),
        ("at least", 69.9, False),
        ("at most", 70.0, True),
        ("at most", 70.1, False),
        ("below", 69.9, True),
        ("below", 70.0, False),
        ("below", None, None),
    ],
)
def test_a_rule_judges_what_was_measured(rule, measured, met):
    assert Target("this", "that", measured, rule, 70.0).is_met is met


def test_precompute_has_to_be_best_and_at_20_ms_nearly_perfect():
    assert list(map(str, bars(figures()))) == [
        "bar: device busy, precompute at 20 ms a step, at least 98 %: measured 99 %: met",
        f"bar: device busy, precompute over {AUTO}, at least 1 x: measured 1.5 x: met",
        "bar: device busy, precompute over runtime, at least 1 x: measured 9 x: met",
    ]
    assert bars(figures(step_ms=0.0)) == []
