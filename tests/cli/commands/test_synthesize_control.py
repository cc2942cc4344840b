"""`myxtts synthesize` with a lexicon, SSML, subtitles and books."""

import json
import os
import signal
import time

import numpy as np
import pytest
import soundfile

from myxtts.audio.encode import FORMATS
from myxtts.cli.commands import synthesize
from myxtts.inference.synthesizer import Synthesizer
from tests.cli.conftest import ROOT
from tests.helpers.fake_voice import fake_voice
from tests.helpers.make_epub import make_epub


@pytest.fixture(autouse=True)
def voice(monkeypatch):
    """Whatever folder is named holds the same voice."""
    load = lambda voice, vocoder="griffin_lim": Synthesizer(fake_voice(), vocoder)  # noqa: E731
    monkeypatch.setattr(synthesize, "load_synthesizer", load)


def samples_of(path) -> np.ndarray:
    return soundfile.read(path, dtype="int16")[0]


def expected(text: str, **options) -> np.ndarray:
    return np.round(Synthesizer(fake_voice()).speak(text, **options).samples * 32768).astype(int)


def run(myxtts, *argv) -> str:
    code, out, err = myxtts("synthesize", "--voice", "v", *argv)
    assert (code, err) == (0, "")
    return out


def test_a_lexicon_changes_what_is_said(myxtts, tmp_path):
    (tmp_path / "names.txt").write_text("siobhan = shivawn\n")
    run(myxtts, "--text", "Siobhan.", "--lexicon", "names.txt")
    np.testing.assert_array_equal(samples_of("output.wav"), expected("shivawn."))


def test_ssml_is_spoken_from_the_command_line_and_from_a_file(myxtts, tmp_path):
    document = '<speak>One.\n<break time="1s"/>Two.</speak>'
    run(myxtts, "--ssml", "--text", document, "-o", "a.wav")
    (tmp_path / "b.ssml").write_text(f"\ufeff{document}", encoding="utf-8")
    run(myxtts, "--ssml", "--text-file", "b.ssml", "-o", "b.wav")
    one = expected("One.")
    silence = round(22050 / 256) * 256
    said = np.concatenate([one, np.zeros(silence, int), expected("Two.")])
    np.testing.assert_array_equal(samples_of("a.wav"), said)
    np.testing.assert_array_equal(samples_of("b.wav"), said)


def test_subtitles_are_written_where_they_are_asked_for(myxtts, tmp_path):
    run(myxtts, "--text", "One two.", "-o", "a.wav", "--subtitles", "sub/x.json")
    document = json.loads((tmp_path / "sub" / "x.json").read_text())
    assert document["seconds"] == pytest.approx(len(samples_of("a.wav")) / 22050, abs=1e-6)
    assert [word["text"] for word in document["sentences"][0]["words"]] == ["One", "two."]
    run(myxtts, "--text", "One two.", "-o", "a.wav", "--subtitles", "srt")
    assert "One two." in (tmp_path / "a.srt").read_text()


def test_every_line_of_a_file_gets_subtitles_of_its_own(myxtts, tmp_path):
    (tmp_path / "lines.txt").write_text("One.\nTwo.\n")
    run(myxtts, "--text-file", "lines.txt", "--subtitles", "vtt", "-o", "out")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.vtt")) == [
        "0001.vtt",
        "0002.vtt",
    ]


def test_a_stream_has_subtitles_when_it_ends(capfdbinary, tmp_path):
    argv = ["--voice", "v", "--text", "One. Two.", "-o", "-", "--subtitles", "a.srt"]
    assert synthesize.main(argv) == 0
    assert capfdbinary.readouterr().out.startswith(b"RIFF")
    assert (tmp_path / "a.srt").read_text().count(" --> ") == 2


def test_a_book_becomes_a_folder_of_chapters(myxtts, tmp_path):
    (tmp_path / "b.md").write_text("# One\n\nText.\n\n# Two\n\nMore.\n")
    out = run(myxtts, "--book", "b.md", "--format", "opus")
    assert out.startswith("output: 2 chapters and book.m3u8, ")
    assert {"01-One.opus", "02-Two.opus"} < {path.name for path in (tmp_path / "output").iterdir()}


def test_a_text_file_that_is_an_epub_is_a_book(myxtts, tmp_path):
    (tmp_path / "b.epub").write_bytes(make_epub("<h1>One</h1><p>Text.</p>"))
    run(myxtts, "--text-file", "b.epub", "-o", "out")
    assert (tmp_path / "out" / "01-One.wav").exists()


def test_the_formats_of_books_are_those_that_can_be_written():
    assert set(synthesize.BOOK_FORMATS) == set(FORMATS)


LAUGHS = '<!DOCTYPE s [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><speak>&b;</speak>'


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (("--text", "One.", "--lexicon", "absent.txt"), "cannot read the lexicon absent.txt"),
        (("--text", "One.", "--lexicon", "bad.txt"), "bad.txt, line 2: the voice has no '你'"),
        (("--text", "One.", "--lexicon", "ipa.txt"), "ipa.txt, line 1: the voice reads characters"),
        (("--text", "Hi [[ wɜːld ]]."), "cannot say the IPA 'wɜːld': give a respelling"),
        (("--text", "<speak>", "--ssml"), "line 1, column 8: it is not well-formed"),
        (("--text", LAUGHS, "--ssml"), "it declares a document type"),
        (("--text-file", "absent.ssml", "--ssml"), "cannot read absent.ssml"),
        (("--text", "One.", "--subtitles", "a.txt"), "end it in one of .srt, .vtt, .json"),
        (("--text", "One.", "--subtitles", "srt", "-o", "-"), "there is no file to put subtitles"),
        (("--text", "One.", "--format", "mp3"), "--format is for the chapters of a --book"),
        (("--book", "b.txt", "--format", "m4b"), "invalid choice: 'm4b'"),
        (("--book", "absent.txt"), "cannot read the book absent.txt"),
        (("--book", "b.txt", "-o", "-"), "a --book goes without"),
        (("--book", "bomb.epub"), "unpacks to more than"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2_and_writes_nothing(myxtts, tmp_path, argv, complaint):
    (tmp_path / "bad.txt").write_text("a = b\nc = 你\n", encoding="utf-8")
    (tmp_path / "ipa.txt").write_text("c = /b/\n")
    (tmp_path / "b.txt").write_text("One.\n")
    (tmp_path / "bomb.epub").write_bytes(make_epub("a" * (1 << 24)))
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = myxtts("synthesize", "--voice", "v", *argv)
    assert (code, out) == (2, "")
    assert complaint in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


SPEAK_SLOWLY = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows.books import speak_book
from tests.helpers.fake_voice import FakeModel, fake_voice

class Slow(FakeModel):
    def synthesize(self, *inputs):
        time.sleep(float(sys.argv[2]))
        return super().synthesize(*inputs)

print(speak_book(lambda: Synthesizer(fake_voice(model=Slow())), Path("b.txt"), Path("out")))
"""


def test_a_book_survives_a_kill_and_goes_on(program, tmp_path):
    text = "".join(f"Chapter {n}\n\nOne. Two. Three.\n\n" for n in range(1, 6))
    (tmp_path / "b.txt").write_text(text)
    (tmp_path / "speak.py").write_text(SPEAK_SLOWLY)
    process = program("speak.py", ROOT, "0.2", cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not (tmp_path / "out" / "book.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    files = sorted((tmp_path / "out").glob("*.wav"))
    first = files[0].stat().st_mtime_ns
    again = program("speak.py", ROOT, "0", cwd=tmp_path)
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert "5 chapters (" in out and "were there)" in out
    assert files[0].stat().st_mtime_ns == first
    assert len(list((tmp_path / "out").glob("*.wav"))) == 5
