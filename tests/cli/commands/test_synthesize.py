"""`myxtts synthesize` and its faces, around a voice that needs no training."""

import struct
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from myxtts.audio.streaming import wav_header
from myxtts.cli import train_test_file
from myxtts.cli.commands import synthesize
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows import synthesize as workflow
from tests.cli.conftest import ROOT
from tests.helpers.fake_voice import FakeModel, fake_voice


@pytest.fixture(autouse=True)
def voice(monkeypatch):
    """Whatever folder is named holds the same voice; the names that were given are kept."""
    loaded = []

    def load(voice: str, vocoder: str = "griffin_lim") -> Synthesizer:
        loaded.append(voice)
        return Synthesizer(fake_voice(), vocoder)

    monkeypatch.setattr(synthesize, "load_synthesizer", load)
    return loaded


@pytest.fixture
def reference(tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.1, 3 * 22050)
    soundfile.write(tmp_path / "ref.wav", noise, 22050)
    return tmp_path / "ref.wav"


def expected(text: str, **options) -> np.ndarray:
    """The 16-bit samples that the voice speaks."""
    return np.round(Synthesizer(fake_voice()).speak(text, **options).samples * 32768).astype(int)


def samples_of(path) -> np.ndarray:
    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == 22050
    return samples


def test_a_text_becomes_a_wav(myxtts, tmp_path, voice):
    code, out, err = myxtts("synthesize", "--voice", "runs/x", "--text", "One. Two.", "-o", "a.wav")
    assert (code, err, voice) == (0, "", ["runs/x"])
    np.testing.assert_array_equal(samples_of(tmp_path / "a.wav"), expected("One. Two."))
    seconds = len(samples_of(tmp_path / "a.wav")) / 22050
    assert out.startswith(f"a.wav: {seconds:.2f} s of speech in ")
    assert "real-time factor " in out


def test_every_choice_reaches_the_voice(myxtts, tmp_path):
    choices = ("--speaker", "ben", "--language", "fa", "--speaking-rate", "2", "--seed", "3")
    assert myxtts("synthesize", "--checkpoint", "v", "--text", "سلام", *choices)[0] == 0
    options = {"speaker": "ben", "language": "fa", "speaking_rate": 2.0, "seed": 3}
    np.testing.assert_array_equal(samples_of(tmp_path / "output.wav"), expected("سلام", **options))


class Styled(FakeModel):
    """Keeps the style weights that it was given."""

    given = None

    def styled(self, voice, weights=None):
        self.given = weights
        return voice


@pytest.mark.parametrize(
    "argv, weights",
    [
        (("--style-weights", "0.5,0, 1e-1"), [[0.5, 0.0, 0.1]]),
        (("--style-weights=-1,0,2",), [[-1.0, 0.0, 2.0]]),
        ((), None),
    ],
)
def test_style_weights_reach_the_model(monkeypatch, tmp_path, argv, weights):
    model = Styled()
    voice = fake_voice(model=model, use_gst=True, gst_num_style_tokens=3)
    monkeypatch.setattr(synthesize, "load_synthesizer", lambda *a: Synthesizer(voice))
    assert synthesize.main(["--voice", "v", "--text", "One.", *argv]) == 0
    np.testing.assert_array_equal(model.given, np.array(weights, np.float32) if weights else None)


def test_references_are_cloned(myxtts, tmp_path, reference):
    argv = ("--checkpoint-dir", "v", "--text", "One.", "--clone-voice", "-o", "a.wav")
    given = ("--reference", reference, "--reference-audio", reference)
    assert myxtts("synthesize", *argv, *given)[0] == 0
    said = expected("One.", reference=[reference, reference])
    np.testing.assert_array_equal(samples_of(tmp_path / "a.wav"), said)


def test_the_mel_is_saved_next_to_the_wav(myxtts, tmp_path):
    argv = ("--voice", "v", "--text", "One.", "-o", "sub/a.wav", "--save-mel")
    assert myxtts("synthesize", *argv)[0] == 0
    mel = np.load(tmp_path / "sub" / "a.npy")
    np.testing.assert_array_equal(mel, Synthesizer(fake_voice()).speak("One.").mel)
    assert len(samples_of(tmp_path / "sub" / "a.wav")) == len(mel) * 256


def test_each_line_of_a_file_becomes_a_wav(myxtts, tmp_path):
    (tmp_path / "lines.txt").write_text("\ufeffOne.\n\nTwo. More | less.\r\n", encoding="utf-8")
    code, out, _ = myxtts("synthesize", "--voice", "v", "--text-file", "lines.txt", "-o", "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert code == 0
    assert names == ["0001.wav", "0002.wav", "metadata.csv"]
    metadata = (tmp_path / "out" / "metadata.csv").read_text()
    assert metadata == "0001|One.\n0002|Two. More | less.\n"
    np.testing.assert_array_equal(samples_of(tmp_path / "out" / "0001.wav"), expected("One."))
    assert out.startswith("out: 2 wavs and metadata.csv, ")


def test_lines_may_have_names(myxtts, tmp_path):
    (tmp_path / "lines.txt").write_text("b-1|Two.\na.x|One.\n")
    argv = ("--voice", "v", "--text-file", "lines.txt", "--save-mel")
    assert myxtts("synthesize", *argv)[0] == 0
    names = sorted(path.name for path in (tmp_path / "output").iterdir())
    assert names == ["a.x.npy", "a.x.wav", "b-1.npy", "b-1.wav", "metadata.csv"]
    np.testing.assert_array_equal(samples_of(tmp_path / "output" / "b-1.wav"), expected("Two."))


@pytest.mark.parametrize(
    "lines, complaint",
    [
        ("../a|One.\n", "'../a' cannot name a file"),
        ("a|One.\na|Two.\n", "two lines are called 'a'"),
        ("a|One.|Two.\n", "the line 'a' has more than one '|'"),
        ("One.\n...\nTwo.\n!\n", "nothing to say in 2 of the lines (0002, 0004)"),
        ("\n \n", "lines.txt holds no text"),
    ],
)
def test_lines_that_cannot_be_spoken_are_named_before_any_is(myxtts, tmp_path, lines, complaint):
    (tmp_path / "lines.txt").write_text(lines)
    code, _, err = myxtts("synthesize", "--voice", "v", "--text-file", "lines.txt")
    assert code == 2
    assert complaint in err
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (("--text", "..."), "nothing to say in '...'"),
        (("--text", "One.", "--clone-voice"), "--clone-voice needs a recording"),
        (("--text", "One.", "--speaker", "eve"), "choose one of anna, ben"),
        (("--text", "One.", "--language", "de"), "choose one of en, fa"),
        (("--text", "One.", "--speaking-rate", "9"), "the speaking rate 9 is not between"),
        (("--text", "One.", "--style-weights", "1,x"), "'1,x' is not a list of numbers: write"),
        (("--text", "One.", "--style-weights", "1,,2"), "'1,,2' is not a list of numbers"),
        (("--text", "One.", "--style-weights", "nan,1"), "'nan,1' is not a list of numbers"),
        (("--text", "One.", "--style-weights", ""), "'' is not a list of numbers"),
        (("--text", "One.", "--style-weights", "1,2"), "this voice has no style tokens"),
        (("--text", "One.", "--vocoder-type", "wavenet"), "choose one of auto, griffin_lim"),
        (("--text", "One.", "--reference", "absent.wav"), "no reference recording absent.wav"),
        (("--text", "One.", "-o", "a.mp3"), "a.mp3 does not end in .wav"),
        (("--text", "One.", "-o", "-", "--save-mel"), "--save-mel writes next to a wav"),
        (("--text-file", "absent.txt"), "No such file or directory: 'absent.txt'"),
        (("--text", "One.", "--text-file", "x"), "not allowed with argument"),
        (("--text", "One.", "--speaker", "a", "--reference", "x"), "not allowed with argument"),
        ((), "one of the arguments --text --text-file --book is required"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2(myxtts, tmp_path, argv, complaint):
    code, out, err = myxtts("synthesize", "--voice", "v", *argv)
    assert (code, out) == (2, "")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


def test_a_text_file_does_not_become_one_wav(myxtts, tmp_path):
    (tmp_path / "lines.txt").write_text("One.\n")
    argv = ("--voice", "v", "--text-file", "lines.txt", "-o", "a.wav")
    code, _, err = myxtts("synthesize", *argv)
    assert code == 2
    assert "name a folder with -o, not a.wav" in err


STREAM = """
import sys
sys.path.insert(0, {root!r})
from myxtts.cli.commands import synthesize
from myxtts.inference.synthesizer import Synthesizer
from tests.helpers.fake_voice import FakeModel, fake_voice
class Waiting(FakeModel):
    def synthesize(self, *inputs):
        sys.stdin.readline()
        return super().synthesize(*inputs)
synthesize.load_synthesizer = lambda *a: Synthesizer(fake_voice(model=Waiting()))
sys.exit(synthesize.main(["--voice", "v", "--text", "One. Two two.", "-o", "-"]))
"""


def test_a_stream_comes_sentence_by_sentence():
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    process = subprocess.Popen([sys.executable, "-c", STREAM.format(root=str(ROOT))], **pipes)
    samples = expected("One. Two two.")
    first = next(Synthesizer(fake_voice()).stream("One. Two two."))
    # Nothing may be held back: each part is read before the next one is requested.
    header = process.stdout.read(44)
    process.stdin.write(b"\n")
    process.stdin.flush()
    one = process.stdout.read(2 * len(first.samples))
    rest, err = process.communicate(b"\n", timeout=60)
    assert header[:4] + header[8:12] + header[36:40] == b"RIFFWAVEdata"
    assert struct.unpack("<I", header[4:8]) == struct.unpack("<I", header[40:]) == (0xFFFFFFFF,)
    assert struct.unpack("<IHHIIHH", header[16:36]) == (16, 1, 1, 22050, 44100, 2, 16)
    np.testing.assert_array_equal(np.frombuffer(one + rest, "<i2"), samples)
    assert process.returncode == 0
    assert b"real-time factor" in err


def test_a_stream_can_be_read_back(tmp_path):
    sound = wav_header(22050) + np.arange(2000, dtype="<i2").tobytes()
    (tmp_path / "stream.wav").write_bytes(sound)
    np.testing.assert_array_equal(samples_of(tmp_path / "stream.wav"), np.arange(2000))


def test_the_old_program_has_the_same_flags(capsys, tmp_path):
    argv = ["--checkpoint", "v", "--text", "One.", "--vocoder-type", "griffin_lim", "-o", "a.wav"]
    assert synthesize.main(argv) == 0
    np.testing.assert_array_equal(samples_of(tmp_path / "a.wav"), expected("One."))
    assert len((ROOT / "inference_main.py").read_text().splitlines()) <= 10


def test_mode_test_of_the_old_program_speaks(capsys, tmp_path, voice, reference):
    argv = ["--mode", "test", "--checkpoint", "runs/x", "--text=-One.", "--output", "a.wav"]
    assert train_test_file.main(argv) == 0
    assert voice == ["runs/x"]
    np.testing.assert_array_equal(samples_of(tmp_path / "a.wav"), expected("-One."))
    argv = ["--mode", "test", "--checkpoint-dir", "runs/y", "--text", "One.", "--seed", "7"]
    assert train_test_file.main([*argv, "--reference-audio", str(reference)]) == 0
    assert voice == ["runs/x", "runs/y"]
    said = expected("One.", seed=7, reference=reference)
    np.testing.assert_array_equal(samples_of(tmp_path / "output.wav"), said)


def test_mode_test_needs_a_text(capsys):
    assert train_test_file.main(["--mode", "test", "--checkpoint", "v"]) == 2
    assert "give it with --text" in capsys.readouterr().err


def test_a_text_file_is_streamed_without_reading_it_whole(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\n \nOne.\x0cTwo.\n\n  Three \n" + "So it was. " * 100_000, encoding="utf-8")
    parts = workflow.read_parts(path)
    read = [next(parts) for _ in range(3)]
    assert "".join(read[:2]) == "One.\nTwo.\nThree\n"
    assert len(read[2]) == 4096


def test_the_ids_of_lines_are_not_spoken_in_a_stream(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a|One.\n\nb|Two.\n", encoding="utf-8")
    assert "".join(workflow.read_parts(path)) == "One.\nTwo."
    path.write_text("a|One.\nTwo.\n", encoding="utf-8")
    assert "".join(workflow.read_parts(path)) == "a|One.\nTwo."
