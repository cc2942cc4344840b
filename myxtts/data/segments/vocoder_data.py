"""What a vocoder is trained on: segments of a corpus that was opened for training."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from myxtts.config.config import DataConfig
from myxtts.data.batches.limits import check_unusable
from myxtts.data.batches.parts import Share
from myxtts.data.batches.readers import in_background
from myxtts.data.batches.split import Split, with_stored_features
from myxtts.data.batches.tenancy import Tenancy
from myxtts.data.batches.training_data import TrainingData, as_tensor, is_resident
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features.derived import store_derived
from myxtts.data.features.prepare import prepare
from myxtts.data.features.waves import WaveWork
from myxtts.data.segments.predictions import Predictor, with_predictions
from myxtts.data.segments.segments import (
    SegmentPlan,
    SegmentSource,
    plan_middles,
    plan_segments,
    stored_columns,
)
from myxtts.data.store.errors import CacheError
from myxtts.data.store.workers import worker_count
from myxtts.errors import UserError
from myxtts.monitoring.progress import Progress

if TYPE_CHECKING:
    from myxtts.data.segments.reader import SegmentBatches

logger = logging.getLogger(__name__)


class VocoderData:
    """Segments of the training part, epoch by epoch, and the same ones of the validation part.

    In the modes precompute and auto waveforms are stored next to the mels; in the mode runtime, and
    in auto where the cache cannot be written, recordings are read as they are wanted.
    """

    def __init__(
        self,
        data: TrainingData,
        frames: int,
        batch_size: int,
        progress: Progress | None = None,
        predictor: Predictor | None = None,
    ):
        self.config, self.seed = data.config.data, data.config.training.seed
        self.frames, self.batch_size = frames, batch_size
        self.share: Share | None = None  # of every batch, where it is computed in parts
        self.tenancy = Tenancy()
        data.refresh()
        open_part = partial(open_segments, data=self.config, progress=progress, predictor=predictor)
        self.train = open_part(data.train)
        self.val = open_part(data.val) if data.val is not None else None
        logger.info("vocoder training: reader: %s", describe_reader(self.train, self.config))

    def plan(self, epoch: int) -> SegmentPlan:
        return plan_segments(self.train.lengths, self.frames, self.batch_size, self.seed, epoch)

    def train_batches(self, epoch: int = 0, start: int = 0) -> "SegmentBatches":
        """The batches of an epoch, from any of them on."""
        return self._batches(self.train, self.plan(epoch).skip(start))

    def val_batches(self) -> "SegmentBatches":
        """The middle of each validation utterance, always in the same batches."""
        if self.val is None:
            raise CorpusError("this corpus has no validation part: raise val_fraction")
        plan = plan_middles(self.val.lengths, self.frames, self.batch_size)
        return self._batches(self.val, plan)

    def stream(self, epoch: int = 0, start: int = 0) -> Iterator[tuple[int, int, dict]]:
        """Endless (epoch, number, batch), from any on, some batches ahead of the step."""
        batches = self._epochs(epoch, start)
        if not self.config.optimize_cpu_gpu_overlap:
            return batches
        return in_background(batches, self.config.prefetch_buffer_size, is_resident)

    def _epochs(self, epoch: int, start: int) -> Iterator[tuple[int, int, dict]]:
        while True:
            number = None
            for number, batch in self._epoch(epoch, start):
                yield epoch, start + number, batch
            if number is None and start == 0:
                raise CorpusError("none of the corpus's recordings can be used any more")
            epoch, start = epoch + 1, 0

    def _epoch(self, epoch: int, start: int) -> Iterator[tuple[int, dict]]:
        """The numbered batches of an epoch; where they are shared, with the part of each row."""
        if self.share is None:
            plan = self.plan(epoch).skip(start)
            yield from self._batches(self.train, plan, on_device=True).numbered()
            return
        if not self.train.is_stored:
            raise UserError(
                "several workers train a vocoder on stored waveforms, and the mode runtime stores "
                "none: choose --preprocessing-mode precompute"
            )
        plan, part = self.plan(epoch).shared(self.share)
        part = as_tensor(part)
        batches = self._batches(self.train, plan.skip(start), on_device=True)
        for number, batch in batches.numbered():
            yield number, batch | {"part": part}

    def release(self) -> bool:
        """Free what the device holds of the segments; say whether that was anything."""
        return self.tenancy.release()

    def _batches(
        self, source: SegmentSource, plan: SegmentPlan, on_device: bool = False
    ) -> "SegmentBatches":
        from myxtts.data.batches.graph_reader import reader_options
        from myxtts.data.segments.reader import arrays_of, segment_batches

        residence = None
        if on_device:
            obstacle = "" if source.is_stored else "no waveform is stored"
            make = partial(arrays_of, source)
            residence = self.tenancy.residence(source, obstacle, make, self.config)
        return segment_batches(source, plan, reader_options(self.config), residence)


def describe_reader(source: SegmentSource, data: DataConfig) -> str:
    """How segments of a source are read, in a few words."""
    if not source.is_stored:
        return "runtime: recordings are read in every epoch"
    reader = "native" if data.use_tf_native_loading else "host"
    return f"{reader}: segments are cut from stored mels and waveforms"


def open_segments(
    split: Split,
    data: DataConfig,
    progress: Progress | None = None,
    predictor: Predictor | None = None,
) -> SegmentSource:
    """The waveforms of a split next to its mels, or next to those that a model predicts of it.

    Predicted mels are made once, and need the cache.
    """
    if predictor:
        check_predictable(split.mode)
    if split.mode == "runtime":
        return read_segments(split)
    try:
        split = _completed(split, data, progress)
        source = _stored_segments(split, data, progress)
        if not predictor:
            return source
        return with_predictions(source, split, predictor, data.cache_verification, progress)
    except (CacheError, OSError) as error:
        if split.mode == "precompute" or predictor:
            raise
        logger.warning("recordings are read while the vocoder trains: %s", error)
        return read_segments(split)


def check_predictable(mode: str) -> None:
    """Reject predicted mels where there is no cache to keep them in."""
    if mode == "runtime":
        raise UserError(
            "predicted mels are stored, and the mode runtime stores nothing: choose "
            "--preprocessing-mode auto or precompute, or omit --on-predicted-mels"
        )


def read_segments(split: Split) -> SegmentSource:
    """Segments of recordings that are read, and their features computed, as they are wanted."""
    split = split.keep(~split.is_bad, ())
    return SegmentSource(
        split.cache.ids,
        split.plan_lengths,
        split.location.settings,
        recordings=split.utterances,
    )


def _completed(split: Split, data: DataConfig, progress: Progress | None) -> Split:
    """The split with the features of every utterance stored."""
    if not split.location.settings.with_pitch:
        raise CacheError("the cache has no pitch: set with_pitch")
    if split.is_complete:
        return split
    report = prepare(
        split.utterances,
        split.location,
        workers=worker_count(data),
        verify=data.cache_verification,
        progress=progress,
    )
    split = replace(split, known_bad=split.known_bad | {one.id for one in report.rejections})
    return replace(split, cache=with_stored_features(split, data))


def _stored_segments(split: Split, data: DataConfig, progress: Progress | None) -> SegmentSource:
    settings = split.location.settings
    waves = store_derived(
        WaveWork(split.location.folder, settings),
        split.utterances,
        workers=worker_count(data),
        verify=data.cache_verification,
        progress=progress,
    )
    check_unusable(waves.rejections, split, data)
    usable = split.cache.is_cached & (waves.starts >= 0)
    if not usable.any():
        raise CorpusError("no recording of the corpus has both features and a waveform stored")
    cache = split.cache.select(usable)
    columns = {**stored_columns(cache.columns), "wave": waves.array}
    places = {name: cache.starts[name] for name in ("mel", "pitch")}
    places["wave"] = waves.starts[usable]
    return SegmentSource(cache.ids, cache.mel_lengths, settings, columns, places)
