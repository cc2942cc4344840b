"""The voice inside the package: it speaks without TensorFlow, is small, and says what it is."""

import subprocess
import sys

import numpy as np
import pytest
import soundfile

from myxtts.cli.main import main
from myxtts.resources import default_voice
from myxtts.workflows.finetune import default_folder

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: the extra `speak`")
pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: the extra `phonemes`")

MOST_BYTES = 12_000_000


def test_it_is_small_and_says_what_it_is():
    folder = default_voice()
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    card = (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    for part in ("CC0", "| word error rate |", "myxtts train --data"):
        assert part in card


def test_it_speaks_where_no_voice_is_named(tmp_path):
    target = tmp_path / "hello.wav"
    assert main(["synthesize", "--text", "Hello there, how are you today?", "-o", str(target)]) == 0
    samples, rate = soundfile.read(target)
    assert rate == 22_050 and 1.0 < len(samples) / rate < 4.0
    assert np.abs(samples).max() < 1.0 and np.sqrt(np.mean(samples**2)) > 0.02


def test_it_needs_no_tensorflow(tmp_path):
    program = (
        "import sys; from myxtts.cli.main import main; "
        f"main(['synthesize', '--text', 'Hello.', '-o', {str(tmp_path / 'x.wav')!r}]); "
        "sys.exit(bool({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_can_be_trained_further():
    from myxtts.checkpoints import load_trainable, load_voice

    trained, exported = load_trainable(default_voice()), load_voice(default_voice())
    assert trained.speakers == exported.speakers
    assert trained.model.count_params() > 3_000_000
    tokens = np.array([trained.tokenizer.encode("Good morning.", "en")], np.int32)
    length, zero = np.array([tokens.shape[1]], np.int32), np.zeros(1, np.int32)
    inputs = (tokens, length, zero, trained.voices[:1], np.ones(1, np.float32))
    said, expected = (one.model.synthesize(*inputs) for one in (trained, exported))
    np.testing.assert_array_equal(said["durations"], expected["durations"])
    np.testing.assert_allclose(said["mel"], expected["mel"], atol=1e-2)


def test_fine_tuning_it_writes_nothing_into_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_folder(default_voice()) == tmp_path / "default_voice-finetuned"
