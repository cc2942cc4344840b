"""The three modes: how a part of a corpus becomes a split that can be read."""

import logging
import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.audio.io import TOO_SHORT
from myxtts.config.config import XTTSConfig
from myxtts.data.batches import auto_mode
from myxtts.data.batches.circumstances import measure
from myxtts.data.batches.limits import check_dropped, within_limits
from myxtts.data.batches.split import Split, open_stores
from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.headers import inspect_recordings
from myxtts.data.corpus.utterance import CorpusError, Utterance
from myxtts.data.features.features import FeatureSettings, frames_of_header
from myxtts.data.features.keys import keys_of, missing_features, missing_tokens, rejections_of
from myxtts.data.features.location import CacheLocation, locate_cache
from myxtts.data.features.prepare import encode_all, prepare
from myxtts.data.rejections import (
    NO_TOKENS,
    Rejection,
    describe_rejections,
)
from myxtts.data.store.errors import CacheError, PreparationError
from myxtts.data.store.integrity import drop, find_damage, report_damage
from myxtts.data.store.packed_cache import PackedCache, memory_cache
from myxtts.data.store.view import StoreView
from myxtts.data.store.workers import worker_count
from myxtts.monitoring.monitor import PerformanceMonitor
from myxtts.monitoring.progress import Progress
from myxtts.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)


class ModeOpener:
    """Opens the parts of a corpus by the three modes."""

    def __init__(
        self,
        config: XTTSConfig,
        tokenizer: Tokenizer,
        corpora: Sequence[Corpus],
        progress: Progress | None,
        profiler: Any,
        speakers: Collection[str] | None = None,
    ):
        self.config, self.data = config, config.data
        # One numbering for all parts: a speaker of training is the same one in validation.
        self.speakers = sorted(corpora[0].speakers if speakers is None else speakers)
        self.languages = sorted({name for corpus in corpora for name in corpus.languages})
        self.tokenizer, self.progress, self.profiler = tokenizer, progress, profiler
        self.workers = worker_count(self.data)
        if self.workers < self.data.num_workers:
            message = "num_workers is %d, but %d cores are available: %d workers are used"
            logger.info(message, self.data.num_workers, self.workers, self.workers)
        self._granted: Counter[Path] = Counter()  # bytes of the budget, by cache
        self._report_unusable(corpora)

    def number_after(self, speakers: Sequence[str], languages: Sequence[str]) -> None:
        """Leave the numbers of known names as they are; new ones follow."""
        self.speakers = [*speakers, *(one for one in self.speakers if one not in speakers)]
        self.languages = [*languages, *(one for one in self.languages if one not in languages)]

    def open(self, utterances: Sequence[Utterance], root: Path, part: str) -> Split:
        if not utterances:
            raise CorpusError(f"{root}: nothing is there for {part}; raise val_fraction")
        location = locate_cache(root, self.data, self.tokenizer)
        if self.data.preprocessing_mode != "runtime":
            location.pull()
        by_mode = {"precompute": self._precompute, "auto": self._auto, "runtime": self._runtime}
        with self.profiler.profile_operation("open_cache"):
            split = by_mode[self.data.preprocessing_mode](list(utterances), location)
        split.cache = split.cache.numbered(self.speakers, self.languages)
        total = len(split) + len(split.rejections)
        split = within_limits(split, self.data, self.config.model.token_states)
        unusable = int(split.is_bad.sum())
        check_dropped(
            split.rejections,
            total,
            self.data,
            unusable=unusable,
            advice="Raise max_mel_frames or max_text_length, fix the corpus, or raise max_rejected",
        )
        if split.decision or split.opened:
            logger.info("%s: %s", part, split.decision or split.opened)
        self._count_for_profiler(split)
        return split

    def _report_unusable(self, corpora: Sequence[Corpus]) -> None:
        """Name what the metadata list in vain; the mode precompute takes no excuse."""
        rejections = [rejection for corpus in corpora for rejection in corpus.rejections]
        if not rejections:
            return
        total = len(rejections) + sum(len(corpus.utterances) for corpus in corpora)
        if self.data.preprocessing_mode == "precompute":
            raise PreparationError(describe_rejections(rejections, total))
        logger.warning("%s", describe_rejections(rejections, total, verb="dropped"))

    def _precompute(self, utterances: list[Utterance], location: CacheLocation) -> Split:
        """Everything before the first step, or nothing."""
        self._drop_damage(location, utterances)
        self._check_rebuilding(utterances, location)
        with self.profiler.profile_operation("prepare"):
            report = prepare(
                utterances,
                location,
                workers=self.workers,
                verify=self.data.cache_verification,
                progress=self.progress,
            )
        if report.rejections:
            raise PreparationError(describe_rejections(report.rejections, len(utterances)))
        cache = open_stores(location, self.data, keys_of(utterances))
        cache = replace(cache, recordings=utterances)
        split = Split(utterances, cache, location, cache.mel_lengths, "precompute")
        rebuilt = report.rebuilt.total()
        damaged = f" ({rebuilt:,} of them were damaged)" if rebuilt else ""
        split.opened = (
            f"precompute: features and tokens of all {len(utterances):,} utterances are stored in "
            f"{location.place}: {report.made:,} rows made{damaged}, {report.reused:,} reused"
        )
        return split

    def _auto(self, utterances: list[Utterance], location: CacheLocation) -> Split:
        """What is stored is read; the rest is computed while training, and stored where it fits."""
        if location.remote:
            return self._remote(utterances, location)
        try:
            self._drop_damage(location, None)
            self._prepare_tokens(utterances, location)
            if missing_tokens(utterances, StoreView(location.tokens)).any():
                return self._in_memory(utterances, location, "auto_rebuild_token_cache is off")
            return self._stored(utterances, location)
        except (CacheError, OSError) as error:
            logger.warning("auto continues without the cache: %s", error)
            return self._in_memory(utterances, location, "the cache cannot be used")

    def _remote(self, utterances: list[Utterance], location: CacheLocation) -> Split:
        """Everything is read from object storage: it is shared, and `prepare` fills it."""
        self._drop_damage(location, None)
        missing = missing_tokens(utterances, StoreView(location.tokens))
        missing |= missing_features(utterances, StoreView(location.features))
        if missing.any():
            raise PreparationError(
                f"{location.place} lacks {int(missing.sum()):,} of {len(utterances):,} utterances "
                "with these settings: run `myxtts prepare` with the same --cache-dir, or train "
                "with --preprocessing-mode precompute"
            )
        return self._stored(utterances, location)

    def _stored(self, utterances: list[Utterance], location: CacheLocation) -> Split:
        view, tokens = StoreView(location.features), StoreView(location.tokens)
        sayable = tokens.lengths[tokens.find(keys_of(utterances))] > 0
        utterances, silent = _part(utterances, sayable)
        missing = missing_features(utterances, view)
        tried = [u for u, gone in zip(utterances, missing.tolist(), strict=True) if not gone]
        bad = {rejection.id for rejection in rejections_of(tried, view)}
        cache = open_stores(location, self.data, keys_of(utterances)).without_features(missing)
        lengths, rejections = self._plan_lengths(utterances, location.settings, cache)
        split = Split(utterances, cache, location, lengths, "auto", known_bad=bad)
        writable = os.access(location.features.folder, os.W_OK)
        obstacle = "" if writable else "the cache cannot be written"
        return self._decide(split.keep(lengths > 0, [*silent, *rejections]), obstacle)

    def _in_memory(
        self, utterances: list[Utterance], location: CacheLocation, obstacle: str
    ) -> Split:
        """Nothing is read from the disk but recordings, and nothing is written."""
        split = self._runtime(utterances, location)
        split.mode = "auto"
        return self._decide(split, obstacle)

    def _runtime(self, utterances: list[Utterance], location: CacheLocation) -> Split:
        """Tokens in memory, lengths from headers, features from the graph; nothing is written."""
        encoded = encode_all(utterances, self.tokenizer)
        utterances, silent = _part(utterances, np.array([len(ids) > 0 for ids in encoded], bool))
        encoded = [ids for ids in encoded if len(ids)]
        cache = memory_cache(utterances, encoded, location.settings.columns)
        lengths, rejections = self._plan_lengths(utterances, location.settings, cache)
        cache = replace(cache, mel_lengths=lengths)
        split = Split(utterances, cache, location, lengths, "runtime")
        return split.keep(lengths > 0, [*silent, *rejections])

    def _prepare_tokens(self, utterances: list[Utterance], location: CacheLocation) -> None:
        """Store the tokens that are missing, which cost little, where that is allowed."""
        missing = missing_tokens(utterances, StoreView(location.tokens)).any()
        if self.data.auto_rebuild_token_cache and (missing or not _exists(location)):
            verify = self.data.cache_verification
            prepare(utterances, location, workers=self.workers, features=False, verify=verify)

    def _drop_damage(self, location: CacheLocation, utterances: list[Utterance] | None) -> None:
        """Find damage before anything is read; drop it where it may be made again."""
        if not self.data.cache_verification:
            return
        rules = (
            (location.features, self.data.auto_rebuild_mel_cache),
            (location.tokens, self.data.auto_rebuild_token_cache),
        )
        for store, may_rebuild in rules:
            damaged = find_damage(store)
            report_damage(store, damaged)
            for _ in damaged:
                self.profiler.record_cache_error()
            if damaged and not may_rebuild and utterances is not None:
                raise PreparationError(
                    f"{store.folder}: {damaged[0]}; run `myxtts cache fix` or "
                    "verify_and_fix_cache(fix=True), or allow the automatic rebuild"
                )
            drop(store, damaged)

    def _check_rebuilding(self, utterances: list[Utterance], location: CacheLocation) -> None:
        """Fail where something is missing that must not be made."""
        checks = (
            (self.data.auto_rebuild_mel_cache, location.features, missing_features, "mel"),
            (self.data.auto_rebuild_token_cache, location.tokens, missing_tokens, "token"),
        )
        for may_rebuild, store, find_missing, name in checks:
            if may_rebuild:
                continue
            missing = find_missing(utterances, StoreView(store)) if store.folder.exists() else [1]
            if np.any(missing):
                raise PreparationError(
                    f"{store.folder} lacks {int(np.sum(missing))} utterances and "
                    f"auto_rebuild_{name}_cache is off: run `myxtts prepare`, or set it"
                )

    def _plan_lengths(
        self, utterances: list[Utterance], settings: FeatureSettings, cache: PackedCache
    ) -> tuple[np.ndarray, list[Rejection]]:
        """Frames of every utterance as the plan shall see them, the same in every run.

        Where trimming makes the header a mere upper bound, the plan follows the header all along,
        so that it does not change while the cache fills.
        """
        lengths = cache.mel_lengths.astype(np.int32).copy()
        unknown = ~cache.is_cached if settings.keeps_length else np.ones(len(cache), bool)
        chosen = np.flatnonzero(unknown).tolist()
        infos, rejections = inspect_recordings([utterances[i] for i in chosen])
        for i, info in zip(chosen, infos, strict=True):
            lengths[i] = frames_of_header(info, settings, utterances[i].speed) if info else 0
            if info and lengths[i] == 0:
                detail = f"{info.frames} samples are less than a frame"
                rejections.append(Rejection(utterances[i].id, TOO_SHORT, detail, info.seconds))
        return lengths, rejections

    def _decide(self, split: Split, obstacle: str) -> Split:
        """Measure, choose, and say so in one line."""
        if not self.data.auto_rebuild_mel_cache:
            obstacle = obstacle or "auto_rebuild_mel_cache is off"
        seen = measure(split, self.config, self.workers, obstacle, self._granted)
        split.decision = auto_mode.decide(seen)
        if seen.budget_bytes is not None:
            granted = min(split.decision.allowed_bytes, seen.missing_bytes)
            self._granted[split.location.folder] += granted
        return split

    def _count_for_profiler(self, split: Split) -> None:
        if isinstance(self.profiler, PerformanceMonitor):  # a million calls would take a while
            hits = int(split.cache.is_cached.sum())
            self.profiler.record_cache_hit(hits)
            self.profiler.record_cache_miss(len(split) - hits)
            return
        for is_cached in split.cache.is_cached.tolist():
            if is_cached:
                self.profiler.record_cache_hit()
            else:
                self.profiler.record_cache_miss()


def _part(
    utterances: Sequence[Utterance], sayable: np.ndarray
) -> tuple[list[Utterance], list[Rejection]]:
    """Those with tokens, and the reasons for the others."""
    pairs = list(zip(utterances, sayable.tolist(), strict=True))
    silent = [Rejection(u.id, NO_TOKENS, repr(u.text[:80]), 0.0) for u, says in pairs if not says]
    return [u for u, says in pairs if says], silent


def _exists(location: CacheLocation) -> bool:
    return location.features.folder.exists() and location.tokens.folder.exists()
