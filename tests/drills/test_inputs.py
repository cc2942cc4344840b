"""The drill's inputs and long runs in small, and that planted faults do not escape its judges."""

import faulthandler
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks.drills import hostile, long_runs
from benchmarks.drills.cases import (
    ACCEPTED,
    BAD,
    CRASHED,
    HUNG,
    REFUSED,
    TRACEBACK,
    UNBOUNDED,
    WRONG,
    Outcome,
    Size,
)
from benchmarks.drills.growth import Limits, Sample, verdict, watch
from benchmarks.drills.inputs import (
    audio,
    corpora,
    downloads,
    scripts,
    settings,
    texts,
    traps,
    voices,
    weights,
)
from benchmarks.drills.judging import Bad, Bounds, Input, judge, numbered, try_all
from myxtts.checkpoints import files
from myxtts.config.config import XTTSConfig
from myxtts.config.io import save_config
from myxtts.errors import UserError
from tests.helpers.new_process import in_new_process

# Time is no matter here but where it is what is planted.
PATIENT = Bounds(cpu_seconds=600.0, megabytes=60.0, written_megabytes=5.0, patience=1.0)
STRICT = replace(PATIENT, cpu_seconds=0.05, patience=1000.0)
HASTY = replace(PATIENT, cpu_seconds=-4.5)  # half a second in all


def judged(tmp_path: Path, *runs, bounds: Bounds = PATIENT) -> Outcome:
    inputs = numbered(Input(run.__name__, 100, run) for run in runs)
    return try_all(inputs, tmp_path / "work", bounds)


def fine(folder: Path) -> None:
    (folder / "output.txt").write_text("in its own folder")


def refused(folder: Path) -> None:
    raise UserError("this cannot be used: choose another")


def missing(folder: Path) -> None:
    (folder / "nothing").read_bytes()


def raising(folder: Path) -> None:
    raise ValueError("a bug")


def wordy(folder: Path) -> None:
    raise UserError("a line\n" * 50)


def silent(folder: Path) -> int:
    return 2


def allocating(folder: Path) -> None:
    np.ones(100 * 2**20 // 8)


def spinning(folder: Path) -> None:
    began = time.process_time()
    while time.process_time() - began < 0.4:
        pass


def hanging(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "pipe").read_bytes()


def filling(folder: Path) -> None:
    (folder / "much").write_bytes(bytes(6 * 2**20))


def escaping(folder: Path) -> None:
    (folder.parent / "canary" / "escaped").touch()


def deleting(folder: Path) -> None:
    (folder / "../canary/precious").unlink()


def overwriting(folder: Path) -> None:
    (folder / "../canary/precious").write_text("mine")


def running_code(folder: Path) -> None:
    os.system("touch ran")


def dying(folder: Path) -> None:
    faulthandler.disable()  # its report would look like a crash of the tests
    os.abort()


def answering_wrongly(folder: Path) -> None:
    raise Bad(WRONG, "other numbers")


def test_inputs_that_are_used_or_refused_are_counted(tmp_path):
    outcome = judged(tmp_path, fine, refused, fine, missing)
    assert outcome == Outcome(ACCEPTED, "4 inputs", {ACCEPTED: 2, REFUSED: 2})


@pytest.mark.parametrize(
    ("fault", "result", "detail"),
    [
        (raising, TRACEBACK, "ValueError"),
        (wordy, UNBOUNDED, "fills the screen"),
        (silent, CRASHED, "without an error message"),
        (allocating, UNBOUNDED, "memory"),
        (filling, UNBOUNDED, "bytes written"),
        (escaping, WRONG, "canary/escaped"),
        (deleting, WRONG, "canary/precious"),
        (overwriting, WRONG, "canary/precious"),
        (running_code, WRONG, "ran code"),
        (dying, CRASHED, "-6"),
        (answering_wrongly, WRONG, "other numbers"),
    ],
)
def test_a_planted_fault_is_found_and_the_inputs_around_it_are_tried(
    tmp_path, fault, result, detail
):
    outcome = judged(tmp_path, fine, fault, refused)
    assert (outcome.result, outcome.counts) == (result, {ACCEPTED: 1, result: 1, REFUSED: 1})
    assert detail in outcome.detail and f"1-{fault.__name__}" in outcome.detail


def test_more_cpu_than_the_size_allows_is_found(tmp_path):
    outcome = judged(tmp_path, spinning, bounds=STRICT)
    assert outcome.result == UNBOUNDED and "CPU seconds" in outcome.detail


def test_an_input_that_hangs_is_killed_and_the_next_one_is_tried(tmp_path):
    outcome = judged(tmp_path, hanging, hanging, bounds=HASTY)
    assert (outcome.result, outcome.counts) == (HUNG, {HUNG: 2})


def test_what_grows_without_end_is_found():
    def samples(megabytes=0.0, threads=0.0, descriptors=0.0):
        return [
            Sample(n, 300 + megabytes * n, int(20 + threads * n), int(50 + descriptors * n))
            for n in range(1000)
        ]

    limits = Limits(megabytes=10.0, kilobytes_per_unit=1.0)
    for growing, name in (
        ({"megabytes": 0.05}, "memory"),
        ({"threads": 0.01}, "threads"),
        ({"descriptors": 0.02}, "descriptors"),
    ):
        fault, told = verdict(samples(**growing), 1000, limits)
        assert fault.result == UNBOUNDED and fault.detail.startswith(f"{name}: "), told
    assert verdict(samples(megabytes=0.005), 1000, limits)[0] is None


def test_growth_within_the_warm_up_is_none():
    early = [Sample(n, 300 + n, 20 + n, 50) for n in range(200)]
    later = [Sample(n, 500, 220, 50) for n in range(200, 1000)]
    assert verdict(early + later, 1000, Limits())[0] is None


def test_files_of_a_run_that_outgrow_their_limits_are_named(tmp_path):
    (tmp_path / "history.jsonl").write_bytes(bytes(100))
    assert long_runs.judge_files(tmp_path, 10, "").result == ACCEPTED
    (tmp_path / "performance.html").write_bytes(bytes(long_runs.PAGE_BYTES + 1))
    (tmp_path / "history.jsonl").write_bytes(bytes(long_runs.HISTORY_BYTES_PER_LINE * 11))
    outcome = long_runs.judge_files(tmp_path, 10, "")
    assert outcome.result == UNBOUNDED and outcome.detail.startswith("history.jsonl, pages: ")


@pytest.mark.parametrize("kind", [corpora, traps, audio, scripts, settings, texts, weights])
def test_the_inputs_of_a_kind_are_the_same_for_the_same_seed(tmp_path, kind):
    kind.set_up(tmp_path, 0)
    names = [one.name for one in kind.inputs(tmp_path, 3, 20)]
    assert names == [one.name for one in kind.inputs(tmp_path, 3, 20)]
    assert names != [one.name for one in kind.inputs(tmp_path, 4, 20)]


def try_some(folder: Path) -> dict[str, tuple[str, str, int]]:
    found = {}
    for kind in (corpora, traps, audio, texts, scripts, settings, weights):
        name = kind.__name__.rpartition(".")[2]
        own = folder / name
        own.mkdir()
        kind.set_up(own, 0)
        inputs = numbered(kind.inputs(own, 5, 6))
        bounds = replace(kind.BOUNDS, cpu_seconds=600.0)
        outcome = try_all(inputs, own / "work", bounds, kind.warm_up)
        found[name] = (outcome.result, outcome.detail, sum(outcome.counts.values()))
    return found


def test_some_inputs_of_each_kind_are_used_or_refused(tmp_path):
    for name, (result, detail, count) in in_new_process(try_some, tmp_path).items():
        assert result not in BAD, f"{name}: {detail}"
        assert count == 6


def try_downloads(folder: Path) -> tuple[dict[str, int], str]:
    bounds = replace(downloads.BOUNDS, cpu_seconds=600.0)
    archive = downloads._ARCHIVES["good"]()
    inputs = [
        Input(manner, len(archive), downloads._download(archive, manner, False))
        for manner in ("plain", "short", "redirect-loop", "redirect-file", "range-other")
    ]
    outside = downloads._ARCHIVES["parents"]()
    inputs.append(Input("parents", len(outside), downloads._download(outside, "plain", False)))
    outcome = try_all(inputs, folder / "work", bounds)
    return outcome.counts, outcome.detail


def test_servers_and_archives_that_lie_are_refused(tmp_path):
    counts, detail = in_new_process(try_downloads, tmp_path)
    assert counts == {ACCEPTED: 1, REFUSED: 5}, detail


def test_a_voice_that_is_not_whole_is_refused(tmp_path):
    # In this process: one in which TensorFlow has been used cannot be forked.
    voices.save_small_voice(tmp_path / "voice")
    bounds = replace(voices.BOUNDS, cpu_seconds=600.0)
    attacks = {
        "missing": lambda random, folder: (folder / "model.safetensors").unlink(),
        "card": lambda random, folder: (folder / "voice.json").write_text('{"format": []}'),
    }
    for name, attack in attacks.items():
        use = voices._use(tmp_path / "voice", "voice", attack, 0)
        outcome = judge(Input(name, 10**5, use), tmp_path / name, bounds)
        assert outcome.result == REFUSED, outcome.detail


@pytest.mark.parametrize("kind", ["voice", "vocoder"])
def test_hostile_content_of_voices_has_the_checksums_of_its_card(tmp_path, kind):
    names = {"voice": ("config.yaml", "tokenizer.json", "model.safetensors")}.get(
        kind, ("model.safetensors",)
    )
    base = tmp_path / "base"
    base.mkdir()
    if kind == "voice":
        save_config(XTTSConfig(**voices._CONFIG), base / "config.yaml")
        files.write_json(base / "tokenizer.json", {"symbols": ["a", "b"], "units": "characters"})
    files.write_tensors(base / "model.safetensors", {"a": np.ones(4, np.float32)})
    card = {"format": 2, "settings": {"dim": 8}, "spec": {"hop_length": 256}}
    card["files"] = {name: files.describe(base / name) for name in names}
    files.write_json(base / f"{kind}.json", files.sealed(card))
    table = dict(voices._VOICE if kind == "voice" else voices._VOCODER)
    attacks = [table[n] for n in ("weights", "setting", "width", "tokenizer") if n in table]
    changed = 0
    for number, attack in enumerate(attacks * 5):
        folder = Path(shutil.copytree(base, tmp_path / str(number)))
        attack(Random(number), folder)
        record = files.unsealed(folder, files.read_json(folder / f"{kind}.json"), required=True)
        for name in names:
            files.check_file(folder / name, record["files"][name])
        changed += record != card
    assert changed >= 0.8 * len(attacks) * 5


def test_sizes_that_no_model_has_are_drawn_often():
    drawn = [voices._number(random) for random in map(Random, range(200))]
    assert sum(10**6 <= number <= 10**9 for number in drawn) > 80


def test_a_process_that_leaks_is_found(tmp_path):
    def leaks(counter):
        kept = []
        for number in range(100):
            kept.append(np.ones(2**17))  # a megabyte
            for one in kept:  # a page that is used is not paged out
                one[::512] = number
            counter.set(number + 1)
            time.sleep(0.06)

    limits = Limits(megabytes=10.0, kilobytes_per_unit=10.0)
    fault, told = watch(leaks, 100, tmp_path / "log", 600.0, limits)
    assert fault is not None and fault.result == UNBOUNDED, told


def test_all_inputs_together_are_as_many_as_promised(tmp_path):
    assert sum(kind.COUNT for kind in hostile.KINDS) >= 10_000
    cases = list(hostile.cases(tmp_path, 0, Size(1.0)))
    assert len({case.name for case in cases}) == len(cases)
    assert len({case.kind for case in cases}) == len(hostile.KINDS)
