"""Where the features and tokens of a corpus are stored: on a disk, or on object storage."""

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from myxtts.config.config import DataConfig
from myxtts.data.features.features import FeatureSettings
from myxtts.data.store.mirrored_store import MirroredStore
from myxtts.data.store.places import mirror, store_in
from myxtts.data.store.remote import Remote, is_url
from myxtts.data.store.shard_writer import Column, hash64
from myxtts.data.store.store import Store, fingerprint
from myxtts.text.tokenizer import Tokenizer

TOKEN_COLUMNS = (Column("tokens", "int32"),)


@dataclass(frozen=True)
class CacheLocation:
    """The two stores of a corpus for given settings.

    The folder of a cache on object storage is its mirror on this machine.
    """

    folder: Path
    features: Store
    tokens: Store
    settings: FeatureSettings
    tokenizer: Tokenizer
    remote: Remote | None = None

    @property
    def place(self) -> str:
        """Where the cache lies, for people."""
        return self.remote.url if self.remote else str(self.folder)

    def pull(self) -> "CacheLocation":
        """Learn what a cache on object storage holds: its manifests and indexes are fetched.

        Stores of other settings are left alone. Nothing is written before the remote has answered.
        """
        if self.remote is None:
            return self
        objects: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for name, size in self.remote.objects().items():
            store, _, file = name.partition("/")
            objects[store][file] = size
        own = {self.features.folder.name, self.tokens.folder.name}
        derived = {name for name in objects if not name.startswith(("features-", "tokens-"))}
        for name in sorted(own | derived):
            found = MirroredStore(self.folder / name, (), {}, remote=self.remote / name)
            found.pull(objects[name])
        return self


def locate_cache(root: Path, config: DataConfig, tokenizer: Tokenizer) -> CacheLocation:
    """Where the features and tokens of a corpus belong, by the fingerprints of their settings."""
    settings = FeatureSettings.from_config(config)
    folder, remote = cache_folder(root, config.cache_dir, config.local_cache_dir), None
    if is_url(config.cache_dir):
        remote = Remote(config.cache_dir) / Path(root).resolve().name
        mirror(folder, remote)
    audio = {"kind": "features", **settings.as_dict()}
    text: dict[str, object] = {"kind": "tokens", "tokenizer": tokenizer.fingerprint()}
    if tokenizer.language_versions:
        text["languages"] = tokenizer.language_versions
    features = folder / f"features-{fingerprint(settings.columns, audio)}"
    tokens = folder / f"tokens-{fingerprint(TOKEN_COLUMNS, text)}"
    return CacheLocation(
        folder,
        store_in(features, settings.columns, audio, budget=int(config.local_cache_gb * 1e9)),
        store_in(tokens, TOKEN_COLUMNS, text, {"tokenizer.json": tokenizer.to_json()}),
        settings,
        tokenizer,
        remote,
    )


def cache_folder(root: Path, cache_dir: str = "", local_cache_dir: str = "") -> Path:
    """Beside the recordings, or in a folder of the corpus's own below `cache_dir`.

    The mirror of a cache on object storage is below `local_cache_dir`, or in the user's cache. A
    corpus is known by its name alone there: on another machine it lies elsewhere.
    """
    root = Path(root).resolve()
    if not cache_dir:
        return root / "cached_features"
    if not is_url(cache_dir):
        return Path(cache_dir).expanduser() / f"{root.name}-{hash64(str(root)):016x}"
    base = Path(local_cache_dir).expanduser() if local_cache_dir else _user_cache()
    url = cache_dir.rstrip("/")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", url)[-64:]
    return base / f"{name}-{hash64(url):016x}" / root.name


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "myxtts" / "object-storage"
