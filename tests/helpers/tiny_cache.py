"""Tiny corpora with their caches, and the ways in which tests damage and compare them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

from myxtts.config.config import DataConfig
from myxtts.data.corpus.corpus import read_corpus
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.location import CacheLocation, locate_cache
from myxtts.data.store.packed_cache import open_cache
from myxtts.text.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
KINDS = ("index", "mel", "energy", "pitch", "tokens")


@dataclass(frozen=True)
class TinyCache:
    """A corpus and where its cache belongs."""

    root: Path
    utterances: tuple[Utterance, ...]
    location: CacheLocation

    @property
    def folder(self) -> Path:
        return self.location.folder

    def file(self, kind: str) -> Path:
        """The first file of a kind: a column, `index`, or the name of a file."""
        return sorted(self.folder.rglob(kind if "." in kind else f"*.{kind}"))[0]


def locate(root: Path, cache_dir: Path | str = "", **settings) -> TinyCache:
    """Read a corpus and find its cache for some settings."""
    utterances = read_corpus(root, val_fraction=0.0).utterances
    config = DataConfig(dataset_path=str(root), cache_dir=str(cache_dir), **settings)
    tokenizer = Tokenizer.build(("en",), config.text_units)
    return TinyCache(root, utterances, locate_cache(root, config, tokenizer))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def arrays(location: CacheLocation) -> dict[str, dict[str, np.ndarray]]:
    """The stored arrays of every utterance by its id."""
    cache = open_cache(location.features, location.tokens)
    return {name: cache.utterance(i) for i, name in enumerate(cache.ids)}


def assert_same_arrays(found: dict, expected: dict) -> None:
    """Compare what `arrays` returns, to the bit."""
    assert found.keys() == expected.keys()
    for name, columns in expected.items():
        assert found[name].keys() == columns.keys()
        for column, array in columns.items():
            assert found[name][column].dtype == array.dtype
            np.testing.assert_array_equal(found[name][column], array, f"{name}: {column}")


def flip_bit(path: Path, at: int, bit: int = 0) -> None:
    """Change one bit of a file in place; a negative position counts from the end."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


@contextmanager
def small_disk(folder: Path, megabytes: float) -> Iterator[Path]:
    """Mount a memory disk of a given size, or skip the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    size = f"size={round(megabytes * 1024)}k"
    mounted = run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        # Lazily: arrays that are still mapped keep it busy.
        run(["umount", "-l", folder], check=True)


def remount(folder: Path, options: str) -> None:
    """Change a mounted disk, such as its size or whether it may be written."""
    run(["mount", "-o", f"remount,{options}", folder], check=True)
