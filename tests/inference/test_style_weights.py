"""Style weights, from the command to the mel of a real model, untrained and tiny."""

import numpy as np
import pytest

from myxtts.checkpoints import save_voice
from myxtts.cli.main import main
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.tiny_model import tiny_config

VECTORS = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_voice(tmp_path_factory.mktemp("styled") / "voice", use_gst=True)


def make_voice(folder, **settings):
    import keras

    from myxtts.models.xtts import build_xtts

    keras.utils.set_random_seed(0)
    config, tokenizer = tiny_config(**settings), Tokenizer.build(["en"])
    model = build_xtts(config.model, config.data.audio_spec, tokenizer.vocab_size, 1, 2)
    random = np.random.default_rng(0)
    for weight in model.trainable_variables:  # what starts at zero would hide the voice
        weight.assign(weight + 0.1 * random.normal(size=weight.shape))
    return save_voice(folder, model, config, tokenizer, ["anna", "ben"], ["en"], VECTORS)


@pytest.fixture
def say(tmp_path, capsys):
    """Let a voice speak by the command; return the mel, or what was complained of."""

    def speak(folder, *argv: str) -> np.ndarray | str:
        target = tmp_path / "a.wav"
        given = ["--voice", str(folder), "--text", "Hello there.", "-o", str(target), "--save-mel"]
        code = main(["synthesize", *given, *argv])
        err = capsys.readouterr().err
        assert (code == 2) == err.startswith("error: ")
        return err if code else np.load(target.with_suffix(".npy"))

    return speak


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape != other.shape or not np.allclose(one, other, atol=1e-4)


def test_style_weights_change_the_mel_and_nothing_else_does(folder, say):
    own = say(folder, "--speaker", "ben")
    first = say(folder, "--speaker", "ben", "--style-weights", "1,0,0,0")
    second = say(folder, "--speaker", "ben", "--style-weights", "0,1,0,0")
    again = say(folder, "--speaker", "ben", "--style-weights", "1,0,0,0")
    assert differ(own, first)
    assert differ(own, second)
    assert differ(first, second)
    np.testing.assert_array_equal(first, again)


def test_the_speaker_matters_in_addition_to_the_style(folder, say):
    anna, ben = (
        say(folder, "--speaker", name, "--style-weights=-0.5,0,0.5,1") for name in ("anna", "ben")
    )
    assert differ(anna, ben)


def test_there_is_a_weight_for_each_token(folder, say):
    complaint = say(folder, "--style-weights", "1,0,0")
    assert "3 style weights were given and the voice has 4 style tokens" in complaint


def test_a_voice_without_style_tokens_has_no_use_for_weights(tmp_path, say):
    plain = make_voice(tmp_path / "plain", use_gst=False)
    assert "this voice has no style tokens" in say(plain, "--style-weights", "1,0,0,0")
