"""The three modes: what each prepares, writes, reads and says."""

import contextlib
import logging
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.data import rejections
from myxtts.data.batches import auto_mode, graph_reader, modes
from myxtts.data.batches.split import split_dataset
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features.prepare import prepare
from myxtts.data.features.status import take_inventory
from myxtts.data.store.errors import CacheError, PreparationError
from myxtts.data.store.store import Store
from myxtts.data.store.view import StoreView
from tests.data.conftest import TRAINED, UTTERANCES, configured
from tests.helpers.compare_batches import arrays_of, assert_same_batches, rows_by_index
from tests.helpers.make_corpus import make_corpus


@pytest.fixture(scope="session")
def reference(prepared_path) -> dict[str, list]:
    """The batches of a cache that was prepared before: epochs 0 and 1, and validation."""
    data = TrainingData(configured(prepared_path, preprocessing_mode="precompute"))
    found = {str(epoch): arrays_of(data.train_batches(epoch)) for epoch in (0, 1)}
    return found | {"val": arrays_of(data.val_batches())}


@pytest.fixture(autouse=True)
def heard(caplog):
    caplog.set_level(logging.INFO, logger="myxtts")


# Nothing is computed ahead, so that there is a middle to stop in.
STEP_BY_STEP = {"optimize_cpu_gpu_overlap": False}


def opened(path: Path, mode: str = "auto", **settings) -> TrainingData:
    return TrainingData(configured(path, preprocessing_mode=mode, **settings))


def tree(root: Path) -> dict[str, tuple]:
    """Everything below a folder: names, times and content."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
    }


def wav_of(root: Path, number: int) -> Path:
    return root / "wavs" / f"utt-{number:04d}.wav"


def silence(root: Path, number: int) -> str:
    """Make a recording useless in a way that its header does not show."""
    path = wav_of(root, number)
    samples, rate = soundfile.read(path)
    soundfile.write(path, np.zeros_like(samples), rate, subtype="PCM_16")
    return path.stem


def truncate(root: Path, number: int) -> str:
    path = wav_of(root, number)
    path.write_bytes(path.read_bytes()[:20])
    return path.stem


def flip_a_bit(path: Path, at: int = 100) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def store_file(root: Path, kind: str, suffix: str) -> Path:
    return sorted((root / "cached_features").glob(f"{kind}-*/*.{suffix}"))[0]


def warnings(caplog) -> str:
    return "\n".join(r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING)


# precompute


def test_precompute_prepares_everything_and_reads_natively(corpus, reference):
    data = opened(corpus, "precompute")
    assert data.train.is_complete and data.val.is_complete
    batches = data.train_batches(0)
    assert batches.reader == "native"
    assert_same_batches(arrays_of(batches), reference["0"])
    assert_same_batches(arrays_of(data.train_batches(1)), reference["1"])
    assert_same_batches(arrays_of(data.val_batches()), reference["val"])


def test_precompute_fails_and_names_what_could_not_be_prepared(corpus):
    silent, broken = silence(corpus, 3), truncate(corpus, 7)
    with pytest.raises(PreparationError) as caught:
        opened(corpus, "precompute")
    message = str(caught.value)
    assert "2 of 26 utterances could not be prepared" in message
    assert silent in message and broken in message
    with pytest.raises(PreparationError, match=silent):
        opened(corpus, "precompute")


def test_precompute_goes_on_once_the_recording_is_mended(corpus, shared_corpus, reference):
    silence(corpus, 3)
    with pytest.raises(PreparationError):
        opened(corpus, "precompute")
    wav_of(corpus, 3).write_bytes(wav_of(shared_corpus, 3).read_bytes())
    assert_same_batches(arrays_of(opened(corpus, "precompute").train_batches(0)), reference["0"])


def test_precompute_fails_where_the_cache_cannot_be_written(corpus):
    (corpus / "cached_features").write_text("in the way")
    with pytest.raises(CacheError, match="cannot write the cache to .*cached_features.*cache-dir"):
        opened(corpus, "precompute")


@pytest.mark.parametrize("kind", ["mel", "token"])
def test_precompute_without_rebuilding_fails_where_something_is_missing(corpus, kind):
    with pytest.raises(PreparationError, match=f"auto_rebuild_{kind}_cache is off"):
        opened(corpus, "precompute", **{f"auto_rebuild_{kind}_cache": False})


@pytest.mark.parametrize(
    ("kind", "suffix"), [("features", "mel"), ("features", "index"), ("tokens", "tokens")]
)
def test_precompute_remakes_what_is_damaged(prepared, reference, caplog, kind, suffix):
    flip_a_bit(store_file(prepared, kind, suffix))
    data = opened(prepared, "precompute")
    assert store_file(prepared, kind, suffix).parent.name in warnings(caplog)
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])


def test_precompute_that_may_not_rebuild_fails_on_damage(prepared):
    file = store_file(prepared, "features", "mel")
    flip_a_bit(file)
    with pytest.raises(PreparationError, match=f"{file.name}: damaged.*verify_and_fix_cache"):
        opened(prepared, "precompute", auto_rebuild_mel_cache=False)


# runtime


def test_runtime_writes_nothing_at_all(corpus, reference):
    before = tree(corpus)
    data = opened(corpus, "runtime", cache_dir=str(corpus.parent / "elsewhere"))
    found = arrays_of(data.train_batches(0))
    assert len(arrays_of(data.val_batches())) == len(reference["val"])
    assert tree(corpus) == before
    assert sorted(path.name for path in corpus.parent.iterdir()) == ["corpus"]
    assert [batch["index"].tolist() for batch in found] == [
        batch["index"].tolist() for batch in reference["0"]
    ]


def test_runtime_leaves_out_what_cannot_be_decoded(corpus, reference, caplog):
    lost = silence(corpus, 3)
    data = opened(corpus, "runtime")
    found = rows_by_index(arrays_of(data.train_batches(0)))
    position = [u.id for u in data.train.utterances].index(lost)
    assert sorted(found) == [i for i in range(TRAINED) if i != position]
    assert "dropped from its batch" in warnings(caplog) and lost in warnings(caplog)


def test_runtime_goes_on_at_any_batch(corpus):
    data = opened(corpus, "runtime")
    whole = arrays_of(data.train_batches(1))
    assert_same_batches(arrays_of(data.train_batches(1, start=4)), whole[4:])


# auto


def test_auto_says_in_one_line_what_it_does_and_why(corpus, prepared, caplog):
    data = opened(corpus)
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("training: auto")]
    assert len(said) == 1 and "\n" not in said[0]
    assert "the first epoch computes and stores them" in said[0]
    assert data.train.decision.action == auto_mode.STORE_ALL
    caplog.clear()
    assert opened(prepared).train.decision.action == auto_mode.READ
    assert "are in the cache and are read from it" in caplog.text


def test_auto_fills_the_cache_in_the_first_epoch_and_reads_natively_in_the_second(
    corpus, reference
):
    data = opened(corpus)
    first = data.train_batches(0)
    assert first.reader == "filling"
    assert_same_batches(arrays_of(first), reference["0"])
    assert not data.train.is_complete, "reading changes nothing"
    second = data.train_batches(1)
    assert second.reader == "native" and data.train.is_complete
    assert_same_batches(arrays_of(second), reference["1"])
    assert_same_batches(arrays_of(data.val_batches()), reference["val"])
    assert_same_batches(arrays_of(data.val_batches()), reference["val"])
    assert data.val.is_complete
    again = opened(corpus)
    assert again.train.decision.action == auto_mode.READ
    assert_same_batches(arrays_of(again.train_batches(0)), reference["0"])


def test_validation_in_the_middle_of_the_first_epoch_disturbs_nothing(corpus, reference):
    data = opened(corpus, **STEP_BY_STEP)
    found = []
    for batch in data.train_batches(0):
        found.append(batch)
        if len(found) == 2:
            assert_same_batches(arrays_of(data.val_batches()), reference["val"])
    assert_same_batches(arrays_of(found), reference["0"])
    assert_same_batches(arrays_of(data.val_batches()), reference["val"])
    data.refresh()
    assert data.train.is_complete and data.val.is_complete


def test_the_first_epoch_is_stored_while_its_first_batch_is_in_use(corpus, reference):
    data = opened(corpus)
    batches = iter(data.train_batches(0))
    found, store, end = [next(batches)], data.train.location.features, time.monotonic() + 60
    while store.is_held_here and time.monotonic() < end:
        time.sleep(0.01)
    assert len(StoreView(store)) == TRAINED
    # What comes in between may store its own.
    assert_same_batches(arrays_of(data.val_batches()), reference["val"])
    data.refresh()
    assert data.val.is_complete
    assert_same_batches(arrays_of([*found, *batches]), reference["0"])


def test_what_auto_filled_is_all_that_precompute_wants(corpus):
    data = opened(corpus)
    for batches in (data.train_batches(0), data.val_batches()):
        assert len(arrays_of(batches)) == len(batches)
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*.mel")}
    assert opened(corpus, "precompute").train.is_complete
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*.mel")} == before


def test_a_fill_that_was_stopped_goes_on_where_it_was(corpus, reference):
    data = opened(corpus, **STEP_BY_STEP)
    taken = iter(data.train_batches(0))
    found = [next(taken), next(taken)]
    taken.close()
    assert_same_batches(arrays_of(found), reference["0"][:2])
    data.refresh()
    stored = int(data.train.cache.is_cached.sum())
    assert 8 <= stored < TRAINED
    assert_same_batches(arrays_of(data.train_batches(0, start=2)), reference["0"][2:])
    data.refresh()
    assert data.train.is_complete

    again = opened(corpus)
    assert again.train.decision.action == auto_mode.READ
    assert_same_batches(arrays_of(again.train_batches(1)), reference["1"])


def test_a_partly_filled_cache_is_used_by_the_next_run(corpus, reference):
    taken = iter(opened(corpus, **STEP_BY_STEP).train_batches(0))
    next(taken)
    taken.close()
    data = opened(corpus)
    stored = int(data.train.cache.is_cached.sum())
    assert 4 <= stored < TRAINED
    assert data.train.decision.action == auto_mode.STORE_ALL
    assert_same_batches(arrays_of(data.train_batches(0, start=1)), reference["0"][1:])
    assert_same_batches(arrays_of(opened(corpus).train_batches(1)), reference["1"])


def test_a_budget_stores_a_part_and_computes_the_rest_in_every_epoch(corpus, reference):
    budget = 600_000  # a shard's padding takes 459 kB of it
    for run in range(2):
        data = opened(corpus, cache_budget_gb=budget / 1e9)
        assert data.train.decision.action == auto_mode.STORE_SOME
        for epoch in (0, 1):
            batches = data.train_batches(epoch)
            assert batches.reader == "filling"
            assert_same_batches(arrays_of(batches), reference[str(epoch)])
            data.refresh()
            stored = data.train.cache.is_cached
            assert 4 <= stored.sum() < TRAINED
        files = [
            path for ending in ("mel", "energy", "pitch") for path in corpus.rglob(f"*.{ending}")
        ]
        assert 0 < sum(path.stat().st_size for path in files) <= budget, run


def test_one_epoch_stores_no_features(corpus, reference):
    data = opened(corpus, epochs=1)
    assert data.train.decision.action == auto_mode.STORE_NONE
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    assert not list(corpus.rglob("*.mel"))


def test_auto_runs_without_a_cache_where_something_is_in_the_way(corpus, reference, caplog):
    (corpus / "cached_features").write_text("in the way")
    before = tree(corpus)
    data = opened(corpus)
    assert data.train.decision.action == auto_mode.STORE_NONE
    assert "the cache cannot be used" in str(data.train.decision)
    assert "cached_features" in warnings(caplog) and "--cache-dir" in warnings(caplog)
    for epoch in (0, 1):
        assert_same_batches(arrays_of(data.train_batches(epoch)), reference[str(epoch)])
    assert tree(corpus) == before


def test_auto_runs_without_a_cache_on_a_disk_that_is_read_only(corpus, reference, monkeypatch):
    def refuse(self, extra_files=None):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Store, "create", refuse)
    data = opened(corpus)
    assert data.train.decision.action == auto_mode.STORE_NONE
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    assert not (corpus / "cached_features").exists()


def test_auto_runs_without_a_cache_in_a_place_that_cannot_be(corpus, reference):
    nowhere = corpus / "metadata.csv" / "deep" / "down"
    data = opened(corpus, cache_dir=str(nowhere))
    assert data.train.decision.action == auto_mode.STORE_NONE
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])


@pytest.fixture
def make_read_only(monkeypatch):
    """From then on, whoever locks a store or writes to it is refused."""

    def refuse(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    def forbid():
        for name in ("lock", "try_lock", "write_shard", "drop", "drop_rows", "remove_leftovers"):
            monkeypatch.setattr(Store, name, refuse)
        monkeypatch.setattr(modes.os, "access", lambda path, mode: mode != modes.os.W_OK)

    return forbid


def test_auto_reads_a_complete_cache_that_is_read_only(prepared, reference, make_read_only):
    make_read_only()
    data = opened(prepared)
    assert data.train_batches(0).reader == "native"
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])


def test_auto_reads_what_a_read_only_cache_has_and_computes_the_rest(
    corpus, reference, make_read_only
):
    taken = iter(opened(corpus, **STEP_BY_STEP).train_batches(0))
    next(taken)
    taken.close()
    make_read_only()
    before = tree(corpus)
    data = opened(corpus)
    assert 4 <= data.train.cache.is_cached.sum() < TRAINED
    assert "the cache cannot be written" in str(data.train.decision)
    for epoch in (0, 1):
        assert_same_batches(arrays_of(data.train_batches(epoch)), reference[str(epoch)])
    assert tree(corpus) == before


def test_a_damaged_cache_that_is_read_only_feeds_nothing_damaged(
    prepared, reference, make_read_only, caplog
):
    make_read_only()
    file = store_file(prepared, "features", "mel")
    flip_a_bit(file)
    data = opened(prepared)
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    assert file.name in warnings(caplog)


# Damage and change, seen by auto


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [("features", "mel"), ("features", "index"), ("tokens", "tokens"), ("tokens", "index")],
)
def test_auto_remakes_what_is_damaged(prepared, reference, caplog, kind, suffix):
    file = store_file(prepared, kind, suffix)
    flip_a_bit(file)
    data = opened(prepared)
    assert file.name in warnings(caplog)
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    assert data.train_batches(1).reader == "native"
    assert_same_batches(arrays_of(data.train_batches(1)), reference["1"])


def test_without_verification_a_missing_file_is_one_warning_and_another_reader(
    prepared, reference, caplog
):
    file = store_file(prepared, "features", "pitch")
    file.unlink()
    data = opened(prepared, cache_verification=False)
    assert file.name in warnings(caplog) and "verify_and_fix_cache(fix=True)" in warnings(caplog)
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    with pytest.raises(CacheError, match="verify_and_fix_cache"):
        opened(prepared, "precompute", cache_verification=False)


def test_a_changed_recording_is_computed_anew(prepared):
    wav_of(prepared, 5).write_bytes(wav_of(prepared, 6).read_bytes())
    data = opened(prepared)
    names = [u.id for u in data.train.utterances]
    assert [names[i] for i in np.flatnonzero(~data.train.cache.is_cached)] == ["utt-0005"]
    for epoch in (0, 1):
        rows = rows_by_index(arrays_of(data.train_batches(epoch)))
        changed, source = rows[names.index("utt-0005")], rows[names.index("utt-0006")]
        assert changed["mel"].tobytes() == source["mel"].tobytes()
    assert data.train.is_complete


def test_a_changed_recording_without_room_is_never_read_as_it_was(prepared):
    """Its old features stay unused, also after something else was stored."""
    wav_of(prepared, 5).write_bytes(wav_of(prepared, 6).read_bytes())
    lost = silence(prepared, 8)
    data = opened(prepared, cache_budget_gb=1e-9)
    names = [u.id for u in data.train.utterances]
    for epoch in (0, 1, 2):
        rows = rows_by_index(arrays_of(data.train_batches(epoch)))
        changed, source = rows[names.index("utt-0005")], rows[names.index("utt-0006")]
        assert changed["mel"].tobytes() == source["mel"].tobytes()
        assert names.index(lost) not in rows


# Recordings that cannot be used


@pytest.mark.parametrize("spoil", [silence, truncate])
def test_auto_leaves_out_a_bad_recording_and_keeps_the_plan_after_a_restart(corpus, caplog, spoil):
    lost = spoil(corpus, 3)
    data = opened(corpus)
    first = arrays_of(data.train_batches(0))
    assert lost in warnings(caplog) and "dropped" in warnings(caplog)
    names = [u.id for u in data.train.utterances]
    delivered = {names[i] for i in rows_by_index(first)}
    assert delivered == {u.id for u in data.corpus.train} - {lost}
    shards, said = len(list(corpus.rglob("*.index"))), warnings(caplog)
    later = arrays_of(data.train_batches(1))
    assert warnings(caplog) == said, "said once"
    assert len(list(corpus.rglob("*.index"))) == shards, "and stored once"
    again = opened(corpus)
    assert_same_batches(arrays_of(again.train_batches(0)), first)
    assert_same_batches(arrays_of(again.train_batches(1)), later)
    assert again.train.decision.action == auto_mode.READ


def test_auto_uses_a_recording_once_it_is_mended(corpus, shared_corpus, reference):
    silence(corpus, 3)
    arrays_of(opened(corpus).train_batches(0))
    wav_of(corpus, 3).write_bytes(wav_of(shared_corpus, 3).read_bytes())
    data = opened(corpus)
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])
    data.refresh()
    assert data.train.is_complete


@pytest.mark.parametrize("mode", ["auto", "runtime"])
def test_a_text_without_words_is_left_out_and_counted(corpus, caplog, mode):
    metadata = corpus / "metadata.csv"
    lines = metadata.read_text().splitlines()
    lines[3] = "utt-0003|?!|?!"
    metadata.write_text("\n".join(lines) + "\n")
    data = opened(corpus, mode)
    assert "utt-0003" not in {u.id for u in data.train.utterances}
    assert [r.id for r in data.train.rejections] == ["utt-0003"]
    assert "1 x nothing to say" in warnings(caplog)
    assert sorted(rows_by_index(arrays_of(data.train_batches(0)))) == list(range(TRAINED - 1))


def test_trimming_keeps_the_plan_while_the_cache_fills(corpus):
    path = wav_of(corpus, 4)
    samples, rate = soundfile.read(path)
    soundfile.write(path, np.concatenate([np.zeros(rate), samples, np.zeros(rate)]), rate)
    data = opened(corpus, trim_silence=True)
    position = [u.id for u in data.train.utterances].index("utt-0004")
    before = data.train.plan(data.batch_options, epoch=1)
    first = arrays_of(data.train_batches(0))
    trimmed = rows_by_index(first)[position]["mel_lengths"]
    assert trimmed < data.train.plan_lengths[position] - 150, "about two seconds are cut"
    data.refresh()
    for later in (data, opened(corpus, trim_silence=True)):
        assert later.train.is_complete
        after = later.train.plan(later.batch_options, epoch=1)
        np.testing.assert_array_equal(before.order, after.order)
        np.testing.assert_array_equal(before.bounds, after.bounds)
        np.testing.assert_array_equal(before.frames, after.frames)
        assert_same_batches(arrays_of(later.train_batches(0)), first)


# Limits


@pytest.mark.parametrize("mode", ["precompute", "auto", "runtime"])
def test_what_is_too_long_is_dropped_and_counted(corpus, caplog, mode):
    everything = opened(corpus, "runtime").train
    lengths, texts = everything.plan_lengths, np.array([len(u.text) for u in everything.utterances])
    frames = int(lengths.max()) - 1
    too_long = lengths > frames
    letters = int(texts[~too_long].max()) - 1
    wordy = (texts > letters) & ~too_long
    data = opened(corpus, mode, max_mel_frames=frames, max_text_length=letters)
    assert len(data.train) == TRAINED - too_long.sum() - wordy.sum()
    reasons = [rejection.reason for rejection in data.train.rejections]
    assert reasons.count(rejections.TOO_LONG) == too_long.sum() > 0
    assert reasons.count(rejections.TEXT_TOO_LONG) == wordy.sum() > 0
    assert f"{too_long.sum()} x {rejections.TOO_LONG}" in warnings(caplog)
    assert f"{wordy.sum()} x {rejections.TEXT_TOO_LONG}" in warnings(caplog)
    seconds = sum(r.seconds for r in data.train.rejections if r.reason == rejections.TOO_LONG)
    assert seconds == pytest.approx(lengths[too_long].sum() * 256 / 22050)
    assert all((batch["mel_lengths"] <= frames).all() for batch in arrays_of(data.train_batches(0)))


def test_more_tokens_than_frames_are_dropped_and_counted(corpus, caplog):
    metadata = corpus / "metadata.csv"
    lines = metadata.read_text().splitlines()
    lines[3] = "utt-0003|" + "far too many words for so short a time " * 5
    metadata.write_text("\n".join(lines) + "\n")
    data = opened(corpus)
    assert [(r.id, r.reason) for r in data.train.rejections] == [("utt-0003", rejections.TOO_FAST)]
    assert "1 x fewer frames than tokens" in warnings(caplog)


def test_nothing_left_is_an_error_that_says_why(corpus):
    expected = "26 of 26 utterances dropped: 26 x too long.* at most 100% may be"
    with pytest.raises(CorpusError, match=expected):
        opened(corpus, max_mel_frames=20, max_rejected=1.0)


def test_too_much_left_out_is_an_error(corpus):
    lengths = np.sort(opened(corpus, "runtime").train.plan_lengths)
    assert len(opened(corpus, "runtime", max_mel_frames=int(lengths[-7])).train) == TRAINED - 6
    with pytest.raises(CorpusError, match="7 of 26 utterances dropped.*at most 25% may be"):
        opened(corpus, "runtime", max_mel_frames=int(lengths[-8]))


# The profiler


class Recorder:
    """A profiler that counts what it is told."""

    def __init__(self):
        self.hits = self.misses = self.errors = 0
        self.operations = []

    def record_cache_hit(self):
        self.hits += 1

    def record_cache_miss(self):
        self.misses += 1

    def record_cache_error(self):
        self.errors += 1

    @contextlib.contextmanager
    def profile_operation(self, name):
        self.operations.append(name)
        yield


def test_the_profiler_hears_of_misses_hits_and_damage(corpus):
    recorder = Recorder()
    data = opened(corpus, profiler=recorder)
    assert (recorder.hits, recorder.misses, recorder.errors) == (0, UTTERANCES, 0)
    assert "open_cache" in recorder.operations
    arrays_of(data.train_batches(0))
    recorder = Recorder()
    opened(corpus, profiler=recorder)
    assert (recorder.hits, recorder.misses, recorder.errors) == (TRAINED, UTTERANCES - TRAINED, 0)
    flip_a_bit(store_file(corpus, "features", "mel"))
    recorder = Recorder()
    opened(corpus, "precompute", profiler=recorder)
    assert (recorder.hits, recorder.misses, recorder.errors) == (UTTERANCES, 0, 1)
    assert "prepare" in recorder.operations


def test_a_profiler_that_lacks_a_hook_is_replaced_and_the_log_says_so(prepared, caplog):
    class Half:
        def record_cache_hit(self):
            pytest.fail("not to be used")

        def profile_operation(self, name):
            pytest.fail("not to be used")

    data = opened(prepared, profiler=Half())
    assert "the profiler Half lacks record_cache_miss, record_cache_error" in warnings(caplog)
    assert data.train.is_complete


# Readers by configuration


@pytest.mark.parametrize(
    ("settings", "reader"),
    [
        ({}, "native"),
        ({"use_tf_native_loading": False}, "host"),
        ({"memory_cache": True}, "native"),
        ({"memory_cache": True, "use_tf_native_loading": False}, "host"),
        ({"enable_memory_mapping": False}, "host"),
        ({"enable_memory_mapping": False, "memory_cache": True}, "native"),
        ({"optimize_cpu_gpu_overlap": False}, "native"),
        ({"prefetch_buffer_size": 1, "shuffle_buffer_multiplier": 10}, "native"),
    ],
)
def test_every_way_of_reading_gives_the_same_batches(prepared_path, reference, settings, reader):
    data = opened(prepared_path, **settings)
    batches = data.train_batches(0)
    assert batches.reader == reader
    assert_same_batches(arrays_of(batches), reference["0"])


def test_native_loading_that_fails_warns_and_leaves_it_to_the_host(
    prepared_path, reference, caplog, monkeypatch
):
    def fail(*args):
        raise CacheError("the file is odd")

    monkeypatch.setattr(graph_reader, "_native_gather", fail)
    data = opened(prepared_path)
    batches = data.train_batches(0)
    assert batches.reader == "host"
    assert warnings(caplog).count("the file is odd") == 1
    assert "verify_and_fix_cache(fix=True)" in warnings(caplog)
    assert_same_batches(arrays_of(batches), reference["0"])
    plan = data.train.plan(data.batch_options)
    dataset = split_dataset(data.train, plan, data.config.data)
    assert_same_batches(arrays_of(dataset), reference["0"])
    with pytest.raises(CacheError, match="the file is odd"):
        opened(prepared_path, "precompute").train_batches(0)


def test_the_memory_cache_needs_no_file_any_more(prepared, reference):
    data = opened(prepared, memory_cache=True)
    for path in (prepared / "cached_features").rglob("*.*"):
        path.unlink()
    assert_same_batches(arrays_of(data.train_batches(0)), reference["0"])


def test_resuming_at_any_epoch_and_batch_gives_the_tail(prepared_path, reference):
    data = opened(prepared_path)
    for epoch in (0, 1):
        for start in (0, 1, 3, 6, 7):
            tail = arrays_of(data.train_batches(epoch, start))
            assert_same_batches(tail, reference[str(epoch)][start:])


def test_a_frame_budget_is_kept(prepared_path):
    data = opened(prepared_path, batch_size=8, max_frames_per_batch=300)
    found = arrays_of(data.train_batches(0))
    assert all(np.prod(batch["mel"].shape[:2]) <= 300 for batch in found)
    assert sorted(rows_by_index(found)) == list(range(TRAINED))


def test_batches_have_the_batch_size_but_the_last(prepared_path):
    for epoch in (0, 1, 2):
        found = arrays_of(opened(prepared_path, batch_size=5).train_batches(epoch))
        assert [len(batch["index"]) for batch in found] == [5, 5, 5, 5, 5, 1]


# The parts of a corpus


def test_a_separate_corpus_validates(corpus, tmp_path):
    held_out = make_corpus(tmp_path / "held out", count=5, seed=9, seconds=(0.5, 0.8))
    data = opened(corpus, val_dataset_path=str(held_out))
    assert len(data.train) == UTTERANCES
    assert {u.audio.parent.parent for u in data.val.utterances} == {held_out}
    rows = rows_by_index(arrays_of(data.val_batches()))
    assert sorted(rows) == [0, 1, 2, 3, 4]
    assert (held_out / "cached_features").is_dir()


def test_without_a_validation_part_asking_for_it_is_an_error(prepared):
    data = opened(prepared, val_fraction=0.0)
    assert data.val is None and len(data.train) == UTTERANCES
    with pytest.raises(CorpusError, match="val_fraction"):
        data.val_batches()


def test_speakers_have_the_same_numbers_in_all_parts_and_modes(tmp_path):
    corpus = make_corpus(tmp_path / "corpus", count=12, speakers=6, seconds=(0.5, 0.7))
    for mode in ("runtime", "auto", "precompute"):
        data = opened(corpus, mode, val_fraction=0.2)
        for part, batches in ((data.train, data.train_batches(0)), (data.val, data.val_batches())):
            for position, row in rows_by_index(arrays_of(batches)).items():
                name = part.utterances[position].speaker
                assert row["speaker"] == int(name.removeprefix("speaker"))
                assert part.cache.speakers[row["speaker"]] == name


def test_speakers_keep_their_numbers_when_one_is_dropped(tmp_path):
    corpus = make_corpus(tmp_path / "corpus", count=12, speakers=3, seconds=(0.5, 0.7))
    metadata = corpus / "metadata.csv"
    long = "many words " * 30
    lines = [
        f"{line.split('|')[0]}|{long}" if number % 3 == 1 else line
        for number, line in enumerate(metadata.read_text().splitlines())
    ]
    metadata.write_text("\n".join(lines) + "\n")
    data = opened(corpus, max_text_length=100, max_rejected=0.5)
    assert {u.speaker for u in data.train.utterances} == {"speaker0", "speaker2"}
    for epoch in (0, 1):
        for position, row in rows_by_index(arrays_of(data.train_batches(epoch))).items():
            assert f"speaker{row['speaker']}" == data.train.utterances[position].speaker


def mute(corpus: Path, *names: str) -> None:
    """Make recordings unusable in a way that only decoding shows."""
    for name in names:
        path = corpus / "wavs" / f"{name}.wav"
        samples, rate = soundfile.read(path)
        soundfile.write(path, np.zeros_like(samples), rate)


@pytest.mark.parametrize("mode", ["auto", "runtime"])
def test_a_row_of_which_nothing_is_left_keeps_its_number(corpus, mode):
    data = opened(corpus, mode, batch_size=1)
    plan = data.train.plan(data.batch_options, 0)
    mute(corpus, data.train.utterances[int(plan[3][0])].id)
    data = opened(corpus, mode, batch_size=1)
    taken = islice(data.stream(), 6)
    found = [(number, batch["index"].numpy().tolist()) for _, number, batch in taken]
    assert found == [(number, plan[number].tolist()) for number in (0, 1, 2, 4, 5, 6)]


def test_one_bad_recording_does_not_cost_the_native_reader(corpus):
    data = opened(corpus)
    bad = data.train.utterances[5].id
    mute(corpus, bad)
    data = opened(corpus)
    first = arrays_of(data.train_batches(0))
    batches = data.train_batches(0)
    assert data.train.known_bad == {bad}
    assert batches.reader == "native"
    assert_same_batches(arrays_of(batches), first)
    reopened = opened(corpus)
    assert reopened.train_batches(0).reader == "native"
    assert_same_batches(arrays_of(reopened.train_batches(0)), first)


def test_a_corpus_of_silence_is_an_error_and_not_an_endless_wait(corpus):
    mute(corpus, *(path.stem for path in (corpus / "wavs").iterdir()))
    with pytest.raises(CorpusError, match="none of its recordings can be used"):
        next(opened(corpus).stream())
    with pytest.raises(CorpusError, match="more are unusable"):
        opened(corpus)


def test_precompute_fails_for_a_recording_that_is_not_there(corpus):
    gone = sorted((corpus / "wavs").iterdir())[0]
    gone.unlink()
    with pytest.raises(PreparationError, match=f"missing recording.*{gone.stem}"):
        opened(corpus, "precompute")


def test_less_than_a_frame_is_counted(corpus):
    path = sorted((corpus / "wavs").iterdir())[0]
    soundfile.write(path, np.full(100, 0.5), 22050)
    data = opened(corpus, val_fraction=0.0)
    assert [(r.id, r.reason) for r in data.train.rejections] == [(path.stem, "too short")]


def test_filling_and_preparing_at_once_in_one_program_is_refused(corpus):
    data = opened(corpus)
    batches = iter(data.train_batches(0))
    next(batches)
    with pytest.raises(CacheError, match="filling .* already"):
        prepare(data.train.utterances, data.train.location)
    batches.close()
    prepare(data.train.utterances, data.train.location)
    assert take_inventory(data.train.location, data.train.utterances).features.missing == 0
