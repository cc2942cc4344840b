import pytest

from tests.cli.commands.test_prepare import files, store
from tests.helpers import stand_in_encoder


@pytest.fixture
def prepared(corpus, myxtts):
    assert myxtts("prepare", corpus)[0] == 0
    return corpus


def flip(path, position: int = 100) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))


def test_info_counts_what_is_stored(myxtts, prepared):
    code, out, _ = myxtts("cache", "info", prepared)
    assert code == 0
    assert "utterances in the corpus  12" in out
    assert "features  12 stored, 0 missing, 0 could not be made; 1 shards" in out


def test_info_of_no_cache_counts_what_is_missing(myxtts, corpus):
    code, out, _ = myxtts("cache", "info", corpus)
    assert code == 0
    assert "features  0 stored, 12 missing" in out


def test_verify_finds_nothing_in_a_sound_cache(myxtts, prepared):
    code, out, err = myxtts("cache", "verify", prepared)
    assert (code, err) == (0, "")
    assert "12 of 12 are stored" in out
    assert out.endswith("every byte is as it was written\n")


def test_verify_without_a_cache_says_how_to_make_one(myxtts, corpus):
    code, _, err = myxtts("cache", "verify", corpus)
    assert code == 2
    assert f"`myxtts prepare {corpus}`" in err


@pytest.mark.parametrize("kind, suffix", [("features", "mel"), ("features", "index"),
                                          ("features", "pitch"), ("tokens", "tokens")])  # fmt: skip
def test_a_flipped_bit_is_found_and_fixed(myxtts, prepared, kind, suffix):
    sound = files(prepared)
    (path,) = store(prepared, kind).glob(f"*.{suffix}")
    flip(path)
    code, _, err = myxtts("cache", "verify", prepared)
    assert code == 2
    assert path.name in err
    assert "`myxtts cache fix`" in err
    code, out, _ = myxtts("cache", "fix", prepared)
    assert code == 0
    assert path.name in out
    assert myxtts("cache", "verify", prepared)[0] == 0
    assert set(store(prepared, kind).glob("*.tmp")) == set()
    if suffix == "index":  # the shard was dropped whole, and the same work has the same bytes
        assert files(prepared) == sound


def test_fix_of_a_sound_cache_changes_nothing(myxtts, prepared):
    sound = files(prepared)
    code, out, _ = myxtts("cache", "fix", prepared)
    assert (code, out) == (0, "0 problems; made again: 0 rows\n")
    assert files(prepared) == sound


def test_gc_deletes_what_other_settings_left(myxtts, prepared):
    assert myxtts("prepare", prepared, "--cache-dtype", "float32")[0] == 0
    assert "of other settings: features-" in myxtts("cache", "info", prepared)[1]
    code, out, _ = myxtts("cache", "gc", prepared)
    assert code == 0
    assert "deleted features-" in out
    assert myxtts("cache", "verify", prepared)[0] == 0
    store(prepared)  # one is left


# What encoders said of the voices.


@pytest.fixture
def voiced(corpus, myxtts, monkeypatch, tmp_path):
    """A cache with the embeddings of a small stand-in for ECAPA-TDNN."""
    stand_in_encoder.install(monkeypatch)
    path = stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())
    assert myxtts("prepare", corpus, "--speaker-encoder-path", path)[0] == 0
    return corpus


def test_info_lists_the_voices_with_their_encoder_and_size(myxtts, voiced):
    code, out, _ = myxtts("cache", "info", voiced)
    (line,) = [line for line in out.splitlines() if line.startswith("voices")]
    assert code == 0
    assert line.startswith("voices    12 stored, 0 missing, 0 could not be made; 1 shards, ")
    assert line.endswith(f"MB in {store(voiced, 'voices')} (by ecapa_tdnn)")


def test_damaged_voices_are_found_and_dropped_and_made_by_the_next_to_ask(myxtts, voiced, tmp_path):
    sound = files(voiced)
    (path,) = store(voiced, "voices").glob("*.index")
    flip(path)
    code, _, err = myxtts("cache", "verify", voiced)
    assert code == 2 and path.name in err
    code, out, _ = myxtts("cache", "fix", voiced)
    assert code == 0 and path.name in out
    assert myxtts("cache", "verify", voiced)[0] == 0
    assert list(store(voiced, "voices").glob("*.index")) == []
    own = ("--speaker-encoder-path", tmp_path / "own.pt")
    assert myxtts("prepare", voiced, *own)[0] == 0
    assert files(voiced) == sound


def test_gc_keeps_the_voices_whatever_the_settings_of_the_audio(myxtts, voiced):
    kept = {name: data for name, data in files(voiced).items() if "voices-" in name}
    code, out, _ = myxtts("cache", "gc", voiced, "--sample-rate", 16000)
    assert code == 0 and "deleted features-" in out
    assert {name: data for name, data in files(voiced).items() if "voices-" in name} == kept


def test_gc_keeps_speed_perturbed_features_while_they_are_in_use(myxtts, corpus):
    augmented = ("--voice-augmentation", 1)
    # Two shards: what is added goes into one of its own.
    assert myxtts("prepare", corpus)[0] == myxtts("prepare", corpus, *augmented)[0] == 0
    sound = files(corpus)
    code, out, _ = myxtts("cache", "gc", corpus, *augmented)
    assert (code, "deleted" in out, files(corpus) == sound) == (0, False, True)
    assert myxtts("cache", "verify", corpus, *augmented)[0] == 0
    code, out, _ = myxtts("cache", "gc", corpus)
    assert code == 0 and out.count("deleted") == 2  # of features and of tokens
    assert "features  12 stored, 0 missing" in myxtts("cache", "info", corpus)[1]
