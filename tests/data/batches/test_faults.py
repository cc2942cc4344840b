"""Faults: damage is mended, full and closed disks lose nothing, kills leave whole shards."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from myxtts.config.config import XTTSConfig
from myxtts.data.features import prepare as preparing
from myxtts.data.features.prepare import prepare
from myxtts.data.features.repair import fix_cache, verify_cache
from myxtts.data.store.errors import CacheError, PreparationError
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_cache import (
    ROOT,
    TinyCache,
    arrays,
    assert_same_arrays,
    contents,
    flip_bit,
    locate,
    remount,
    small_disk,
)

COLUMNS = ("mel", "energy", "pitch", "tokens")
PREPARE = """
import sys
from pathlib import Path
from myxtts.data.features import prepare as preparing
from tests.helpers.tiny_cache import locate

def tell(done, total, seconds):
    print("done", done, flush=True)

if __name__ == "__main__":
    preparing.shard_size = lambda utterances: 8
    tiny = locate(Path(sys.argv[1]), sys.argv[2])
    print("ready", flush=True)
    preparing.prepare(tiny.utterances, tiny.location, workers=int(sys.argv[3]), progress=tell)
"""


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "shard_size", lambda utterances: 8)
        yield


CORPUS = {"count": 20, "seconds": (0.4, 0.9)}


@pytest.fixture(scope="module")
def prepared_once(shared_corpus) -> TinyCache:
    """Twenty utterances and their cache in three shards each; tests copy it."""
    tiny = locate(shared_corpus)
    prepare(tiny.utterances, tiny.location, workers=1)
    return tiny


@pytest.fixture
def tiny(prepared_once, tmp_path) -> TinyCache:
    """A copy of the corpus and its cache, to be damaged."""
    return locate(Path(shutil.copytree(prepared_once.root, tmp_path / "corpus")))


@pytest.fixture(scope="module")
def truth(prepared_once) -> dict:
    return arrays(prepared_once.location)


def assert_repaired(tiny: TinyCache, truth: dict, files: set[str], remade: int) -> None:
    """Damage in these files is found; mending it makes so many anew and restores everything."""
    assert {problem.file for problem in verify_cache(tiny.location)} == files
    report = fix_cache(tiny.location, tiny.utterances, workers=1)
    assert {problem.file for problem in report.problems} == files
    assert report.remade.made == remade
    assert verify_cache(tiny.location) == []
    assert_same_arrays(arrays(tiny.location), truth)


# Damage


def test_an_undamaged_cache_is_clean(tiny):
    assert verify_cache(tiny.location) == []


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("at", [0, 13])
def test_a_flipped_bit_costs_one_utterance(tiny, truth, column, at):
    path = tiny.file(column)
    flip_bit(path, at, bit=5)
    assert_repaired(tiny, truth, {path.name}, remade=1)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_bit_of_the_padding_is_mended(tiny, truth, column):
    path = tiny.file(column)
    store = tiny.location.tokens if column == "tokens" else tiny.location.features
    flip_bit(path, -1)
    assert_repaired(
        tiny, truth, {path.name}, remade=len(store.read_index(path.with_suffix(".index")))
    )


@pytest.mark.parametrize("part", ["features", "tokens"])
@pytest.mark.parametrize("at", [0, 100, -1])
def test_a_flipped_bit_of_an_index_costs_its_shard(tiny, truth, part, at):
    store = getattr(tiny.location, part)
    path = store.index_files()[0]
    count = len(store.read_index(path))
    flip_bit(path, at)
    assert_repaired(tiny, truth, {path.name}, remade=count)


@pytest.mark.parametrize("part", ["features", "tokens"])
@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_of_a_manifest_costs_nothing(tiny, truth, part, bit):
    before = contents(tiny.folder)
    flip_bit(getattr(tiny.location, part).folder / "store.json", 20, bit)
    assert_repaired(tiny, truth, {"store.json"}, remade=0)
    assert contents(tiny.folder) == before


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_of_the_tokenizer_costs_nothing(tiny, truth, bit):
    before = contents(tiny.folder)
    flip_bit(tiny.file("tokenizer.json"), 40, bit)
    assert_repaired(tiny, truth, {"tokenizer.json"}, remade=0)
    assert contents(tiny.folder) == before


@pytest.mark.parametrize("column", COLUMNS)
def test_a_truncated_file_costs_its_shard(tiny, truth, column):
    path = tiny.file(column)
    store = tiny.location.tokens if column == "tokens" else tiny.location.features
    index = path.with_suffix(".index")
    count = len(store.read_index(index))
    os.truncate(path, path.stat().st_size - 1)
    assert_repaired(tiny, truth, {index.name}, remade=count)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_file_costs_its_shard(tiny, truth, column):
    path = tiny.file(column)
    store = tiny.location.tokens if column == "tokens" else tiny.location.features
    index = path.with_suffix(".index")
    count = len(store.read_index(index))
    path.unlink()
    assert_repaired(tiny, truth, {index.name}, remade=count)


def test_a_missing_index_leaves_files_that_belong_to_nobody(tiny, truth):
    path = tiny.location.features.index_files()[0]
    count = len(tiny.location.features.read_index(path))
    path.unlink()
    files = {path.with_suffix(f".{name}").name for name in ("mel", "energy", "pitch")}
    assert_repaired(tiny, truth, files, remade=count)


@pytest.mark.parametrize("name", ["store.json", "tokenizer.json"])
def test_a_missing_manifest_or_tokenizer_is_written_again(tiny, truth, name):
    before = contents(tiny.folder)
    (tiny.location.tokens.folder / name).unlink()
    assert_repaired(tiny, truth, {name}, remade=0)
    assert contents(tiny.folder) == before


@pytest.mark.parametrize("name", ["holiday.jpg", "feedbeef.mel", "feedbeef.mel.1234.tmp"])
def test_foreign_and_temporary_files_are_removed(tiny, truth, name):
    before = contents(tiny.folder)
    (tiny.location.features.folder / name).write_bytes(b"?")
    assert_repaired(tiny, truth, {name}, remade=0)
    assert contents(tiny.folder) == before


def test_damage_in_many_places_is_mended_at_once(tiny, truth):
    paths = [tiny.file(column) for column in COLUMNS]
    for path in paths:
        flip_bit(path, 1)
    # The first bytes of mel, energy and pitch belong to the same utterance.
    assert_repaired(tiny, truth, {path.name for path in paths}, remade=2)


def test_a_damaged_cache_is_not_opened_and_says_what_to_do(tiny):
    path = tiny.file("mel")
    os.truncate(path, 10)
    with pytest.raises(CacheError, match=rf"{path.name} has 10 bytes .*myxtts cache fix"):
        prepare(tiny.utterances, tiny.location, workers=1, verify=False)


# What a model is fed


def make_batches(tiny: TinyCache, **settings) -> list[dict[str, np.ndarray]]:
    """The first epoch's batches of a corpus, by the whole way from configuration to tensors."""
    from myxtts.data.batches.training_data import TrainingData

    settings = {"val_fraction": 0.0, "batch_size": 4, "num_workers": 1, **settings}
    data = TrainingData(XTTSConfig(data_path=str(tiny.root), **settings))
    return [{name: t.numpy() for name, t in batch.items()} for batch in data.train_batches()]


def assert_same_batches(found: list, expected: list) -> None:
    assert len(found) == len(expected)
    for batch, other in zip(found, expected, strict=True):
        assert batch.keys() == other.keys()
        for name in batch:
            np.testing.assert_array_equal(batch[name], other[name], name)


@pytest.fixture(scope="module")
def true_batches(prepared_once) -> list:
    batches = make_batches(prepared_once, preprocessing_mode="precompute")
    assert sum(len(batch["index"]) for batch in batches) == 20
    return batches


@pytest.mark.parametrize("mode", ["auto", "precompute"])
@pytest.mark.parametrize("kind", ["mel", "energy", "pitch", "tokens", "features", "words"])
def test_a_flipped_bit_is_never_fed(tiny, true_batches, caplog, mode, kind):
    stores = {"features": tiny.location.features, "words": tiny.location.tokens}
    path = stores[kind].index_files()[0] if kind in stores else tiny.file(kind)
    flip_bit(path, 40, bit=6)
    with caplog.at_level(logging.WARNING):
        batches = make_batches(tiny, preprocessing_mode=mode)
    assert_same_batches(batches, true_batches)
    assert path.name in caplog.text
    assert verify_cache(tiny.location) == []
    assert_same_batches(make_batches(tiny, preprocessing_mode=mode), true_batches)


def test_damage_is_counted_by_the_profiler(tiny):
    from myxtts.data.batches.profiler import SilentProfiler

    class Counting(SilentProfiler):
        errors = 0

        def record_cache_error(self):
            self.errors += 1

    flip_bit(tiny.file("mel"), 40)
    profiler = Counting()
    make_batches(tiny, preprocessing_mode="auto", profiler=profiler)
    assert profiler.errors == 1


@pytest.mark.parametrize("kind", ["mel", "tokens"])
def test_precompute_fails_where_it_must_not_rebuild(tiny, kind):
    name = "mel" if kind == "mel" else "token"
    settings = {"preprocessing_mode": "precompute", f"auto_rebuild_{name}_cache": False}
    make_batches(tiny, **settings)
    path = tiny.file(kind)
    flip_bit(path, 40)
    before = contents(tiny.folder)
    with pytest.raises(PreparationError, match=f"{path.name}.*myxtts cache fix"):
        make_batches(tiny, **settings)
    assert contents(tiny.folder) == before


def test_auto_computes_what_it_must_not_rebuild(tiny, true_batches, caplog):
    path = tiny.file("mel")
    flip_bit(path, 40)
    batches = make_batches(tiny, preprocessing_mode="auto", auto_rebuild_mel_cache=False)
    assert_same_batches(batches, true_batches)
    assert path.name in caplog.text


def test_auto_goes_on_without_a_cache_that_it_cannot_open(tiny, true_batches, caplog):
    path = tiny.file("mel")
    os.truncate(path, 10)
    batches = make_batches(tiny, preprocessing_mode="auto", cache_verification=False)
    assert_same_batches(batches, true_batches)
    assert f"{path.name} has 10 bytes" in caplog.text


def test_auto_uses_a_recording_again_once_it_is_mended(tiny, true_batches):
    path = tiny.utterances[0].audio
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    prepare(tiny.utterances, tiny.location, workers=1)
    path.write_bytes(good)
    assert_same_batches(make_batches(tiny, preprocessing_mode="auto"), true_batches)


# Disks


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_loses_nothing(prepared_once, truth, tmp_path, monkeypatch, workers):
    """The preflight is deceived, as by another program that fills the disk meanwhile."""
    monkeypatch.setattr(preparing, "SPARE_BYTES", -(2**40))
    # 3 shards of tokens take about 64 KiB each, one of features 320 + 64 + 64 KiB.
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        tiny = locate(prepared_once.root, disk / "cache")
        with pytest.raises(CacheError, match=r"no space left while writing to .*same command"):
            prepare(tiny.utterances, tiny.location, workers=workers)
        assert verify_cache(tiny.location) == []
        stored = sum(len(shard) for shard in tiny.location.features.shards())
        assert len(tiny.location.tokens.shards()) == 3 and stored in (4, 8)
        remount(disk, "size=16m")
        report = prepare(tiny.utterances, tiny.location, workers=1)
        assert report.made == 20 - stored
        assert contents(tiny.folder) == contents(prepared_once.folder)
        assert_same_arrays(arrays(tiny.location), truth)


def test_a_cache_on_a_full_memory_disk_can_be_read(prepared_once, tmp_path):
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        corpus = shutil.copytree(prepared_once.root, disk / "corpus")
        with pytest.raises(OSError), open(disk / "ballast", "wb") as ballast:
            while True:
                ballast.write(bytes(4096))
                ballast.flush()
        # In a process of its own: what fails here is ended by a signal.
        program = (
            "from pathlib import Path; from tests.helpers.tiny_cache import arrays, locate\n"
            "from myxtts.data.features.repair import verify_cache\n"
            f"tiny = locate(Path({str(corpus)!r}))\n"
            "print(len(verify_cache(tiny.location)), len(arrays(tiny.location)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, "0 20\n"), done.stderr


def test_a_cache_that_cannot_be_written(prepared_once, true_batches, tmp_path, caplog):
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        remount(disk, "ro")
        where = {"cache_dir": str(disk / "deep" / "cache")}
        with pytest.raises(CacheError, match=r"cannot write the cache.*Read-only.*--cache-dir"):
            make_batches(prepared_once, preprocessing_mode="precompute", **where)
        batches = make_batches(prepared_once, preprocessing_mode="auto", **where)
        assert_same_batches(batches, true_batches)
        assert "Read-only" in caplog.text


def test_a_complete_cache_that_cannot_be_written_is_read(prepared_once, true_batches, tmp_path):
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        tiny = locate(Path(shutil.copytree(prepared_once.root, disk / "corpus")))
        remount(disk, "ro")
        for mode in ("precompute", "auto"):
            assert_same_batches(make_batches(tiny, preprocessing_mode=mode), true_batches)


def test_a_partial_cache_that_cannot_be_written(prepared_once, true_batches, tmp_path, caplog):
    with small_disk(tmp_path / "disk", megabytes=100) as disk:
        tiny = locate(Path(shutil.copytree(prepared_once.root, disk / "corpus")))
        tiny.location.features.drop(tiny.location.features.shards()[0].name)
        remount(disk, "ro")
        with pytest.raises(CacheError, match=r"cannot write the cache.*Read-only"):
            make_batches(tiny, preprocessing_mode="precompute")
        with caplog.at_level(logging.INFO):
            assert_same_batches(make_batches(tiny, preprocessing_mode="auto"), true_batches)
        assert "the cache cannot be written: computed anew in every epoch" in caplog.text


def test_a_damaged_cache_that_cannot_be_written(prepared_once, true_batches, tmp_path, caplog):
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        tiny = locate(Path(shutil.copytree(prepared_once.root, disk / "corpus")))
        flip_bit(tiny.file("mel"), 40)
        remount(disk, "ro")
        with pytest.raises(CacheError, match="Read-only"):
            make_batches(tiny, preprocessing_mode="precompute")
        assert_same_batches(make_batches(tiny, preprocessing_mode="auto"), true_batches)


# Processes


@pytest.fixture(scope="module")
def larger(tmp_path_factory) -> TinyCache:
    """A hundred and twenty utterances and their undisturbed cache."""
    folder = tmp_path_factory.mktemp("larger")
    tiny = locate(make_corpus(folder / "corpus", 120, seconds=(0.4, 0.9)), folder / "undisturbed")
    prepare(tiny.utterances, tiny.location, workers=1)
    return tiny


def start(tiny: TinyCache, cache_dir: Path, workers: int) -> subprocess.Popen:
    program = cache_dir.parent / "prepare_here.py"
    program.write_text(PREPARE)
    return subprocess.Popen(
        [sys.executable, program, tiny.root, cache_dir, str(workers)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen, line: str) -> None:
    for found in process.stdout:
        if found.startswith(line):
            return
    raise AssertionError(f"it ended without {line!r}: {process.stderr.read()}")


def test_two_processes_at_once_make_one_cache(larger, tmp_path):
    first, second = (start(larger, tmp_path / "cache", workers=1) for _ in range(2))
    output = [process.communicate(timeout=60) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), output
    # Each shard is made once, by whichever came first.
    assert sum(out.count("done") for out, _ in output) == 15
    shared = locate(larger.root, tmp_path / "cache")
    assert contents(shared.folder) == contents(larger.folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_promptly_and_leaves_whole_shards(larger, tmp_path, workers):
    process = start(larger, tmp_path / "cache", workers)
    wait_for(process, "done")
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    stopped = locate(larger.root, tmp_path / "cache")
    assert not list(stopped.folder.rglob("*.tmp"))
    assert verify_cache(stopped.location) == []
    stored = sum(len(shard) for shard in stopped.location.features.shards())
    assert 0 < stored < 120
    report = prepare(stopped.utterances, stopped.location, workers=1)
    assert report.made == 120 - stored
    assert contents(stopped.folder) == contents(larger.folder)


def test_interrupting_the_progress_ends_the_workers(larger, tmp_path):
    tiny = locate(larger.root, tmp_path / "cache")

    def interrupt(*progress):
        assert children()
        raise KeyboardInterrupt

    def children() -> list[psutil.Process]:
        found = psutil.Process().children()
        return [child for child in found if "spawn_main" in " ".join(child.cmdline())]

    with pytest.raises(KeyboardInterrupt):
        prepare(tiny.utterances, tiny.location, workers=2, progress=interrupt)
    assert children() == []
    assert verify_cache(tiny.location) == []


def test_workers_end_with_the_process_that_wanted_them(larger, tmp_path):
    process = start(larger, tmp_path / "cache", workers=2)
    wait_for(process, "done")
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert alive == []
    process.communicate()


def test_three_kills_leave_the_bytes_of_an_undisturbed_cache(tmp_path):
    benchmark = ROOT / "benchmarks" / "kill_prepare.py"
    done = subprocess.run(
        [sys.executable, benchmark, "--kills", "3", "--utterances", "64", "--folder", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SIGKILL") == 3
    assert "parent of 2 workers" in done.stdout and "group of 2 workers" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("identical to the undisturbed cache")
