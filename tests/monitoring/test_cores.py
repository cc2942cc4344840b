import os
from pathlib import Path

import pytest

from myxtts.monitoring.cores import available_cores, map_on_cores


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of 16 cores whose kernel files the test writes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


V1 = "sys/fs/cgroup/cpu"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 16),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 16),
        ({"sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "250000 100000\n"}, 3),
        ({"sys/fs/cgroup/cpu.max": "5000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "6400000 100000\n"}, 16),
        ({f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, 16),
        ({f"{V1}/cpu.cfs_quota_us": "350000\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, 4),
        ({f"{V1}/cpu.cfs_quota_us": "350000\n"}, 16),
    ],
)
def test_quota_of_the_container(root, files, cores):
    assert available_cores(root(files)) == cores


def test_a_quota_anywhere_above_the_process_binds(root):
    files = {
        "proc/self/cgroup": "0::/pod/app\n",
        "sys/fs/cgroup/pod/cpu.max": "300000 100000",
        "sys/fs/cgroup/pod/app/cpu.max": "max 100000",
        "sys/fs/cgroup/other/cpu.max": "100000 100000",
    }
    assert available_cores(root(files)) == 3


def test_nested_groups_of_the_first_version(root):
    files = {
        "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/s\n",
        "sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us": "150000",
        "sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us": "100000",
    }
    assert available_cores(root(files)) == 2


def test_a_path_of_the_host_that_climbs_out_is_left_alone(root):
    files = {"proc/self/cgroup": "0::/../../a\n", "sys/fs/cgroup/cpu.max": "700000 100000"}
    assert available_cores(root(files)) == 7


def test_affinity_counts(root, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 9})
    assert available_cores(root({})) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert available_cores(root({})) == 6


def test_a_map_on_cores_keeps_the_order_and_reports_each_result():
    done = []
    found = map_on_cores(lambda item: 2 * item, [3, 1, 2], lambda *counts: done.append(counts))
    assert found == [6, 2, 4]
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert map_on_cores(str, [], workers=1) == []
