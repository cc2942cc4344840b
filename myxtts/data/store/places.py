"""Which folders mirror object storage, and the store that lies in a folder."""

import json
from collections.abc import Sequence
from pathlib import Path

from myxtts.data.store.errors import REMEDY, CacheError
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.remote import Remote
from myxtts.data.store.shard_writer import Column
from myxtts.data.store.store import Store, fingerprint
from myxtts.files import read_regular


def mirror(folder: Path, remote: Remote) -> None:
    """From now on the stores of a folder are those of a remote one."""
    _mirrors[folder] = remote


def store_in(
    folder: Path,
    columns: Sequence[Column],
    settings: dict,
    companions: dict[str, str] | None = None,
    budget: int = 0,
) -> Store:
    """The store of a folder, on this disk or on object storage; the budget is for the latter."""
    remote = _mirrors.get(folder.parent)
    if remote is None:
        return Store(folder, columns, settings, companions)
    return MirroredStore(
        folder, columns, settings, companions, remote=remote / folder.name, budget=budget
    )


def read_store(folder: Path) -> Store:
    """The store in a folder that its fingerprint names, as its own manifest describes it."""
    path = folder / "store.json"
    try:
        manifest = json.loads(read_regular(path))
        columns = tuple(Column(**column) for column in manifest["columns"])
        is_own = folder.name.endswith(f"-{fingerprint(columns, manifest['settings'])}")
    except (OSError, ValueError, TypeError, KeyError):
        is_own = False
    if not is_own:
        raise CacheError(f"{path} is damaged{REMEDY}")
    return store_in(folder, columns, manifest["settings"])


# The remote folder of each folder that mirrors one. Other processes get their stores whole.
_mirrors: dict[Path, Remote] = {}
