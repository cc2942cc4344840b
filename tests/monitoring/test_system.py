import dataclasses
import os
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from myxtts.monitoring import system
from myxtts.monitoring.gpus import GpuReader, GpuSample
from myxtts.monitoring.system import (
    Counters,
    MeanMax,
    MemoryLimit,
    SystemSample,
    SystemSampler,
    gpu_percent,
    machine_sources,
    sample_between,
)

GPU = GpuSample(0, "NVIDIA L4", utilisation=80, throttling=("power cap",))
BEFORE = Counters(
    seconds=10.0,
    cores=((100.0, 200.0), (50.0, 200.0)),
    memory=(1e9, 4e9),
    disk=(1e6, 2e6),
    own=(30.0, 5e8),
    own_disk=(0.0, 1e6),
    gpus=(GPU,),
)
# Two seconds on two cores: one was busy all the time, the other half of it; 2 of the 3 busy
# seconds were ours.
AFTER = Counters(
    seconds=12.0,
    cores=((102.0, 202.0), (51.0, 202.0)),
    memory=(2e9, 4e9),
    disk=(21e6, 6e6),
    own=(32.0, 6e8),
    own_disk=(10e6, 1e6),
    gpus=(GPU,),
)


def test_a_sample_is_what_happened_between_two_readings():
    assert sample_between(BEFORE, AFTER, began=4.0, cores=4) == SystemSample(
        seconds=8.0,
        cpu_percent=75.0,
        core_percents=(100.0, 50.0),
        quota_percent=25.0,
        others_percent=25.0,
        memory_used_mb=2000.0,
        memory_limit_mb=4000.0,
        memory_percent=50.0,
        own_memory_mb=600.0,
        disk_read_mb_s=10.0,
        disk_write_mb_s=2.0,
        own_read_mb_s=5.0,
        own_write_mb_s=0.0,
        gpus=(GPU,),
    )


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ("cores", {"cpu_percent", "core_percents", "others_percent"}),
        ("memory", {"memory_used_mb", "memory_limit_mb", "memory_percent"}),
        ("disk", {"disk_read_mb_s", "disk_write_mb_s"}),
        ("own", {"quota_percent", "others_percent", "own_memory_mb"}),
        ("own_disk", {"own_read_mb_s", "own_write_mb_s"}),
    ],
)
def test_a_source_that_fails_leaves_the_others_as_they_are(source, unknown):
    whole = sample_between(BEFORE, AFTER)
    part = sample_between(BEFORE, AFTER._replace(**{source: None}))
    for field in dataclasses.fields(SystemSample):
        expected = None if field.name in unknown else getattr(whole, field.name)
        assert getattr(part, field.name) == expected, field.name


def test_counters_that_fall_count_as_nothing():
    """A child that leaves the tree takes its time with it."""
    sample = sample_between(BEFORE, AFTER._replace(own=(20.0, 6e8), own_disk=(0.0, 0.0)))
    assert (sample.quota_percent, sample.own_write_mb_s) == (0.0, 0.0)


def test_cores_that_come_or_go_are_compared_with_nothing():
    assert sample_between(BEFORE, AFTER._replace(cores=((1.0, 2.0),))).cpu_percent is None


def played(readings):
    """A sampler for which the machine and the clock go through some readings."""
    at = iter(readings)
    now = SimpleNamespace(reading=None)

    def clock():
        now.reading = next(at)
        return now.reading.seconds

    sources = {name: lambda name=name: getattr(now.reading, name) for name in Counters._fields[1:]}
    return SystemSampler(clock=clock, sources=sources, cores=4)


def test_the_first_reading_begins_the_time():
    sampler = played([BEFORE, AFTER, AFTER._replace(seconds=13.0)])
    assert sampler.sample() is None and sampler.latest is None
    assert sampler.sample() == sample_between(BEFORE, AFTER, began=10.0, cores=4)
    assert sampler.sample().seconds == 3.0
    assert len(sampler.samples) == 2


def test_a_summary_has_means_and_maxima():
    sampler = played([BEFORE, AFTER, AFTER._replace(seconds=13.0, memory=(3e9, 4e9), disk=None)])
    for _ in range(3):
        sampler.sample()
    summary = sampler.summary()
    assert summary["memory_percent"] == MeanMax(62.5, 75.0)
    assert summary["disk_read_mb_s"] == MeanMax(10.0, 10.0)
    assert summary["gpu0.utilisation"] == MeanMax(80.0, 80.0)
    assert not {"seconds", "core_percents", "gpu0.index", "gpu0.power_w"} & summary.keys()


def test_the_samples_are_bounded():
    sampler = SystemSampler(keep=3, sources=dict.fromkeys(Counters._fields[1:], lambda: None))
    for _ in range(9):
        sampler.sample()
    assert len(sampler.samples) == 3


def test_a_failing_source_is_none_and_its_reason_is_kept():
    sources = dict.fromkeys(Counters._fields[1:], lambda: None)

    def broken():
        raise RuntimeError("the disk is on strike")

    sampler = SystemSampler(sources={**sources, "disk": broken})
    sampler.sample()
    assert sampler.sample().disk_read_mb_s is None
    assert sampler.reasons == {"disk": "RuntimeError: the disk is on strike"}


def test_the_reason_for_no_gpu_is_kept():
    sampler = SystemSampler(gpus=GpuReader(None, "no NVIDIA driver answers"))
    sampler.sample()
    assert sampler.sample().gpus == ()
    assert sampler.reasons["gpus"] == "no NVIDIA driver answers"


def test_a_thread_samples_until_it_is_stopped():
    sampled = threading.Event()
    sources = dict.fromkeys(Counters._fields[1:], lambda: None)
    sampler = SystemSampler(interval=0.001, sources=sources)
    sources["gpus"] = lambda: sampled.set() if len(sampler.samples) >= 3 else None
    with sampler:
        assert sampled.wait(60)
        (thread,) = [one for one in threading.enumerate() if one.name == "system-samples"]
        assert thread.daemon
        assert sampler.start() is sampler  # and no second thread
    assert not thread.is_alive()
    count = len(sampler.samples)
    assert count >= 3
    sampler.stop()
    assert len(sampler.samples) == count


def test_an_interval_of_nothing_is_rejectd():
    with pytest.raises(ValueError, match="above 0 seconds, got 0"):
        SystemSampler(interval=0)


def test_this_machine_is_measured():
    sampler = SystemSampler(gpus=GpuReader(None))
    sampler.sample()
    end = time.process_time() + 0.05
    while time.process_time() < end:  # so that there is something to see
        pass
    sample = sampler.sample()
    assert not set(sampler.reasons) - {"disk", "own_disk"}  # a container may hide them
    assert len(sample.core_percents) == psutil.cpu_count()
    assert 0 < sample.quota_percent and 0 <= sample.others_percent <= 100
    assert 0 < sample.own_memory_mb < sample.memory_limit_mb
    assert sample.memory_percent == pytest.approx(
        100 * sample.memory_used_mb / sample.memory_limit_mb
    )


def test_what_children_use_is_ours_even_when_they_have_ended():
    own = machine_sources(GpuReader(None))["own"]
    before, _ = own()
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    assert own()[0] - before > 0.1


GIB = 2**30


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of 16 GiB, of which 4 are taken, whose kernel files the test writes."""
    memory = SimpleNamespace(total=16 * GIB, available=12 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)

    def write(files):
        for name, text in files.items():
            path = tmp_path / "sys/fs/cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


STAT = "anon 5\ninactive_file 1073741824\nactive_file 7\n"
V1_STAT = "inactive_file 9\ntotal_inactive_file 1073741824\n"


@pytest.mark.parametrize(
    ("files", "used", "limit"),
    [
        ({}, 4, 16),
        ({"memory.max": "max\n", "memory.current": f"{3 * GIB}"}, 4, 16),
        ({"memory.max": f"{8 * GIB}\n", "memory.current": f"{3 * GIB}\n"}, 3, 8),
        ({"memory.max": f"{8 * GIB}", "memory.current": f"{3 * GIB}", "memory.stat": STAT}, 2, 8),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4, 16),
        (
            {
                "memory/memory.limit_in_bytes": f"{6 * GIB}\n",
                "memory/memory.usage_in_bytes": f"{5 * GIB}\n",
                "memory/memory.stat": V1_STAT,
            },
            4,
            6,
        ),
    ],
)
def test_the_memory_of_the_container(root, files, used, limit):
    assert MemoryLimit(root(files)).read() == (used * GIB, limit * GIB)


def test_the_tightest_limit_above_the_process_binds(root):
    folder = root(
        {
            "memory.max": f"{12 * GIB}",
            "pod/memory.max": f"{4 * GIB}",
            "pod/memory.current": f"{1 * GIB}",
            "pod/app/memory.max": "max",
        }
    )
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text("0::/pod/app\n")
    assert MemoryLimit(folder).read() == (1 * GIB, 4 * GIB)


def test_disks_that_lie_on_others_are_not_counted_twice(monkeypatch, tmp_path):
    counts = {
        "sda": SimpleNamespace(read_bytes=10, write_bytes=5),
        "sda1": SimpleNamespace(read_bytes=10, write_bytes=5),
        "dm-0": SimpleNamespace(read_bytes=10, write_bytes=5),
        "nvme0n1": SimpleNamespace(read_bytes=200, write_bytes=100),
    }
    for name in ("sda", "nvme0n1"):
        (tmp_path / "sys/block" / name / "device").mkdir(parents=True)
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk=False: counts)
    assert system._read_disks(tmp_path) == (210, 105)


def test_a_machine_without_counted_disks_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk=False: {} if perdisk else None)
    with pytest.raises(OSError, match="no disk is counted here"):
        system._read_disks(tmp_path)


def test_the_busiest_gpu_is_named_by_its_mean_and_a_silent_driver_by_none():
    loads = [(10, 80), (30, None)]
    samples = [
        SystemSample(0.0, gpus=tuple(GpuSample(i, "L4", load) for i, load in enumerate(pair)))
        for pair in loads
    ]
    assert gpu_percent(samples) == 80.0
    assert gpu_percent([SystemSample(0.0, gpus=(GpuSample(0, "L4", None),))]) is None


def test_only_the_given_sources_are_sampled():
    gpus = (GpuSample(0, "L4", 50),)
    sampler = SystemSampler(sources={"gpus": lambda: gpus}, clock=iter([0.0, 1.0]).__next__)
    sampler.sample()
    sample = sampler.sample()
    assert sample == SystemSample(1.0, gpus=gpus) and sampler.reasons == {}
