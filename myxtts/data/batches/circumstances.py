"""What the mode `auto` decides by: hours, speed, and room on the disk, measured."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.audio.threads import single_threaded_blas
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.auto_mode import Circumstances
from myxtts.data.batches.split import Split
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import FeatureSettings, compute_features
from myxtts.data.features.prepare import SPARE_BYTES, estimate_bytes, nearest_folder


def measure(
    split: Split, config: XTTSConfig, workers: int, obstacle: str, granted: Mapping[Path, int]
) -> Circumstances:
    """Measure before deciding; `granted` are bytes of the budget that other parts will fill."""
    location, settings = split.location, split.location.settings
    is_missing = ~split.cache.is_cached & ~split.is_bad
    missing = [split.utterances[i] for i in np.flatnonzero(is_missing).tolist()]
    free = shutil.disk_usage(nearest_folder(location.folder)).free
    budget = None
    if config.data.cache_budget_gb and not obstacle:
        stored = sum(sum(shard.sizes.values()) for shard in location.features.shards())
        left = int(config.data.cache_budget_gb * 1e9) - stored - granted[location.folder]
        budget = max(0, left)
    return Circumstances(
        hours=settings.spec.seconds(float(split.plan_lengths.sum())) / 3600,
        missing_hours=settings.spec.seconds(float(split.plan_lengths[is_missing].sum())) / 3600,
        speed=_speed(missing, settings, workers),
        missing_bytes=estimate_bytes(missing, settings),
        free_bytes=max(0, free - SPARE_BYTES),
        budget_bytes=budget,
        epochs=config.training.epochs,
        missing=len(missing),
        shard_bytes=sum(column.unit for column in settings.columns),
        obstacle=obstacle,
    )


def _speed(utterances: list[Utterance], settings: FeatureSettings, workers: int) -> float:
    """Seconds of audio per second, from a few recordings, times the workers."""
    seconds, began = 0.0, 0.0
    # The first one only warms up: tables are made on first use.
    for number, utterance in enumerate(utterances[:: max(1, len(utterances) // 8)][:9]):
        if number < 2:
            seconds, began = 0.0, time.perf_counter()
        try:
            with single_threaded_blas():
                frames = len(compute_features(utterance.audio, settings, utterance.speed)["mel"])
        except AudioError:
            continue
        seconds += settings.spec.seconds(frames)
    return max(1e-3, workers * seconds / max(1e-9, time.perf_counter() - began))
