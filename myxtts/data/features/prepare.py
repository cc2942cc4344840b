"""Utterances into features and tokens into the cache: in parallel, resumable, and reported."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from myxtts.audio.io import AudioError, read_info
from myxtts.config.config import AudioSpec
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import FeatureSettings, compute_features
from myxtts.data.features.keys import (
    content_of,
    keys_of,
    missing_features,
    missing_tokens,
    rejections_of,
    source_signature,
    text_signature,
)
from myxtts.data.features.location import CacheLocation
from myxtts.data.features.share import Share, first_places
from myxtts.data.rejections import NO_TOKENS, Rejection
from myxtts.data.store.errors import CacheError
from myxtts.data.store.holding import held_alone, held_with_others
from myxtts.data.store.integrity import count_rebuilt
from myxtts.data.store.shard_writer import Row
from myxtts.data.store.store import Store
from myxtts.data.store.view import StoreView
from myxtts.data.store.workers import Pool, Workers
from myxtts.monitoring.progress import Progress
from myxtts.text.tokenizer import Tokenizer

# Free space that a preflight leaves to others.
SPARE_BYTES = 64 * 2**20
LARGEST_SHARD = 2048


@dataclass
class PrepareReport:
    """What `prepare` made, found, and could not make; of several workers, what is this one's.

    Tables are by the kind of store: `features`, `tokens`, and what is derived.
    """

    made: int = 0  # rows, those of rejected utterances included
    reused: int = 0
    rebuilt: Counter[str] = field(default_factory=Counter)  # of those made: what was damaged
    usable: dict[str, tuple[int, int]] = field(default_factory=dict)  # made and reused, with arrays
    dropped: Counter[str] = field(default_factory=Counter)
    audio_seconds: float = 0.0
    rejections: list[Rejection] = field(default_factory=list)


def prepare(
    utterances: Sequence[Utterance],
    location: CacheLocation,
    *,
    workers: int = 0,
    features: bool = True,
    tokens: bool = True,
    overwrite: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
    share: Share | None = None,
    pool: Pool | None = None,
) -> PrepareReport:
    """Fill the cache with what it lacks of these utterances; shards that are there stay.

    With `verify`, what differs from its checksums is dropped first and made again. Interrupting it
    anywhere leaves whole shards, and the next call makes the rest. With a `share`, only that is
    made, while others make theirs. A `pool` computes instead of processes of this machine.
    """
    report = PrepareReport()
    location.features.create()
    location.tokens.create()
    with Workers(workers) as own:
        if tokens:
            work: Work = TokenWork(location)
            fill(work, utterances, pool or own, report, overwrite, verify, None, share)
        if features:
            work = FeatureWork(location)
            fill(work, utterances, pool or own, report, overwrite, verify, progress, share)
    return report


def estimate_bytes(utterances: Sequence[Utterance], settings: FeatureSettings) -> int:
    """What the features will take on disk, from the headers of a sample of the recordings."""
    if not utterances:
        return 0
    step = max(1, len(utterances) // 200)
    seconds, size = 0.0, 0
    for utterance in utterances[::step]:
        try:
            seconds += read_info(utterance.audio).seconds / utterance.speed
            size += utterance.audio.stat().st_size
        except (AudioError, OSError):
            continue
    if size == 0:
        return 0
    total = sum(_size_of(utterance.audio) for utterance in utterances)
    frames = total * seconds / size * settings.spec.sample_rate / settings.spec.hop_length
    shards = -(-len(utterances) // shard_size(len(utterances)))
    padding = shards * sum(column.unit for column in settings.columns)
    return padding + int(frames * sum(column.row_bytes for column in settings.columns))


def check_space(folder: Path, needed: int) -> None:
    """Reject before anything is written where the disk cannot hold it."""
    free = shutil.disk_usage(nearest_folder(folder)).free
    if needed + SPARE_BYTES > free:
        raise CacheError(
            f"the cache will take about {needed / 1e6:,.1f} MB in {folder}, where "
            f"{SPARE_BYTES / 1e6:,.1f} MB shall stay free, but only {free / 1e6:,.1f} MB are free: "
            "free some space, move it with --cache-dir, or use --preprocessing-mode runtime, which "
            "stores nothing"
        )


def shard_size(utterances: int) -> int:
    """Utterances per shard: about 64 shards for a corpus, between 64 and 2,048 in each."""
    return int(np.clip(2 ** int(np.ceil(np.log2(max(utterances, 1) / 64))), 64, LARGEST_SHARD))


class Work:
    """What a store is filled with: which utterances it lacks, and how they become rows.

    A row fits a recording as it is now, unless a work says otherwise.
    """

    store: Store
    largest_shard = LARGEST_SHARD
    spec: AudioSpec | None = None  # where the rows are frames

    def missing(self, utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
        return missing_features(utterances, view)

    def signature(self, utterance: Utterance) -> int:
        return source_signature(utterance.audio)

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        """About what the rows of some utterances take on disk."""
        raise NotImplementedError

    def effort(self, utterance: Utterance) -> float:
        """How long an utterance takes, compared with others."""
        return _size_of(utterance.audio) / utterance.speed

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        raise NotImplementedError


class FeatureWork(Work):
    """Recordings into shards of features."""

    def __init__(self, location: CacheLocation):
        self.store, self.settings = location.features, location.settings
        self.spec = location.settings.spec

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        return estimate_bytes(utterances, self.settings)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        return (feature_row(utterance, self.settings) for utterance in utterances)


class TokenWork(Work):
    """Texts into shards of tokens."""

    def __init__(self, location: CacheLocation):
        self.store, self.table = location.tokens, location.tokenizer.to_json()

    def missing(self, utterances: Sequence[Utterance], view: StoreView) -> np.ndarray:
        return missing_tokens(utterances, view)

    def signature(self, utterance: Utterance) -> int:
        return text_signature(utterance)

    def estimate_bytes(self, utterances: Sequence[Utterance]) -> int:
        return sum(8 * len(u.text) for u in utterances)

    def effort(self, utterance: Utterance) -> float:
        return len(utterance.text)

    def rows(self, utterances: Sequence[Utterance]) -> Iterator[Row]:
        encoded = encode_all(utterances, Tokenizer.from_json(self.table))
        for utterance, ids in zip(utterances, encoded, strict=True):
            yield token_row(utterance, ids)


def feature_row(utterance: Utterance, settings: FeatureSettings) -> Row:
    """Compute one utterance, or say why it cannot be."""
    return recording_row(
        utterance, lambda: compute_features(utterance.audio, settings, utterance.speed)
    )


def recording_row(utterance: Utterance, compute: Callable[[], dict[str, np.ndarray]]) -> Row:
    """The arrays that a recording becomes as it is now, or the reason why it cannot be used."""
    source = (utterance.id, source_signature(utterance.audio), content_of(utterance.audio) or 0)
    try:
        return Row(*source, compute())
    except AudioError as error:
        return Row(*source, reason=f"{error.reason}: {error.detail}")


def token_row(utterance: Utterance, ids: np.ndarray) -> Row:
    """One utterance's tokens with all that its metadata say of it."""
    signature = text_signature(utterance)
    notes = {name: getattr(utterance, name) for name in ("text", "speaker", "language")}
    reason = "" if len(ids) else f"{NO_TOKENS}: {utterance.text[:80]!r}"
    return Row(utterance.id, signature, signature, {"tokens": ids}, notes, reason)


def encode_all(utterances: Sequence[Utterance], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Tokens of many utterances, language by language, in the order of the utterances."""
    out: list[np.ndarray] = [np.zeros(0, np.int32)] * len(utterances)
    for language in sorted({utterance.language for utterance in utterances}):
        chosen = [i for i, u in enumerate(utterances) if u.language == language]
        encoded = tokenizer.encode_batch([utterances[i].text for i in chosen], language)
        for i, ids in zip(chosen, encoded, strict=True):
            out[i] = ids
    return out


def fill(
    work: Work,
    utterances: Sequence[Utterance],
    pool: Pool,
    report: PrepareReport,
    overwrite: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
    share: Share | None = None,
) -> None:
    """Make what a store lacks of the utterances, in shards, and add it up in the report.

    With a `share`, others may be filling the same store.
    """
    store = work.store
    with held_with_others(store, verify) if share else held_alone(store, verify):
        view = StoreView(store)
        part = divide(work, utterances, view, share, overwrite)
        if part.todo:
            # All that is missing, since the others' shards take space on the same disk.
            check_space(store.folder, store.local_share(work.estimate_bytes(part.missing)))
        done = 0
        # Closed at once, and with it the workers, where the progress is interrupted.
        with contextlib.closing(pool.run(part.tasks)) as finished:
            for count, seconds in finished:
                done += count
                report.audio_seconds += seconds
                if progress:
                    progress(done, len(part.todo), report.audio_seconds)
        _add_up(report, part, StoreView(store) if part.todo else view)


@dataclass(frozen=True)
class Division:
    """The part of one worker, or all: its shards to make, and its utterances."""

    tasks: "list[_Task]"
    own: list[Utterance]
    todo: list[Utterance]  # of its own
    missing: list[Utterance]  # of everybody's
    shards: tuple[int, int]  # its own, stored or not, and everybody's


def divide(
    work: Work,
    utterances: Sequence[Utterance],
    view: StoreView,
    share: Share | None = None,
    overwrite: bool = False,
) -> Division:
    """Cut what is missing into shards in the order of the corpus, and pick those of a share.

    Every finished shard is full but the last one of the corpus, so what an interrupted run leaves
    falls into the same shards again. So it does for a worker that looks while others work: what it
    sees of theirs are whole shards.
    """
    size = min(work.largest_shard, shard_size(len(utterances)))
    lacks = np.ones(len(utterances), bool) if overwrite else work.missing(utterances, view)
    places = first_places(utterances, lacks, view, size).tolist()
    share_or_all = share or Share()
    owned = {place: share_or_all.owns(place, size) for place in set(places)}
    missing = np.flatnonzero(lacks)
    todo = [utterances[i] for i in missing.tolist()]
    generations = _next_generations(todo, view)
    cuts = [slice(at, at + size) for at in range(0, len(todo), size) if owned[missing[at]]]
    is_shared = share is not None
    tasks = [_Task(work, tuple(todo[c]), int(generations[c].max()), is_shared) for c in cuts]
    return Division(
        tasks,
        own=[one for one, place in zip(utterances, places, strict=True) if owned[place]],
        todo=[one for task in tasks for one in task.utterances],
        missing=todo,
        shards=(sum(owned.values()), len(owned)),
    )


def _add_up(report: PrepareReport, part: Division, view: StoreView) -> None:
    """Add to the report what became of a worker's utterances."""
    store = view.store
    kind = store.folder.name.partition("-")[0]
    rejections = rejections_of(part.own, view)
    made, rejected = {one.id for one in part.todo}, {one.id for one in rejections}
    usable_made = len(made - rejected)
    report.made += len(made)
    report.reused += len(part.own) - len(made)
    report.rebuilt[kind] += count_rebuilt(store, _with_shards(part.todo, view))
    report.usable[kind] = usable_made, len(part.own) - len(rejected) - usable_made
    report.dropped[kind] += len(rejected)
    report.rejections += rejections


def _with_shards(made: Sequence[Utterance], view: StoreView) -> Iterator[tuple[str, str]]:
    """The ids of utterances that were just made, with the names of the shards they lie in."""
    shards = view.shard[view.find(keys_of(made))].tolist() if made else []
    for one, shard in zip(made, shards, strict=True):
        yield one.id, view.shards[shard].name


@dataclass(frozen=True)
class _Task:
    """One shard to be made, by whichever process."""

    work: Work
    utterances: tuple[Utterance, ...]
    generation: int
    is_shared: bool = False

    def __call__(self) -> tuple[int, float]:
        """Make the shard; return its rows and seconds of audio."""
        store, spec = self.work.store, self.work.spec
        # Whoever wants the store alone waits for us, even where those who sent us are gone.
        with store.share() if self.is_shared else contextlib.nullcontext():
            keys = [(u.id, self.work.signature(u)) for u in self.utterances]
            index = store.write_shard(self.work.rows(self.utterances), keys, self.generation)
        return len(index), spec.seconds(int(index.lengths.sum())) if spec else 0.0

    def effort(self) -> float:
        return sum(map(self.work.effort, self.utterances))


def _next_generations(todo: Sequence[Utterance], view: StoreView) -> np.ndarray:
    """For each utterance, one more than that of the row which it will supersede."""
    rows = view.find(keys_of(todo))
    return np.where(rows >= 0, view.generation[rows] + 1 if len(view) else 0, 0)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def nearest_folder(folder: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder
