"""Utterances into features and tokens into the cache: in parallel, resumable, and reported."""

import contextlib
import logging
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
from myxtts.data.rejections import NO_TOKENS, Rejection
from myxtts.data.store.errors import CacheError
from myxtts.data.store.integrity import count_rebuilt, drop_damage
from myxtts.data.store.shard_writer import Row
from myxtts.data.store.store import Store
from myxtts.data.store.view import StoreView
from myxtts.data.store.workers import Workers
from myxtts.monitoring.progress import Progress
from myxtts.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

# Free space that a preflight leaves to others.
SPARE_BYTES = 64 * 2**20
LARGEST_SHARD = 2048


@dataclass
class PrepareReport:
    """What `prepare` made, found, and could not make; what was rebuilt, by the kind of store."""

    made: int = 0
    reused: int = 0
    rebuilt: Counter[str] = field(default_factory=Counter)  # of those made: what was damaged
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
) -> PrepareReport:
    """Fill the cache with what it lacks of these utterances; shards that are there stay.

    With `verify`, what differs from its checksums is dropped first and made again. Interrupting it
    anywhere leaves whole shards, and the next call makes the rest.
    """
    report = PrepareReport()
    location.features.create()
    location.tokens.create()
    with Workers(workers) as pool:
        if tokens:
            fill(TokenWork(location), utterances, pool, report, overwrite, verify)
        if features:
            work = FeatureWork(location)
            fill(work, utterances, pool, report, overwrite, verify, progress)
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
    pool: Workers,
    report: PrepareReport,
    overwrite: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
) -> None:
    """Make what a store lacks of the utterances, in shards, and add it up in the report."""
    store = work.store
    if verify:
        drop_damage(store)
    with store.lock():
        removed = store.remove_leftovers()
        if removed:
            logger.info("%s: removed %d files of an interrupted run", store.folder, len(removed))
        view = StoreView(store)
        missing = np.ones(len(utterances), bool) if overwrite else work.missing(utterances, view)
        todo = [utterances[i] for i in np.flatnonzero(missing).tolist()]
        if todo:
            check_space(store.folder, work.estimate_bytes(todo))
        size = min(work.largest_shard, shard_size(len(utterances)))
        tasks = _tasks(work, todo, view, size)
        done = 0
        try:
            # Closed at once, and with it the workers, where the progress is interrupted.
            with contextlib.closing(pool.run([task.run for task in tasks])) as finished:
                for count, seconds in finished:
                    done += count
                    report.audio_seconds += seconds
                    if progress:
                        progress(done, len(todo), report.audio_seconds)
        finally:
            # Workers that were ended at once could not clean up after themselves.
            store.remove_leftovers()
        view = StoreView(store) if todo else view
        report.made += len(todo)
        report.reused += len(utterances) - len(todo)
        kind = store.folder.name.partition("-")[0]
        report.rebuilt[kind] += count_rebuilt(store, _with_shards(todo, view))
        report.rejections += rejections_of(utterances, view)


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

    def run(self) -> tuple[int, float]:
        keys = [(u.id, self.work.signature(u)) for u in self.utterances]
        rows = self.work.rows(self.utterances)
        index = self.work.store.write_shard(rows, keys, self.generation)
        spec = self.work.spec
        return len(index), spec.seconds(int(index.lengths.sum())) if spec else 0.0


def _tasks(work: Work, todo: Sequence[Utterance], view: StoreView, size: int) -> list[_Task]:
    """Cut the work into shards in the order of the corpus.

    Every finished shard is full but the last one of the corpus, so what an interrupted run leaves
    falls into the same shards again.
    """
    rows = view.find(keys_of(todo))
    generations = np.where(rows >= 0, view.generation[rows] + 1 if len(view) else 0, 0)
    return [
        _Task(work, tuple(todo[at : at + size]), int(generations[at : at + size].max()))
        for at in range(0, len(todo), size)
    ]


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
