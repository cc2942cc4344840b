"""Where the features and tokens of a corpus are stored."""

from dataclasses import dataclass
from pathlib import Path

from myxtts.config.config import DataConfig
from myxtts.data.features.features import FeatureSettings
from myxtts.data.store.shard_writer import Column, hash64
from myxtts.data.store.store import Store, fingerprint
from myxtts.text.tokenizer import Tokenizer

TOKEN_COLUMNS = (Column("tokens", "int32"),)


@dataclass(frozen=True)
class CacheLocation:
    """The two stores of a corpus for given settings."""

    folder: Path
    features: Store
    tokens: Store
    settings: FeatureSettings
    tokenizer: Tokenizer


def locate_cache(root: Path, config: DataConfig, tokenizer: Tokenizer) -> CacheLocation:
    """Where the features and tokens of a corpus belong, by the fingerprints of their settings."""
    settings = FeatureSettings.from_config(config)
    folder = cache_folder(root, config.cache_dir)
    audio = {"kind": "features", **settings.as_dict()}
    text: dict[str, object] = {"kind": "tokens", "tokenizer": tokenizer.fingerprint()}
    if tokenizer.language_versions:
        text["languages"] = tokenizer.language_versions
    table = {"tokenizer.json": tokenizer.to_json()}
    return CacheLocation(
        folder,
        Store(folder / f"features-{fingerprint(settings.columns, audio)}", settings.columns, audio),
        Store(folder / f"tokens-{fingerprint(TOKEN_COLUMNS, text)}", TOKEN_COLUMNS, text, table),
        settings,
        tokenizer,
    )


def cache_folder(root: Path, cache_dir: str = "") -> Path:
    """Beside the recordings, or in a folder of the corpus's own below `cache_dir`."""
    root = Path(root).resolve()
    if not cache_dir:
        return root / "cached_features"
    return Path(cache_dir).expanduser() / f"{root.name}-{hash64(str(root)):016x}"
