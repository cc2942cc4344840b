"""Filling the cache: in parallel, resumably, and only with what it lacks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio import io
from myxtts.config.config import DataConfig
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features import prepare as preparing
from myxtts.data.features.keys import keys_of
from myxtts.data.features.location import cache_folder, locate_cache
from myxtts.data.features.prepare import estimate_bytes, prepare, shard_size
from myxtts.data.features.repair import collect_garbage
from myxtts.data.features.status import other_stores, take_inventory
from myxtts.data.rejections import NO_TOKENS
from myxtts.data.store.errors import CacheError
from myxtts.data.store.packed_cache import open_cache
from myxtts.data.store.shard_writer import hash64
from myxtts.data.store.view import StoreView
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_cache import TinyCache, arrays, assert_same_arrays, contents, locate

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: 4)


CORPUS = {"count": 10, "seconds": (0.4, 0.8)}


@pytest.fixture
def tiny(corpus, small_shards) -> TinyCache:
    """A copy of the corpus, prepared in shards of four."""
    tiny = locate(corpus)
    prepare(tiny.utterances, tiny.location, workers=1)
    return tiny


def replace_text(root: Path, name: str, text: str) -> None:
    path = root / "metadata.csv"
    lines = path.read_text().splitlines()
    lines = [f"{name}|{text}|{text}" if line.startswith(name) else line for line in lines]
    path.write_text("\n".join(lines) + "\n")


def test_two_workers_make_the_same_bytes_as_one(shared_corpus, tmp_path, small_shards):
    caches = [locate(shared_corpus, tmp_path / name) for name in ("one", "two")]
    seen = []
    one = prepare(caches[0].utterances, caches[0].location, workers=1)
    two = prepare(
        caches[1].utterances, caches[1].location, workers=2, progress=lambda *at: seen.append(at)
    )
    assert contents(caches[0].folder) == contents(caches[1].folder)
    assert len(caches[0].location.features.index_files()) == 3
    assert (one.made, one.reused) == (two.made, two.reused) == (20, 0)
    assert one.audio_seconds == pytest.approx(two.audio_seconds) and one.audio_seconds > 4
    assert sorted(done for done, _, _ in seen)[-1] == 10
    assert {total for _, total, _ in seen} == {10}


def test_nothing_is_made_twice(tiny):
    before = contents(tiny.folder)
    times = {path: path.stat().st_mtime_ns for path in tiny.folder.rglob("*")}
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert (report.made, report.reused, report.rejections) == (0, 20, [])
    assert contents(tiny.folder) == before
    assert {path: path.stat().st_mtime_ns for path in tiny.folder.rglob("*")} == times


def test_resuming_makes_only_what_is_missing(tiny):
    before = contents(tiny.folder)
    shard = tiny.location.features.shards()[0]
    tiny.location.features.drop(shard.name)
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert (report.made, report.reused) == (len(shard), 20 - len(shard))
    assert contents(tiny.folder) == before


def test_leftovers_of_an_interrupted_run_are_removed(tiny):
    before = contents(tiny.folder)
    (tiny.location.features.folder / "0123.mel.77.tmp").write_bytes(b"half")
    (tiny.location.features.folder / "0123.energy").write_bytes(b"unpublished")
    prepare(tiny.utterances, tiny.location, workers=1)
    assert contents(tiny.folder) == before


def test_a_changed_recording_invalidates_itself_alone(tiny):
    before = arrays(tiny.location)
    wave, rate = soundfile.read(tiny.utterances[3].audio)
    soundfile.write(tiny.utterances[3].audio, 0.5 * wave[: len(wave) // 2], rate)
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert (report.made, report.reused) == (1, 19)
    after = arrays(tiny.location)
    changed = after.pop("utt-0003")
    assert len(changed["mel"]) < len(before.pop("utt-0003")["mel"])
    assert_same_arrays(after, before)
    assert prepare(tiny.utterances, tiny.location, workers=1).made == 0


def test_a_recording_that_is_only_touched_is_reused(tiny):
    for utterance in tiny.utterances:
        os.utime(utterance.audio, (1, 1))
    assert prepare(tiny.utterances, tiny.location, workers=1).made == 0


def test_a_changed_text_remakes_its_tokens_alone(tiny):
    before = arrays(tiny.location)
    features = contents(tiny.location.features.folder)
    replace_text(tiny.root, "utt-0002", "Quite another thing.")
    changed = locate(tiny.root)
    report = prepare(changed.utterances, changed.location, workers=1)
    assert (report.made, report.reused) == (1, 19)
    assert contents(tiny.location.features.folder) == features
    after = arrays(changed.location)
    expected = changed.location.tokenizer.encode("Quite another thing.")
    np.testing.assert_array_equal(after["utt-0002"].pop("tokens"), expected)
    del before["utt-0002"]["tokens"]
    assert_same_arrays(after, before)


def test_another_tokenizer_recomputes_no_mel(tiny):
    features = contents(tiny.location.features.folder)
    config = DataConfig(dataset_path=str(tiny.root))
    location = locate_cache(tiny.root, config, Tokenizer.build(("en", "fa")))
    assert location.features.folder == tiny.location.features.folder
    assert location.tokens.folder != tiny.location.tokens.folder
    report = prepare(tiny.utterances, location, workers=1)
    assert (report.made, report.reused) == (10, 10)
    assert contents(tiny.location.features.folder) == features
    assert Tokenizer.load(location.tokens.folder / "tokenizer.json").languages == ("en", "fa")


def test_phonemes_recompute_no_mel(tiny):
    pytest.importorskip("espeakng_loader")
    phonemes = locate(tiny.root, text_units="phonemes")
    report = prepare(phonemes.utterances, phonemes.location, workers=1)
    assert (report.made, report.reused) == (10, 10)
    assert phonemes.location.features.folder == tiny.location.features.folder
    assert phonemes.location.tokens.folder != tiny.location.tokens.folder


@pytest.mark.parametrize(
    "setting", [{"cache_dtype": "float32"}, {"n_mels": 40}, {"trim_silence": True}]
)
def test_another_setting_gives_another_store_beside_the_first(tiny, setting):
    before = contents(tiny.location.features.folder)
    other = locate(tiny.root, **setting)
    assert other.location.features.folder != tiny.location.features.folder
    report = prepare(other.utterances, other.location, workers=1)
    assert (report.made, report.reused) == (10, 10)
    assert contents(tiny.location.features.folder) == before
    assert other_stores(tiny.location) == [other.location.features.folder.name]


def test_half_precision_rounds_what_float32_stores(tiny):
    exact = locate(tiny.root, cache_dtype="float32")
    prepare(exact.utterances, exact.location, workers=1)
    half, full = arrays(tiny.location), arrays(exact.location)
    for name, row in full.items():
        assert row["mel"].dtype == np.float32
        np.testing.assert_array_equal(half[name]["mel"], row["mel"].astype(np.float16))
        np.testing.assert_array_equal(half[name]["pitch"], row["pitch"])


def test_features_and_tokens_can_be_made_apart(shared_corpus, tmp_path):
    tiny = locate(shared_corpus, tmp_path)
    assert prepare(tiny.utterances, tiny.location, workers=1, features=False).made == 10
    assert not tiny.location.features.index_files()
    assert prepare(tiny.utterances, tiny.location, workers=1, tokens=False).made == 10
    assert prepare(tiny.utterances, tiny.location, workers=1).made == 0


def test_overwriting_makes_everything_anew_with_the_same_arrays(tiny):
    before = arrays(tiny.location)
    times = {path.name: path.stat().st_mtime_ns for path in tiny.folder.rglob("*.mel")}
    report = prepare(tiny.utterances, tiny.location, workers=1, overwrite=True)
    assert (report.made, report.reused) == (20, 0)
    assert_same_arrays(arrays(tiny.location), before)
    after = {path.name: path.stat().st_mtime_ns for path in tiny.folder.rglob("*.mel")}
    assert after.keys() == times.keys() and all(after[name] > times[name] for name in times)
    assert prepare(tiny.utterances, tiny.location, workers=1).made == 0


def test_the_cache_moves_to_a_folder_of_its_own(shared_corpus, tmp_path):
    tiny = locate(shared_corpus, tmp_path / "elsewhere")
    expected = tmp_path / "elsewhere" / f"corpus-{hash64(str(shared_corpus.resolve())):016x}"
    assert tiny.folder == expected == cache_folder(shared_corpus, str(tmp_path / "elsewhere"))
    assert cache_folder(shared_corpus) == shared_corpus.resolve() / "cached_features"
    prepare(tiny.utterances[:1], tiny.location, workers=1)
    assert not (shared_corpus / "cached_features").exists()
    assert len(arrays(tiny.location)) == 1


def test_rejected_recordings_are_told_by_reason_and_not_tried_again(tiny, monkeypatch):
    reasons = spoil(tiny.root / "wavs")
    assert len(reasons) == 8
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert {r.id: r.reason for r in report.rejections} == reasons
    assert all(rejection.detail for rejection in report.rejections)
    assert report.made == 8
    assert sorted(arrays(tiny.location)) == ["utt-0008", "utt-0009"]
    inventory = take_inventory(tiny.location, tiny.utterances).features
    assert (inventory.stored, inventory.missing, inventory.rejected) == (2, 0, 8)

    def fail(*arguments):
        raise AssertionError("tried again")

    monkeypatch.setattr(preparing, "compute_features", fail)
    again = prepare(tiny.utterances, tiny.location, workers=1)
    assert again.made == 0
    assert again.rejections == report.rejections


def spoil(folder: Path) -> dict[str, str]:
    """Replace recordings by bad ones; what is said of each."""
    paths = sorted(folder.glob("*.wav"))
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[: len(whole) // 2])
    paths[1].write_bytes(b"")
    paths[2].write_bytes(np.random.default_rng(0).bytes(5000))
    paths[3].unlink()
    soundfile.write(paths[4], np.zeros(0), 22050)
    soundfile.write(paths[5], np.full(9000, np.nan), 22050, subtype="FLOAT")
    soundfile.write(paths[6], np.zeros(9000), 22050)
    soundfile.write(paths[7], np.full(2000, 0.5), 22050)
    reasons = (
        io.TRUNCATED,
        io.EMPTY,
        io.UNREADABLE,
        io.MISSING,
        io.EMPTY,
        io.NOT_A_NUMBER,
        io.SILENT,
        io.TOO_SHORT,
    )
    return {path.stem: reason for path, reason in zip(paths, reasons, strict=False)}


def test_a_mended_recording_is_tried_again(tiny):
    path = tiny.utterances[0].audio
    good = path.read_bytes()
    path.write_bytes(good[:1000])
    assert len(prepare(tiny.utterances, tiny.location, workers=1).rejections) == 1
    path.write_bytes(good)
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert (report.made, report.rejections) == (1, [])
    assert "utt-0000" in arrays(tiny.location)


def test_a_text_without_anything_to_say_is_told(tiny):
    silent = Utterance("mute", tiny.utterances[0].audio, "...", "one", "en")
    report = prepare([*tiny.utterances, silent], tiny.location, workers=1)
    assert [(r.id, r.reason, r.detail) for r in report.rejections] == [("mute", NO_TOKENS, "'...'")]
    assert "mute" not in arrays(tiny.location)


def test_no_utterances_are_no_work(tiny):
    before = contents(tiny.folder)
    report = prepare([], tiny.location, workers=2)
    assert (report.made, report.reused) == (0, 0)
    assert contents(tiny.folder) == before


def test_the_preflight_refuses_before_a_shard_is_written(shared_corpus, tmp_path, monkeypatch):
    tiny = locate(shared_corpus, tmp_path)
    usage = shutil.disk_usage(tmp_path)
    needed = estimate_bytes(tiny.utterances, tiny.location.settings)
    frames = sum(len(row["mel"]) for row in _stored_elsewhere(shared_corpus, tmp_path).values())
    padding = sum(column.unit for column in tiny.location.settings.columns)
    assert needed - padding == pytest.approx(frames * 168, rel=0.02)  # 80 x 2 bytes, and 2 x 4
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=60 * 2**20))
    with pytest.raises(CacheError, match=r"only 62\.9 MB are free: .*--cache-dir") as refused:
        prepare(tiny.utterances, tiny.location, workers=1)
    assert "runtime" in str(refused.value)
    assert not list(tiny.folder.rglob("*.mel")) and not list(tiny.folder.rglob("*.tokens"))
    # Enough for tokens, not for features.
    free = preparing.SPARE_BYTES + needed // 2
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=free))
    with pytest.raises(CacheError, match="are free"):
        prepare(tiny.utterances, tiny.location, workers=1)
    assert not list(tiny.folder.rglob("*.mel"))


def _stored_elsewhere(shared_corpus: Path, tmp_path: Path) -> dict:
    other = locate(shared_corpus, tmp_path / "other")
    prepare(other.utterances, other.location, workers=1)
    return arrays(other.location)


def test_a_complete_cache_needs_no_space(tiny, monkeypatch):
    usage = shutil.disk_usage(tiny.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0))
    assert prepare(tiny.utterances, tiny.location, workers=1).made == 0


def test_garbage_is_what_other_settings_and_older_recordings_left(tiny):
    other = locate(tiny.root, cache_dtype="float32")
    prepare(other.utterances, other.location, workers=1)
    prepare(tiny.utterances, tiny.location, workers=1, overwrite=True)
    wave, rate = soundfile.read(tiny.utterances[9].audio)
    for utterance in tiny.utterances[8:]:  # all of the last shard
        soundfile.write(utterance.audio, wave[: len(wave) // 2], rate)
    prepare(tiny.utterances, tiny.location, workers=1)
    before = arrays(tiny.location)
    assert len(tiny.location.features.shards()) == 4
    freed, names = collect_garbage(tiny.location, tiny.utterances)
    assert freed > 0 and other.location.features.folder.name in names and len(names) == 2
    assert not other.location.features.folder.exists()
    assert len(tiny.location.features.shards()) == 3
    assert_same_arrays(arrays(tiny.location), before)


def test_shards_are_about_sixty_four_of_a_corpus():
    assert [shard_size(n) for n in (0, 1, 12, 4096, 4097)] == [64, 64, 64, 64, 128]
    assert [shard_size(n) for n in (13_100, 131_072, 131_073, 1_000_000)] == [256, 2048, 2048, 2048]


def test_the_order_of_the_corpus_is_kept_by_keys(tiny):
    backwards = tuple(reversed(tiny.utterances))
    cache = open_cache(tiny.location.features, tiny.location.tokens, keys_of(backwards))
    assert list(cache.ids) == [u.id for u in backwards]
    assert len(StoreView(tiny.location.features)) == 10


def test_a_script_without_a_guard_prepares_with_workers(tmp_path):
    make_corpus(tmp_path / "corpus", 300, seconds=(0.3, 0.4))
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from myxtts.data.ljspeech import LJSpeechDataset\n"
        f"dataset = LJSpeechDataset({str(tmp_path / 'corpus')!r})\n"
        "print('made', dataset.precompute_mels(num_workers=2).made)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=REPOSITORY, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["made 300"], done.stderr
