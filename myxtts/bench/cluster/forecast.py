"""From figures to a forecast: how fast, how large and how reliable a run on many workers is."""

import math
from dataclasses import dataclass, replace

from myxtts.bench.cluster.figures import Figures
from myxtts.data.features.prepare import LARGEST_SHARD

COMPUTE, READING, DISK, ADDING_UP, CHIEF, PLANNING = (
    "computing", "reading", "disk", "adding up", "chief", "planning",
)  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """What is asked: a corpus, workers on hosts, and the settings that decide how they share."""

    utterances: float
    workers: int
    workers_per_host: int
    cores_per_host: int
    memory_per_host: float
    batch_size: float
    micro_batches: int
    save_interval: int = 1000
    validation_interval: int = 1000
    val_fraction: float = 0.0
    failures_per_worker_hour: float = 0.0
    restart_seconds: float = 0.0

    @property
    def on_host(self) -> int:
        """The workers of a full host."""
        return min(self.workers, self.workers_per_host)

    @property
    def hosts(self) -> int:
        return math.ceil(self.workers / self.workers_per_host)

    @property
    def threads(self) -> int:
        """What each worker computes with, as `train --devices` shares the cores."""
        return max(1, self.cores_per_host // self.on_host)

    @property
    def own_parts(self) -> int:
        """The micro-batches with utterances that the worker with most of them computes."""
        return math.ceil(min(self.micro_batches, self.batch_size) / self.workers)

    @property
    def own_utterances(self) -> float:
        return self.own_parts * self.part_utterances

    @property
    def part_utterances(self) -> float:
        return max(1.0, self.batch_size / self.micro_batches)

    @property
    def steps_per_epoch(self) -> float:
        return self.utterances * (1 - self.val_fraction) / self.batch_size


@dataclass(frozen=True)
class Forecast:
    """A run on one number of workers; `causes` are the seconds of a step, by what takes them.

    Reading batches and the disk happen while the step computes: only the longest counts.
    """

    cluster: Cluster
    causes: dict[str, float]
    alone_seconds: float  # of the same step on one worker
    worker_bytes: float
    host_bytes: float
    cache_bytes: float
    mappings: float
    start_seconds: float
    prepare_seconds: float
    between_failures: float = math.inf  # seconds
    lost_to_failures: float = 0.0  # seconds of each failure

    @property
    def step_seconds(self) -> float:
        return _total(self.causes)

    @property
    def efficiency(self) -> float:
        """The speed over that of as many workers which do not hold each other up."""
        return self.alone_seconds / (self.cluster.workers * self.step_seconds)

    @property
    def availability(self) -> float:
        """The share of the time that is not lost to failures."""
        return 1 / (1 + self.lost_to_failures / self.between_failures)

    @property
    def utterances_per_second(self) -> float:
        return self.cluster.batch_size / self.step_seconds * self.availability

    @property
    def epoch_hours(self) -> float:
        return self.cluster.steps_per_epoch * self.step_seconds / self.availability / 3600


def simulate(figures: Figures, cluster: Cluster) -> Forecast:
    """Forecast a run. All workers are assumed to be equally fast."""
    scale, count = figures.scale, cluster.utterances
    start = count * (scale.read_seconds + scale.open_seconds) + _plan_seconds(figures, count)
    found = Forecast(
        cluster,
        causes=_causes(figures, cluster),
        alone_seconds=_total(_causes(figures, replace(cluster, workers=1))),
        worker_bytes=count * scale.bytes,
        host_bytes=count * scale.bytes * cluster.on_host,
        cache_bytes=count * figures.stored_bytes,
        mappings=math.ceil(count / LARGEST_SHARD) * figures.mapped_files,
        start_seconds=start,
        prepare_seconds=count * figures.prepare_cpu / (cluster.hosts * cluster.cores_per_host),
    )
    if not cluster.failures_per_worker_hour:
        return found
    # Half of what lies between two checkpoints is computed again, on average.
    redone = cluster.save_interval / 2 * found.step_seconds
    return replace(
        found,
        between_failures=3600 / (cluster.failures_per_worker_hour * cluster.workers),
        lost_to_failures=cluster.restart_seconds + start + redone,
    )


def validation_seconds(figures: Figures, cluster: Cluster) -> float:
    """One validation, which the chief does alone."""
    held_out = cluster.utterances * cluster.val_fraction
    return held_out * figures.step.evaluate * figures.step.share_of_one_thread(cluster.threads)


def sweep(figures: Figures, cluster: Cluster) -> list[Forecast]:
    """The forecasts of 1, 2, 4, ... workers that can share the batches, up to those asked for."""
    doubled = [1 << power for power in range(cluster.workers.bit_length())]
    counts = [n for n in doubled if n < cluster.workers and cluster.micro_batches % n == 0]
    counts.append(cluster.workers)
    return [simulate(figures, replace(cluster, workers=count)) for count in counts]


def _causes(figures: Figures, cluster: Cluster) -> dict[str, float]:
    return {
        COMPUTE: _compute_seconds(figures, cluster),
        READING: _reading_seconds(figures, cluster),
        DISK: _disk_seconds(figures, cluster),
        ADDING_UP: _adding_up_seconds(figures, cluster),
        CHIEF: _chief_seconds(figures, cluster),
        PLANNING: _plan_seconds(figures, cluster.utterances) / max(1, cluster.steps_per_epoch),
    }


def _compute_seconds(figures: Figures, cluster: Cluster) -> float:
    """A step of the worker with most parts; on a CPU at least what its host's cores can do."""
    step = figures.step
    scaled = cluster.own_parts * cluster.part_utterances / step.utterances
    seconds = step.seconds(scaled, cluster.threads)
    if not step.is_on_cpu:
        return seconds
    work = step.seconds(scaled) + figures.reader_cpu * cluster.own_utterances
    return max(seconds, cluster.on_host * work / cluster.cores_per_host)


def _reading_seconds(figures: Figures, cluster: Cluster) -> float:
    """One thread of each worker makes its batches."""
    work = figures.reader_cpu * cluster.own_utterances
    return work * max(1.0, cluster.on_host / cluster.cores_per_host)


def _disk_seconds(figures: Figures, cluster: Cluster) -> float:
    """What a host reads for its workers, but for what its memory still holds of the cache."""
    held = cluster.on_host * cluster.utterances * figures.scale.bytes
    free = max(0.0, cluster.memory_per_host - held)
    missing = max(0.0, 1 - free / max(1.0, cluster.utterances * figures.stored_bytes))
    wanted = cluster.on_host * cluster.own_utterances * figures.stored_bytes
    return missing * wanted / figures.disk_bandwidth


def _adding_up_seconds(figures: Figures, cluster: Cluster) -> float:
    seconds = figures.network.seconds(figures.gradient_bytes, cluster.workers)
    crowded = cluster.on_host / cluster.cores_per_host if figures.network.is_on_cpu else 1.0
    return seconds * max(1.0, crowded)


def _chief_seconds(figures: Figures, cluster: Cluster) -> float:
    """Saving and validating, which the others wait for, shared by the steps between two."""
    held_out = cluster.utterances * cluster.val_fraction
    validation = (
        held_out * figures.step.evaluate * figures.step.share_of_one_thread(cluster.threads)
    )
    return figures.save_seconds / cluster.save_interval + validation / cluster.validation_interval


def _plan_seconds(figures: Figures, count: float) -> float:
    return figures.scale.plan_seconds * count * math.log2(max(2.0, count))


def _total(causes: dict[str, float]) -> float:
    together = (COMPUTE, READING, DISK)
    overlapped = max(causes[name] for name in together)
    return overlapped + sum(seconds for name, seconds in causes.items() if name not in together)
