"""How much of a device's memory is free, and whether the cache may have so much of it."""

import os
from collections.abc import Sequence

import tensorflow as tf

from myxtts.monitoring.gpus import GpuProcess, GpuReader
from myxtts.monitoring.system import MemoryLimit


def shortage(device: str, size: int, share: float) -> str:
    """Why so many bytes must not be copied to a device, or nothing where they may be."""
    free = free_bytes(device)
    if free is None:
        return "how much memory is free cannot be asked: nvidia-ml-py or the driver is missing"
    if size > share * free:
        return (
            f"{size / 1e9:.3f} GB are more than cache_on_device_share = {share:g} of the "
            f"{free / 1e9:.3f} GB that are free on {device.strip('/')}"
        )
    return ""


def free_bytes(device: str) -> int | None:
    """What is free on a device, as its driver says; None where nobody answers."""
    if "GPU" not in device:
        used, limit = MemoryLimit().read()
        return int(limit - used)
    reader = GpuReader.open()
    try:
        return _free_of(reader, device)
    finally:
        reader.close()


def _free_of(reader: GpuReader, device: str) -> int | None:
    samples, own = reader.read(), [one for one in reader.processes() if one.pid == os.getpid()]
    numbers = driver_numbers(len(samples), os.environ.get("CUDA_VISIBLE_DEVICES"), visible_places())
    chosen = [samples[number] for number in numbers if 0 <= number < len(samples)]
    found = [
        one.memory_total_mb - one.memory_used_mb + _reserved(one.index, own, device)
        for one in chosen
        if one.memory_total_mb is not None and one.memory_used_mb is not None
    ]
    # Where several GPUs could be meant, the one with least room decides.
    return int(1e6 * min(found)) if found else None


def _reserved(number: int, own: Sequence[GpuProcess], device: str) -> float:
    """The megabytes that TensorFlow holds of a GPU beyond what its steps have ever used.

    With memory growth these are few. Without it TensorFlow takes nearly all memory at once.
    """
    taken = sum(one.memory_mb or 0.0 for one in own if one.gpu == number)
    peak = tf.config.experimental.get_memory_info(device.strip("/"))["peak"] / 1e6
    return max(0.0, taken - peak)


def visible_places() -> list[int]:
    """The places of the GPUs that TensorFlow uses among those that CUDA shows to it."""
    visible = tf.config.get_visible_devices("GPU")
    return [int(one.name.rpartition(":")[2]) for one in visible]


def driver_numbers(count: int, shown: str | None, places: Sequence[int]) -> list[int]:
    """The driver's numbers of the first GPU that TensorFlow uses; all where that is not known.

    The driver counts all GPUs, CUDA those that CUDA_VISIBLE_DEVICES names.
    """
    words = [word.strip() for word in shown.split(",")] if shown else []
    if not places or not all(word.isdigit() for word in words):
        return list(range(count))
    place = places[0]
    if words:
        return [int(words[place])] if place < len(words) else list(range(count))
    return [place]
