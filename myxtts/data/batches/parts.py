"""The parts of planned batches: what each of several replicas computes of every batch.

Every batch is cut into the same number of parts, however many replicas there are, and each replica
takes its share of them. So what is computed never depends on the number of replicas.
"""

from dataclasses import dataclass, replace

import numpy as np

from myxtts.data.batches.plan import BatchPlan
from myxtts.errors import UserError

# The parts of a batch where several replicas share it and nobody says how many.
USUAL_PARTS = 8


@dataclass(frozen=True, slots=True)
class Share:
    """Which parts of every batch one of several replicas computes.

    Where sums are exact they have one order, whatever the number of replicas.
    """

    parts: int
    rank: int = 0
    replicas: int = 1
    is_exact: bool = False

    def __post_init__(self) -> None:
        if self.is_exact and self.parts & (self.parts - 1):
            raise UserError(
                f"--exact-sums needs a power of two as --micro-batches, not {self.parts}"
            )
        if self.parts % self.replicas:
            raise UserError(
                f"{self.parts} micro-batches cannot be shared by {self.replicas} workers: choose "
                "--micro-batches as a multiple of the workers, or another number of workers"
            )

    @property
    def own(self) -> int:
        """How many parts of a batch are this replica's."""
        return self.parts // self.replicas

    @property
    def first(self) -> int:
        return self.rank * self.own


def usual_parts(replicas: int, is_exact: bool = False) -> int:
    """The parts that any usual number of replicas can share.

    One replica does not need any, unless others are to take over to the bit.
    """
    return 1 if replicas == 1 and not is_exact else -(-USUAL_PARTS // replicas) * replicas


def part_numbers(size: int, parts: int, group: int = 1) -> np.ndarray:
    """The part of each utterance of a batch [size]: equally many, and groups stay whole.

    A batch that has fewer groups than parts leaves some of them empty.
    """
    group = max(group, 1)
    groups = -(-size // group)
    of_group = np.arange(groups) * parts // max(groups, 1)
    return np.repeat(of_group, group)[:size].astype(np.int32)


class SharedPlan:
    """A replica's own utterances of every planned batch, and the part of each."""

    def __init__(self, plan: BatchPlan, share: Share, group: int = 1):
        numbers = [part_numbers(size, share.parts, group) for size in plan.sizes.tolist()]
        part = np.concatenate([*numbers, np.zeros(0, np.int32)])
        own = (part >= share.first) & (part < share.first + share.own)
        before = np.concatenate([[0], np.cumsum(own)])
        bounds = before[plan.bounds - plan.bounds[0]]
        order = plan.order[plan.bounds[0] : plan.bounds[-1]]
        self.plan = replace(plan, order=order[own], bounds=bounds)
        self.part = part[own] - share.first

    def parts_of(self, batch: int, index: np.ndarray) -> np.ndarray:
        """The parts of a batch's utterances; some of those planned may be missing from `index`."""
        first, last = self.plan.bounds[batch : batch + 2].tolist()
        planned, part = self.plan.order[first:last], self.part[first:last]
        return part if len(index) == len(planned) else part[np.isin(planned, index)]
