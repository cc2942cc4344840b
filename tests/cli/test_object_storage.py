"""Every command with a cache on object storage, by a folder that stands for a bucket."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="object storage needs the extra object-storage")

from myxtts.data.features import prepare as preparing
from tests.helpers import stand_in_encoder
from tests.helpers.tiny_cache import contents, flip_bit


@pytest.fixture
def bucket(tmp_path) -> Path:
    return tmp_path / "bucket"


@pytest.fixture
def url(bucket) -> str:
    return f"file://{bucket}/lj"


@pytest.fixture
def prepared(myxtts, corpus, url) -> Path:
    """The corpus, of which the bucket has everything and this machine nothing."""
    assert myxtts("prepare", corpus, "--cache-dir", url)[0] == 0
    forget(corpus)
    return corpus


def forget(corpus: Path) -> None:
    """Become another machine."""
    shutil.rmtree(corpus.parent / "user-cache")


def objects(bucket: Path, kind: str) -> list[Path]:
    return sorted((bucket / "lj" / "corpus").glob(f"*/*.{kind}"))


def test_prepare_stores_the_bytes_of_a_local_cache(myxtts, prepared, bucket):
    assert myxtts("prepare", prepared)[0] == 0
    local = contents(prepared / "cached_features")
    local = {name: data for name, data in local.items() if not name.endswith(".lock")}
    assert contents(bucket / "lj" / "corpus") == local
    assert not list(bucket.rglob("*.part"))


def test_prepare_reuses_what_another_machine_has_stored(myxtts, prepared, url):
    code, out, _ = myxtts("prepare", prepared, "--cache-dir", url)
    assert code == 0 and "features  0 made, 12 reused, 0 dropped" in out
    assert f"in {url}/corpus;" in out


def test_a_corpus_elsewhere_with_the_same_name_shares_the_cache(myxtts, prepared, url, tmp_path):
    moved = Path(shutil.copytree(prepared, tmp_path / "elsewhere" / "corpus"))
    _, out, _ = myxtts("prepare", moved, "--cache-dir", url)
    assert "features  0 made, 12 reused, 0 dropped" in out


def test_workers_on_two_machines_store_the_bytes_of_one(
    myxtts, corpus, url, bucket, tmp_path, monkeypatch
):
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: 3)
    for number, stored in ((1, "other workers have"), (2, "nothing is left to prepare")):
        mirror = ("--local-cache-dir", tmp_path / f"machine-{number}")
        worker = ("--worker", f"{number}/2")
        code, out, _ = myxtts("prepare", corpus, "--cache-dir", url, *mirror, *worker)
        assert code == 0 and stored in out
    assert myxtts("prepare", corpus)[0] == 0
    local = contents(corpus / "cached_features")
    local = {name: data for name, data in local.items() if not name.endswith(".lock")}
    assert contents(bucket / "lj" / "corpus") == local


def test_a_cluster_wants_a_shared_file_system(myxtts, corpus, url):
    code, _, err = myxtts("prepare", corpus, "--cache-dir", url, "--cluster", "auto")
    assert code == 2 and "--worker I/N" in err


def test_info_says_what_lies_there(myxtts, prepared, url):
    code, out, _ = myxtts("cache", "info", prepared, "--cache-dir", url)
    assert code == 0
    assert "features  12 stored, 0 missing, 0 could not be made; 1 shards" in out
    assert f"MB in {url}/corpus/features-" in out


def test_verify_reads_every_byte_there(myxtts, prepared, url, bucket):
    arguments = (prepared, "--cache-dir", url)
    code, out, _ = myxtts("cache", "verify", *arguments)
    assert code == 0 and out.endswith("every byte is as it was written\n")
    flip_bit(objects(bucket, "mel")[0], 50)
    code, _, err = myxtts("cache", "verify", *arguments)
    assert code == 2 and f"{url}/corpus: " in err and ".mel: damaged utterances" in err


@pytest.mark.parametrize("kind", ["mel", "pitch", "tokens", "index"])
def test_fix_repairs_what_lies_there(myxtts, prepared, url, bucket, kind):
    arguments = (prepared, "--cache-dir", url)
    assert myxtts("prepare", *arguments)[0] == 0  # a mirror that knows the sound cache
    flip_bit(objects(bucket, kind)[0], 50)
    code, out, _ = myxtts("cache", "fix", *arguments)
    assert code == 0 and f".{kind}" in out
    forget(prepared)
    assert myxtts("cache", "verify", *arguments)[0] == 0


def test_fix_makes_what_was_deleted_there(myxtts, prepared, url, bucket):
    arguments = (prepared, "--cache-dir", url)
    objects(bucket, "energy")[0].unlink()
    assert myxtts("cache", "fix", *arguments)[0] == 0
    assert myxtts("cache", "verify", *arguments)[0] == 0


def test_gc_deletes_nothing_there(myxtts, prepared, url, bucket):
    before = contents(bucket)
    code, _, err = myxtts("cache", "gc", prepared, "--cache-dir", url)
    assert code == 2 and "nothing is deleted on object storage" in err
    assert contents(bucket) == before


def test_speaker_embeddings_are_stored_there_and_read_elsewhere(
    myxtts, corpus, url, bucket, tmp_path, monkeypatch
):
    stand_in_encoder.install(monkeypatch)
    weights = stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())
    arguments = (corpus, "--cache-dir", url, "--speaker-encoder-path", weights)
    code, out, _ = myxtts("prepare", *arguments)
    assert code == 0 and "voices    12 made" in out
    assert objects(bucket, "embedding")
    forget(corpus)
    _, out, _ = myxtts("prepare", *arguments)
    assert "voices    0 made, 12 reused, 0 dropped" in out
    _, out, _ = myxtts("cache", "info", corpus, "--cache-dir", url)
    assert "voices    12 stored" in out and "(by ecapa_tdnn)" in out
    assert myxtts("cache", "verify", corpus, "--cache-dir", url)[0] == 0


def test_a_bucket_without_the_cache_is_named(myxtts, corpus, url, tmp_path):
    options = ("--checkpoint-dir", tmp_path / "run", "--model-size", "tiny")
    code, _, err = myxtts("train", "--data", corpus, "--cache-dir", url, *options)
    assert code == 2 and f"{url}/corpus lacks" in err and "myxtts prepare" in err
    assert not (tmp_path / "user-cache" / "myxtts" / "object-storage").exists()


def test_an_unknown_protocol_is_named(myxtts, corpus):
    code, _, err = myxtts("prepare", corpus, "--cache-dir", "nonsense://bucket/lj")
    assert code == 2 and "nonsense://bucket/lj" in err and "s3://bucket/folder" in err


def test_the_acceptance_test_wants_a_disk(myxtts, corpus, url):
    code, _, err = myxtts("bench", "--data", corpus, "--cache-dir", url)
    assert code == 2 and "give --cache-dir a folder" in err
