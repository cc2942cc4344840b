"""`myxtts prepare --worker`: several workers on one cache, at the same time or not."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from myxtts.data.features import prepare as preparing
from tests.cli.commands.test_prepare import damage_recordings, deaf_to_the_first, files, store
from tests.helpers import stand_in_encoder
from tests.helpers.held_store import held_elsewhere
from tests.helpers.make_corpus import make_corpus

SHARD = 4
# The program with shards of four utterances.
PROGRAM = f"""
import sys
from myxtts.data.features import prepare
prepare.shard_size = lambda utterances: {SHARD}
from myxtts.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    monkeypatch.setattr(preparing, "shard_size", lambda utterances: SHARD)


def test_a_worker_says_what_is_its_own_and_what_is_left(myxtts, corpus):
    code, out, err = myxtts("prepare", corpus, "--worker", "1/2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{corpus}: 12 utterances, 12 to prepare; about ")
    own = int(lines[1].split("with ")[1].split()[0])
    shards = own // SHARD
    said = f"worker 1 of 2 has {shards} of 3 shards with {own} utterances, {own} to prepare"
    assert lines[1] == said and own in (4, 8)
    assert lines[2] == f"features  {own} made, 0 reused, 0 dropped"
    stored = f"stored by all workers, of 12 utterances: features {own}, tokens {own}; "
    assert lines[-1] == stored + f"other workers have {12 - own} to prepare"

    code, out, _ = myxtts("prepare", corpus, "--worker", "2/2")
    assert code == 0
    assert f"tokens    {12 - own} made, 0 reused, 0 dropped" in out
    assert out.endswith("features 12, tokens 12; nothing is left to prepare\n")
    code, out, _ = myxtts("prepare", corpus, "--worker", "1/2")
    assert f"features  0 made, {own} reused, 0 dropped" in out


@pytest.mark.parametrize("worker", ["0/8", "9/8", "eight"])
def test_a_worker_that_there_is_not_is_rejected(myxtts, corpus, worker):
    code, out, err = myxtts("prepare", corpus, "--worker", worker)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: --worker {worker}: write I/N") and "from 1 to N" in err
    assert not (corpus / "cached_features").exists()


def test_a_worker_is_not_part_of_a_cluster(myxtts, corpus):
    code, _, err = myxtts("prepare", corpus, "--worker", "1/2", "--cluster", "auto")
    assert code == 2
    assert err.startswith("error: --worker and --cluster exclude each other")


def test_what_cannot_be_prepared_is_named_by_one_worker(myxtts, corpus):
    damage_recordings(corpus)
    codes, named = [], []
    for number in (1, 2, 3):
        code, _, err = myxtts("prepare", corpus, "--worker", f"{number}/3")
        codes.append(code)
        named += [name for name in ("utt-0001", "utt-0002", "utt-0003") if name + ":" in err]
    # The metadata's, of which the recording is missing, are the first one's.
    assert sorted(named) == ["utt-0001", "utt-0002", "utt-0003"]
    assert codes[0] == 2 and set(codes) == {0, 2}
    assert myxtts("prepare", corpus, "--worker", "1/3", "--skip-bad")[0] == 0


def test_workers_embed_voices_to_the_same_bytes(myxtts, corpus, tmp_path, monkeypatch):
    stand_in_encoder.install(monkeypatch)
    weights = stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())
    monkeypatch.setattr("myxtts.data.features.embeddings.EmbeddingWork.largest_shard", SHARD)
    damage_recordings(corpus)
    flags = ("--speaker-encoder-path", weights, "--skip-bad")
    assert myxtts("prepare", corpus, *flags)[0] == 0
    expected = files(corpus)
    shutil.rmtree(corpus / "cached_features")
    made = 0
    for number in (2, 3, 1):
        code, out, _ = myxtts("prepare", corpus, *flags, "--worker", f"{number}/3")
        assert code == 0
        (line,) = [line for line in out.splitlines() if line.startswith("voices")]
        made += int(line.split()[1])
    assert made == 9
    assert any(name.startswith("voices") for name in expected) and files(corpus) == expected


# Processes


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """Eighty recordings: enough for a kill to come in between."""
    return make_corpus(tmp_path_factory.mktemp("workers") / "corpus", 80, seconds=(0.4, 0.8))


@pytest.fixture(scope="module")
def whole(long) -> dict[str, bytes]:
    """What a plain preparation of it makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "shard_size", lambda utterances: SHARD)
        from myxtts.cli.main import main

        assert main(["prepare", str(long), "--num-workers", "1"]) == 0
    made = files(long)
    shutil.rmtree(long / "cached_features")
    return made


@pytest.fixture
def empty(long):
    yield long
    shutil.rmtree(long / "cached_features", ignore_errors=True)


@pytest.fixture
def start(program, empty):
    """Start a command on the long corpus; whatever is left of it is killed in the end."""
    running = []

    def start(*words, command=("prepare",), **options) -> subprocess.Popen:
        words = ("-c", PROGRAM, *command, empty, *words)
        running.append(program(*words, start_new_session=True, **options))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def ended_well(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def test_workers_at_the_same_time_make_the_bytes_of_a_plain_preparation(start, empty, whole):
    workers = [start("--worker", f"{n}/3", "--num-workers", 1) for n in (1, 2, 3)]
    for worker in workers:
        ended_well(worker)
    assert files(empty) == whole


def test_workers_that_are_killed_and_started_again_make_the_same_bytes(start, empty, whole):
    chance, killed = random.Random(5), 0
    for _ in range(3):
        running = [start("--worker", f"{n}/2", "--num-workers", n) for n in (1, 2)]
        wait_for_shards(empty, 1 + chance.randrange(12), running)
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
            process.communicate()
    for worker in [start("--worker", f"{n}/2", "--num-workers", 1) for n in (1, 2)]:
        ended_well(worker)
    assert killed and files(empty) == whole


def wait_for_shards(corpus: Path, count: int, running: list[subprocess.Popen]) -> None:
    """Wait until there are so many more shards of features, or all has ended."""
    before = len(list(corpus.glob("cached_features/features-*/*.index")))
    deadline = time.monotonic() + 60
    while any(process.poll() is None for process in running) and time.monotonic() < deadline:
        if len(list(corpus.glob("cached_features/features-*/*.index"))) >= before + count:
            return
        time.sleep(0.005)


def test_a_worker_that_another_outlives_leaves_its_drafts_to_it(start, empty, whole):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "shard_size", lambda utterances: SHARD)
        doomed = start("--worker", "1/2", "--num-workers", 1)
        wait_for_shards(empty, 1, [doomed])
    features = store(empty)
    with held_elsewhere(features, shared=True):
        os.killpg(doomed.pid, signal.SIGKILL)
        doomed.communicate()
        (features / "0123.mel.77-ab.tmp").write_bytes(b"half")
        ended_well(start("--worker", "2/2", "--num-workers", 1))
        assert (features / "0123.mel.77-ab.tmp").exists()
    ended_well(start("--worker", "1/2", "--num-workers", 1))
    assert files(empty) == whole


def test_workers_next_to_all_that_writes_or_reads_the_cache_end_well(start, empty, whole):
    workers = [start("--worker", f"{n}/2", "--num-workers", 1) for n in (1, 2)]
    wait_for_shards(empty, 1, workers)
    plain = start("--num-workers", 1)
    tidying = start(command=("cache", "gc"))
    verifying = [start(command=("cache", "verify")) for _ in range(2)]
    for process in (*workers, plain, tidying):
        ended_well(process)
    for process in verifying:  # which may find that not all is there yet, and nothing else
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, 2)
        assert "damaged" not in err and ".tmp" not in err and "Traceback" not in err
    assert "nothing is left to prepare" in ended_well(start("--worker", "1/2"))
    assert files(empty) == whole


def test_ctrl_c_ends_a_worker_and_leaves_whole_shards(start, empty, whole):
    worker = start("--worker", "1/1", "--num-workers", 2)
    wait_for_shards(empty, 1, [worker])
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=60)
    if worker.returncode:
        assert worker.returncode == 130
        assert "are stored; run the same command to resume" in err
    assert not list(empty.rglob("*.tmp"))
    ended_well(start("--worker", "1/1"))
    assert files(empty) == whole


def test_a_worker_reports_a_voice_that_it_does_not_hear(myxtts, corpus, tmp_path, monkeypatch):
    stand_in_encoder.install(monkeypatch)
    weights = stand_in_encoder.write_weights(tmp_path / "own.pt", stand_in_encoder.make_arrays())
    heard = "myxtts.models.speaker_encoders.registry.SpeakerEncoder.embed_many"
    monkeypatch.setattr(heard, deaf_to_the_first)
    named = []
    for number in (1, 2):
        words = ("--speaker-encoder-path", weights, "--worker", f"{number}/2")
        code, _, err = myxtts("prepare", corpus, *words)
        assert code == 2 and "no voice" in err
        named += [name for name in ("utt-0000", "utt-0004", "utt-0008") if name + ":" in err]
    assert sorted(named) == ["utt-0000", "utt-0004", "utt-0008"]  # the first of each shard
