"""What is reused is checked: damage is found, named and made again, once per process and shard."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from myxtts.data.features import prepare as preparing
from myxtts.data.features.prepare import prepare
from myxtts.data.features.repair import verify_cache
from myxtts.data.store.integrity import drop_damage, find_damage
from myxtts.data.store.store import Store
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_cache import (
    TinyCache,
    arrays,
    assert_same_arrays,
    contents,
    flip_bit,
    locate,
)

FILES = ("mel", "energy", "pitch", "tokens", "features index", "tokens index")
SHARD = 4


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "shard_size", lambda utterances: SHARD)
        yield


@pytest.fixture(scope="module")
def prepared_once(tmp_path_factory) -> TinyCache:
    """Eight utterances of one length, so that files of a kind have one size."""
    path = tmp_path_factory.mktemp("integrity") / "corpus"
    tiny = locate(make_corpus(path, 2 * SHARD, seconds=(0.5, 0.5)))
    prepare(tiny.utterances, tiny.location, workers=1)
    return tiny


@pytest.fixture(scope="module")
def truth(prepared_once) -> dict:
    return arrays(prepared_once.location)


@pytest.fixture
def tiny(prepared_once, tmp_path) -> TinyCache:
    return locate(Path(shutil.copytree(prepared_once.root, tmp_path / "corpus")))


def files_of(tiny: TinyCache, kind: str) -> list[Path]:
    name, _, is_index = kind.partition(" ")
    store = tiny.location.tokens if name == "tokens" else tiny.location.features
    return sorted(store.folder.glob("*.index" if is_index else f"*.{name}"))


def flip(first: Path, second: Path) -> None:
    flip_bit(first, 40, bit=3)


def truncate(first: Path, second: Path) -> None:
    os.truncate(first, first.stat().st_size // 2)


def empty(first: Path, second: Path) -> None:
    os.truncate(first, 0)


def swap(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("damage", [flip, truncate, empty, swap])
def test_prepare_makes_damaged_files_again(
    tiny, truth, caplog, kind: str, damage: Callable[[Path, Path], None]
):
    first, second = files_of(tiny, kind)
    damage(first, second)
    report = prepare(tiny.utterances, tiny.location, workers=1)
    assert_same_arrays(arrays(tiny.location), truth)
    assert verify_cache(tiny.location) == []
    lost = {flip: 1 if "index" not in kind else SHARD, swap: 2 * SHARD}.get(damage, SHARD)
    assert (report.made, report.reused) == (lost, 4 * SHARD - lost)
    assert report.rebuilt["tokens" if "tokens" in kind else "features"] == lost
    assert report.rebuilt.total() == lost
    assert first.stem in caplog.text


def test_what_is_rebuilt_is_counted_by_the_part_that_it_belongs_to(tiny):
    truncate(*files_of(tiny, "mel"))
    lost = {tiny.utterances[at].id for at in range(SHARD)}
    parts = [[u for u in tiny.utterances if (u.id in lost) == chosen] for chosen in (False, True)]
    counts = [
        prepare(part, tiny.location, workers=1, tokens=False).rebuilt["features"] for part in parts
    ]
    assert sorted(counts) == [0, SHARD]
    again = prepare(tiny.utterances, tiny.location, workers=1, overwrite=True)
    assert again.rebuilt.total() == 0


def test_whole_shards_are_made_again_with_the_same_bytes(tiny, prepared_once):
    for kind in ("mel", "tokens"):
        truncate(*files_of(tiny, kind))
    prepare(tiny.utterances, tiny.location, workers=1)
    assert contents(tiny.folder) == contents(prepared_once.folder)


def test_without_verification_nothing_is_checked_or_said(tiny, caplog, monkeypatch):
    monkeypatch.setattr(Store, "check_shards", lambda *_: pytest.fail("it was checked"))
    flip_bit(files_of(tiny, "mel")[0], 40)
    report = prepare(tiny.utterances, tiny.location, workers=1, verify=False)
    assert (report.made, report.rebuilt.total(), caplog.text) == (0, 0, "")


@pytest.fixture
def checked(monkeypatch) -> list[str]:
    """The names of the shards that are read through, one after the other."""
    names = []
    check = Store._damage

    def counting(store: Store, index):
        names.append(index.name)
        return check(store, index)

    monkeypatch.setattr(Store, "_damage", counting)
    return names


def age(folder: Path) -> None:
    """Wait until the times of files tell their next change."""
    for path in folder.rglob("*"):
        while (os.stat(folder).st_ctime_ns - path.stat().st_ctime_ns) < 2e8:
            (folder / "clock").write_bytes(b"")
            (folder / "clock").unlink()


def test_a_shard_is_checked_once_while_it_stays_as_it_is(tiny, checked):
    age(tiny.folder)
    for _ in range(3):
        prepare(tiny.utterances, tiny.location, workers=1)
    assert len(checked) == len(set(checked)) == 4
    path = files_of(tiny, "mel")[0]
    flip_bit(path, 40)
    assert [problem.file for problem in find_damage(tiny.location.features)] == [path.name]
    assert checked[4:] == [path.stem]
    # Damage is not forgotten.
    assert len(find_damage(tiny.location.features)) == 1


def test_damage_that_another_process_has_mended_meanwhile_is_left_alone(tiny, monkeypatch):
    store = tiny.location.features
    path = files_of(tiny, "mel")[0]
    good = path.read_bytes()
    flip_bit(path, 40)
    found = find_damage(store)
    path.write_bytes(good)
    monkeypatch.setattr("myxtts.data.store.integrity.find_damage", lambda *_: found)
    before = contents(tiny.folder)
    assert drop_damage(store) == found
    assert contents(tiny.folder) == before


def test_a_shard_that_is_gone_meanwhile_is_no_damage(tiny):
    store = tiny.location.features
    paths = store.index_files()
    store.drop(paths[0].stem)
    assert store.check_shards(paths) == []


def test_an_index_that_is_a_pipe_is_damage(tiny, truth):
    path = files_of(tiny, "features index")[0]
    path.unlink()
    os.mkfifo(path)
    assert prepare(tiny.utterances, tiny.location, workers=1).rebuilt["features"] == SHARD
    assert_same_arrays(arrays(tiny.location), truth)
