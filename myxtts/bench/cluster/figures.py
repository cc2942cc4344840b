"""The figures that a forecast is made of, and where each of them comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MEASURED, GIVEN, ASSUMED = "measured", "given", "assumed"


@dataclass(frozen=True)
class StepCost:
    """The seconds of a worker's step: `fixed`, and `part` for each of its own micro-batches.

    On a CPU they are those of one core; with `threads`, a core each, a step is `speedup` times as
    fast. They were measured with `utterances` in each micro-batch. `evaluate` validates one.
    """

    fixed: float
    part: float
    utterances: float = 1.0
    evaluate: float = 0.0
    threads: int = 1
    speedup: float = 1.0
    is_on_cpu: bool = True

    def seconds(self, parts: float, threads: int = 1) -> float:
        return (self.fixed + self.part * parts) * self.share_of_one_thread(threads)

    def share_of_one_thread(self, threads: int) -> float:
        """The time with so many threads over that with one, by Amdahl's law."""
        if not self.is_on_cpu or self.threads < 2:
            return 1.0
        serial = (self.threads / self.speedup - 1) / (self.threads - 1)
        serial = min(1.0, max(0.0, serial))
        return serial + (1 - serial) / threads


@dataclass(frozen=True)
class Network:
    """How gradients are added up: a ring, in which every worker sends to the next."""

    bandwidth: float  # bytes per second, of one host
    latency: float  # seconds for one message to the next worker
    messages: float  # sums of a step that wait for one another
    is_on_cpu: bool = True  # whether the workers' cores do the copying

    def seconds(self, size: float, workers: int) -> float:
        """The time to add up so many bytes over so many workers."""
        if workers == 1:
            return 0.0
        return (
            2 * (workers - 1) / workers * size / self.bandwidth
            + 2 * (workers - 1) * self.latency * self.messages
        )


@dataclass(frozen=True)
class ScaleCost:
    """What each utterance of the corpus costs every worker before the first step.

    Memory is what a worker holds at its peak: the corpus, the index of the cache and the plan.
    """

    read_seconds: float
    open_seconds: float
    plan_seconds: float  # per utterance and doubling of the corpus: sorting is n log n
    corpus_bytes: float
    index_bytes: float
    plan_bytes: float

    @property
    def bytes(self) -> float:
        return self.corpus_bytes + self.index_bytes + self.plan_bytes


@dataclass(frozen=True)
class Figures:
    """All figures, in seconds and bytes, and where they come from, by their names."""

    step: StepCost
    network: Network
    scale: ScaleCost
    gradient_bytes: float
    frames: float  # of an utterance, on average
    reader_cpu: float  # CPU seconds per utterance
    prepare_cpu: float
    stored_bytes: float  # per utterance, in the cache
    mapped_files: int  # columns of a shard, each of which is mapped
    save_seconds: float
    disk_bandwidth: float
    cores: int  # of this machine
    memory: float
    map_limit: int  # mappings that the kernel grants a process
    sample: str = ""  # what was measured
    origins: Mapping[str, str] = field(default_factory=dict)

    def replace(self, origin: str, **values: Any) -> "Figures":
        """The same with other values, which have another origin."""
        return replace(self, origins={**self.origins, **dict.fromkeys(values, origin)}, **values)
