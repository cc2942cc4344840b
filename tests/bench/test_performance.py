from dataclasses import replace

import pytest

from myxtts.bench.performance import Measurement, bottlenecks, describe

GOOD = Measurement(
    first_ms=50.0,
    batch_ms=(10.0, 20.0, 30.0, 20.0),
    samples=32,
    reader="native",
    cpu_percent=34.0,
    own_cpu_percent=20.0,
    memory_percent=11.2,
    memory_mb=1234.0,
)


def test_the_report_says_all_that_is_promised():
    # The deviation of 10, 20, 30, 20 is sqrt(50); 32 samples took 80 ms.
    assert describe(GOOD).splitlines() == [
        "Data Loading Performance:",
        "  Average time per batch: 20.0ms ±7.1ms",
        "  Min/Max time: 10.0ms / 30.0ms",
        "  First batch: 50.0ms",
        "  Samples per second: 400.0",
        "  Throughput: 24,000 samples/minute (native reader)",
        "",
        "System Performance:",
        "  CPU Usage: 34.0% (this process: 20.0%)",
        "  Memory Usage: 11.2% (this process: 1,234 MB)",
        "  No major bottlenecks detected",
    ]


@pytest.mark.parametrize(
    "change, trouble",
    [
        ({"batch_ms": (100.0, 100.0)}, "data loading is moderate, 100 ms a batch"),
        ({"batch_ms": (499.0, 501.0)}, "data loading is slow, 500 ms a batch"),
        ({"cpu_percent": 95.0}, "the CPU is busy with other work (75 % of it)"),
        ({"memory_percent": 91.0}, "91 % of the memory is taken"),
    ],
)
def test_each_bottleneck_is_named(change, trouble):
    (found,) = bottlenecks(replace(GOOD, **change))
    assert found.startswith(trouble)
    assert "No major bottlenecks" not in describe(replace(GOOD, **change))


def test_a_cpu_that_only_loads_is_no_bottleneck():
    assert bottlenecks(replace(GOOD, cpu_percent=100.0, own_cpu_percent=90.0)) == []
