"""`myxtts evaluate --listen` and `--tally`: folders, voices, and what is wrong with them."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.audio.cleanup import loudness
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows import evaluate_voice
from tests.helpers.fake_voice import fake_voice

CORPUS = {"count": 20, "speakers": 2, "seconds": (0.7, 1.0)}
SENTENCES = ("one", "two", "three", "four")


def make_folder(path: Path, rate: int, extension: str = "wav", names=SENTENCES, peak=0.5) -> Path:
    path.mkdir(parents=True)
    for number, name in enumerate(names):
        wave = peak * np.sin(np.arange(rate) * 2 * np.pi * (200 + 40 * number) / rate)
        soundfile.write(path / f"{name}.{extension}", wave, rate)
    return path


@pytest.fixture
def folders(tmp_path) -> list[Path]:
    return [
        make_folder(tmp_path / "alpha", 16000, peak=0.9),
        make_folder(tmp_path / "beta", 22050, "flac", (*SENTENCES, "five"), peak=0.02),
        make_folder(tmp_path / "gamma", 8000, "mp3"),
    ]


def read_facts(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    facts = json.loads(re.search(r'id="test">(.*?)</script>', text, re.DOTALL)[1])
    return {**facts, "key": json.loads(base64.b64decode(facts["key"]))}


def clips_of(facts: dict, tmp_path: Path) -> list[tuple[np.ndarray, int]]:
    found = []
    for source in [clip for trial in facts["trials"] for clip in trial["clips"]]:
        (tmp_path / "clip.wav").write_bytes(base64.b64decode(source.partition(",")[2]))
        found.append(soundfile.read(tmp_path / "clip.wav"))
    return found


def test_two_folders_make_an_ab_test(myxtts, folders, tmp_path):
    (tmp_path / "texts.csv").write_text("one|First.\ntwo|دومین\n", encoding="utf-8")
    argv = ("evaluate", "--listen", *folders[:2], "--texts", "texts.csv", "-o", "out")
    code, out, err = myxtts(*argv)
    assert (code, err) == (0, "")
    assert "AB preference, 4 sentences by alpha, beta" in out
    facts = read_facts(tmp_path / "out" / "listening.html")
    assert facts["design"] == "preference" and facts["key"]["systems"] == ["alpha", "beta"]
    said = {
        key["sentence"]: trial["text"]
        for key, trial in zip(facts["key"]["trials"], facts["trials"], strict=True)
    }
    assert said == {"one": "First.", "two": "دومین", "three": "", "four": ""}
    assert [trial["sides"][0] for trial in facts["key"]["trials"]].count(0) == 2
    clips = clips_of(facts, tmp_path)
    assert {rate for _, rate in clips} == {22050}
    assert [loudness(x, rate) for x, rate in clips] == pytest.approx([-23.0] * 8, abs=0.1)
    first = (tmp_path / "out" / "listening.html").read_bytes()
    assert myxtts(*argv)[0] == 0
    assert (tmp_path / "out" / "listening.html").read_bytes() == first
    assert myxtts(*argv, "--seed", 1)[0] == 0
    assert (tmp_path / "out" / "listening.html").read_bytes() != first


def test_references_are_a_hidden_third(myxtts, folders, tmp_path):
    argv = ("--listen", *folders[:2], "--references", folders[2], "--sentences", 3)
    code, out, _ = myxtts("evaluate", *argv, "-o", "page.html")
    assert code == 0 and "MUSHRA-like ratings, 3 sentences by alpha, beta, hidden reference" in out
    facts = read_facts(tmp_path / "page.html")
    assert facts["design"] == "rating" and all(len(one["clips"]) == 3 for one in facts["trials"])


def test_folders_of_the_same_name_go_by_their_paths(myxtts, folders, tmp_path):
    for name, folder in zip(("old", "new"), folders, strict=False):
        shutil.copytree(folder, tmp_path / name / "wavs")
    code, out, _ = myxtts("evaluate", "--listen", "old/wavs", "new/wavs")
    assert code == 0 and "by old/wavs, new/wavs" in out and Path("listening.html").is_file()


@pytest.fixture
def voice(monkeypatch, tmp_path) -> Path:
    """A run's folder; whatever is loaded is the same voice."""
    found = fake_voice(val_fraction=0.4)
    found.speakers = ("speaker0", "speaker1")
    load = lambda voice, vocoder="auto": Synthesizer(found, "griffin_lim")  # noqa: E731
    monkeypatch.setattr(evaluate_voice, "load_synthesizer", load)
    for name in ("run", "other"):
        (tmp_path / name / "voice").mkdir(parents=True)
        (tmp_path / name / "voice" / "voice.json").write_text("{}")
    return tmp_path / "run"


def test_voices_say_the_lines_of_a_file(myxtts, voice, tmp_path):
    Path("lines.txt").write_text("Hello there.\nHow are you?\n")
    code, out, err = myxtts("evaluate", "--listen", voice, "other", "--texts", "lines.txt")
    assert code == 0, err
    facts = read_facts(tmp_path / "listening.html")
    assert {one["sentence"] for one in facts["key"]["trials"]} == {"0001", "0002"}
    assert {one["text"] for one in facts["trials"]} == {"Hello there.", "How are you?"}


def test_flags_of_speaking_reach_the_voices(myxtts, voice):
    Path("lines.txt").write_text("Hello there.\n")
    argv = ("evaluate", "--listen", voice, "other", "--texts", "lines.txt")
    assert myxtts(*argv, "--no-postfilter")[0] == 0
    code, _, err = myxtts(*argv, "--refine-steps", 2)
    assert code == 2 and "this voice has no refiner" in err


def test_a_voice_meets_the_recordings_of_what_it_was_not_trained_on(
    myxtts, voice, shared_corpus, tmp_path
):
    argv = ("--listen", voice, shared_corpus / "wavs", "--corpus", shared_corpus)
    code, out, err = myxtts("evaluate", *argv, "--sentences", 2)
    assert code == 0, err
    assert "AB preference, 2 sentences by run, wavs" in out
    assert all(one["text"] for one in read_facts(tmp_path / "listening.html")["trials"])


def test_what_cannot_be_compared_is_named(myxtts, folders, tmp_path, voice):
    stranger = make_folder(tmp_path / "stranger", 16000, names=["else"])
    empty, broken, silent = (tmp_path / name for name in ("empty", "broken", "silent"))
    empty.mkdir()
    shutil.copytree(folders[0], broken)
    (broken / "two.wav").write_bytes(b"no audio")
    make_folder(silent, 16000, peak=0.0)
    (tmp_path / "file.txt").write_text("kept")
    (tmp_path / "wrong.csv").write_text("nobody|Nothing.\n")
    alpha, beta = folders[:2]
    cases = {
        ("--listen", alpha): "at least two systems",
        ("--listen", alpha, alpha): "named twice",
        ("--listen", alpha, "nowhere"): "there is no folder nowhere",
        ("--listen", alpha, empty): "neither audio nor a voice in",
        ("--listen", alpha, stranger): "no sentence is in all systems (four, else",
        ("--listen", alpha, broken): "two.wav: unreadable recording",
        ("--listen", alpha, silent): "is silent: nobody can compare that",
        ("--listen", alpha, beta, "-o", "file.txt"): "file.txt is a file",
        ("--listen", alpha, beta, "--texts", "wrong.csv"): "has no text of any recording",
        ("--listen", alpha, beta, "--texts", "missing.csv"): "missing.csv",
        ("--listen", alpha, beta, "--seed", "-1"): "--seed must be at least 0",
        ("--listen", alpha, beta, "--references", "nowhere"): "there is no folder nowhere",
        ("--listen", alpha, beta, "--wavs", alpha): "name what is to be judged",
        ("--listen", alpha, voice): "a voice needs something to say",
        ("--tally", "nothing.json"): "cannot read nothing.json",
    }
    for argv, complaint in cases.items():
        code, _, err = myxtts("evaluate", *argv)
        assert code == 2 and complaint in err, (argv, err)
    assert not Path("listening.html").exists() and Path("file.txt").read_text() == "kept"


def test_several_listeners_are_tallied(myxtts, tmp_path):
    sheet = {"format": 1, "page": "abc", "design": "preference", "systems": ["a", "b"]}
    for name, preferred in (("anna", "a"), ("ben", None)):
        answers = [{"preferred": "a"}, {"preferred": preferred}]
        record = {**sheet, "listener": name, "answers": answers}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    code, out, _ = myxtts("evaluate", "--tally", "anna.json", "ben.json")
    assert code == 0 and "page abc: 4 answers, 2 listeners" in out
    assert re.search(r"^all +3 +0 +1 +100\.0 \[29\.2, 100\.0\] +0\.250$", out, re.MULTILINE)
    stray = {**sheet, "listener": "eve", "page": "def", "answers": [{"preferred": "b"}]}
    (tmp_path / "eve.json").write_text(json.dumps(stray))
    code, _, err = myxtts("evaluate", "--tally", "anna.json", "eve.json")
    assert code == 2 and "eve.json is of the page def, and anna.json of abc" in err
