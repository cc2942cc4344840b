"""A synthetic cache with the lengths of LJSpeech, written as any other cache is."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from myxtts.config.audio_spec import AudioSpec
from myxtts.data.features.features import FeatureSettings
from myxtts.data.features.location import TOKEN_COLUMNS
from myxtts.data.features.prepare import shard_size
from myxtts.data.store.shard_index import ShardIndex, Strings
from myxtts.data.store.shard_writer import Row, hash64
from myxtts.data.store.store import Store

LJSPEECH_UTTERANCES = 13_100
TOKENS_PER_SECOND = 15
SHARD = 1_000  # of stores whose shards share their data
# Features are slices of one random block: what matters is how many bytes move, not which.
_BLOCK_FRAMES = 8192


def make_stores(folder: Path, count: int, dtype: str) -> tuple[Store, Store]:
    """Write stores of features and tokens for so many utterances, or find them written."""
    features, tokens = named_stores(folder, dtype)
    lengths = utterance_frames(count)
    size = shard_size(count)
    for store, make_rows in ((features, feature_rows), (tokens, token_rows)):
        store.create()
        if sum(len(shard) for shard in store.shards()) == count:
            continue
        for first in range(0, count, size):
            numbers = range(first, min(first + size, count))
            keys = [(utterance_id(number), 1) for number in numbers]
            store.write_shard(make_rows(store, numbers, lengths), keys)
    return features, tokens


def make_index(folder: Path, template: Path, count: int, dtype: str) -> tuple[Store, Store]:
    """Write stores of so many utterances whose shards all share the data files of a template."""
    frames = utterance_frames(SHARD)
    made = named_stores(folder, dtype)
    stores = zip(made, named_stores(template, dtype), strict=True)
    for (store, source), make_rows in zip(stores, (feature_rows, token_rows), strict=True):
        store.create()
        if len(store.index_files()) == count // SHARD:
            continue
        source.create()
        keys = [(utterance_id(number), 1) for number in range(SHARD)]
        index = source.write_shard(make_rows(source, range(SHARD), frames), keys)
        for number in range(count // SHARD):
            _publish_copy(store, source, index, number)
    return made


def _publish_copy(store: Store, source: Store, index: ShardIndex, number: int) -> None:
    """A shard with its own utterances and the template's data."""
    ids = [utterance_id(SHARD * number + i) for i in range(SHARD)]
    name = f"{hash64(str(number)):016x}"
    for column in store.columns:
        path = store.column_path(name, column.name)
        path.unlink(missing_ok=True)
        os.link(source.column_path(index.name, column.name), path)
    keys = np.array([hash64(text) for text in ids], np.uint64)
    own = replace(index, name=name, ids=Strings.pack(ids), keys=keys)
    store.drop_rows(own, ())  # writes the index; nothing is dropped


def named_stores(folder: Path, dtype: str) -> tuple[Store, Store]:
    """The stores of a folder, whatever they hold."""
    columns = FeatureSettings(AudioSpec(), dtype).columns
    settings = {"kind": "synthetic"}
    return (
        Store(folder / f"features-{dtype}", columns, settings),
        Store(folder / "tokens", TOKEN_COLUMNS, settings),
    )


def utterance_frames(count: int) -> np.ndarray:
    """Frames per utterance: 1.1 to 10.1 s with a mean of 6.57 s, mostly long, as in LJSpeech."""
    spec = AudioSpec()
    rng = np.random.default_rng(7)
    seconds = 1.1 + 9.0 * rng.beta(1.85, 1.195, count)
    return np.rint(seconds * spec.sample_rate / spec.hop_length).astype(np.int64)


def utterance_id(number: int) -> str:
    return f"LJ{number // 200:03d}-{number % 200:04d}"


def feature_rows(store: Store, numbers: range, frames: np.ndarray) -> Iterator[Row]:
    """Random mels, energies and pitches of the given utterances."""
    rng = np.random.default_rng(11)
    blocks = {
        column.name: rng.standard_normal((2 * _BLOCK_FRAMES, column.width), np.float32).astype(
            column.dtype
        )
        for column in store.columns
    }
    for number in numbers:
        start = hash64(utterance_id(number)) % _BLOCK_FRAMES
        arrays = {}
        for column in store.columns:
            rows = blocks[column.name][start : start + int(frames[number])]
            arrays[column.name] = rows if column.width > 1 else rows[:, 0]
        yield Row(utterance_id(number), 1, 1, arrays)


def token_rows(store: Store, numbers: range, frames: np.ndarray) -> Iterator[Row]:
    """About fifteen tokens a second, with a text, a speaker and a language."""
    spec = AudioSpec()
    rng = np.random.default_rng(13)
    block = rng.integers(1, 60, 1024, dtype=np.int32)
    for number in numbers:
        seconds = int(frames[number]) * spec.hop_length / spec.sample_rate
        length = round(TOKENS_PER_SECOND * seconds)
        notes = {"text": "x" * length, "speaker": "LJ", "language": "en"}
        yield Row(utterance_id(number), 1, 1, {"tokens": block[:length]}, notes)
