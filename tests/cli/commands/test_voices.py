"""`myxtts voices` on tiny voices of real, untrained models."""

import sys

import numpy as np
import pytest

from myxtts.checkpoints import save_voice
from myxtts.text.tokenizer import Tokenizer
from myxtts.workflows.voices import name_encoder
from tests.helpers.tiny_model import tiny_config

pytest.importorskip("matplotlib.figure")

TOKENIZER = Tokenizer.build(["en", "fa"])
# Their mean is (10, 1, 0, ...); anna and eve lie to one side of it, ben and dara to the other.
VECTORS = np.zeros((4, 8), np.float32)
VECTORS[:, :2] = [[10, 0], [10, 2], [12, 2], [8, 0]]
NAMES = ["anna", "ben", "dara", "eve"]


@pytest.fixture
def make_voice(tmp_path):
    def make(speakers: int = 4, vectors=VECTORS, **settings):
        from myxtts.models.xtts import build_xtts

        config, names = tiny_config(**settings), NAMES[:speakers]
        spec = config.data.audio_spec
        model = build_xtts(config.model, spec, TOKENIZER.vocab_size, 2, speakers)
        folder = tmp_path / "run" / "voice"
        languages = ["en", "fa"]
        return save_voice(folder, model, config, TOKENIZER, names, languages, vectors[:speakers])

    return make


def test_the_speakers_are_printed_and_drawn(myxtts, make_voice, tmp_path):
    folder = make_voice()
    code, out, err = myxtts("voices", folder)
    assert (code, err) == (0, "")
    # 1 / sqrt(5) = 0.447: see test_voice_pictures.
    assert out.splitlines() == [
        f"{folder}: 4 speakers",
        "languages     en, fa",
        "encoder       its own encoder, learnt with the voice",
        "style tokens  none",
        "",
        "#  speaker  nearest  cosine",
        "0  anna     eve       0.447",
        "1  ben      dara      0.447",
        "2  dara     ben       0.447",
        "3  eve      anna      0.447",
        "cosines are of what is left without the mean of all",
        "",
        "speakers  plots/voices.png",
    ]
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["voices.png"]
    assert not (folder / "plots").exists()


def test_styles_are_drawn_where_there_are_any(myxtts, make_voice, tmp_path):
    make_voice(use_gst=True)
    code, out, _ = myxtts("voices", tmp_path / "run", "-o", "here/too")
    assert code == 0
    assert "style tokens  4 (attention heads: 2)\n" in out
    assert out.endswith("speakers  here/too/voices.png\nstyles    here/too/styles.png\n")
    names = sorted(path.name for path in (tmp_path / "here/too").iterdir())
    assert names == ["styles.png", "voices.png"]


def test_the_styles_drawn_are_those_of_the_speakers(monkeypatch, myxtts, make_voice):
    drawn = []
    write = "myxtts.evaluation.report.speaker_plots.write_styles"
    monkeypatch.setattr(write, lambda path, names, weights: drawn.append((names, weights)))
    folder = make_voice(use_gst=True)
    assert myxtts("voices", folder)[0] == 0
    from myxtts.checkpoints import load_voice

    ((names, weights),) = drawn
    assert names == tuple(NAMES)
    assert weights.shape == (4, 2, 4)
    np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=1e-5)
    np.testing.assert_allclose(weights, load_voice(folder).model.style(VECTORS)[1], rtol=1e-5)


def test_a_single_speaker_is_compared_with_nobody(myxtts, make_voice, tmp_path):
    code, out, err = myxtts("voices", make_voice(speakers=1))
    assert (code, err) == (0, "")
    assert ": 1 speaker\n" in out
    assert "anna is the only speaker" in out
    assert out.endswith("no voices.png: a single speaker differs from nobody\n")
    assert not (tmp_path / "plots").exists()


def test_the_styles_of_a_single_speaker_are_drawn(myxtts, make_voice, tmp_path):
    code, out, _ = myxtts("voices", make_voice(speakers=1, use_gst=True))
    assert code == 0
    assert out.endswith("styles    plots/styles.png\n")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["styles.png"]


def test_two_speakers_are_compared_as_they_are(myxtts, make_voice):
    _, out, _ = myxtts("voices", make_voice(speakers=2))
    # The cosine of (10, 0) and (10, 2): 10 / sqrt(104).
    assert "0  anna     ben       0.981\n1  ben      anna      0.981\n\nspeakers" in out


@pytest.mark.parametrize(
    "settings, name",
    [
        ({}, "its own encoder, learnt with the voice"),
        ({"use_pretrained_speaker_encoder": True}, "the published encoder ecapa_tdnn, frozen"),
        (
            {"speaker_encoder_path": "x.pt", "freeze_speaker_encoder": False},
            "the published encoder ecapa_tdnn, trained further with the voice",
        ),
    ],
)
def test_the_encoder_is_named(settings, name):
    assert name_encoder(tiny_config(**settings).model) == name


@pytest.mark.parametrize(
    "argv, complaint",
    [
        (("absent",), "there is no folder"),
        (("empty",), "there is no voice in"),
        (("empty", "-o", "file"), "file is a file: name a folder with -o"),
        ((), "the following arguments are required: VOICE"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2(myxtts, tmp_path, argv, complaint):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    code, out, err = myxtts("voices", *argv)
    assert (code, out) == (2, "")
    assert complaint in err
    assert not (tmp_path / "plots").exists()


def test_vectors_that_are_not_finite_are_named(myxtts, make_voice):
    vectors = VECTORS.copy()
    vectors[1, 3] = np.nan
    code, _, err = myxtts("voices", make_voice(vectors=vectors))
    assert code == 2
    assert "speakers.safetensors holds values that are no finite numbers" in err


def test_without_matplotlib_the_speakers_are_still_printed(monkeypatch, myxtts, make_voice):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = myxtts("voices", make_voice())
    assert code == 2
    assert "3  eve      anna      0.447\n" in out
    assert "myxtts[plots]" in err
