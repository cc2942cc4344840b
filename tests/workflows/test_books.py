"""Books that are spoken chapter by chapter, and interrupted."""

import json

import numpy as np
import pytest
import soundfile

from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows.books import speak_book
from tests.helpers.fake_voice import FakeModel, fake_voice
from tests.helpers.make_epub import make_epub

TEXT = "Chapter 1\n\nOne. Two.\n\nChapter 2\n\nThree.\n\nChapter 3: The End\n\nFour.\n"


class Killed(BaseException):
    """What a kill is to a program that cannot see it."""


class Mortal(FakeModel):
    """Dies at a sentence."""

    def __init__(self, dies_at: int = -1):
        super().__init__()
        self.dies_at = dies_at

    def synthesize(self, *inputs):
        if len(self.batches) == self.dies_at:
            raise Killed
        return super().synthesize(*inputs)


@pytest.fixture
def book(tmp_path):
    (tmp_path / "book.txt").write_text(TEXT)
    return tmp_path / "book.txt"


def speak(book, folder, model=None, *arguments, **options) -> tuple[str, Mortal]:
    model = model or Mortal()
    load = lambda: Synthesizer(fake_voice(model=model))  # noqa: E731
    return speak_book(load, book, folder, *arguments, **options), model


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


CHAPTERS = ["01-Chapter-1.wav", "02-Chapter-2.wav", "03-Chapter-3-The-End.wav"]


def test_each_chapter_becomes_a_file_with_its_title(book, tmp_path):
    said, _ = speak(book, tmp_path / "out")
    assert names(tmp_path / "out") == [*CHAPTERS, "book.json", "book.m3u8"]
    assert said.startswith(f"{tmp_path / 'out'}: 3 chapters and book.m3u8, ")
    with soundfile.SoundFile(tmp_path / "out" / CHAPTERS[0]) as sound:
        assert (sound.title, sound.album, sound.tracknumber) == ("Chapter 1", "book", "1")
        samples = sound.read(dtype="float32")
    expected = Synthesizer(fake_voice()).speak("Chapter 1\n\nOne. Two.").samples
    np.testing.assert_allclose(samples, expected, atol=1 / 32768)
    playlist = (tmp_path / "out" / "book.m3u8").read_text().splitlines()
    seconds = len(samples) / 22050
    assert playlist[:2] == ["#EXTM3U", "#PLAYLIST:book"]
    assert playlist[2:4] == [f"#EXTINF:{seconds:.3f},Chapter 1", CHAPTERS[0]]


@pytest.mark.parametrize("dies_at", range(7))
def test_a_killed_run_goes_on_with_the_chapter_that_it_was_in(book, tmp_path, dies_at):
    speak(book, tmp_path / "whole")
    sentences = [0, 3, 5, 7]  # before each chapter: a title is one too
    with pytest.raises(Killed):
        speak(book, tmp_path / "out", Mortal(dies_at))
    finished = sum(end <= dies_at for end in sentences[1:])
    if finished:
        state = json.loads((tmp_path / "out" / "book.json").read_text())
        assert [chapter["file"] for chapter in state["chapters"]] == CHAPTERS[:finished]
    said, model = speak(book, tmp_path / "out")
    assert len(model.batches) == sentences[-1] - sentences[finished]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert f"({finished} were there)" in said or not finished


def test_a_finished_book_is_not_spoken_again(book, tmp_path):
    speak(book, tmp_path / "out")
    said, model = speak(book, tmp_path / "out")
    assert said == f"{tmp_path / 'out'}: 3 chapters (3 were there) and book.m3u8"
    assert model.batches == []


def test_what_has_changed_is_spoken_again(book, tmp_path):
    speak(book, tmp_path / "out")
    book.write_text(TEXT.replace("Three.", "Tree."))
    assert len(speak(book, tmp_path / "out")[1].batches) == 2
    assert len(speak(book, tmp_path / "out", speaking_rate=2.0)[1].batches) == 7
    (tmp_path / "out" / CHAPTERS[2]).write_bytes(b"cut off")
    assert len(speak(book, tmp_path / "out", speaking_rate=2.0)[1].batches) == 2


@pytest.mark.parametrize("state", ["", "{}", "[1]", '{"chapters": [{"file": 3}]}', "\0"])
def test_a_state_that_cannot_be_read_is_none(book, tmp_path, state):
    speak(book, tmp_path / "out")
    (tmp_path / "out" / "book.json").write_text(state)
    assert len(speak(book, tmp_path / "out")[1].batches) == 7


def test_subtitles_stand_next_to_each_chapter(book, tmp_path):
    speak(book, tmp_path / "out", None, "flac", "srt")
    (tmp_path / "out" / "02-Chapter-2.srt").unlink()
    assert len(speak(book, tmp_path / "out", None, "flac", "srt")[1].batches) == 2
    assert "01-Chapter-1.flac" in names(tmp_path / "out")
    assert "Three." in (tmp_path / "out" / "02-Chapter-2.srt").read_text()


def test_an_epub_is_spoken_and_tagged_with_its_author(tmp_path):
    (tmp_path / "b.epub").write_bytes(make_epub("<h1>One</h1><p>Text.</p>", "<h1>§§</h1><p>§</p>"))
    speak(tmp_path / "b.epub", tmp_path / "out", None, "mp3")
    assert names(tmp_path / "out") == ["01-One.mp3", "book.json", "book.m3u8"]
    with soundfile.SoundFile(tmp_path / "out" / "01-One.mp3") as sound:
        assert (sound.artist, sound.album) == ("A. Writer", "The Book")


def test_a_book_that_the_voice_cannot_read_is_an_error(tmp_path):
    (tmp_path / "b.txt").write_text("你好", encoding="utf-8")
    with pytest.raises(UserError, match="there is nothing to say in .*b.txt for this voice"):
        speak(tmp_path / "b.txt", tmp_path / "out")


def test_a_book_does_not_become_one_file(book, tmp_path):
    with pytest.raises(UserError, match="a file per chapter: name a folder with -o"):
        speak(book, tmp_path / "a.wav")
    with pytest.raises(UserError, match="give their ending alone, --subtitles srt"):
        speak(book, tmp_path / "out", None, "wav", "a.srt")
    assert not (tmp_path / "out").exists()
