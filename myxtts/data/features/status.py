"""What a cache holds of a corpus, in numbers and in words."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.derived import derived_folders
from myxtts.data.features.keys import FindMissing, keys_of, missing_features, missing_tokens
from myxtts.data.features.location import CacheLocation
from myxtts.data.store.errors import CacheError
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.places import read_store
from myxtts.data.store.store import Store
from myxtts.data.store.view import StoreView


@dataclass(frozen=True, slots=True)
class StoreInventory:
    """One store: what it has of the corpus, and what it takes."""

    place: str
    stored: int
    missing: int
    rejected: int
    shards: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """The stores, the hours they hold, and those of other settings next to them."""

    utterances: int
    features: StoreInventory
    tokens: StoreInventory
    hours: float
    dtype: str
    others: tuple[str, ...]
    derived: tuple[tuple[str, str, StoreInventory], ...] = ()  # kind, maker, how much
    damaged: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"utterances in the corpus  {self.utterances:,}"]
        lines += [_line("features", self.features), _line("tokens", self.tokens)]
        for kind, maker, part in self.derived:
            lines.append(_line(kind, part) + (f" (by {maker})" if maker else ""))
        lines.append(f"hours stored  {self.hours:.2f} ({self.dtype})")
        if self.damaged:
            lines.append(f"damaged: {', '.join(self.damaged)} (`myxtts cache fix` repairs them)")
        if self.others:
            lines.append(
                f"of other settings: {', '.join(self.others)} (`myxtts cache gc` removes them)"
            )
        return "\n".join(lines)


def take_inventory(location: CacheLocation, utterances: Sequence[Utterance]) -> Inventory:
    """Compare a cache with the corpus as it is now; the stores are not read, only their indexes."""
    features, view = _count(location.features, utterances, missing_features)
    tokens, _ = _count(location.tokens, utterances, missing_tokens)
    derived, damaged = _count_derived(location.folder, utterances)
    frames = int(view.lengths[view.latest].sum(dtype=np.int64)) if view else 0
    return Inventory(
        utterances=len(utterances),
        features=features,
        tokens=tokens,
        hours=location.settings.spec.seconds(frames) / 3600,
        dtype=location.settings.dtype,
        others=tuple(other_stores(location)),
        derived=derived,
        damaged=damaged,
    )


def count_derived(store: Store, utterances: Sequence[Utterance]) -> StoreInventory:
    """What a store of voices, waveforms or predictions has of the corpus."""
    return _count(store, utterances, missing_features)[0]


def other_stores(location: CacheLocation) -> list[str]:
    """Stores in the same folder that were made with other settings."""
    current = {location.features.folder.name, location.tokens.folder.name}
    folders = sorted(location.folder.iterdir()) if location.folder.exists() else []
    return [
        folder.name
        for folder in folders
        if folder.name.startswith(("features-", "tokens-"))
        and folder.name not in current
        and (folder / "store.json").exists()
    ]


def disk_bytes(folder: Path) -> int:
    """What the files of a folder take on the disk."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
            total += 512 * path.lstat().st_blocks
    return total


def _line(name: str, part: StoreInventory) -> str:
    return (
        f"{name:<9} {part.stored:,} stored, {part.missing:,} missing, "
        f"{part.rejected:,} could not be made; {part.shards} shards, "
        f"{part.disk_bytes / 1e6:,.1f} MB in {part.place}"
    )


def _count_derived(
    folder: Path, utterances: Sequence[Utterance]
) -> tuple[tuple[tuple[str, str, StoreInventory], ...], tuple[str, ...]]:
    """By kind and maker; one that is damaged is only named, since nothing else depends on it."""
    derived, damaged = [], []
    for path in derived_folders(folder):
        try:
            store = read_store(path)
            maker = store.settings.get("encoder") or store.settings.get("voice", "")
            kind = path.name.partition("-")[0]
            derived.append((kind, maker, count_derived(store, utterances)))
        except CacheError:
            damaged.append(path.name)
    return tuple(derived), tuple(damaged)


def _count(
    store: Store, utterances: Sequence[Utterance], find_missing: FindMissing
) -> tuple[StoreInventory, StoreView | None]:
    if not store.folder.exists():
        return StoreInventory(store.place, 0, len(utterances), 0, 0, 0), None
    view = StoreView(store)
    missing = find_missing(utterances, view)
    rows = view.find(keys_of(utterances))
    rejected = np.zeros(len(utterances), bool)
    rejected[~missing] = view.lengths[rows[~missing]] == 0
    stored = len(utterances) - int(missing.sum()) - int(rejected.sum())
    counts = (stored, int(missing.sum()), int(rejected.sum()), len(view.shards))
    return StoreInventory(store.place, *counts, _stored_bytes(store, view)), view


def _stored_bytes(store: Store, view: StoreView) -> int:
    """What a store takes where it lies; of one on object storage only some is on this disk."""
    if isinstance(store, MirroredStore):
        return sum(sum(shard.sizes.values()) for shard in view.shards)
    return disk_bytes(store.folder)
