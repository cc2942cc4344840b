"""Which worker holds the others up, from numbers worked out by hand."""

from myxtts.training.hooks.workers import WorkerTimes


def times(*figures: tuple[float, float]) -> WorkerTimes:
    found = WorkerTimes(len(figures), "worker {}".format)
    metrics = {"reduce_ms": 5.0}
    for rank, (data, compute) in enumerate(figures):
        metrics |= {f"worker/{rank}/data_ms": data, f"worker/{rank}/compute_ms": compute}
    found.add(metrics)
    found.add(metrics)
    return found


def test_the_mean_times_of_all_workers_are_told():
    told = str(times((1.0, 40.0), (2.0, 40.0)))
    assert told.startswith(
        "2 workers: computing 40.0 / 40.0 ms a step, waiting for data 1.0 / 2.0 ms, "
        "adding up gradients 5.0 ms on the chief; "
    )
    assert told.endswith("none holds the others up")


def test_the_slowest_is_named_with_what_it_waits_for():
    assert str(times((0.0, 40.0), (20.0, 40.0), (0.0, 40.0))).endswith(
        "worker 1 holds the others up by 50%: it waits for data"
    )
    assert str(times((0.0, 60.0), (1.0, 39.0), (0.0, 40.0))).endswith(
        "worker 0 holds the others up by 50%: it computes longer"
    )


def test_a_first_step_says_nothing_of_a_step_before():
    found = WorkerTimes(2, str)
    found.add(
        {f"worker/{rank}/{name}": 0.0 for rank in (0, 1) for name in ("data_ms", "compute_ms")}
    )
    assert str(found) == ""
