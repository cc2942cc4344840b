"""Who lives on the device: the one copy of a cache that a run keeps there, or why there is none."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from myxtts.config.config import DataConfig
from myxtts.data.batches.split import Split

if TYPE_CHECKING:
    from myxtts.data.batches.residence import Residence

logger = logging.getLogger(__name__)


class Tenancy:
    """The residence of what is trained on; another one replaces it, and frees its memory."""

    def __init__(self) -> None:
        self._of: Any = None  # what the residence holds
        self._residence: Residence | None = None
        self._said = ""

    def of_split(self, split: Split, data: DataConfig) -> "Residence | None":
        """The residence of a split's cache, once that is complete."""
        from myxtts.data.batches.resident import arrays_of

        if split.mode != "runtime" and split.cache.late is None and not split.is_complete:
            return None  # as soon as it is
        return self.residence(
            split.cache, obstacle_of(split), partial(arrays_of, split.cache), data
        )

    def residence(
        self,
        owner: Any,
        obstacle: str,
        arrays: Callable[[], Mapping[str, np.ndarray]],
        data: DataConfig,
    ) -> "Residence | None":
        """The residence of `arrays`, which are the owner's; None where the host reads them."""
        device = "" if data.cache_on_device == "off" else _device(data.cache_on_device)
        if not device:
            self.release()
            return None
        if obstacle:
            self._say(data, obstacle)
            return None
        if self._of is not owner:
            self.release()
            self._of, self._residence = owner, _residence(arrays(), device, data)
        return self._residence

    def release(self) -> bool:
        """Free the device's memory; say whether any was taken."""
        residence, self._residence, self._of = self._residence, None, None
        return residence is not None and residence.drop()

    def give_way(self, why: str) -> bool:
        """Free the memory for good, for a run that needs it; say whether any was taken."""
        return self._residence is not None and self._residence.drop(why)

    def _say(self, data: DataConfig, obstacle: str) -> None:
        """Say once why nothing is copied; where nobody asked for it only to those who look."""
        if obstacle != self._said:
            self._said = obstacle
            level = logging.WARNING if data.cache_on_device == "on" else logging.INFO
            logger.log(level, "cache on the device: off: %s", obstacle)


def obstacle_of(split: Split) -> str:
    """Why a split's cache cannot lie on a device, or nothing where it can."""
    if split.mode == "runtime":
        return "the mode runtime stores no features"
    if split.cache.late is not None:
        return "--local-cache-gb keeps only some of the cache on this disk at a time"
    if any(data.array is None for data in split.cache.columns.values()):
        return "the cache is neither mapped nor in memory (enable_memory_mapping, memory_cache)"
    return ""


def _device(choice: str) -> str:
    """Where the cache goes: to the first GPU, or where it is asked for to the CPU's own memory."""
    from myxtts.runtime import gpus

    found = next(iter(gpus()), "")
    return found or ("/CPU:0" if choice == "on" else "")


def _residence(arrays: Mapping[str, np.ndarray], device: str, data: DataConfig) -> "Residence":
    from myxtts.data.batches import resident
    from myxtts.data.batches.device_memory import shortage
    from myxtts.data.batches.residence import Residence

    ahead = data.prefetch_buffer_size if data.optimize_cpu_gpu_overlap else 0
    room = partial(shortage, device, share=data.cache_on_device_share)
    return Residence(arrays, device, resident.FIRST_STEPS + ahead, room)
