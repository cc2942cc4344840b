import json
from pathlib import Path

import numpy as np
import pytest

from myxtts.audio.io import write_wav
from myxtts.evaluation.report.plots import Example


@pytest.fixture
def history(tmp_path) -> Path:
    """Three steps and one validation; the last step's loss was not finite."""
    lines = [
        {"step": 20, "mel_loss": 2.0, "data_ms": 1.0, "compute_ms": 99.0},
        {"step": 40, "mel_loss": 1.0, "data_ms": 3.0, "compute_ms": 97.0},
        {"step": 40, "val/mel_loss": 1.5, "val/mean_mel_loss": 1.25},
        {"step": 60, "mel_loss": None, "data_ms": 2.0, "compute_ms": 98.0},
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def example() -> Example:
    rng = np.random.default_rng(0)
    return Example(
        text="A <b> sentence.",
        symbols=("<bos>", "ɐ", " ", "<eos>"),
        frame_tokens=np.array([0, 1, 1, 2, 3, 3]),
        target_mel=rng.normal(size=(6, 8)),
        output_mel=rng.normal(size=(7, 8)),
        frame_seconds=0.01,
    )


@pytest.fixture
def clip(tmp_path) -> Path:
    path = tmp_path / "audio" / "one.wav"
    write_wav(path, np.sin(np.arange(800) / 9) / 2, 8000)
    return path
