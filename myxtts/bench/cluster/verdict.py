"""From a forecast to a verdict: what makes a run impossible, what holds it back, what to change."""

import math
from dataclasses import dataclass

from myxtts.bench.cluster.figures import Figures
from myxtts.bench.cluster.forecast import (
    ADDING_UP,
    CHIEF,
    COMPUTE,
    DISK,
    PLANNING,
    READING,
    Forecast,
    validation_seconds,
)

# What costs less of the time is not worth a change.
NOTABLE = 0.05
# A process of the usual systems can address so much.
ADDRESSES = 2.0**47

OVERHEAD, IDLE, CROWDED, FAILURES = "overhead", "idle workers", "cores", "failures"


@dataclass(frozen=True)
class Finding:
    """One thing that stops a run (`share` 1) or takes a share of its time, and what to change."""

    what: str
    share: float
    sentence: str
    is_fatal: bool = False

    def __str__(self) -> str:
        return self.sentence


def judge(figures: Figures, forecast: Forecast) -> list[Finding]:
    """What makes the run impossible, then what holds it back, each with the largest first."""
    total = forecast.step_seconds / forecast.availability
    costs = avoidable(figures, forecast)
    worst = sorted(costs, key=lambda name: -costs[name])
    slow = [
        Finding(name, costs[name] / total, _sentence(name, costs[name], total, figures, forecast))
        for name in worst
        if costs[name] >= NOTABLE * total
    ]
    return obstacles(figures, forecast) + (slow or [_healthy(forecast)])


def avoidable(figures: Figures, forecast: Forecast) -> dict[str, float]:
    """The seconds of a step in which a worker does not compute its share, by their causes."""
    cluster, causes, step = forecast.cluster, forecast.causes, figures.step
    threads = step.share_of_one_thread(cluster.threads)
    own = cluster.own_utterances
    wanted = cluster.batch_size / cluster.workers
    alone = step.seconds(own / step.utterances, cluster.threads)
    shared = 1 - 1 / cluster.workers
    return {
        ADDING_UP: causes[ADDING_UP],
        CHIEF: causes[CHIEF],
        PLANNING: causes[PLANNING],
        READING: _excess(causes, READING, DISK),
        DISK: _excess(causes, DISK, READING),
        OVERHEAD: step.fixed * threads * shared,
        IDLE: step.part * threads * (own - wanted) / step.utterances,
        CROWDED: max(0.0, causes[COMPUTE] - alone) * shared,
        FAILURES: forecast.step_seconds * (1 / forecast.availability - 1),
    }


def obstacles(figures: Figures, forecast: Forecast) -> list[Finding]:
    """What no run of this size gets past."""
    cluster, found = forecast.cluster, []
    if forecast.host_bytes > cluster.memory_per_host:
        found.append(_too_little_memory(figures, forecast))
    if forecast.mappings > figures.map_limit:
        needed = 2 ** math.ceil(math.log2(forecast.mappings * 1.1))
        found.append(
            f"The cache is {forecast.mappings:,.0f} files that every worker maps, and the kernel "
            f"grants {figures.map_limit:,}: set vm.max_map_count={needed} on every host "
            "(`sysctl`)."
        )
    if forecast.cache_bytes > ADDRESSES:
        found.append(
            f"The cache has {forecast.cache_bytes / 1e12:,.0f} TB, and a process can map "
            f"{ADDRESSES / 1e12:,.0f} TB: divide the corpus into several runs."
        )
    if forecast.lost_to_failures > forecast.between_failures:
        found.append(
            f"A worker fails every {time(forecast.between_failures)}, and each failure costs "
            f"{time(forecast.lost_to_failures)}: the run hardly gets on; save more often "
            f"(--save-interval {_best_interval(figures, forecast)}) or use fewer workers."
        )
    return [Finding("obstacle", 1.0, sentence, is_fatal=True) for sentence in found]


def _too_little_memory(figures: Figures, forecast: Forecast) -> str:
    cluster = forecast.cluster
    fitting = cluster.memory_per_host / (cluster.on_host * figures.scale.bytes)
    return (
        f"Every worker holds the corpus, the index of the cache and the plan, "
        f"{forecast.worker_bytes / 1e9:,.0f} GB, and {_hosts(cluster.on_host)} "
        f"{cluster.memory_per_host / 1e9:,.0f} GB: about {short(fitting)} utterances fit; use a "
        "part of the corpus, or hosts with more memory (--memory-gb) and fewer workers "
        "(--workers-per-host)."
    )


def _hosts(workers: int) -> str:
    return "its host has" if workers == 1 else f"a host of {workers} workers has"


def _excess(causes: dict[str, float], one: str, other: str) -> float:
    """By how much something that happens next to computing takes longer than all else."""
    return max(0.0, causes[one] - max(causes[COMPUTE], causes[other]))


def _sentence(name: str, seconds: float, total: float, figures: Figures, forecast: Forecast) -> str:
    what, change = _REMEDIES[name](figures, forecast)
    return (
        f"{100 * seconds / total:.0f} % of the time ({1e3 * seconds:,.1f} of {1e3 * total:,.1f} ms "
        f"a step) goes to {what}: {change}."
    )


def _healthy(forecast: Forecast) -> Finding:
    sentence = (
        f"Nothing takes {100 * NOTABLE:.0f} % of the time from {forecast.cluster.workers:,} "
        f"workers, which are {100 * forecast.efficiency:.0f} % efficient."
    )
    return Finding("healthy", 0.0, sentence)


def _of_adding_up(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    network, workers = figures.network, forecast.cluster.workers
    waiting = network.seconds(0.0, workers)
    fewer = "a larger --batch-size with the same workers, or fewer workers"
    if waiting > network.seconds(figures.gradient_bytes, workers) / 2:
        messages = f"{2 * (workers - 1) * network.messages:,.0f} messages one after the other"
        return f"adding up gradients, most of it to {messages}", f"{fewer}, or a lower latency"
    size = f"{figures.gradient_bytes / 1e6:,.0f} MB"
    return f"adding up gradients of {size}", f"a faster network (--network-gbps), {fewer}"


def _of_the_chief(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    cluster = forecast.cluster
    validation = validation_seconds(figures, cluster)
    if validation / cluster.validation_interval > figures.save_seconds / cluster.save_interval:
        held_out = short(cluster.utterances * cluster.val_fraction)
        what = f"validating {held_out} utterances, which the chief does alone"
        return what, "hold out fewer (--val-fraction) or validate less often"
    return "saving, which the others wait for", "save less often (--save-interval)"


def _of_planning(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    seconds = forecast.causes[PLANNING] * forecast.cluster.steps_per_epoch
    what = f"planning each epoch ({time(seconds)} of every worker)"
    return what, "no setting changes that; a part of the corpus has shorter plans"


def _of_reading(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    if forecast.cluster.on_host > forecast.cluster.cores_per_host:
        return "making batches", "more cores (--cores-per-worker)"
    what = "making batches, which one thread of each worker does"
    return what, "more workers with fewer utterances each"


def _of_the_disk(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    change = "put the cache on faster storage (--disk-gbps), on every host's own disk where it "
    change += "fits, or give hosts the memory to keep it (--memory-gb)"
    return "reading the cache from the disk", change


def _of_overhead(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    what = "what every worker does however little it computes, such as updating the weights"
    return what, "give each more to compute (a larger --batch-size), or use fewer workers"


def _of_idle_workers(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    cluster = forecast.cluster
    change = f"choose --batch-size and --micro-batches as multiples of {cluster.workers}"
    if cluster.batch_size < cluster.workers:
        what = f"workers without an utterance: a batch has {cluster.batch_size:,.0f} for "
        return what + f"{cluster.workers:,} workers", change
    return "workers that have fewer micro-batches than others", change


def _of_cores(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    cluster = forecast.cluster
    what = f"{cluster.on_host} workers that share {cluster.cores_per_host} cores"
    return what, "use fewer workers on a host (--workers-per-host) or hosts with more cores"


def _of_failures(figures: Figures, forecast: Forecast) -> tuple[str, str]:
    what = f"failures, one every {time(forecast.between_failures)}, which cost "
    what += f"{time(forecast.lost_to_failures)} each"
    if forecast.start_seconds > forecast.lost_to_failures / 2:
        return what, "most of it is opening the corpus again: use a part of it"
    return what, f"save more often (--save-interval {_best_interval(figures, forecast)})"


_REMEDIES = {
    ADDING_UP: _of_adding_up,
    CHIEF: _of_the_chief,
    PLANNING: _of_planning,
    READING: _of_reading,
    DISK: _of_the_disk,
    OVERHEAD: _of_overhead,
    IDLE: _of_idle_workers,
    CROWDED: _of_cores,
    FAILURES: _of_failures,
}


def _best_interval(figures: Figures, forecast: Forecast) -> int:
    """The steps between checkpoints that lose least, by Young's rule."""
    seconds = math.sqrt(2 * figures.save_seconds * forecast.between_failures)
    return max(1, round(seconds / forecast.step_seconds))


def short(count: float) -> str:
    for size, unit in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count:,.0f}"


def time(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"
