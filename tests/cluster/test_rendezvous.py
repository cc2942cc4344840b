"""Which worker a process is: every source, which of them wins, and what is rejected."""

import json

import pytest

from myxtts.cluster.rendezvous import Worker, expand_counts, expand_hosts, find_worker
from myxtts.errors import UserError

TWO = ("a:2222", "b:2222")


def tf_config(cluster, kind="worker", index=0) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def slurm(rank=0, count=3, nodes="n[1-2]", tasks="2,1", **others) -> dict[str, str]:
    """The environment of one task of `srun`."""
    return {
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_TASKS_PER_NODE": tasks,
        **others,
    }


def kubernetes(workers="pod-0.svc:2222,pod-1.svc:2222", index=1) -> dict[str, str]:
    return {"MYXTTS_WORKERS": workers, "JOB_COMPLETION_INDEX": str(index)}


def message(workers="", rank=None, environ=None) -> str:
    """What a user reads of workers that cannot be."""
    with pytest.raises(UserError) as raised:
        find_worker(workers, rank, environ or {})
    return str(raised.value)


# The sources


def test_nobody_says_anything():
    assert find_worker(environ={}) is None


def test_flags_name_the_workers():
    found = find_worker("a:2222, b:2222", 1, {})
    assert found == Worker(1, TWO, "--workers")
    assert (found.count, found.is_chief, found.name(1)) == (2, False, "worker 1 (b:2222)")
    assert find_worker("a:2222,b:2222", 0, {}).is_chief


def test_tf_config_names_the_workers():
    found = find_worker(environ=tf_config({"worker": list(TWO)}, index=1))
    assert found == Worker(1, TWO, "TF_CONFIG")


def test_the_chief_of_tf_config_comes_before_its_workers():
    cluster = {"chief": ["c:1"], "worker": ["a:1", "b:1"]}
    addresses = ("c:1", "a:1", "b:1")
    assert find_worker(environ=tf_config(cluster, "chief")) == Worker(0, addresses, "TF_CONFIG")
    assert find_worker(environ=tf_config(cluster, "worker", 1)).rank == 2


def test_every_task_of_srun_is_a_worker_with_a_port_of_its_own():
    addresses = ("n1:2222", "n1:2223", "n2:2222")
    assert find_worker(environ=slurm(2)) == Worker(2, addresses, "SLURM")
    assert find_worker(environ=slurm(1, SLURM_LOCALID="1")).local_rank == 1


def test_an_indexed_job_of_kubernetes_names_its_pods():
    addresses = ("pod-0.svc:2222", "pod-1.svc:2222")
    assert find_worker(environ=kubernetes()) == Worker(1, addresses, "MYXTTS_WORKERS")


def test_flags_win_over_tf_config_that_over_slurm_and_that_over_kubernetes():
    environ = {**tf_config({"worker": list(TWO)}), **slurm(), **kubernetes()}
    sources = []
    for name in ("TF_CONFIG", "SLURM_PROCID", "MYXTTS_WORKERS"):
        sources.append(find_worker(environ=environ).source)
        del environ[name]
    assert sources == ["TF_CONFIG", "SLURM", "MYXTTS_WORKERS"]
    assert find_worker("x:1,y:1", 0, tf_config({"worker": list(TWO)})).source == "--workers"


@pytest.mark.parametrize(
    "environ",
    [
        tf_config({"worker": ["a:2222"]}),
        slurm(count=1, nodes="n1", tasks="1"),
        {"SLURM_PROCID": "0"},  # sbatch without srun
        kubernetes("a:2222", 0),
        {"MYXTTS_WORKERS": "a:2222,b:2222"},
        {"JOB_COMPLETION_INDEX": "0"},
        {"TF_CONFIG": ""},
    ],
)
def test_a_single_worker_is_none(environ):
    assert find_worker(environ=environ) is None


def test_a_single_worker_of_the_flags_is_none():
    assert find_worker("a:2222", 0, {}) is None


def test_workers_of_one_host_are_numbered_there():
    addresses = "a:1,b:1,a:2,b:2,a:3"
    found = [find_worker(addresses, rank, {}).local_rank for rank in range(5)]
    assert found == [0, 0, 1, 1, 2]


# SLURM's short forms


@pytest.mark.parametrize(
    ("listed", "hosts"),
    [
        ("a[1-3,07],b", ["a1", "a2", "a3", "a07", "b"]),
        ("node[08-11]", ["node08", "node09", "node10", "node11"]),
        ("gpu-1.example.org", ["gpu-1.example.org"]),
        ("x,y-[1,3]", ["x", "y-1", "y-3"]),
        ("", []),
    ],
)
def test_node_lists_are_expanded(listed, hosts):
    assert expand_hosts(listed) == hosts


@pytest.mark.parametrize(
    ("listed", "counts"), [("2(x3),1", [2, 2, 2, 1]), ("4", [4]), ("1,2", [1, 2]), ("", [])]
)
def test_task_counts_are_expanded(listed, counts):
    assert expand_counts(listed) == counts


# What is rejected


@pytest.mark.parametrize(("workers", "rank"), [("a:2222,b:2222", None), ("", 0)])
def test_addresses_and_rank_belong_together(workers, rank):
    assert message(workers, rank) == (
        "--workers names the addresses of all workers and --rank says which of them this is: "
        "give both, as in --workers a:2222,b:2222 --rank 0"
    )


@pytest.mark.parametrize("rank", [2, -1])
def test_a_rank_must_be_that_of_a_worker(rank):
    assert message("a:2222,b:2222", rank) == (
        f"--workers names 2 workers, which are numbered from 0: there is no worker {rank}"
    )


@pytest.mark.parametrize("address", ["b", "b:port", "b:123456", "", "http://b:1", "b b:1"])
def test_an_address_is_a_host_and_a_port(address):
    expected = f"--workers names {address!r}, which is not a host:port"
    assert message(f"a:2222,{address}", 0) == expected


def test_no_worker_is_named_twice():
    environ = tf_config({"worker": ["a:2222", "a:2222"]})
    assert message(environ=environ) == "TF_CONFIG names a worker twice: a:2222, a:2222"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": [], "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": 3}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "first"}}',
    ],
)
def test_a_tf_config_of_another_form_is_shown_the_right_one(text):
    assert message(environ={"TF_CONFIG": text}).startswith(
        'TF_CONFIG must be like {"cluster": {"worker": ["a:2222", "b:2222"]}, '
        '"task": {"type": "worker", "index": 0}}: '
    )


def test_tf_config_may_name_no_parameter_servers_and_no_evaluator():
    rule = "MyXTTS trains on workers, of which one may be called the chief"
    servers = tf_config({"worker": list(TWO), "ps": ["c:1"]})
    assert message(environ=servers) == f"TF_CONFIG names ps: {rule}"
    evaluator = tf_config({"worker": list(TWO)}, "evaluator")
    assert message(environ=evaluator) == f"TF_CONFIG names evaluator: {rule}"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (slurm(tasks="2"), "SLURM names 2 nodes, 2 tasks on 1 nodes, and 3 tasks in all"),
        (slurm(nodes=""), "SLURM names 0 nodes, 3 tasks on 2 nodes, and 3 tasks in all"),
        (slurm(tasks="2(x2)"), "SLURM names 2 nodes, 4 tasks on 2 nodes, and 3 tasks in all"),
    ],
)
def test_slurm_must_not_contradict_itself(environ, said):
    assert message(environ=environ) == (
        f"{said}: name the workers yourself, with --workers and --rank"
    )
