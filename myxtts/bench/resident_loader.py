"""Batches from a cache on the device as a run takes them: one a call, or several of one shape."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from myxtts.data.batches.plan import BatchPlan
from myxtts.data.batches.readers import in_background
from myxtts.data.store.packed_cache import PackedCache

if TYPE_CHECKING:
    from myxtts.data.batches.graph_reader import Batches
    from myxtts.data.batches.residence import Residence


def copied(cache: PackedCache, share: float) -> "Residence | None":
    """The cache on the first GPU, or in the CPU's memory a second time; None without room."""
    from myxtts.data.batches import resident
    from myxtts.data.batches.device_memory import shortage
    from myxtts.data.batches.residence import Residence
    from myxtts.runtime import gpus

    device = next(iter(gpus()), "/CPU:0")
    arrays = resident.arrays_of(cache)
    residence = Residence(arrays, device, shortage=partial(shortage, device, share=share))
    residence.count()
    residence.wait()
    return residence if residence.is_ready else None


@dataclass(frozen=True)
class ResidentLoader:
    """An epoch of a cache that a device holds, in calls of so many batches each."""

    residence: "Residence"
    cache: PackedCache
    plan: BatchPlan
    calls: Sequence[int]

    def __call__(self) -> Iterator:
        """A dict for each batch; the first of a call has what is gathered for all of it."""
        from myxtts.data.batches import graph_reader, resident

        options = graph_reader.ReaderOptions()
        make_epoch = partial(resident.utterance_epoch, self.cache, options)
        source = resident.switching(self.residence, self.plan, self._by_host, make_epoch)
        is_resident = lambda batch: isinstance(batch, resident.ResidentBatch)  # noqa: E731
        batches = in_background(source, options.prefetch, is_resident)
        is_single = max(self.calls, default=1) == 1
        for size in self.calls:
            group = list(islice(batches, size))
            yield group[0].tensors() if is_single else resident.stacked(group)
            yield from [{}] * (size - 1)

    def _by_host(self, plan: BatchPlan) -> "Batches":
        from myxtts.data.batches import graph_reader

        return graph_reader.cached_batches(self.cache, plan, graph_reader.ReaderOptions())


def calls_of(plan: BatchPlan, steps: int) -> list[int]:
    """How many batches of one shape in a row each call takes."""
    shapes = list(zip(plan.sizes.tolist(), plan.frames.tolist(), plan.tokens.tolist(), strict=True))
    calls: list[int] = []
    at = 0
    while at < len(shapes):
        own = shapes[at]
        calls.append(len(list(takewhile(own.__eq__, shapes[at : at + steps]))))
        at += calls[-1]
    return calls
