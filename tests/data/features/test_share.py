"""Sharing out the shards of a corpus among workers that do not talk to each other."""

import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.data.features import prepare as preparing
from myxtts.data.features.prepare import FeatureWork, TokenWork, divide, prepare
from myxtts.data.features.share import Share, first_places
from myxtts.data.store.errors import CacheError
from myxtts.data.store.view import StoreView
from myxtts.errors import UserError
from tests.helpers.held_store import held_elsewhere
from tests.helpers.make_corpus import make_corpus
from tests.helpers.tiny_cache import TinyCache, arrays, contents, flip_bit, locate

SIZE = 4


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: SIZE)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """Thirty utterances: seven shards and a short one."""
    return make_corpus(tmp_path_factory.mktemp("share") / "corpus", 30, seconds=(0.3, 0.5))


@pytest.fixture
def tiny(original, tmp_path) -> TinyCache:
    return locate(Path(shutil.copytree(original, tmp_path / "corpus")))


def shares(count: int) -> list[Share]:
    return [Share(number, count) for number in range(1, count + 1)]


def test_a_share_is_read_from_its_number_and_the_count():
    assert Share.parse("3/8") == Share(3, 8)
    assert Share.parse(" 1/1 ") == Share() == Share(1, 1)


@pytest.mark.parametrize(
    "text", ["0/8", "9/8", "1/0", "-1/8", "1", "1/2/3", "one/two", "", "1.0/2"]
)
def test_a_share_that_there_is_not_is_rejected(text):
    with pytest.raises(UserError, match=r"--worker .*from 1 to N; for example 3/8"):
        Share.parse(text)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_every_shard_of_a_new_corpus_has_one_owner_and_all_have_equally_many(count):
    owners = Counter()
    for shard in range(52):
        (owner,) = [one for one in shares(count) if one.owns(SIZE * shard, SIZE)]
        owners[owner] += 1
    assert len(owners) == count
    assert max(owners.values()) - min(owners.values()) <= 1


def test_shards_that_begin_at_every_second_place_are_shared_out_too():
    owners = Counter(share for share in shares(2) for n in range(100) if share.owns(8 * n, SIZE))
    assert min(owners.values()) > 30


def test_a_missing_utterance_belongs_to_where_its_shard_will_begin(tiny):
    missing = np.array([n not in (0, 5, 6) for n in range(12)])
    prepare(tiny.utterances[:1], tiny.location, workers=1)
    prepare(tiny.utterances[5:7], tiny.location, workers=1)
    view = StoreView(tiny.location.features)
    places = first_places(tiny.utterances[:12], missing, view, SIZE)
    assert places.tolist() == [0, 1, 1, 1, 1, 5, 5, 7, 7, 7, 7, 11]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_workers_make_the_bytes_of_a_plain_preparation(original, tmp_path, count):
    plain, shared = (locate(original, tmp_path / name) for name in ("plain", "shared"))
    prepare(plain.utterances, plain.location, workers=1)
    reports = [
        prepare(shared.utterances, shared.location, workers=1, share=share)
        for share in shares(count)
    ]
    assert contents(shared.folder) == contents(plain.folder)
    assert sum(report.made for report in reports) == 60
    assert all(report.made for report in reports)


# What the store holds already when the workers begin.


def from_nothing(tiny: TinyCache) -> None:
    pass


def with_some_stored(tiny: TinyCache) -> None:
    prepare(tiny.utterances[3:17], tiny.location, workers=1)


def with_changes(tiny: TinyCache) -> None:
    """Recordings and texts that were changed after they were stored, some of them twice."""
    for changed in ((2, 3, 9, 20, 29), (3, 4, 5, 6, 7, 29)):
        prepare(tiny.utterances, tiny.location, workers=1)
        for number in changed:
            wave, rate = soundfile.read(tiny.utterances[number].audio)
            soundfile.write(tiny.utterances[number].audio, 0.9 * wave[:-100], rate)


def with_bad_recordings(tiny: TinyCache) -> None:
    for number in (0, 7, 13, 14, 15, 28):
        tiny.utterances[number].audio.write_bytes(b"no recording")


def with_damage(tiny: TinyCache) -> None:
    """Rows that are gone, a shard that is gone, and the bytes of rows that are still there."""
    prepare(tiny.utterances, tiny.location, workers=1)
    for store in (tiny.location.features, tiny.location.tokens):
        shards = store.shards()
        store.drop_rows(shards[1], list(shards[1].ids)[:3])
        store.drop(shards[4].name)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "begin", [from_nothing, with_some_stored, with_changes, with_bad_recordings, with_damage]
)
def test_workers_that_look_at_any_moment_and_die_at_any_moment_make_the_same_bytes(
    tiny, tmp_path, begin, overwrite
):
    begin(tiny)
    for number, count in enumerate((2, 5)):
        chance = random.Random(number)
        found = []
        for kind in (TokenWork, FeatureWork):
            plain, shared = (kind(tiny.location) for _ in range(2))
            plain.store = copy_of(plain.store, tmp_path / f"plain-{number}")
            shared.store = copy_of(shared.store, tmp_path / f"shared-{number}")
            for task in divide(
                plain, tiny.utterances, StoreView(plain.store), None, overwrite
            ).tasks:
                task()
            work_in_any_order(shared, tiny.utterances, count, chance, overwrite)
            found.append(contents(shared.store.folder))
            assert found[-1] == contents(plain.store.folder)
        assert all(found)


def copy_of(store, folder: Path):
    """A store with the same shards elsewhere."""
    copied = replace_folder(store, folder / store.folder.name)
    copied.folder.parent.mkdir(exist_ok=True)
    if store.folder.exists():
        shutil.copytree(store.folder, copied.folder)
    copied.create()
    return copied


def replace_folder(store, folder: Path):
    return type(store)(folder, store.columns, store.settings, store.companions)


def work_in_any_order(work, utterances, count: int, chance: random.Random, overwrite: bool) -> None:
    """Let workers look, make a shard, or die and begin again, in random turns, to the end."""
    waiting = {share: None for share in shares(count)}
    kills = 0 if overwrite else 6  # who begins again with that makes another generation
    while waiting:
        share = chance.choice(list(waiting))
        if waiting[share] is None:
            waiting[share] = divide(work, utterances, StoreView(work.store), share, overwrite).tasks
        elif kills and chance.random() < 0.3:
            kills, waiting[share] = kills - 1, None
        elif waiting[share]:
            waiting[share].pop(chance.randrange(len(waiting[share])))()
        else:
            del waiting[share]


# What is reported


def test_every_rejection_is_reported_by_one_worker_and_again_when_it_is_asked_again(tiny):
    with_bad_recordings(tiny)
    plain = locate(tiny.root, tiny.root.parent / "plain")
    expected = prepare(plain.utterances, plain.location, workers=1).rejections
    for made in (60, 0):
        reports = [
            prepare(tiny.utterances, tiny.location, workers=1, share=share) for share in shares(3)
        ]
        found = [one for report in reports for one in report.rejections]
        assert sorted(found, key=str) == sorted(expected, key=str) and len(found) == 6
        assert sum(report.made for report in reports) == made
        assert sum(report.made + report.reused for report in reports) == 60


def test_a_worker_that_finds_the_store_free_drops_damage_first(tiny, caplog):
    prepare(tiny.utterances, tiny.location, workers=1)
    before = arrays(tiny.location)
    path = tiny.file("mel")
    flip_bit(path, 100)
    reports = [prepare(tiny.utterances, tiny.location, workers=1, share=s) for s in shares(2)]
    assert sum(report.made for report in reports) == 1
    assert path.name in caplog.text
    assert arrays(tiny.location).keys() == before.keys()
    assert tiny.location.features.verify() == []


def test_a_worker_next_to_others_drops_nothing(tiny):
    prepare(tiny.utterances, tiny.location, workers=1)
    path = tiny.file("mel")
    flip_bit(path, 100)
    leftover = path.with_name(f"{path.name}.77-ab.tmp")
    leftover.write_bytes(b"half")
    with another_that_shares(tiny):
        report = prepare(tiny.utterances, tiny.location, workers=1, share=Share(1, 2))
        assert report.made == 0 and leftover.exists()
        assert [problem.shard for problem in tiny.location.features.verify()] == [path.stem]
    prepare(tiny.utterances, tiny.location, workers=1, share=Share(2, 2))
    assert not leftover.exists() and tiny.location.features.verify() == []


def another_that_shares(tiny: TinyCache):
    """A worker elsewhere: this process does not know that it holds the store itself."""
    return held_elsewhere(tiny.location.features.folder, shared=True)


def test_a_disk_without_room_for_everybodys_shards_is_rejected(tiny, monkeypatch):
    monkeypatch.setattr(FeatureWork, "estimate_bytes", lambda self, some: len(some) * 2**40)
    with pytest.raises(CacheError, match="the cache will take about 32,985,348.8 MB"):
        prepare(tiny.utterances, tiny.location, workers=1, share=Share(1, 8))


def test_a_speed_is_part_of_what_a_shard_costs(tiny):
    work = FeatureWork(tiny.location)
    one = tiny.utterances[0]
    assert work.effort(one) == one.audio.stat().st_size
    assert work.effort(replace(one, speed=2.0)) == work.effort(one) / 2
    assert TokenWork(tiny.location).effort(one) == len(one.text)
