"""Prepare the corpora of a configuration: store features, tokens and speaker embeddings."""

import logging
import shutil
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from myxtts.config.config import DataConfig, ModelConfig, XTTSConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.workflows.stages import Announce

if TYPE_CHECKING:
    from myxtts.data.features.corpora import CorpusPart
    from myxtts.data.features.embeddings import VoiceEncoder
    from myxtts.data.rejections import Rejection
    from myxtts.data.store.store import Store

logger = logging.getLogger(__name__)


def prepare(config: XTTSConfig, announce: Announce = logger.info) -> "list[Rejection]":
    """Prepare every corpus of a configuration; return what could not be prepared.

    A frozen published speaker encoder embeds the recordings as well.
    """
    from myxtts.data.corpus.language_check import check_languages
    from myxtts.data.features.corpora import read_parts

    encoder = _load_encoder(config.model)
    bad = []
    for part in read_parts(config.data):
        check_languages([part.corpus], part.location.tokenizer)
        found = prepare_part(part, config.data, announce)
        if encoder:
            dropped = {one.id for one in found}
            found += _embed_recordings(part, config.data, encoder, dropped, announce)
        bad += found
    return bad


def prepare_part(
    part: "CorpusPart", data: DataConfig, announce: Announce = logger.info
) -> "list[Rejection]":
    """Store the features and tokens of one corpus; return every rejection, its metadata's too."""
    from myxtts.data.features.prepare import prepare
    from myxtts.data.features.status import take_inventory

    utterances, location = part.utterances, part.location
    if data.cache_verification:
        _drop_damage([location.features, location.tokens])
    before = take_inventory(location, utterances)
    _preflight(part, data, before.features.disk_bytes, announce)
    began = time.monotonic()
    try:
        with progress("preparing") as report:
            done = prepare(
                utterances,
                location,
                workers=data.num_workers,
                verify=data.cache_verification,
                progress=report,
            )
    except KeyboardInterrupt:
        stored = take_inventory(location, utterances).features.stored
        raise KeyboardInterrupt(
            f"interrupted: {stored:,} of {len(utterances):,} are stored; "
            "run the same command to resume"
        ) from None
    after = take_inventory(location, utterances)
    for name in ("features", "tokens"):
        was, now = getattr(before, name), getattr(after, name)
        made, bad = now.stored - was.stored, now.rejected
        announce(_counted(name, made, done.rebuilt[name], was.stored, bad))
    if done.audio_seconds:
        announce(_speed(done.audio_seconds, time.monotonic() - began))
    if part.corpus.rejections:
        announce(f"metadata  {len(part.corpus.rejections):,} dropped")
    return [*part.corpus.rejections, *done.rejections]


def _embed_recordings(
    part: "CorpusPart",
    data: DataConfig,
    encoder: "VoiceEncoder",
    dropped: set[str],
    announce: Announce,
) -> "list[Rejection]":
    """Store the speaker embeddings of one corpus, without what was dropped; return rejections."""
    from myxtts.data.features.embeddings import EmbeddingWork, store_embeddings
    from myxtts.data.features.prepare import PrepareReport
    from myxtts.data.features.status import count_derived

    folder = part.location.folder
    utterances = [utterance for utterance in part.utterances if utterance.id not in dropped]
    store = EmbeddingWork(folder, encoder).store
    if data.cache_verification:
        _drop_damage([store])
    before, done = count_derived(store, utterances), PrepareReport()
    try:
        with progress("describing voices") as report:
            _, rejections = store_embeddings(
                utterances,
                folder,
                encoder,
                verify=data.cache_verification,
                progress=report,
                report=done,
            )
    except KeyboardInterrupt:
        stored = count_derived(store, utterances).stored
        raise KeyboardInterrupt(
            f"interrupted: {stored:,} of {len(utterances):,} voices are stored; "
            "run the same command to resume"
        ) from None
    made = count_derived(store, utterances).stored - before.stored
    rebuilt = done.rebuilt["voices"]
    announce(_counted("voices", made, rebuilt, before.stored, len(rejections)))
    return rejections


def _drop_damage(stores: "Sequence[Store]") -> None:
    """Check what would be reused; the log names what is damaged, and it is made again."""
    from myxtts.data.store.integrity import drop_damage

    for store in stores:
        with progress("checking", "shards") as report:
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
    free = shutil.disk_usage(nearest_folder(location.folder)).free
    count = count_utterances(len(part.utterances))
    announce(
        f"{part.corpus.root}: {count}, {len(todo):,} to prepare; about {_size(needed)} in "
        f"{location.folder}, {_size(free)} are free"
    )
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


def _counted(name: str, made: int, rebuilt: int, reused: int, dropped: int) -> str:
    damaged = f" ({rebuilt:,} rebuilt: damaged)" if rebuilt else ""
    return f"{name:<9} {made:,} made{damaged}, {reused:,} reused, {dropped:,} dropped"


def count_utterances(number: int) -> str:
    return f"{number:,} utterance" + ("" if number == 1 else "s")


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
