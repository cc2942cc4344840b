"""From a long recording to a corpus that every command takes: `data slice`, `data transcribe`."""

import signal
import time

import numpy as np
import pytest
import soundfile

from myxtts.evaluation import asr
from tests.helpers.make_corpus import make_corpus

RATE = 22050


class Ear:
    """Hears the same in everything."""

    name, identity, at_once, sample_rate = "a fake ear", "a fake ear, version 1", 2, 16000

    def transcribe_many(self, recordings, progress=None):
        return ["Amber bridge." for _ in recordings]


@pytest.fixture(autouse=True)
def ear(monkeypatch):
    monkeypatch.setitem(asr.ASRS, "en", Ear)


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """The twelve recordings of a corpus, one after the other, with a second between them."""
    folder = tmp_path_factory.mktemp("long")
    corpus = make_corpus(folder / "spoken", 12, seconds=(1.2, 1.8))
    parts = []
    for path in sorted((corpus / "wavs").iterdir()):
        parts += [soundfile.read(path)[0], np.zeros(RATE)]
    path = folder / "long recording.wav"
    soundfile.write(path, np.concatenate(parts), RATE)
    return path


def test_a_long_recording_becomes_a_corpus_that_training_takes(myxtts, joined, tmp_path):
    code, out, err = myxtts("data", "slice", joined, "-o", "corpus")
    assert (code, err) == (0, "")
    assert "corpus: 12 clips" in out and "(12 written now, 0 were there)" in out
    assert out.endswith("next: myxtts data transcribe corpus --language en\n")
    code, _, err = myxtts("data", "check", "corpus")
    assert code == 2 and "its clips have no texts yet. `myxtts data transcribe" in err
    code, out, err = myxtts("data", "transcribe", "corpus")
    assert (code, err) == (0, "")
    assert "12 texts of 12 clips" in out and out.endswith("next: myxtts data check corpus\n")
    code, out, err = myxtts("data", "check", "corpus")
    assert (code, err) == (0, "")
    assert "metadata.csv: a table with |: recording | raw text | text" in out
    size = "--model-size tiny --batch-size 2 --max-steps 2".split()
    code, _, err = myxtts("train", "--data", "corpus", *size, "--checkpoint-dir", "run")
    assert code == 0, err
    assert any((tmp_path / "run").rglob("*.safetensors"))


def test_the_flags_reach_the_cutting(myxtts, joined, tmp_path):
    flags = ("--longest", 1.9, "--shortest", 1.5, "--keep", 0.01, "--format", "wav")
    code, out, _ = myxtts("data", "slice", joined, "-o", "corpus", *flags)
    clips = [soundfile.info(path) for path in (tmp_path / "corpus" / "wavs").glob("*.wav")]
    assert code == 0 and 0 < len(clips) < 12
    assert all(1.5 <= clip.duration <= 1.9 for clip in clips)
    assert "dropped: too short" in out


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("gone.wav",), "there is no recording gone.wav"),
        (("bad.wav",), "bad.wav: unreadable recording"),
        ((".",), "bad.wav: unreadable recording"),
        (("silent.wav",), "no clip is left"),
        (("silent.wav", "--longest", "0"), "longest must be above shortest"),
        (("silent.wav", "--threshold", "-90"), "threshold must be from -60"),
        (("silent.wav", "--format", "mp3"), "invalid choice: 'mp3'"),
        ((), "required: RECORDING"),
    ],
)
def test_bad_input_is_answered_in_words(myxtts, tmp_path, words, complaint):
    (tmp_path / "bad.wav").write_bytes(b"RIFF and nothing else")
    soundfile.write(tmp_path / "silent.wav", np.zeros(RATE), RATE)
    code, _, err = myxtts("data", "slice", *words, "-o", "corpus")
    assert code == 2
    assert complaint in err


def test_an_unreadable_recording_among_others_is_named_in_the_end(myxtts, joined, tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"RIFF and nothing else")
    code, out, err = myxtts("data", "slice", joined, "bad.wav", "-o", "corpus")
    assert code == 2
    assert "corpus: 12 clips" in out
    assert err.startswith("error: some recordings cannot be used:\nbad.wav: unreadable recording")


def test_transcribing_asks_for_what_it_needs(myxtts, corpus):
    (corpus / "metadata.csv").unlink()
    code, _, err = myxtts("data", "transcribe", corpus, "--language", "fa")
    assert code == 2 and "there is no recogniser for 'fa': name the folder" in err
    code, _, err = myxtts("data", "transcribe", corpus, "--asr-model", "nowhere")
    assert code == 2 and "nowhere is no folder with a Whisper model" in err
    code, _, err = myxtts("data", "transcribe", "nowhere")
    assert code == 2 and "no folder nowhere/wavs with clips" in err


def test_ctrl_c_leaves_whole_clips_and_the_next_run_the_rest(program, myxtts, joined, tmp_path):
    samples, _ = soundfile.read(joined)
    soundfile.write(tmp_path / "hour.wav", np.tile(samples, 20), RATE)
    words = ("data", "slice", tmp_path / "hour.wav", "-o", tmp_path / "corpus")
    process = program("-m", "myxtts.cli.main", *words)
    wavs, until = tmp_path / "corpus" / "wavs", time.monotonic() + 60
    while not (wavs.is_dir() and any(wavs.glob("*.flac"))) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    left = list(wavs.glob("*.flac"))
    assert 0 < len(left) < 240
    assert all(soundfile.info(path).frames > RATE for path in left)
    code, out, _ = myxtts(*words)
    assert code == 0
    assert f"({240 - len(left):,} written now, {len(left):,} were there)" in out
    assert sorted(path.suffix for path in wavs.iterdir()) == [".flac"] * 240
