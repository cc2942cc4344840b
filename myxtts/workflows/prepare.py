"""Prepare the corpora of a configuration: store features, tokens and speaker embeddings."""

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.config.config import DataConfig, ModelConfig, XTTSConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.workflows.stages import Announce

if TYPE_CHECKING:
    from myxtts.data.features.corpora import CorpusPart
    from myxtts.data.features.embeddings import VoiceEncoder
    from myxtts.data.features.prepare import PrepareReport
    from myxtts.data.features.share import Share
    from myxtts.data.rejections import Rejection
    from myxtts.data.store.store import Store
    from myxtts.data.store.workers import Pool

logger = logging.getLogger(__name__)


def prepare(
    config: XTTSConfig,
    announce: Announce = logger.info,
    *,
    worker: "Share | None" = None,
    cluster: str | None = None,
) -> "list[Rejection]":
    """Prepare every corpus of a configuration; return what could not be prepared.

    A frozen published speaker encoder embeds the recordings as well. A `worker` makes its share of
    the shards, while others make theirs. A `cluster` is the address of Ray, which makes all but the
    embeddings.
    """
    from myxtts.data.corpus.bandwidth import check_bandwidth
    from myxtts.data.corpus.language_check import check_languages
    from myxtts.data.features.corpora import read_parts

    encoder = _load_encoder(config.model)
    bad = []
    parts = read_parts(config.data if cluster is None else _on_any_node(config.data))
    check_bandwidth([part.corpus for part in parts], config.data.audio_spec)
    with contextlib.ExitStack() as stack:
        pool = None if cluster is None else stack.enter_context(_join(cluster, parts, announce))
        for part in parts:
            check_languages([part.corpus], part.location.tokenizer)
            found = prepare_part(part, config.data, announce, worker, pool)
            if encoder:
                dropped = {one.id for one in found}
                found += _embed_recordings(part, config.data, encoder, dropped, announce, worker)
            bad += found
    return bad


def prepare_part(
    part: "CorpusPart",
    data: DataConfig,
    announce: Announce = logger.info,
    worker: "Share | None" = None,
    pool: "Pool | None" = None,
) -> "list[Rejection]":
    """Store the features and tokens of one corpus; return every rejection, its metadata's too.

    Of several workers, the first returns those of the metadata.
    """
    from myxtts.data.features.prepare import prepare
    from myxtts.data.features.share import Share
    from myxtts.data.features.status import take_inventory

    utterances, location = part.utterances, part.location.pull()
    share = Share() if pool else worker
    if data.cache_verification:
        _drop_damage([location.features, location.tokens], share)
    _preflight(part, data, take_inventory(location, utterances).features.disk_bytes, announce)
    if worker:
        announce(_own_part(part, worker))
    began = time.monotonic()
    try:
        with progress("preparing") as report:
            done = prepare(
                utterances,
                location,
                workers=data.num_workers,
                verify=data.cache_verification,
                progress=report,
                share=share,
                pool=pool,
            )
    except KeyboardInterrupt:
        stored = take_inventory(location, utterances).features.stored
        raise KeyboardInterrupt(
            f"interrupted: {stored:,} of {len(utterances):,} are stored; "
            "run the same command to resume"
        ) from None
    for name in ("features", "tokens"):
        announce(_counted(name, done))
    if done.audio_seconds:
        announce(_speed(done.audio_seconds, time.monotonic() - began))
    if worker:
        announce(_whole_corpus(part))
    is_first = worker is None or worker.number == 1
    from_metadata = part.corpus.rejections if is_first else ()
    if from_metadata:
        announce(f"metadata  {len(from_metadata):,} dropped")
    return [*from_metadata, *done.rejections]


def _embed_recordings(
    part: "CorpusPart",
    data: DataConfig,
    encoder: "VoiceEncoder",
    dropped: set[str],
    announce: Announce,
    worker: "Share | None",
) -> "list[Rejection]":
    """Store the speaker embeddings of one corpus; return rejections of what was not yet dropped."""
    from myxtts.data.features.derived import fill_derived
    from myxtts.data.features.embeddings import EmbeddingWork
    from myxtts.data.features.prepare import PrepareReport
    from myxtts.data.features.status import count_derived

    # All of them: workers that left out what was dropped so far would cut other shards.
    utterances, work = part.utterances, EmbeddingWork(part.location.folder, encoder)
    if data.cache_verification:
        _drop_damage([work.store], worker)
    done, verify = PrepareReport(), data.cache_verification
    try:
        with progress("describing voices") as report:
            fill_derived(work, utterances, done, verify=verify, progress=report, share=worker)
    except KeyboardInterrupt:
        stored = count_derived(work.store, utterances).stored
        raise KeyboardInterrupt(
            f"interrupted: {stored:,} of {len(utterances):,} voices are stored; "
            "run the same command to resume"
        ) from None
    rejections = [one for one in done.rejections if one.id not in dropped]
    done.dropped["voices"] = len(rejections)
    announce(_counted("voices", done))
    return rejections


def _on_any_node(data: DataConfig) -> DataConfig:
    """The same settings for nodes that work in other folders."""
    from myxtts.data.store.remote import is_url

    if is_url(data.cache_dir):
        raise UserError(
            f"--cluster writes to a file system that all nodes share, not to {data.cache_dir}: run "
            "`myxtts prepare --worker I/N` with this --cache-dir on each machine instead"
        )
    if not data.cache_dir:
        return data
    return replace(data, cache_dir=str(Path(data.cache_dir).expanduser().absolute()))


@contextlib.contextmanager
def _join(address: str, parts: "Sequence[CorpusPart]", announce: Announce) -> "Iterator[Pool]":
    """A Ray cluster of which every node can read the corpora and write their caches."""
    from myxtts.data.store.ray_nodes import check_nodes
    from myxtts.data.store.ray_workers import RayWorkers

    with RayWorkers(address) as pool:
        recordings = [part.utterances[at].audio for part in parts for at in (0, -1)]
        check_nodes(pool, [part.location.folder for part in parts], recordings)
        announce(f"Ray: {pool.cores} cores ({pool.address})")
        yield pool


def _own_part(part: "CorpusPart", worker: "Share") -> str:
    """How much of a corpus a worker has to make."""
    from myxtts.data.features.prepare import FeatureWork, divide
    from myxtts.data.store.view import StoreView

    work = FeatureWork(part.location)
    own = divide(work, part.utterances, StoreView(work.store), worker)
    shards = f"{own.shards[0]:,} of {own.shards[1]:,} shards"
    return (
        f"worker {worker.number} of {worker.count} has {shards} with "
        f"{count_utterances(len(own.own))}, {len(own.todo):,} to prepare"
    )


def _whole_corpus(part: "CorpusPart") -> str:
    """How much of a corpus is stored by now, and what the other workers still have to make."""
    from myxtts.data.features.status import take_inventory

    found, total = take_inventory(part.location.pull(), part.utterances), len(part.utterances)
    counts = {"features": found.features.missing, "tokens": found.tokens.missing}
    done = ", ".join(f"{name} {total - missing:,}" for name, missing in counts.items())
    left = max(counts.values())
    rest = f"other workers have {left:,} to prepare" if left else "nothing is left to prepare"
    return f"stored by all workers, of {count_utterances(total)}: {done}; {rest}"


def _drop_damage(stores: "Sequence[Store]", share: "Share | None") -> None:
    """Check what would be reused; the log names what is damaged, and it is made again."""
    from myxtts.data.store.holding import tidy_if_free
    from myxtts.data.store.integrity import drop_damage

    for store in stores:
        with progress("checking", "shards") as report:
            if share:
                tidy_if_free(store, progress=report)
            else:
                drop_damage(store, report)


def _load_encoder(model: ModelConfig) -> "VoiceEncoder | None":
    """The published encoder, where it is frozen, so that its embeddings may be stored."""
    from myxtts.checkpoints import as_voice_encoder, encoder_path, load_speaker_encoder

    if not model.is_encoder_frozen:
        return None
    return as_voice_encoder(load_speaker_encoder(model.speaker_encoder, encoder_path(model)))


def _preflight(part: "CorpusPart", data: DataConfig, stored_bytes: int, announce: Announce) -> None:
    """Announce the disk space that is needed and free; raise where it exceeds the budget."""
    from myxtts.data.features.prepare import estimate_bytes, nearest_folder

    location = part.location
    todo = _missing(part)
    needed = estimate_bytes(todo, location.settings)
    free = _size(shutil.disk_usage(nearest_folder(location.folder)).free)
    count = count_utterances(len(part.utterances))
    room = f"in {location.folder}, {free} are free"
    if location.remote:
        room = f"in {location.place}; {free} are free in its mirror, {location.folder}"
    announce(f"{part.corpus.root}: {count}, {len(todo):,} to prepare; about {_size(needed)} {room}")
    if data.cache_budget_gb and stored_bytes + needed > data.cache_budget_gb * 1e9:
        raise UserError(
            f"the cache would take {_size(stored_bytes + needed)} and the budget is "
            f"{data.cache_budget_gb} GB: raise --cache-budget-gb, or train with "
            "--preprocessing-mode auto, which stores what fits and computes the rest"
        )


def _missing(part: "CorpusPart") -> list:
    from myxtts.data.features.keys import missing_features
    from myxtts.data.store.view import StoreView

    if not part.location.features.folder.exists():
        return list(part.utterances)
    missing = missing_features(part.utterances, StoreView(part.location.features))
    return [utterance for utterance, lacks in zip(part.utterances, missing, strict=True) if lacks]


def _speed(audio_seconds: float, seconds: float) -> str:
    speed = f"{audio_seconds / 3600 / seconds:.3f} h/s, {audio_seconds / seconds:,.0f} x"
    return f"{audio_seconds / 3600:.2f} h in {seconds:.1f} s: {speed} real time"


def _counted(name: str, done: "PrepareReport") -> str:
    made, reused = done.usable[name]
    damaged = f" ({done.rebuilt[name]:,} rebuilt: damaged)" if done.rebuilt[name] else ""
    return f"{name:<9} {made:,} made{damaged}, {reused:,} reused, {done.dropped[name]:,} dropped"


def count_utterances(number: int) -> str:
    return f"{number:,} utterance" + ("" if number == 1 else "s")


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
