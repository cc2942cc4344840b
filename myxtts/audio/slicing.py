"""Long recordings into clips: where the pauses are, and what lies between them.

Pauses are found by energy, or by a voice detector, in passes that read forward: one measures levels
in blocks of 10 ms, the last takes out the samples of the clips. None holds more than a clip in
memory.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.audio.bounds import AudioInfo
from myxtts.audio.io import SILENT, TOO_SHORT
from myxtts.audio.slice_options import QUIETEST_DB, SliceOptions

NO_PAUSE = "no pause to cut at"
CLIPPED = "clipped"

BLOCK_SECONDS = 0.01
_FLOOR_DB = -100.0  # digital silence counts as this
_SHORTEST_DIP = 0.1  # seconds: the closure of a p, t or k is shorter
_LONGEST_CLICK = 0.05
_ALONE = 0.3  # seconds of silence on both sides of a click
_FARTHEST_JOIN = 1.0  # seconds of silence across which a short phrase is joined to another one
_FULL_SCALE = 0.98
_LEAST_RANGE_DB = 10.0  # from the noise to the speech, where levels show pauses

Bounds = tuple[int, int]  # blocks: the first, and the one after the last


@dataclass(frozen=True, slots=True)
class Levels:
    """What is known of a recording after the first pass, in blocks of 10 ms."""

    sample_rate: int
    frames: int
    block: int  # samples
    power: np.ndarray  # float64 [blocks]
    clipped: np.ndarray  # int64 [blocks], samples

    def blocks(self, seconds: float) -> int:
        return round(seconds * self.sample_rate / self.block)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a recording, in samples; `dropped` says why it becomes no clip."""

    start: int
    end: int
    level: float  # dBFS
    clipped: int  # samples
    dropped: str = ""


def measure_levels(
    info: AudioInfo, blocks: Iterable[np.ndarray], report: Callable[[int], object] | None = None
) -> Levels:
    """Measure a recording that comes in parts [frames, channels]; `report` gets frames read."""
    size = max(1, round(info.sample_rate * BLOCK_SECONDS))
    meter = _Meter(size)
    done = 0
    for block in blocks:
        meter.add(mixed(block), _is_clipped(block))
        done += len(block)
        if report:
            report(done)
    power, clipped = meter.finish()
    return Levels(info.sample_rate, done, size, power, clipped)


def find_threshold(levels: Levels) -> float:
    """The level in dBFS that divides speech from pauses: nearer to the noise than to the speech.

    Where loud and quiet parts differ by less than 10 dB there are no pauses to be found, and all of
    it counts as speech.
    """
    floor, speech = _range(levels)
    if speech - floor < _LEAST_RANGE_DB:
        return QUIETEST_DB
    return max(floor + 0.35 * (speech - floor), speech - 40.0, QUIETEST_DB)


def has_quiet_parts(levels: Levels) -> bool:
    """Whether levels tell pauses from speech, or hardly differ, as where noise hides the pauses."""
    floor, speech = _range(levels)
    return speech - floor >= _LEAST_RANGE_DB


def _range(levels: Levels) -> tuple[float, float]:
    """The level of the noise, and that of the speech, in dBFS."""
    decibels = np.maximum(_decibels(levels.power), _FLOOR_DB)
    if not len(decibels):
        return QUIETEST_DB, QUIETEST_DB
    loudest = np.percentile(decibels, 99.9)
    speech = float(np.percentile(decibels[decibels >= loudest - 30.0], 90))
    return float(np.percentile(decibels, 5)), speech


def find_slices(
    levels: Levels, options: SliceOptions, voice: np.ndarray | None = None
) -> list[Slice]:
    """Cut a recording at its pauses: all parts with sound in order, those to be dropped too.

    `voice` [blocks] says where somebody speaks; without it, that is where it is loud.
    """
    threshold = find_threshold(levels) if options.threshold is None else options.threshold
    runs = _sounds(levels, _decibels(levels.power) >= threshold if voice is None else voice)
    if not runs:
        whole = _slice(levels, (0, len(levels.power)), (0, levels.frames))
        return [_with_reason(whole, SILENT)]
    most = levels.blocks(options.longest - 2 * options.keep)
    least = levels.blocks(max(0.0, options.shortest - 2 * options.keep))
    parts = [
        part
        for phrase in _phrases(runs, levels.blocks(options.pause))
        for part in _split_long(phrase, levels.blocks(options.shortest), most)
    ]
    parts = _join_short(parts, least, most, levels.blocks(_FARTHEST_JOIN))
    return [
        _judged(_slice(levels, part, edges), levels.sample_rate, options)
        for part, edges in zip(parts, _edges(parts, levels, options.keep), strict=True)
    ]


def cut(
    blocks: Iterable[np.ndarray],
    slices: Sequence[Slice],
    report: Callable[[int], object] | None = None,
) -> Iterator[tuple[Slice, np.ndarray]]:
    """Take slices, in order and apart, out of a recording: each with its samples, mono."""
    pending, parts, at = deque(slices), list[np.ndarray](), 0
    for block in blocks:
        end = at + len(block)
        while pending and pending[0].start < end:
            first = pending[0]
            inside = block[max(0, first.start - at) : first.end - at]
            parts.append(mixed(inside).copy())
            if first.end > end:
                break
            yield pending.popleft(), np.concatenate(parts)
            parts = []
        at = end
        if report:
            report(at)
        if not pending:
            return


def mixed(block: np.ndarray) -> np.ndarray:
    """The average of the channels, [frames, channels] to [frames]."""
    return block.mean(axis=1) if block.shape[1] > 1 else block[:, 0]


class _Meter:
    """Collects power and clipped samples of blocks, whatever parts the samples come in."""

    def __init__(self, size: int):
        self._size = size
        self._samples = np.zeros(0, np.float32)
        self._flags = np.zeros(0, bool)
        self._power: list[np.ndarray] = []
        self._clipped: list[np.ndarray] = []

    def add(self, samples: np.ndarray, flags: np.ndarray) -> None:
        samples = np.concatenate([self._samples, samples])
        flags = np.concatenate([self._flags, flags])
        whole = len(samples) - len(samples) % self._size
        self._take(samples[:whole].reshape(-1, self._size), flags[:whole])
        self._samples, self._flags = samples[whole:].copy(), flags[whole:].copy()

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self._samples):
            self._size = len(self._samples)
            self._take(self._samples[None], self._flags)
        empty = np.zeros(0)
        return np.concatenate([empty, *self._power]), np.concatenate(
            [empty.astype(np.int64), *self._clipped]
        )

    def _take(self, rows: np.ndarray, flags: np.ndarray) -> None:
        # The variance: an offset and rumble are no sound.
        self._power.append(rows.var(axis=1, dtype=np.float64))
        self._clipped.append(flags.reshape(-1, self._size).sum(axis=1))


def _is_clipped(block: np.ndarray) -> np.ndarray:
    """Which frames are beyond full scale, or the third of an equal value near it."""
    size = np.abs(block)
    flat = np.zeros(block.shape, bool)
    flat[2:] = (block[2:] == block[1:-1]) & (block[1:-1] == block[:-2])
    found: np.ndarray = ((flat & (size >= _FULL_SCALE)) | (size > 1.0)).any(axis=1)
    return found


def _sounds(levels: Levels, is_sound: np.ndarray) -> list[Bounds]:
    """Where there is sound, with dips closed that are too short for a pause, and without clicks."""
    loud = np.concatenate([[False], is_sound, [False]])
    edges = np.flatnonzero(loud[1:] != loud[:-1])
    runs: list[Bounds] = []
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if runs and first - runs[-1][1] < levels.blocks(_SHORTEST_DIP):
            first = runs.pop()[0]
        runs.append((first, end))
    return _without_clicks(runs, levels)


def _without_clicks(runs: list[Bounds], levels: Levels) -> list[Bounds]:
    click, alone = levels.blocks(_LONGEST_CLICK), levels.blocks(_ALONE)
    ends = [-alone, *(end for _, end in runs)]
    firsts = [*(first for first, _ in runs), len(levels.power) + alone]
    return [
        run
        for number, run in enumerate(runs)
        if run[1] - run[0] > click
        or run[0] - ends[number] < alone
        or firsts[number + 1] - run[1] < alone
    ]


def _phrases(runs: list[Bounds], pause: int) -> list[list[Bounds]]:
    """Group sounds between which there is no pause."""
    phrases: list[list[Bounds]] = []
    for run in runs:
        if phrases and run[0] - phrases[-1][-1][1] < pause:
            phrases[-1].append(run)
        else:
            phrases.append([run])
    return phrases


def _split_long(phrase: list[Bounds], least: int, most: int) -> list[Bounds]:
    """Cut what is too long at its longest dip, as often as it takes and as dips are there."""
    done: list[Bounds] = []
    pending = [phrase]
    while pending:
        runs = pending.pop()
        start, end = runs[0][0], runs[-1][1]
        at = _longest_dip(runs, least) if end - start > most else 0
        if at:
            pending += [runs[at:], runs[:at]]  # the first half comes off next
        else:
            done.append((start, end))
    return done


def _longest_dip(runs: list[Bounds], least: int) -> int:
    """Before which run the longest dip is that leaves enough on both sides, or 0."""
    bounds = np.array(runs)
    dips = bounds[1:, 0] - bounds[:-1, 1]
    enough = (bounds[:-1, 1] - bounds[0, 0] >= least) & (bounds[-1, 1] - bounds[1:, 0] >= least)
    return int(np.argmax(np.where(enough, dips, -1))) + 1 if enough.any() else 0


def _join_short(parts: list[Bounds], least: int, most: int, farthest: int) -> list[Bounds]:
    """Join what is too short to the nearer neighbour, where the result is not too long."""
    joined, at = list(parts), 0
    while at < len(joined):
        choices = []
        if joined[at][1] - joined[at][0] < least:
            for left in (at - 1, at):
                if 0 <= left < len(joined) - 1:
                    (start, dip), (end, last) = joined[left], joined[left + 1]
                    if end - dip <= farthest and last - start <= most:
                        choices.append((end - dip, left))
        if not choices:
            at += 1
            continue
        at = min(choices)[1]
        joined[at : at + 2] = [(joined[at][0], joined[at + 1][1])]
    return joined


def _edges(parts: list[Bounds], levels: Levels, keep: float) -> list[Bounds]:
    """Where clips begin and end, in samples: with some silence, never more than half a pause."""
    starts = [first * levels.block for first, _ in parts]
    ends = [min(end * levels.block, levels.frames) for _, end in parts]
    middles = [(end + start) // 2 for end, start in zip(ends[:-1], starts[1:], strict=True)]
    margin = round(keep * levels.sample_rate)
    return [
        (max(low, start - margin), min(high, end + margin))
        for low, start, end, high in zip(
            [0, *middles], starts, ends, [*middles, levels.frames], strict=True
        )
    ]


def _slice(levels: Levels, part: Bounds, edges: Bounds) -> Slice:
    blocks = slice(*part)
    level = float(_decibels(levels.power[blocks].mean())) if len(levels.power) else _FLOOR_DB
    return Slice(*edges, round(max(level, _FLOOR_DB), 2), int(levels.clipped[blocks].sum()))


def _judged(found: Slice, rate: int, options: SliceOptions) -> Slice:
    frames = found.end - found.start
    if frames < options.shortest * rate:
        return _with_reason(found, TOO_SHORT)
    if frames > options.longest * rate + 1:
        return _with_reason(found, NO_PAUSE)
    if found.clipped > options.most_clipped * frames:
        return _with_reason(found, CLIPPED)
    return found


def _with_reason(found: Slice, reason: str) -> Slice:
    return Slice(found.start, found.end, found.level, found.clipped, reason)


def _decibels(power: np.ndarray) -> np.ndarray:
    return 10.0 * np.log10(np.maximum(power, 1e-20))
