"""Recordings become a corpus: upload, cut, write and mend texts, with everything taken back."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest
import soundfile

from myxtts.data.corpus.corpus import read_corpus
from myxtts.errors import UserError
from myxtts.serving.studio.corpora import Corpora
from myxtts.serving.studio.jobs import FAILED, FINISHED, Jobs
from myxtts.serving.studio.places import Places
from tests.helpers.long_recording import make_recording
from tests.helpers.speech_server import running
from tests.helpers.studio_client import StudioClient


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def client(folder):
    with running(folder / "clones", studio=folder) as server:
        yield StudioClient(server.url)


def new_corpus(client, title="Ada reads", language="en"):
    return client.ok(client.post("corpora", title=title, language=language))["id"]


@pytest.fixture(scope="module")
def corpus(client, tmp_path_factory):
    """A corpus with two recordings that are cut."""
    name = new_corpus(client)
    for number in range(2):
        path = tmp_path_factory.mktemp("wavs") / f"tape {number}.wav"
        client.add_recording(name, make_recording(path, seed=number))
    assert client.wait_for(client.ok(client.post(f"corpora/{name}/slice")))["state"] == FINISHED
    return name


def clips(client, corpus, view="all"):
    return client.ok(client.get(f"corpora/{corpus}/clips?view={view}"))


def test_recordings_are_cut_into_clips_that_play(client, corpus):
    facts = client.ok(client.get(f"corpora/{corpus}"))
    assert [one["name"] for one in facts["recordings"]] == ["tape-0", "tape-1"]
    assert [one["clips"] for one in facts["recordings"]] == [4, 4]
    table = clips(client, corpus)
    assert table["counts"] == {"all": 8, "doubtful": 0, "untranscribed": 8, "excluded": 0}
    sound = client.get(f"corpora/{corpus}/clips/{table['clips'][0]['id']}/audio")
    assert sound.content[:4] == b"fLaC"


def test_texts_are_written_excluded_and_taken_back(client, corpus, folder):
    first, second, third = (one["id"] for one in clips(client, corpus)["clips"][:3])
    for clip, text in ((first, "One  sentence."), (second, "Another | one."), (third, "Third.")):
        client.ok(client.post(f"corpora/{corpus}/clips/{clip}", text=text))
    metadata = folder / "corpora" / corpus / "metadata.csv"
    assert metadata.read_text().splitlines()[1] == f"{second}|Another one.|Another one."
    client.ok(client.post(f"corpora/{corpus}/clips/{second}", excluded=True))
    assert [one["id"] for one in clips(client, corpus, "excluded")["clips"]] == [second]
    assert [one.id for one in read_corpus(metadata.parent, language="en").utterances] == [
        first,
        third,
    ]
    assert client.ok(client.post(f"corpora/{corpus}/undo"))["id"] == second
    assert clips(client, corpus)["clips"][1]["text"] == "Another one."
    client.ok(client.post(f"corpora/{corpus}/clips/{first}", text="Mended."))
    assert client.ok(client.post(f"corpora/{corpus}/undo"))["id"] == first
    assert clips(client, corpus)["clips"][0]["text"] == "One sentence."


def test_what_would_be_dropped_is_said_with_its_reason(client, corpus):
    clip = clips(client, corpus)["clips"][3]["id"]
    client.ok(client.post(f"corpora/{corpus}/clips/{clip}", text="much too fast " * 60))
    found = next(one for one in clips(client, corpus, "doubtful")["clips"] if one["id"] == clip)
    assert found["dropped"].startswith("text too long")
    assert sum(clips(client, corpus)["dropped"].values()) == 1
    client.ok(client.post(f"corpora/{corpus}/undo"))


def test_a_sentence_that_is_read_becomes_a_clip_with_its_text(client, tmp_path):
    name = new_corpus(client, "خواندن", "fa")
    assert name == "corpus"
    prompts = client.ok(client.get("prompts?language=fa"))["prompts"]
    sound = make_recording(tmp_path / "read.wav", sentences=1).read_bytes()
    take = client.ok(client.put("takes", sound, corpus=name, text=prompts[0]))["id"]
    kept = client.post(f"takes/{take}/keep", corpus=name, text=prompts[0])
    clip = client.ok(kept)["id"]
    table = clips(client, name)
    assert [(one["id"], one["text"]) for one in table["clips"]] == [(clip, prompts[0])]
    assert client.ok(client.get(f"corpora/{name}"))["title"] == "خواندن"


def test_what_a_command_overwrites_is_applied_again(client, corpus, folder):
    clip = clips(client, corpus)["clips"][5]["id"]
    client.ok(client.post(f"corpora/{corpus}/clips/{clip}", text="Not this one."))
    client.ok(client.post(f"corpora/{corpus}/clips/{clip}", excluded=True))
    metadata = folder / "corpora" / corpus / "metadata.csv"
    with open(metadata, "a") as file:
        file.write(f"{clip}|heard again|heard again\n")
    assert clip in [one["id"] for one in clips(client, corpus, "excluded")["clips"]]
    assert clip not in metadata.read_text()


def test_a_failed_job_says_why(client):
    name = new_corpus(client, "Silent")
    answer = client.post(f"corpora/{name}/slice")
    assert answer.status_code == 400
    assert "no recording to cut" in answer.json()["error"]["message"]
    facts = client.ok(client.post(f"corpora/{name}/transcribe"))
    ended = client.wait_for(facts)
    assert ended["state"] == FAILED and "there is no folder" in ended["log"]


@pytest.mark.parametrize(
    "content", [b"", b"RIFF", b"not audio at all" * 100, b"\x1a\x45\xdf\xa3webm" * 50]
)
def test_what_is_no_recording_is_refused_and_leaves_nothing(client, corpus, folder, content):
    before = sorted((folder / "recordings" / corpus).iterdir())
    answer = client.put(f"corpora/{corpus}/recordings", content, filename="a.wav")
    assert answer.status_code == 400 and "recording" in answer.json()["error"]["message"]
    assert sorted((folder / "recordings" / corpus).iterdir()) == before


def test_a_corpus_in_use_is_not_deleted_and_a_free_one_is(client, folder, tmp_path):
    name = new_corpus(client, "Short lived")
    client.add_recording(name, make_recording(tmp_path / "a.wav", sentences=1))
    job = folder / "jobs" / "20260101-000000-abcdef"
    job.mkdir()
    card = {"kind": "train", "subject": "runs/some", "title": "some", "created": time.time()}
    (job / "job.json").write_text(json.dumps({**card, "steps": [], "uses": [f"corpora/{name}"]}))
    own = {"pid": os.getpid(), "started": psutil.Process().create_time()}
    (job / "process.json").write_text(json.dumps(own))
    assert client.delete(f"corpora/{name}").status_code == 409
    assert (folder / "recordings" / name / "a.flac").exists()
    (job / "result.json").write_text(json.dumps({"code": 0}))
    client.ok(client.delete(f"corpora/{name}"))
    assert not (folder / "corpora" / name).exists()
    assert not (folder / "recordings" / name).exists()
    assert client.get(f"corpora/{name}").status_code == 404


def test_another_recording_never_takes_the_name_of_one_that_was_cut(client, tmp_path):
    name = new_corpus(client, "Again")
    path = make_recording(tmp_path / "tape.wav", sentences=2)
    assert client.add_recording(name, path) == "tape"
    client.wait_for(client.ok(client.post(f"corpora/{name}/slice")))
    client.ok(client.delete(f"corpora/{name}/recordings/tape"))
    path = make_recording(tmp_path / "tape.wav", sentences=3, seed=1)
    assert client.add_recording(name, path) == "tape-2"
    (found,) = client.ok(client.get(f"corpora/{name}"))["recordings"]
    assert found["clips"] is None
    job = client.wait_for(client.ok(client.post(f"corpora/{name}/slice")))
    assert job["state"] == FINISHED, job["log"]
    assert client.ok(client.get(f"corpora/{name}"))["recordings"][0]["clips"] == 3


def test_drafts_of_a_server_that_was_killed_are_removed(tmp_path):
    places = Places(tmp_path)
    for folder in (tmp_path / "recordings" / "a", tmp_path / "corpora" / "a" / "wavs"):
        folder.mkdir(parents=True)
        for name in (".0123456789abcdef.upload", ".0123456789abcdef.flac", "kept.flac", ".own"):
            (folder / name).touch()
        Corpora(places, Jobs(places))
        assert {one.name for one in folder.iterdir()} == {"kept.flac", ".own"}


@pytest.mark.parametrize(
    "target, most, said", [("/dev/full", 1 << 20, "no space left"), ("a.flac", 5000, "in parts")]
)
def test_a_decoder_that_cannot_write_says_why(tmp_path, target, most, said):
    path = make_recording(tmp_path / "tape.wav", sentences=2)
    words = (path, tmp_path / target, 0.5, 60, 1 << 30, most)
    command = [sys.executable, "-m", "myxtts.serving.studio.transcoder", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == UserError.exit_code and said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_new_corpus_does_not_inherit_recordings(client, folder):
    (folder / "recordings" / "left-over").mkdir()
    assert new_corpus(client, "Left over") == "left-over-2"


def test_a_change_without_anything_to_change_is_refused(client, corpus):
    clip = clips(client, corpus)["clips"][0]["id"]
    assert client.post(f"corpora/{corpus}/clips/{clip}").status_code == 400
    assert client.post(f"corpora/{corpus}/clips/{clip}", excluded=False).status_code == 400


def test_an_unknown_corpus_is_not_found(client):
    name = "nobody"
    assert client.get(f"corpora/{name}").status_code == 404


def test_recordings_in_float_and_stereo_are_decoded(client, corpus, tmp_path, folder):
    samples, rate = soundfile.read(make_recording(tmp_path / "a.wav", sentences=1))
    path = tmp_path / "Über Stéreo.wav"
    soundfile.write(path, [[x, x] for x in samples], rate, subtype="FLOAT")
    name = client.add_recording(corpus, path)
    assert name == "uber-stereo"
    info = soundfile.info(folder / "recordings" / corpus / f"{name}.flac")
    assert (info.channels, info.subtype) == (1, "PCM_16")
    client.ok(client.delete(f"corpora/{corpus}/recordings/{name}"))


def test_there_are_prompts_for_some_languages(client):
    prompts = client.ok(client.get("prompts?language=en"))["prompts"]
    assert len(prompts) == len(set(prompts)) == 100
    assert client.ok(client.get("prompts?language=sw"))["prompts"] == []
