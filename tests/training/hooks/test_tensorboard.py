"""What TensorBoard gets."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from myxtts.training.hooks.tensorboard import TensorBoardHook, grey
from tests.helpers.step_records import record


def events(folder: Path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    return found


def scalars(found, tag):
    from tensorboard.util import tensor_util

    return [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in found.Tensors(tag)]


def strings(found, tag) -> list[bytes]:
    return list(found.Tensors(tag)[0].tensor_proto.string_val)


@pytest.fixture
def board(tmp_path):
    hook = TensorBoardHook(tmp_path / "events", log_interval=2)
    hook.start(0)
    return hook


def test_tensorboard_gets_the_scalars_of_every_interval(board):
    for step in range(1, 5):
        terms = {"mel_loss": step / 2, "weighted/mel_loss": float(step), "learning_rate": 0.5}
        board.after_step(record(step, {**terms, "gradient_norm": 0.25}))
    board.record_validation(4, {"mel_loss": 0.75})
    board.close()
    found = events(board.folder)
    assert scalars(found, "train/mel_loss") == [(2, 1.0), (4, 2.0)]
    assert scalars(found, "weighted/mel_loss") == [(2, 2.0), (4, 4.0)]
    assert scalars(found, "train/learning_rate") == [(2, 0.5), (4, 0.5)]
    assert scalars(found, "train/gradient_norm") == [(2, 0.25), (4, 0.25)]
    assert scalars(found, "time/data_ms") == [(2, 1.0), (4, 1.0)]
    assert scalars(found, "time/compute_ms") == [(2, 9.0), (4, 9.0)]
    assert scalars(found, "val/mel_loss") == [(4, 0.75)]


def test_tensorboard_gets_a_matrix_as_a_picture(board):
    from PIL import Image

    board.images(7, "mel", np.array([[-2.0, 0.0, 2.0]]))
    board.close()
    width, height, png = strings(events(board.folder), "mel")
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    # The middle is 127.5, which may be rounded either way.
    assert (width, height) == (b"3", b"1")
    assert pixels[0, 0] == 0 and pixels[0, 1] in (127, 128) and pixels[0, 2] == 255


def test_tensorboard_keeps_the_colours_of_a_picture(board):
    from PIL import Image

    picture = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
    board.images(7, "alignment", picture)
    board.close()
    _, _, png = strings(events(board.folder), "alignment")
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), picture)


def test_a_constant_matrix_becomes_black():
    np.testing.assert_array_equal(grey(np.full((2, 3), -4.0)), np.zeros((2, 3, 1)))


def test_tensorboard_gets_audio(board):
    import soundfile

    samples = np.array([0.0, 0.5, -0.5, 0.25])
    board.audio(3, "sample", samples, 22050)
    board.close()
    heard, rate = soundfile.read(io.BytesIO(strings(events(board.folder), "sample")[0]))
    assert rate == 22050
    np.testing.assert_allclose(heard, samples, atol=1 / 32768)


def test_without_tensorboard_one_line_names_the_extra_and_nothing_is_written(
    tmp_path, messages, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    hook = TensorBoardHook(tmp_path / "events", log_interval=1)
    hook.start(0)
    hook.after_step(record(1))
    hook.record_validation(1, {"loss": 1.0})
    hook.images(1, "mel", np.zeros((2, 2)))
    hook.audio(1, "sample", np.zeros(4), 22050)
    hook.close()
    assert len(messages()) == 1 and "myxtts[tensorboard]" in messages()[0]
    assert not (tmp_path / "events").exists()
