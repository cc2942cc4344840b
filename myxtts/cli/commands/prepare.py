"""`myxtts prepare`: fill the cache, all of it, resumably."""

import argparse
import logging
import shutil
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from myxtts.cli.settings import ENCODER_FIELDS, add_corpus, corpus_config
from myxtts.cli.terminal import Interrupted, add_command, import_tensorflow
from myxtts.config.config import DataConfig, ModelConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.data.features.corpora import CorpusPart
    from myxtts.data.features.embeddings import VoiceEncoder
    from myxtts.data.rejections import Rejection
    from myxtts.data.store.store import Store

logger = logging.getLogger(__name__)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "compute the features and tokens of a corpus and store them"
    parser = add_command(verbs, "prepare", about, run)
    add_corpus(parser, ENCODER_FIELDS)
    skip = "leave out what cannot be prepared, and call that a success"
    parser.add_argument("--skip-bad", action="store_true", help=skip)


def run(args: argparse.Namespace) -> None:
    from myxtts.data.corpus.language_check import check_languages
    from myxtts.data.features.corpora import read_parts
    from myxtts.data.rejections import list_rejections

    config = corpus_config(args)
    if config.data.preprocessing_mode == "runtime":
        logger.warning("preprocessing_mode is runtime: training will not read what is stored here")
    encoder = _load_encoder(config.model)
    bad = []
    for part in read_parts(config.data):
        check_languages([part.corpus], part.location.tokenizer)
        found = prepare_part(part, config.data)
        if encoder:
            found += describe_voices(part, config.data, encoder, {one.id for one in found})
        bad += found
    if bad and not args.skip_bad:
        raise UserError(
            f"{_count(len(bad))} could not be prepared:\n{list_rejections(bad)}\n"
            "All others are stored. Fix these recordings or their lines in the metadata "
            "and run the same command again, or skip them with --skip-bad"
        )
    if bad:
        print(f"{_count(len(bad))} dropped:\n{list_rejections(bad)}")


def prepare_part(part: "CorpusPart", data: DataConfig) -> "list[Rejection]":
    """Prepare one corpus with progress and a summary; return all that its metadata list in vain."""
    from myxtts.data.features.prepare import prepare
    from myxtts.data.features.status import take_inventory

    utterances, location = part.utterances, part.location
    if data.cache_verification:
        _drop_damage([location.features, location.tokens])
    before = take_inventory(location, utterances)
    _preflight(part, data, before.features.disk_bytes)
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
        raise Interrupted(
            f"interrupted: {stored:,} of {len(utterances):,} are stored; "
            "run the same command to go on"
        ) from None
    after = take_inventory(location, utterances)
    for name in ("features", "tokens"):
        was, now = getattr(before, name), getattr(after, name)
        made, bad = now.stored - was.stored, now.rejected
        print(_counted(name, made, done.rebuilt[name], was.stored, bad))
    _print_speed(done.audio_seconds, time.monotonic() - began)
    if part.corpus.rejections:
        print(f"metadata  {len(part.corpus.rejections):,} dropped")
    return [*part.corpus.rejections, *done.rejections]


def describe_voices(
    part: "CorpusPart", data: DataConfig, encoder: "VoiceEncoder", bad: set[str]
) -> "list[Rejection]":
    """Let a frozen encoder describe one corpus, but for what is bad; return what it cannot."""
    from myxtts.data.features.embeddings import EmbeddingWork, store_embeddings
    from myxtts.data.features.prepare import PrepareReport
    from myxtts.data.features.status import count_derived

    folder = part.location.folder
    utterances = [utterance for utterance in part.utterances if utterance.id not in bad]
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
        raise Interrupted(
            f"interrupted: {stored:,} of {len(utterances):,} voices are stored; "
            "run the same command to go on"
        ) from None
    made = count_derived(store, utterances).stored - before.stored
    rebuilt = done.rebuilt["voices"]
    print(_counted("voices", made, rebuilt, before.stored, len(rejections)))
    return rejections


def _drop_damage(stores: "Sequence[Store]") -> None:
    """Check what would be reused; the log names what is damaged, and it is made again."""
    from myxtts.data.store.integrity import drop_damage

    for store in stores:
        with progress("checking", "shards") as report:
            drop_damage(store, report)


def _load_encoder(model: ModelConfig) -> "VoiceEncoder | None":
    """The published encoder, where it is frozen and what it says may be stored."""
    from myxtts.checkpoints import as_voice_encoder, encoder_path, load_speaker_encoder

    if not model.is_encoder_frozen:
        return None
    path = encoder_path(model)
    import_tensorflow()
    return as_voice_encoder(load_speaker_encoder(model.speaker_encoder, path))


def _preflight(part: "CorpusPart", data: DataConfig, stored_bytes: int) -> None:
    """Say what it will take and what there is, and refuse what the user's budget forbids."""
    from myxtts.data.features.prepare import estimate_bytes, nearest_folder

    location = part.location
    todo = _missing(part)
    needed = estimate_bytes(todo, location.settings)
    free = shutil.disk_usage(nearest_folder(location.folder)).free
    print(
        f"{part.corpus.root}: {_count(len(part.utterances))}, {len(todo):,} to prepare; about "
        f"{_size(needed)} in {location.folder}, {_size(free)} are free"
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


def _print_speed(audio_seconds: float, seconds: float) -> None:
    if audio_seconds:
        speed = f"{audio_seconds / 3600 / seconds:.3f} h/s, {audio_seconds / seconds:,.0f} x"
        print(f"{audio_seconds / 3600:.2f} h in {seconds:.1f} s: {speed} real time")


def _counted(name: str, made: int, rebuilt: int, reused: int, dropped: int) -> str:
    damaged = f" ({rebuilt:,} rebuilt: damaged)" if rebuilt else ""
    return f"{name:<9} {made:,} made{damaged}, {reused:,} reused, {dropped:,} dropped"


def _count(number: int) -> str:
    return f"{number:,} utterance" + ("" if number == 1 else "s")


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
