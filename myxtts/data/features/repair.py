"""Finding what is damaged or useless in a cache, and repairing just that."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import derived_folders
from myxtts.data.features.keys import FindMissing, missing_features, missing_tokens
from myxtts.data.features.location import CacheLocation
from myxtts.data.features.prepare import PrepareReport, prepare
from myxtts.data.features.status import disk_bytes, other_stores
from myxtts.data.store.errors import CacheError
from myxtts.data.store.integrity import drop_damaged
from myxtts.data.store.places import read_store
from myxtts.data.store.store import Problem, Store
from myxtts.data.store.view import StoreView
from myxtts.errors import UserError
from myxtts.monitoring.progress import Progress


@dataclass
class RepairReport:
    """What was found, and what was made anew."""

    problems: list[Problem] = field(default_factory=list)
    remade: PrepareReport = field(default_factory=PrepareReport)


def verify_cache(
    location: CacheLocation, utterances: Sequence[Utterance] = (), progress: Progress | None = None
) -> list[Problem]:
    """Read every byte of the stores, and name what they lack of the utterances.

    Nothing is changed.
    """
    problems = []
    for store, find_missing in (
        (location.features, missing_features),
        (location.tokens, missing_tokens),
    ):
        found = store.verify(progress) if store.folder.exists() else []
        if not any(problem.shard for problem in found):  # damage hides what else is missing
            found += _missing(store, utterances, find_missing)
        problems += found
    for folder in derived_folders(location.folder):
        derived = _read_or_none(folder)
        problems += derived.verify(progress) if derived else [_without_manifest(folder)]
    return problems


def fix_cache(
    location: CacheLocation,
    utterances: Sequence[Utterance],
    workers: int = 0,
    progress: Progress | None = None,
) -> RepairReport:
    """Drop what is damaged and foreign, and make again what is missing then.

    Voices, waveforms and predictions are made again by the next training that asks for them.
    """
    report = RepairReport()
    for store in (location.features, location.tokens):
        if store.folder.exists():
            report.problems += _drop_damage(store)
    for folder in derived_folders(location.folder):
        report.problems += _fix_derived(folder)
    # Every byte was compared just now.
    report.remade = prepare(utterances, location, workers=workers, verify=False, progress=progress)
    return report


def collect_garbage(
    location: CacheLocation, utterances: Sequence[Utterance]
) -> tuple[int, list[str]]:
    """Delete stores of other settings, shards of no current utterance, and leftovers.

    The stores of voices, waveforms and predictions stay, whatever the settings. Returns the bytes
    freed and the names of what was deleted.
    """
    if location.remote:
        raise UserError(
            f"{location.place}: nothing is deleted on object storage, since others may read it: "
            "delete stores of other settings there with the tools of its provider"
        )
    freed, names = 0, []
    for name in other_stores(location):
        with Store(location.folder / name, (), {}).try_lock() as is_free:
            if is_free:  # else another process is just making it
                freed += disk_bytes(location.folder / name)
                names.append(name)
                shutil.rmtree(location.folder / name)
    wanted = {utterance.id for utterance in utterances}
    derived = filter(None, map(_read_or_none, derived_folders(location.folder)))
    for store in (location.features, location.tokens, *derived):
        if store.folder.exists():
            with store.lock():
                before = disk_bytes(store.folder)
                names += _drop_useless(store, wanted) + store.remove_leftovers()
                freed += before - disk_bytes(store.folder)
    return freed, names


def _drop_damage(store: Store) -> list[Problem]:
    with store.lock():
        problems = store.verify()
        drop_damaged(store, problems)
        store.remove_leftovers()
    store.create()  # writes its manifest again where that differs
    return problems


def _fix_derived(folder: Path) -> list[Problem]:
    """Drop what is damaged of a derived store: all of it where its manifest is."""
    store = _read_or_none(folder)
    if store:
        return _drop_damage(store)
    with Store(folder, (), {}).lock():
        shutil.rmtree(folder)
    return [_without_manifest(folder)]


def _read_or_none(folder: Path) -> Store | None:
    try:
        return read_store(folder)
    except CacheError:
        return None


def _without_manifest(folder: Path) -> Problem:
    return Problem(f"{folder.name}/store.json", "missing or damaged")


def _missing(
    store: Store, utterances: Sequence[Utterance], find_missing: FindMissing
) -> list[Problem]:
    missing = np.ones(len(utterances), bool)
    if store.folder.exists():
        missing = find_missing(utterances, StoreView(store))
    ids = tuple(utterances[i].id for i in np.flatnonzero(missing).tolist())
    return [Problem(store.folder.name, "lacks utterances", ids=ids)] if ids else []


def _drop_useless(store: Store, wanted: set[str]) -> list[str]:
    """Drop the shards of which no row is the newest of a wanted utterance."""
    newest: dict[str, tuple[int, str]] = {}
    shards = store.shards()
    for shard in shards:
        for name in shard.ids:
            if name in wanted:
                newest[name] = max(newest.get(name, (-1, "")), (shard.generation, shard.name))
    needed = {shard for _, shard in newest.values()}
    useless = [shard.name for shard in shards if shard.name not in needed]
    for name in useless:
        store.drop(name)
    return useless
