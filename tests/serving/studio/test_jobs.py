"""Jobs outlive the server that started them, and are found again by their files."""

import json
import os
import signal
import time

import psutil
import pytest
from starlette.exceptions import HTTPException

from myxtts.serving.server import begin_demo
from myxtts.serving.studio.corpora import Corpora
from myxtts.serving.studio.jobs import FAILED, FINISHED, LOST, RUNNING, STOPPED, Jobs, tail
from myxtts.serving.studio.places import Places
from myxtts.serving.studio.runner import JOB, OUT_OF_TIME, PROCESS, RESULT

SECONDS = 60
LONG = ["monitor", "--interval", "0.5"]  # until Ctrl-C, which is how it ends
SHORT = ["config", "show"]


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "studio")


def ended(jobs, id):
    until = time.monotonic() + SECONDS
    while (job := jobs.read(id)).is_running:
        assert time.monotonic() < until, jobs.log(id)
        time.sleep(0.05)
    return job


def wait_for_text(jobs, id, text):
    until = time.monotonic() + SECONDS
    while text not in jobs.log(id):
        assert time.monotonic() < until, jobs.log(id)
        time.sleep(0.05)


def test_commands_run_one_after_the_other_until_one_fails(places):
    jobs = Jobs(places)
    job = jobs.start("demo", "corpora/a", "a", [SHORT, ["data", "check", "/nowhere"], SHORT])
    job = ended(jobs, job.id)
    assert (job.state, job.code) == (FAILED, 2)
    log = jobs.log(job.id)
    assert "there is no corpus at /nowhere" in log and log.count("$ myxtts config") <= 1
    assert json.loads((places.of("jobs") / job.id / RESULT).read_text())["done"] == 1


def test_a_job_goes_on_without_its_server_and_is_stopped_by_another_one(places):
    first = Jobs(places)
    job = first.start("demo", "corpora/a", "a", [LONG])
    wait_for_text(first, job.id, "CPU")
    second = Jobs(places)
    assert second.read(job.id).state == RUNNING
    with pytest.raises(HTTPException, match="something else"):
        second.start("demo", "corpora/a", "a", [SHORT])
    second.stop(job.id)
    assert ended(second, job.id).reason == STOPPED
    assert second.latest("corpora/a").id == job.id


def test_a_job_ends_when_its_time_is_over(places):
    jobs = Jobs(places)
    job = ended(jobs, jobs.start("demo", "corpora/a", "a", [LONG, SHORT], seconds=3).id)
    assert job.state == STOPPED and "config show" not in jobs.log(job.id)
    assert job.reason == OUT_OF_TIME


def test_a_killed_job_is_broken_off_and_another_process_of_its_number_is_not_it(places):
    jobs = Jobs(places)
    job = jobs.start("demo", "corpora/a", "a", [LONG])
    process = json.loads((places.of("jobs") / job.id / PROCESS).read_text())
    os.killpg(process["pid"], signal.SIGKILL)
    assert ended(jobs, job.id).state == LOST
    own = {"pid": os.getpid(), "started": process["started"] - 1000}
    (places.of("jobs") / job.id / PROCESS).write_text(json.dumps(own))
    assert jobs.read(job.id).state == LOST


def test_a_command_that_hangs_is_killed_when_it_is_stopped_for_the_third_time(
    places, tmp_path, monkeypatch
):
    blocked = "import signal, sys\nif 'myxtts.cli.main' in sys.orig_argv:\n"
    blocked += "    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})\n"
    (tmp_path / "sitecustomize.py").write_text(blocked)
    found = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(tmp_path), found))))
    jobs = Jobs(places)
    job = jobs.start("train", "runs/a", "a", [LONG, SHORT])
    wait_for_text(jobs, job.id, "CPU")
    for _ in range(2):
        jobs.stop(job.id)
        time.sleep(0.5)
        assert jobs.read(job.id).is_running
    jobs.stop(job.id)
    job = ended(jobs, job.id)
    assert (job.state, job.code) == (STOPPED, -signal.SIGKILL)
    assert "config show" not in jobs.log(job.id)


def write_job(places, id, result=None, subject="corpora/a", **more):
    """A job as its files would have it; one without a result is this process."""
    folder = places.of("jobs") / id
    folder.mkdir()
    card = {"kind": "demo", "subject": subject, "title": "a", "steps": [], "created": time.time()}
    (folder / JOB).write_text(json.dumps(card | more))
    own = {"pid": os.getpid(), "started": psutil.Process().create_time()}
    (folder / PROCESS).write_text(json.dumps(own))
    if result is not None:
        (folder / RESULT).write_text(json.dumps(result))


def test_a_long_job_is_known_however_many_short_ones_follow(places):
    jobs = Jobs(places)
    write_job(places, "20260101-000000-aaaaaa", subject="runs/long")
    for number in range(150):
        write_job(places, f"20260102-000000-{number:06d}", {"code": 0})
    assert jobs.is_busy("runs/long")
    assert jobs.latest("runs/long").state == RUNNING
    with pytest.raises(HTTPException, match="something else"):
        jobs.start("train", "runs/long", "long", [SHORT])


def test_the_files_of_an_ended_job_are_read_once(places):
    jobs = Jobs(places)
    write_job(places, "20260101-000000-aaaaaa", {"code": 0})
    (before,) = jobs.all()
    (places.of("jobs") / before.id / JOB).unlink()
    assert jobs.all() == [before]


def test_what_a_job_reads_is_in_use_and_what_is_deleted_takes_its_jobs_along(places):
    jobs = Jobs(places)
    write_job(places, "20260101-000000-aaaaaa", subject="runs/r", uses=["corpora/a"])
    write_job(places, "20260101-000000-bbbbbb", {"code": 1}, subject="runs/r")
    for subject in ("runs/r", "corpora/a"):
        with pytest.raises(HTTPException, match="wait"), jobs.unused(subject, "wait"):
            pass
    with jobs.unused("corpora/b", "wait"):
        pass
    jobs.forget("runs/r")
    assert [one.state for one in jobs.all()] == [RUNNING]


def test_a_demo_that_is_still_being_made_is_not_begun_again(places, monkeypatch):
    jobs = Jobs(places)
    corpora = Corpora(places, jobs)
    write_job(places, "20260101-000000-aaaaaa", subject="corpora/demo")
    begin_demo(corpora)
    assert len(jobs.all()) == 1
    begun = []
    monkeypatch.setattr(corpora, "make_demo", lambda: begun.append(1))
    begin_demo(corpora)
    corpora.create("Ada", "en")
    begin_demo(corpora)
    assert begun == [1]


def test_what_is_refused_leaves_no_folder(places):
    with pytest.raises(HTTPException), places.making("runs", "a") as folder:
        (folder / "half").touch()
        raise HTTPException(409, "too many")
    assert places.names("runs") == []
    assert places.make("runs", "a").name == "a" and places.make("runs", "a").name == "a-2"


def test_damaged_files_of_jobs_are_left_out(places):
    folder = places.of("jobs") / "20260101-000000-abcdef"
    folder.mkdir()
    for content in ("", "[]", "{", '{"kind": 1}'):
        (folder / JOB).write_text(content)
        assert Jobs(places).all() == []


def test_a_finished_job_says_so(places):
    jobs = Jobs(places)
    assert ended(jobs, jobs.start("demo", "corpora/a", "a", [SHORT]).id).state == FINISHED


def test_a_tail_has_whole_lines_without_codes(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"first\n\x1b[31mred\x1b[0m\nold\rnew\n\xff\n")
    assert tail(path) == "first\nred\nnew\n\ufffd\n"
    assert tail(path, 12) == "new\n\ufffd\n"
    assert tail(tmp_path / "none") == ""
