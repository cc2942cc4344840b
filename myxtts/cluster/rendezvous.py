"""Which of several workers this process is, and where the others are."""

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from myxtts.errors import UserError

DEFAULT_PORT = 2222
_ADDRESS = re.compile(r"[^\s:,]+:\d{1,5}")


@dataclass(frozen=True)
class Worker:
    """One of the processes of a run; the first is the chief, which writes all files."""

    rank: int
    addresses: tuple[str, ...]
    source: str  # what named them
    local_rank: int = 0  # among the workers of its host, which choose GPUs by it

    @property
    def count(self) -> int:
        return len(self.addresses)

    @property
    def is_chief(self) -> bool:
        return self.rank == 0

    def name(self, rank: int) -> str:
        """A worker as messages name it."""
        return f"worker {rank} ({self.addresses[rank]})"


def find_worker(
    workers: str = "", rank: int | None = None, environ: Mapping[str, str] = os.environ
) -> Worker | None:
    """What flags, TF_CONFIG, SLURM or an indexed job of Kubernetes say; None where nothing does.

    A single worker is none: it trains as if nobody had asked.
    """
    if workers or rank is not None:
        found = _from_flags(workers, rank)
    else:
        sources = (_from_tf_config, _from_slurm, _from_kubernetes)
        found = next(filter(None, (source(environ) for source in sources)), None)
    if found is None:
        return None
    _check(found)
    return found if found.count > 1 else None


def _from_flags(workers: str, rank: int | None) -> Worker:
    if not workers or rank is None:
        raise UserError(
            "--workers names the addresses of all workers and --rank says which of them this is: "
            "give both, as in --workers a:2222,b:2222 --rank 0"
        )
    addresses = tuple(one.strip() for one in workers.split(","))
    return Worker(rank, addresses, "--workers", _same_host_before(addresses, rank))


def _from_tf_config(environ: Mapping[str, str]) -> Worker | None:
    text = environ.get("TF_CONFIG", "")
    if not text:
        return None
    try:
        told = json.loads(text)
        cluster, task = told["cluster"], told["task"]
        kind, index = task["type"], int(task["index"])
        chiefs, others = list(cluster.get("chief", [])), list(cluster.get("worker", []))
        unknown = set(cluster) - {"chief", "worker"}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            'TF_CONFIG must be like {"cluster": {"worker": ["a:2222", "b:2222"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}: {error}'
        ) from error
    if unknown or kind not in ("chief", "worker"):
        raise UserError(
            f"TF_CONFIG names {', '.join(sorted(unknown)) or kind}: MyXTTS trains on workers, "
            "of which one may be called the chief"
        )
    addresses = tuple(map(str, chiefs + others))
    rank = index if kind == "chief" else len(chiefs) + index
    return Worker(rank, addresses, "TF_CONFIG", _same_host_before(addresses, rank))


def _from_slurm(environ: Mapping[str, str]) -> Worker | None:
    """One worker for each task of `srun`; they take ports from DEFAULT_PORT on."""
    count = _number(environ, "SLURM_STEP_NUM_TASKS")
    rank = _number(environ, "SLURM_PROCID")
    if count is None or rank is None or count < 2:
        return None
    hosts = expand_hosts(environ.get("SLURM_STEP_NODELIST", ""))
    tasks = expand_counts(environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    if len(hosts) != len(tasks) or sum(tasks) != count:
        raise UserError(
            f"SLURM names {len(hosts)} nodes, {sum(tasks)} tasks on {len(tasks)} nodes, and "
            f"{count} tasks in all: name the workers yourself, with --workers and --rank"
        )
    addresses = tuple(
        f"{host}:{DEFAULT_PORT + place}"
        for host, number in zip(hosts, tasks, strict=True)
        for place in range(number)
    )
    local = _number(environ, "SLURM_LOCALID")
    return Worker(rank, addresses, "SLURM", _same_host_before(addresses, rank, local))


def _from_kubernetes(environ: Mapping[str, str]) -> Worker | None:
    """An indexed job: MYXTTS_WORKERS names its pods, JOB_COMPLETION_INDEX this one."""
    workers, rank = environ.get("MYXTTS_WORKERS", ""), _number(environ, "JOB_COMPLETION_INDEX")
    if not workers or rank is None:
        return None
    addresses = tuple(one.strip() for one in workers.split(","))
    return Worker(rank, addresses, "MYXTTS_WORKERS", _same_host_before(addresses, rank))


def expand_hosts(listed: str) -> list[str]:
    """SLURM's short form of names: `a[1-3,07],b` is a1, a2, a3, a07 and b."""
    found = []
    for prefix, ranges in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", listed):
        if not ranges:
            found.append(prefix)
        for part in ranges.split(",") if ranges else ():
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            found += [f"{prefix}{number:0{len(first)}}" for number in numbers]
    return found


def expand_counts(listed: str) -> list[int]:
    """SLURM's short form of numbers: `2(x3),1` is 2, 2, 2, 1."""
    found: list[int] = []
    for number, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", listed):
        found += [int(number)] * int(times or 1)
    return found


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isdigit() else None


def _same_host_before(addresses: Sequence[str], rank: int, known: int | None = None) -> int:
    """How many workers of the same host come before this one."""
    if known is not None or not 0 <= rank < len(addresses):
        return known or 0
    hosts = [address.rpartition(":")[0] for address in addresses]
    return hosts[:rank].count(hosts[rank])


def _check(worker: Worker) -> None:
    wrong = [address for address in worker.addresses if not _ADDRESS.fullmatch(address)]
    if wrong:
        raise UserError(f"{worker.source} names {wrong[0]!r}, which is not a host:port")
    if len(set(worker.addresses)) < worker.count:
        raise UserError(f"{worker.source} names a worker twice: {', '.join(worker.addresses)}")
    if not 0 <= worker.rank < worker.count:
        raise UserError(
            f"{worker.source} names {worker.count} workers, which are numbered from 0: there is "
            f"no worker {worker.rank}"
        )
