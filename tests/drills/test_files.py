"""The drill's attacks on files, disks and pairs of commands: small cases, and faults planted in the
program to see that each is caught."""

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.drills import disk, flip_checks, flips, pairs, small_runs
from benchmarks.drills.cases import Outcome
from benchmarks.drills.children import Ended
from benchmarks.drills.small_runs import CORPUS, RUN
from myxtts.checkpoints import mark_best, save_state
from tests.helpers.new_process import in_new_process


def outcome(found: Outcome) -> list[str]:
    return [found.result, found.detail]


def bare_corpus(folder: Path) -> Path:
    folder.mkdir()
    small_runs.make_corpus(folder, seed=0, count=4)
    return folder


# Flips


def cache_flips(folder: Path) -> dict[str, list[str]]:
    whole = bare_corpus(folder / "whole")
    small_runs.run(whole, *small_runs.PREPARE)
    stored = {"stored": small_runs.stored(whole / CORPUS)}
    (folder / "references.pickle").write_bytes(pickle.dumps(stored))
    (file,) = (path.relative_to(whole) for path in whole.glob(f"{CORPUS}/*/features-*/*.mel"))

    def check(name: str) -> list[str]:
        world = small_runs.copy(whole, folder / name / "world")
        content = bytearray((world / file).read_bytes())
        content[100] ^= 1
        (world / file).write_bytes(content)
        return outcome(flip_checks.verify_and_fix(world, file, flip_checks.References(folder)))

    from myxtts.data.store.store import Store

    found = {"as it is": check("checked")}
    Store._damage = lambda self, index: []
    return found | {"without its check": check("unchecked")}


def test_a_flipped_bit_of_the_cache_is_repaired_and_the_drill_sees_if_it_is_not(tmp_path):
    found = in_new_process(cache_flips, tmp_path)
    assert found["as it is"][0] == "repaired"
    assert found["without its check"][0] == "WRONG"
    assert "utt-0000.mel" in found["without its check"][1]


@pytest.fixture
def world(tmp_path) -> Path:
    """A run of two checkpoints, and what they hold."""
    states = tmp_path / "world" / RUN / "checkpoints"
    for step in (1, 2):
        save_state(states, step, {"weight": np.arange(8.0) * step}, {"epoch": step})
    mark_best(states, 2, "loss", 0.5)
    values = {
        "states": {path.name: flip_checks._state(path) for path in states.glob("step-*")},
        "best": {RUN: (2, "loss", 0.5)},
    }
    (tmp_path / "references.pickle").write_bytes(pickle.dumps(values))
    return tmp_path / "world"


def flip_state(world: Path) -> Outcome:
    file = Path(RUN) / "checkpoints" / "step-00000002" / "state.safetensors"
    content = bytearray((world / file).read_bytes())
    content[-3] ^= 64
    (world / file).write_bytes(content)
    return flip_checks.load_state(world, file, flip_checks.References(world.parent))


def test_a_flipped_checkpoint_gives_way_to_the_one_before(world):
    assert flip_state(world).result == "repaired"


def test_the_drill_sees_a_checkpoint_that_is_not_checked(world, monkeypatch):
    monkeypatch.setattr("myxtts.checkpoints.files._compare", lambda *args: None)
    found = flip_state(world)
    assert found.result == "WRONG" and "read as something else" in found.detail


def test_the_drill_sees_a_loader_that_raises(world, monkeypatch):
    def fail(path, sha256, record):
        raise KeyError("sha256")

    monkeypatch.setattr("myxtts.checkpoints.files._compare", fail)
    found = flip_state(world)
    assert found.result == "TRACEBACK" and "KeyError" in found.detail


@pytest.mark.parametrize(
    ("damage", "left"),
    [("half", b"ab"), ("one byte less", b"abc"), ("empty", b""), ("swapped", b"wxyz")],
)
def test_how_a_file_is_damaged(tmp_path, damage, left):
    path, partner = tmp_path / "file", tmp_path / "partner"
    path.write_bytes(b"abcd")
    partner.write_bytes(b"wxyz")
    flips.do_damage(path, damage, flips.random.Random(0), partner)
    assert path.read_bytes() == left


def test_a_flipped_bit_is_one_bit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    flips.do_damage(path, "bit", flips.random.Random(0), None)
    assert sum(byte.bit_count() for byte in path.read_bytes()) == 1


# Disks


def small_disks(folder: Path) -> dict[str, list[str]]:
    reason = disk.children.call(lambda: print(disk.why_not()), folder / "mount.log").text.strip()
    if reason:
        return {"skipped": [reason]}
    bare_corpus(folder / "bare")
    plan = next(plan for plan in disk.PLANS if plan.name == "prepare")
    disk.children.call(partial(disk._measure, folder, plan), folder / "measure.log")
    found = {}
    for fault in (disk.Pages(7), disk.Inodes(3), disk.ReadOnly(), disk.Quota(5)):
        work = folder / f"case {fault}"
        found[fault.kind] = outcome(disk.run_case(folder, plan, fault, work))

    from myxtts.data.store import store

    store.explained = _silent  # the program forgets what it promised
    work = folder / "unexplained"
    found["unexplained"] = outcome(disk.run_case(folder, plan, disk.Pages(7), work))
    return found


class _silent:
    def __init__(self, folder): ...
    def __enter__(self): ...
    def __exit__(self, *_): ...


@pytest.mark.timeout(300)
def test_a_disk_that_refuses_is_explained_and_the_drill_sees_if_it_is_not(tmp_path):
    found = in_new_process(small_disks, tmp_path)
    if "skipped" in found:
        pytest.skip(f"a small disk cannot be mounted here: {found['skipped'][0]}")
    assert found.pop("unexplained")[0] == "WRONG"
    assert {result for result, _ in found.values()} <= {"refused", "equal"}


def test_what_is_half_written_is_seen(world):
    plan = next(plan for plan in disk.PLANS if plan.name == "train")
    assert disk.half_written(world, plan, {}, {}) == ""
    (world / RUN / "checkpoints" / "step-00000002" / "state.safetensors").write_bytes(b"")
    assert "state.safetensors" in disk.half_written(world, plan, {}, {})


@pytest.mark.parametrize(
    ("code", "text", "result"),
    [
        (2, "Traceback (most recent call last):\n  File x\nOSError: no", "TRACEBACK"),
        (1, "error: no space in run/voice: free some", "WRONG"),
        (-7, "", "CRASHED"),
        (2, "error: no space left while writing run/voice: free some", None),
        (2, "error: no space left", "WRONG"),
        (2, "error: [Errno 28] No space left: 'run/voice' (--verbose shows where)", "WRONG"),
    ],
)
def test_how_an_ending_is_judged(tmp_path, code, text, result):
    plan = next(plan for plan in disk.PLANS if plan.name == "train")
    ended = Ended(code, text, 0.0, 0.0)
    found = small_runs.broken(ended) or disk._judge(ended, plan, tmp_path, {})
    assert (found and found.result) == result


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (f"{RUN}/.voice.old/config.yaml", f"cannot remove {RUN}/.voice.old (Read-only"),
        (f"{RUN}/performance.html.7.tmp", f"cannot write /data/{RUN}/performance.html (Read-only"),
    ],
)
def test_what_a_disk_does_not_let_go_may_stay_only_if_the_command_says_so(tmp_path, left, said):
    plan = next(plan for plan in disk.PLANS if plan.name == "train")
    (tmp_path / left).parent.mkdir(parents=True)
    (tmp_path / left).touch()

    def judged(text: str) -> Outcome | None:
        return disk._judge(Ended(0, text, 0.0, 0.0), plan, tmp_path, {})

    assert judged(f"warning: {said} file system)") is None
    for text in ("finished", said.replace(RUN, "other"), said.replace(" (", ".html (")):
        found = judged(text)
        assert found and found.result == "WRONG" and left in found.detail


def test_every_size_up_to_the_need_can_be_tried():
    assert disk._spread(5, 4, disk.random.Random(0)) == [0, 1, 2, 3]
    assert len(disk._spread(40, 1000, disk.random.Random(0))) == 40


# Pairs


def two_prepares(folder: Path) -> dict[str, list[str]]:
    bare_corpus(folder / "bare")
    alone = small_runs.copy(folder / "bare", folder / "alone")
    small_runs.run(alone, *small_runs.PREPARE)
    found = {}
    for name, before in (("as it is", None), ("with other features", _louder)):
        pair = pairs.Pair(small_runs.PREPARE, small_runs.PREPARE, "bare", before=before)
        found[name] = outcome(pairs.run_case(folder, pair, 0.0, folder / name))
    return found


def _louder() -> None:
    from myxtts.data.features import prepare

    compute = prepare.compute_features

    def louder(*args):
        return {name: value + 1 for name, value in compute(*args).items()}

    prepare.compute_features = louder


def test_two_prepares_leave_what_one_does_and_the_drill_sees_if_they_do_not(tmp_path):
    found = in_new_process(two_prepares, tmp_path)
    assert found["as it is"][0] == "equal"
    assert found["with other features"][0] == "LOST"


def test_a_second_training_must_be_refused_with_a_word_on_the_first():
    pair = next(pair for pair in pairs.PAIRS if pair.is_exclusive)
    assert pairs._judge_codes(pair, (0, 2), "", "another process trains in run") is None
    assert pairs._judge_codes(pair, (0, 2), "", "error: no") is not None
    assert pairs._judge_codes(pair, (2, 2), "another process", "another process") is not None
