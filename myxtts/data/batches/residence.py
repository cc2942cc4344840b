"""Arrays that a device holds: a thread copies them, and they are freed where memory runs short."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from myxtts.data.batches.graph_reader import tensor_of
from myxtts.monitoring.timers import TRANSFER, stage

logger = logging.getLogger(__name__)

Held = dict[str, tf.Tensor]
Made = TypeVar("Made")

PIECE_BYTES = 32_000_000
# Values travel as floating-point numbers of their size, to the bit: GPUs cannot gather int16, and
# TensorFlow keeps int32 in the memory of the host.
_CARRIERS: dict[int, np.dtype] = {
    size: np.dtype(name) for size, name in ((2, "float16"), (4, "float32"), (8, "int64"))
}


class Residence:
    """Arrays that a device is to hold, and whether it does.

    `arrays` are copied flat. `after` is how many batches the host makes before that begins, and
    `shortage` says why so many bytes must not be copied, if that is so.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        device: str,
        after: int = 0,
        shortage: Callable[..., str] = lambda size: "",
    ):
        self.device, self._shortage = device, shortage
        self.bytes = sum(array.nbytes for array in arrays.values())
        self.is_over = False  # given up for good
        self.why = ""  # it was given up
        self._arrays = dict(arrays)
        self._left = after
        self._held: Held | None = None
        self._made: dict[Any, Any] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def is_ready(self) -> bool:
        """Whether the device holds everything."""
        return self._held is not None

    def count(self) -> None:
        """Take note of a batch that the host has made; after enough of them copying begins."""
        self._left -= 1
        if self._left < 0:
            self.begin()

    def begin(self) -> None:
        """Copy now, without waiting for more batches."""
        if self._thread is None and not self.is_over:
            self._thread = threading.Thread(target=self._copy, name="transfer", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until copying has ended, if it has begun."""
        if self._thread is not None:
            self._thread.join()

    def made(self, key: Any, make: Callable[[Held], Made]) -> Made | None:
        """What is made of what the device holds, once; None where it holds nothing any more.

        It must share the memory, and nothing else may keep it: it is freed with what it is made of.
        """
        with self._lock:
            if self._held is None:
                return None
            if key not in self._made:
                self._made[key] = make(self._held)
            return self._made[key]

    def drop(self, why: str = "") -> bool:
        """Free the device's memory for good; say whether any of it was taken."""
        with self._lock:
            is_copying = self._thread is not None and self._thread.is_alive()
            had = is_copying or self._held is not None
            self.is_over, self._held, self.why = True, None, self.why or why
            self._made.clear()
        self.wait()
        gc.collect()
        if why and had:
            logger.warning(
                "%s: the copy of the cache on %s is freed; batches are read by the host now",
                why,
                name_of(self.device),
            )
        return had

    def _copy(self) -> None:
        """Copy everything, or say why not; a run never ends by what was only to make it faster."""
        began = time.perf_counter()
        try:
            why = self._shortage(size=self.bytes)
            held = None if why else {n: self._copied(array) for n, array in self._arrays.items()}
        except _Stopped:
            return
        except tf.errors.ResourceExhaustedError:
            why = f"{name_of(self.device)} has no room for {self.bytes / 1e9:.3f} GB"
        except (tf.errors.OpError, KeyError, ValueError, OSError, RuntimeError) as error:
            why = f"copying to {name_of(self.device)} failed ({error})"
        if why:
            self.why, self.is_over = why, True
            gc.collect()
            logger.warning("cache on the device: off: %s; the host reads on", why)
            return
        with self._lock:
            if self.is_over:
                return
            self._held = held
        logger.info(
            "cache on the device: %.3f GB were copied to %s in %.1f s; batches are gathered there",
            self.bytes / 1e9,
            name_of(self.device),
            time.perf_counter() - began,
        )

    def _copied(self, array: np.ndarray) -> tf.Tensor:
        """The array's bits as a flat tensor on the device, filled in place piece by piece."""
        flat = array.reshape(-1).view(_CARRIERS[array.dtype.itemsize])
        size = max(1, PIECE_BYTES // flat.itemsize)
        with tf.device(self.device):
            if len(flat) <= size:
                return self._piece(flat)
            column = tf.Variable(tf.zeros([len(flat)], flat.dtype), trainable=False)
            for first in range(0, len(flat), size):
                piece = flat[first : first + size]
                # As `column[first:last].assign` does, which reads, and so copies, all of it first.
                tf.raw_ops.ResourceStridedSliceAssign(
                    ref=column.handle,
                    begin=[first],
                    end=[first + len(piece)],
                    strides=[1],
                    value=self._piece(piece),
                )
            return column.read_value()

    def _piece(self, flat: np.ndarray) -> tf.Tensor:
        if self.is_over:
            raise _Stopped
        with stage(TRANSFER):
            with tf.device("/CPU:0"):
                piece = tensor_of(flat)
            return tf.identity(piece)


def name_of(device: str) -> str:
    """A device as messages name it."""
    return device.strip("/")


class _Stopped(Exception):
    """The copy is not wanted any more."""
