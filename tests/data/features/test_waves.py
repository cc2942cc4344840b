"""Waveforms in the cache: the samples themselves, under the frames of their mel, stored once."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.data.corpus.utterance import with_speed_perturbation
from myxtts.data.features import waves
from myxtts.data.features.derived import store_derived
from myxtts.data.features.features import FeatureSettings, compute_features, load_samples
from myxtts.data.features.repair import collect_garbage, fix_cache, verify_cache
from myxtts.data.features.status import take_inventory
from myxtts.data.features.waves import WaveWork, as_hops
from myxtts.data.store.errors import CacheError
from tests.helpers.tiny_cache import TinyCache, contents, flip_bit, locate

HOP = 256


CORPUS = {"count": 10, "seconds": (0.2, 0.4)}


@pytest.fixture
def tiny(corpus, monkeypatch) -> TinyCache:
    """Ten recordings, stored in shards of four."""
    monkeypatch.setattr(waves.WaveWork, "largest_shard", 4)
    return locate(corpus)


def store(tiny: TinyCache, utterances=None, **options) -> list[np.ndarray]:
    """The stored waveform of each utterance, hop by hop."""
    utterances = tiny.utterances if utterances is None else utterances
    settings = tiny.location.settings
    found = store_derived(WaveWork(tiny.folder, settings), utterances, **options)
    array, starts, rejections = found.array, found.starts, found.rejections
    assert array.dtype == np.int16 and array.shape[1] == HOP
    assert rejections == [] and starts.min() >= 0
    ends = [start + len(truth(tiny, one)) for one, start in zip(utterances, starts, strict=True)]
    return [array[start:end] for start, end in zip(starts, ends, strict=True)]


def truth(tiny: TinyCache, utterance) -> np.ndarray:
    """The samples as they are decoded, rounded, in whole hops."""
    samples = load_samples(utterance.audio, tiny.location.settings, utterance.speed)
    whole = len(samples) // HOP
    rounded = np.round(samples[: whole * HOP].astype(np.float64) * 32768)
    return np.clip(rounded, -32768, 32767).astype(np.int16).reshape(whole, HOP)


def assert_sound(found: list, tiny: TinyCache, utterances=None) -> None:
    utterances = tiny.utterances if utterances is None else utterances
    for one, rows in zip(utterances, found, strict=True):
        np.testing.assert_array_equal(rows, truth(tiny, one), one.id)


# What is stored.


def test_samples_become_whole_hops_of_rounded_numbers():
    settings = FeatureSettings(AudioSpec(n_fft=8, hop_length=4, win_length=8))
    samples = np.array([0.0, 0.5, -1.0, 1.0, 1.7 / 32768, -1.7 / 32768, 2.0, -2.0, 0.1, 0.1])
    found = as_hops(samples.astype(np.float32), settings)
    assert found.dtype == np.int16
    # The last hop is not whole: no frame of the mel is centred on it.
    assert found.tolist() == [[0, 16384, -32768, 32767], [2, -2, 32767, -32768]]


def test_what_is_stored_are_the_numbers_of_the_recordings(tiny):
    for one, rows in zip(tiny.utterances, store(tiny), strict=True):
        written, _ = soundfile.read(one.audio, dtype="int16")
        np.testing.assert_array_equal(rows.reshape(-1), written[: len(rows) * HOP])
        assert 0 <= len(written) - rows.size < HOP


def test_a_waveform_has_the_mel_that_is_stored_beside_it(tiny):
    settings = tiny.location.settings
    for one, rows in zip(tiny.utterances, store(tiny), strict=True):
        mel = compute_features(one.audio, settings)["mel"]
        assert mel.dtype == np.float16 and len(mel) == len(rows)
        again = log_mel(rows.reshape(-1) / np.float32(32768), settings.spec)
        # The last frames hear what was left of the last hop.
        np.testing.assert_allclose(again[:-2], mel[:-2], atol=2e-2)


@pytest.mark.parametrize(
    "settings", [{"trim_silence": True, "trim_top_db": 10.0}, {"loudness_lufs": -30.0}]
)
def test_a_waveform_is_cleaned_as_its_mel_is(tiny, settings):
    plain = store(tiny)
    cleaned = replace(tiny, location=locate(tiny.root, **settings).location)
    found = store(cleaned)
    assert_sound(found, cleaned)
    assert any(len(a) != len(b) or np.any(a != b) for a, b in zip(plain, found, strict=True))
    assert len(list(tiny.folder.glob("waves-*"))) == 2


def test_a_recording_at_another_speed_has_a_waveform_of_its_own(tiny):
    both = with_speed_perturbation(tiny.utterances[:2], 1)
    found = store(tiny, both)
    assert_sound(found, tiny, both)
    assert len(found) == 4 and len({len(rows) for rows in (found[0], found[2])}) == 2


def test_what_is_stored_is_not_stored_again(tiny):
    told = []
    store(tiny, progress=lambda done, total, seconds: told.append((done, total)))
    assert told == [(4, 10), (8, 10), (10, 10)]
    before = contents(tiny.folder)
    again = store(tiny, progress=lambda *now: pytest.fail("stored again"))
    assert_sound(again, tiny)
    assert contents(tiny.folder) == before


def test_settings_that_change_no_sample_share_the_store(tiny):
    settings = tiny.location.settings
    same = [
        replace(settings, dtype="float32"),
        replace(settings, with_pitch=False),
        replace(settings, spec=AudioSpec(n_mels=100, fmax=11025.0)),
    ]
    other = [
        replace(settings, spec=AudioSpec(hop_length=128)),
        replace(settings, spec=AudioSpec(sample_rate=16000)),
        replace(settings, spec=AudioSpec(n_fft=2048)),
        replace(settings, trim_top_db=40.0),
    ]
    own = WaveWork(tiny.folder, settings).store.folder
    assert {WaveWork(tiny.folder, one).store.folder for one in same} == {own}
    folders = {WaveWork(tiny.folder, one).store.folder for one in other}
    assert len(folders) == 4 and own not in folders


def test_a_changed_recording_is_all_that_is_stored_again(tiny):
    store(tiny)
    path = tiny.utterances[6].audio
    samples, rate = soundfile.read(path)
    soundfile.write(path, 0.5 * samples[:-700], rate)
    told = []
    assert_sound(store(tiny, progress=lambda done, *rest: told.append(done)), tiny)
    assert told == [1]


def test_recordings_that_cannot_be_read_are_named_and_begin_nowhere(tiny):
    soundfile.write(tiny.utterances[3].audio, np.zeros(8000), 22050)
    tiny.utterances[7].audio.write_bytes(b"no recording")
    work = WaveWork(tiny.folder, tiny.location.settings)
    rejections = store_derived(work, tiny.utterances).rejections
    assert [one.id for one in rejections] == ["utt-0003", "utt-0007"]
    assert rejections[0].reason == "silent recording"
    starts = store_derived(work, tiny.utterances).starts
    assert np.flatnonzero(starts < 0).tolist() == [3, 7]


def test_where_nothing_can_be_written_it_says_so(tiny, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="file"):
        work = WaveWork(tmp_path / "file" / "cache", tiny.location.settings)
        store_derived(work, tiny.utterances)


# What is damaged.


@pytest.mark.parametrize("kind", ["wave", "index"])
def test_a_flipped_bit_is_found_named_and_made_again(tiny, kind, caplog):
    store(tiny)
    sound = contents(tiny.folder)
    path = tiny.file(kind)
    flip_bit(path, 40)
    with caplog.at_level(logging.WARNING, "myxtts"):
        assert_sound(store(tiny), tiny)
    assert path.name in caplog.text
    assert verify_waves(tiny) == []
    if kind == "index":  # of a shard that is dropped whole the same one is made again
        assert contents(tiny.folder) == sound


def test_what_a_kill_leaves_of_a_shard_is_made_again(tiny):
    store(tiny)
    sound = contents(tiny.folder)
    index = sorted(tiny.folder.rglob("*.index"))[1]
    index.unlink()  # it is written last
    (index.parent / f"{index.stem}.wave.77.tmp").write_bytes(b"half")
    assert_sound(store(tiny), tiny)
    assert contents(tiny.folder) == sound


def verify_waves(tiny: TinyCache) -> list:
    """What is wrong, but for the features that were never asked for."""
    return [one for one in verify_cache(tiny.location) if "lacks" not in one.what]


# In the care of `myxtts cache`.


def test_an_inventory_counts_waveforms(tiny):
    assert take_inventory(tiny.location, tiny.utterances).derived == ()
    store(tiny, tiny.utterances[:7])
    found = take_inventory(tiny.location, tiny.utterances)
    ((kind, maker, part),) = found.derived
    assert (kind, maker) == ("waves", "")
    assert (part.stored, part.missing, part.rejected, part.shards) == (7, 3, 0, 2)
    assert found.others == ()
    assert "waves     7 stored, 3 missing, 0 could not be made; 2 shards" in str(found)


@pytest.mark.parametrize("kind", ["wave", "store.json"])
def test_damage_among_the_waveforms_is_found_and_dropped(tiny, kind):
    store(tiny)
    path = tiny.file(kind)
    flip_bit(path, 40)
    (problem,) = verify_waves(tiny)
    assert path.name in problem.file
    report = fix_cache(tiny.location, tiny.utterances, workers=1)
    assert [one.file for one in report.problems] == [problem.file]
    assert verify_cache(tiny.location, tiny.utterances) == []
    kept = sum(part.stored for *_, part in take_inventory(tiny.location, tiny.utterances).derived)
    assert kept == {"wave": 9, "store.json": 0}[kind]
    assert_sound(store(tiny), tiny)


def test_garbage_among_the_waveforms_is_of_utterances_that_are_gone(tiny):
    store(tiny)
    left = tiny.utterances[:5]  # the last of three shards is of none of them
    _, names = collect_garbage(tiny.location, left)
    assert len(names) == 1
    assert_sound(store(tiny, left, progress=lambda *now: pytest.fail("made again")), tiny, left)
    # Other settings of the audio leave them alone.
    assert collect_garbage(locate(tiny.root, n_mels=40).location, left)[1] == []
