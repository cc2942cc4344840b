import sys
from dataclasses import replace

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.evaluation.history import read_history
from myxtts.evaluation.report.plots import (
    draw_alignment,
    draw_curve,
    draw_mels,
    write_curve,
    write_picture,
)

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture
def axes():
    return figure.Figure().subplots(2, 1)


def test_the_curve_shows_steps_validations_and_the_mean_mel(axes, history):
    draw_curve(axes[0], read_history(history))
    step, validation, mean = axes[0].lines
    assert list(step.get_ydata()) == [2.0, 1.0]
    assert (list(validation.get_xdata()), list(validation.get_ydata())) == ([40], [1.5])
    assert set(mean.get_ydata()) == {1.25}
    assert "mean mel: 1.25" in mean.get_label()


def test_without_a_mean_mel_there_is_no_line_for_it(axes, history):
    draw_curve(axes[0], replace(read_history(history), mean_mel_loss=None))
    assert len(axes[0].lines) == 2


def test_the_alignment_marks_one_token_in_each_frame(axes, example):
    draw_alignment(axes[0], example)
    (image,) = axes[0].images
    assert np.array_equal(
        image.get_array(),
        [[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]],
    )
    # The sound is written above the middle of frames 1 and 2: (1.5 + 0.5) * 0.01 s.
    (label,) = axes[0].texts
    assert (label.get_text(), label.get_position()[0]) == ("ɐ", pytest.approx(0.02))


def test_both_mels_share_colours_and_time(axes, example):
    draw_mels(axes, example)
    recording, output = (axis.images[0] for axis in axes)
    assert recording.get_array().shape == (8, 6)
    assert output.get_array().shape == (8, 7)
    assert recording.get_clim() == output.get_clim()
    assert axes[0].get_xlim() == axes[1].get_xlim() == (0, pytest.approx(0.07))


def test_a_picture_of_a_real_size_is_a_small_file(tmp_path, history, example):
    rng = np.random.default_rng(1)
    smooth = np.cumsum(rng.normal(size=(300, 80)), axis=0)
    frames = np.repeat(np.arange(50), 6)
    large = replace(
        example, symbols=["a"] * 50, frame_tokens=frames, target_mel=smooth, output_mel=smooth
    )
    path = write_picture(tmp_path / "a/voice.png", read_history(history), large)
    assert 5_000 < path.stat().st_size < 150_000


def test_missing_matplotlib_names_its_extra(monkeypatch, tmp_path, history):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"myxtts\[plots\]"):
        write_curve(tmp_path / "curve.png", read_history(history))
