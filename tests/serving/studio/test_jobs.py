"""Jobs outlive the server that started them, and are found again by their files."""

import json
import os
import signal
import time

import pytest
from starlette.exceptions import HTTPException

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
