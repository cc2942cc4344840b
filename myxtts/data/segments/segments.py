"""Segments of recordings for a vocoder: mels with the waveforms that they were computed from.

A batch is a dict:
    mel          stored  [batch, frames, mels]   the floor behind a recording's end
    pitch        float32 [batch, frames]         Hz, 0 where unvoiced
    waveform     int16   [batch, frames * hop]   sample for sample under the mel's frames
    first_frame  int32   []                      changes from batch to batch, as the noise shall
    index        int64   [batch]                 positions, to name the utterances
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from myxtts.audio.io import AudioError
from myxtts.data.batches.ahead import worked_ahead
from myxtts.data.batches.parts import Share, part_numbers
from myxtts.data.batches.readers import Batch, log_once
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import FeatureSettings, check_finite, features_of, load_samples
from myxtts.data.features.waves import as_hops
from myxtts.data.store.errors import CacheError
from myxtts.data.store.view import ColumnData
from myxtts.errors import UserError

Found = dict[int, Batch | None]  # what was read of recordings, by position
COLUMNS = ("mel", "pitch", "wave")


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Which segments share a batch: utterances and their first frames."""

    order: np.ndarray  # [segments] positions
    first: np.ndarray  # [segments] frames
    frames: int
    batch_size: int
    skipped: int = 0

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size) - self.skipped

    def __getitem__(self, batch: int) -> np.ndarray:
        return self.order[self._rows(batch)]

    def starts(self, batch: int) -> np.ndarray:
        return self.first[self._rows(batch)]

    def skip(self, batches: int) -> "SegmentPlan":
        """What is left after some batches."""
        return replace(self, skipped=self.skipped + batches)

    def part(self, batch: int) -> "SegmentPlan":
        """One of the batches alone."""
        rows = self._rows(batch)
        return replace(self, order=self.order[rows], first=self.first[rows], skipped=0)

    def shared(self, share: Share) -> tuple["SegmentPlan", np.ndarray]:
        """One replica's own segments of every batch, which are all of one size, and their parts."""
        size = min(self.batch_size, len(self.order))
        part = part_numbers(size, share.parts)
        own = (part >= share.first) & (part < share.first + share.own)
        if size < share.replicas:
            raise UserError(
                f"a batch of {size} segments cannot be shared by {share.replicas} workers: raise "
                "--stage2-batch-size"
            )
        order, first = (x.reshape(-1, size)[:, own].reshape(-1) for x in (self.order, self.first))
        plan = replace(self, order=order, first=first, batch_size=int(own.sum()))
        return plan, part[own] - share.first

    def _rows(self, batch: int) -> slice:
        at = (batch + self.skipped) * self.batch_size
        return slice(at, at + self.batch_size)


def plan_segments(
    lengths: np.ndarray, frames: int, batch_size: int, seed: int, epoch: int
) -> SegmentPlan:
    """A random segment of each utterance, in random order, from (seed, epoch) alone.

    What is left over of the last batch waits for another epoch, unless there is no other batch.
    """
    draw = np.random.default_rng((seed, epoch, 2))
    order = draw.permutation(len(lengths))
    first = (draw.random(len(order)) * (np.maximum(lengths[order] - frames, 0) + 1)).astype(int)
    whole = len(order) // batch_size * batch_size or len(order)
    return SegmentPlan(order[:whole], first[:whole], frames, batch_size)


def plan_middles(lengths: np.ndarray, frames: int, batch_size: int) -> SegmentPlan:
    """The middle of each utterance, in order: always the same, for validation."""
    first = np.maximum(lengths - frames, 0) // 2
    return SegmentPlan(np.arange(len(lengths)), first, frames, batch_size)


@dataclass(frozen=True, eq=False)
class SegmentSource:
    """What segments are cut from: columns of all utterances, or recordings read as they are wanted.

    `columns` hold a row for each frame; utterance i is at `starts[name][i]` in them. Without
    columns, `recordings` are read and their features computed.
    """

    ids: Sequence[str]
    lengths: np.ndarray
    settings: FeatureSettings
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    starts: dict[str, np.ndarray] = field(default_factory=dict)
    recordings: Sequence[Utterance] = ()
    logged: set[str] = field(default_factory=set)  # recordings whose fault is in the log already

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def is_stored(self) -> bool:
        return bool(self.columns)

    @property
    def silence(self) -> float:
        """The log-mel of nothing."""
        return float(np.log(self.settings.spec.floor))

    def batches(self, plan: SegmentPlan, workers: int, ahead: int) -> Iterator[Batch]:
        """Batches of NumPy arrays; recordings are decoded by threads, some batches ahead.

        A batch of which no recording can be read has nothing but an empty index.
        """
        wanted = not self.is_stored
        jobs = worked_ahead(plan, self._read, lambda position: wanted, workers, ahead)
        for number, found in jobs:
            positions, starts = plan[number], plan.starts(number)
            cut = self._cut_stored if self.is_stored else self._cut_read
            rows = [
                cut(found, int(position), int(start), plan.frames)
                for position, start in zip(positions, starts, strict=True)
            ]
            kept = [n for n, row in enumerate(rows) if row is not None]
            segments = [row for row in rows if row is not None]
            if not kept:  # it keeps its place
                yield {"index": np.zeros(0, np.int64)}
                continue
            batch = {name: np.stack([segment[name] for segment in segments]) for name in COLUMNS}
            waveform = batch.pop("wave")
            yield {
                **batch,
                "waveform": waveform.reshape(len(kept), -1),
                "first_frame": np.asarray(starts[0], np.int32),
                "index": positions[kept].astype(np.int64),
            }

    def utterance(self, position: int) -> Batch:
        """All of one utterance: mel, pitch, wave."""
        found = {} if self.is_stored else {position: self._read(position)}
        cut = self._cut_stored if self.is_stored else self._cut_read
        row = cut(found, position, 0, int(self.lengths[position]))
        if row is None:
            raise UserError(f"the recording of {self.ids[position]} cannot be read any more")
        return row

    def _cut_stored(self, found: Found, position: int, start: int, frames: int) -> Batch:
        length = int(self.lengths[position])
        stop = min(start + frames, length)
        segments = {}
        for name, column in self.columns.items():
            at = int(self.starts[name][position])
            segments[name] = self._filled(name, column[at + start : at + stop], frames)
        return segments

    def _cut_read(self, found: Found, position: int, start: int, frames: int) -> Batch | None:
        arrays = found[position]
        if arrays is None:
            return None
        return {name: self._filled(name, arrays[name][start:][:frames], frames) for name in COLUMNS}

    def _filled(self, name: str, segment: np.ndarray, frames: int) -> np.ndarray:
        """A segment of exactly so many frames."""
        if len(segment) == frames:
            return segment
        nothing = self.silence if name == "mel" else 0
        missing = ((0, frames - len(segment)), *((0, 0),) * (segment.ndim - 1))
        return np.pad(segment, missing, constant_values=nothing)

    def _read(self, position: int) -> Batch | None:
        one = self.recordings[position]
        try:
            samples = load_samples(one.audio, self.settings, one.speed)
            arrays = features_of(samples, replace(self.settings, with_pitch=True))
            check_finite(arrays, one.audio)
        except AudioError as error:
            log_once(self.logged, error)
            return None
        return {**arrays, "wave": as_hops(samples, self.settings)}


def stored_columns(columns: Mapping[str, ColumnData]) -> dict[str, np.ndarray]:
    """The arrays of a cache's columns that segments are cut from."""
    arrays = {}
    for name in ("mel", "pitch"):
        array = columns[name].array
        if array is None:
            raise CacheError("enable_memory_mapping and memory_cache are off")
        arrays[name] = array
    return arrays
