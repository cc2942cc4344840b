"""Batches of features that do not fit on the disk: one group of shards after the other."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from myxtts.config.config import DataConfig
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.batches.readers import Batch, host_batches
from myxtts.data.store.late_features import LateFeatures
from myxtts.data.store.packed_cache import PackedCache
from myxtts.monitoring.progress import INTERVAL_SECONDS

logger = logging.getLogger(__name__)


def grouped_batches(
    cache: PackedCache,
    plan: BatchPlan,
    data: DataConfig,
    after: Callable[[], BatchPlan] | None = None,
) -> Iterator[Batch]:
    """Read the batches of a group while the next group is fetched, or the first one of `after`.

    A plan without groups is of few utterances, such as those of validation: they are read at once.
    """
    late = cache.late
    if late is None:
        raise ValueError("all features are on this disk")
    if plan.groups is None:
        yield from host_batches(late.load(cache), plan)
        return
    how = {"mapped": data.enable_memory_mapping, "in_memory": data.memory_cache}
    runs = _runs(plan, late.shard)
    fetching = _Fetching(late, lambda: runs[0].shards if runs else ())
    finished = False
    try:
        for number, run in enumerate(runs, 1):
            fetching.wait()
            opened = late.open(cache, run.shards, **how)
            following = partial(_following, runs, number, after, late.shard)
            fetching = _Fetching(late, following, keep=run.shards)
            yield from host_batches(opened, plan.part(run.first, run.last))
        finished = True
    finally:
        if not finished:
            fetching.cancel()


@dataclass(frozen=True)
class _Run:
    """Batches in a row that are drawn from the same shards."""

    first: int
    last: int
    shards: Sequence[int]


def _runs(plan: BatchPlan, shard: np.ndarray) -> list[_Run]:
    groups = plan.groups if plan.groups is not None else np.zeros(len(plan))
    starts = np.flatnonzero(np.diff(groups, prepend=-1)).tolist()
    runs = []
    for first, last in zip(starts, [*starts[1:], len(plan)], strict=True):
        planned = plan.order[plan.bounds[first] : plan.bounds[last]]
        runs.append(_Run(first, last, np.unique(shard[planned]).tolist()))
    return runs


def _following(
    runs: Sequence[_Run], number: int, after: Callable[[], BatchPlan] | None, shard: np.ndarray
) -> Sequence[int]:
    """The shards that are read next, in this epoch or the one after it."""
    if number < len(runs):
        return runs[number].shards
    first = _runs(after(), shard)[:1] if after else ()
    return first[0].shards if first else ()


class _Fetching:
    """Shards on their way to this disk, in a thread that nobody has to wait for."""

    def __init__(
        self,
        late: LateFeatures,
        choose: Callable[[], Sequence[int]],
        keep: Sequence[int] = (),
    ):
        self._late, self._choose, self._keep = late, choose, keep
        self._cancelled, self._done = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="shards", daemon=True).start()

    def wait(self) -> None:
        """Return when all of them are here; raise what went wrong."""
        while not self._done.wait(INTERVAL_SECONDS):
            logger.info("waiting for shards of %s", self._late.store.place)
        if self._error:
            raise self._error

    def cancel(self) -> None:
        self._cancelled.set()

    def _run(self) -> None:
        try:
            self._late.fetch(self._choose(), self._keep, self._cancelled)
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
