import sys

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.evaluation.report.labels import place_labels
from myxtts.evaluation.report.speaker_plots import (
    draw_voices,
    nearest_others,
    principal_plane,
    write_styles,
    write_voices,
)

figure = pytest.importorskip("matplotlib.figure")

# A cross with a long arm of 3 and a short one of 1, around (5, 7, 9).
CROSS = np.array([[8, 7, 9], [2, 7, 9], [5, 7, 10], [5, 7, 8]], np.float32)


def weights(speakers: int, heads: int = 2, tokens: int = 4) -> np.ndarray:
    drawn = np.random.default_rng(0).uniform(size=(speakers, heads, tokens))
    return drawn / drawn.sum(axis=2, keepdims=True)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, instead of their files."""
    figures = []
    save = "myxtts.evaluation.report.speaker_plots.save_figure"
    monkeypatch.setattr(save, lambda figure, path: figures.append(figure))
    return figures


def test_the_plane_has_the_axes_of_most_variance():
    points, shares = principal_plane(CROSS)
    # Along the arms there are 2 * 3**2 and 2 * 1**2.
    assert shares == pytest.approx([0.9, 0.1])
    assert np.abs(points) == pytest.approx(np.array([[3, 0], [3, 0], [0, 1], [0, 1]]), abs=1e-6)
    assert points[0] == pytest.approx(-points[1])


def test_the_plane_does_not_depend_on_the_mean_of_the_vectors():
    points, _ = principal_plane(CROSS)
    assert principal_plane(CROSS + 100)[0] == pytest.approx(points, abs=1e-6)


def test_equal_vectors_have_no_variance_to_share():
    points, shares = principal_plane(np.ones((3, 4)))
    assert np.array_equal(points, np.zeros((3, 2)))
    assert np.array_equal(shares, [0, 0])


def test_two_vectors_are_compared_without_centring():
    nearest, cosines = nearest_others(np.array([[1, 0], [1, 1]]))
    assert list(nearest) == [1, 0]
    assert cosines == pytest.approx([0.5**0.5] * 2)


def test_more_vectors_are_centred_first():
    vectors = np.array([[10, 0], [10, 2], [12, 2], [8, 0]])
    nearest, cosines = nearest_others(vectors)
    # Without their mean (10, 1) they are (0, -1), (0, 1), (2, 1) and (-2, -1).
    assert list(nearest) == [3, 2, 1, 0]
    assert cosines == pytest.approx([5**-0.5] * 4)


def test_a_vector_equal_to_the_mean_has_no_direction():
    # They differ by less than the precision of float32.
    nearest, cosines = nearest_others(np.ones((3, 4)) + 1e-8 * np.eye(3, 4))
    assert all(other != own for own, other in enumerate(nearest))
    assert np.array_equal(cosines, [0, 0, 0])


def test_one_vector_has_no_nearest():
    with pytest.raises(ValueError, match="1 vectors have no others"):
        nearest_others(np.ones((1, 4)))


def test_labels_are_to_the_right_unless_a_point_is_there():
    points = np.array([[50.0, 50.0], [60.0, 50.0]])
    sizes = np.array([[20.0, 10.0], [20.0, 10.0]])
    middles = place_labels(points, sizes, (0, 0, 100, 100), distances=(5,), radius=2)
    # 10 + 5 to the left of the first, and to the right of the second.
    assert np.array_equal(middles, [[35, 50], [75, 50]])


def test_labels_stay_inside_and_are_dropped_without_room():
    points, sizes = np.array([[10.0, 10.0]] * 2), np.array([[12.0, 6.0]] * 2)
    # Only above and below is there room for one of them: 3 + 1 from the point.
    middles = place_labels(points, sizes, (4, 6 - 3, 16, 17), distances=(1,), radius=0.5)
    assert np.array_equal(middles, [[10, 14], [10, 6]])
    middles = place_labels(points, sizes, (4, 9, 16, 17), distances=(1,), radius=0.5)
    assert np.array_equal(middles, [[10, 14], [np.nan, np.nan]], equal_nan=True)


def test_labels_do_not_overlap():
    rng = np.random.default_rng(0)
    points, sizes = rng.normal(300, 80, (150, 2)), rng.uniform(8, 40, (150, 2))
    middles = place_labels(points, sizes, (0, 0, 600, 600), (5, 14, 26), 3)
    has_room = np.isfinite(middles[:, 0])
    middles, sizes = middles[has_room], sizes[has_room]
    apart = np.abs(middles[:, None] - middles) >= (sizes[:, None] + sizes) / 2
    assert len(middles) > 30
    assert (apart.any(axis=2) | np.eye(len(middles), dtype=bool)).all()


def test_every_speaker_is_a_named_point_and_the_axes_show_their_variance():
    axes = figure.Figure(layout="constrained").subplots()
    names = ["anna", "ben", "$\\frac$", "دارا"]
    draw_voices(axes, names, CROSS)
    assert len(axes.collections[0].get_offsets()) == 4
    assert [text.get_text() for text in axes.texts] == names
    assert "90% of the variance" in axes.get_xlabel()
    assert "10% of the variance" in axes.get_ylabel()
    assert axes.get_title() == "How the 4 voices differ"


def test_names_without_room_are_counted():
    axes = figure.Figure(layout="constrained").subplots()
    draw_voices(axes, [f"a rather long name {n}" for n in range(200)], np.ones((200, 4)))
    assert axes.get_title().endswith(f"(names without room: {200 - len(axes.texts)})")
    assert 0 < len(axes.texts) < 200


def test_few_speakers_are_bars_in_a_panel_for_each_token(drawn, tmp_path):
    given = weights(3, tokens=6)
    write_styles(tmp_path / "styles.png", ["anna", "ben", "$\\frac$"], given)
    (shown,) = drawn
    # The last row of panels, of five columns, has one panel.
    assert [axes.get_title() for axes in shown.axes] == [f"token {token}" for token in range(6)]
    for token, axes in enumerate(shown.axes):
        widths = [bar.get_width() for bar in axes.patches]
        assert widths == pytest.approx(given[:, :, token].mean(axis=1))
        heads = [line.get_xdata() for line in axes.lines[:2]]
        assert heads == pytest.approx(given[:, :, token].T)
        assert set(axes.lines[2].get_xdata()) == {1 / 6}


@pytest.mark.parametrize(
    "heads, tokens, titles",
    [
        (2, 4, ["mean of heads", "head 0", "head 1"]),
        (1, 4, [""]),
        (1, 120, [""]),
        (8, 30, ["mean of heads"]),
    ],
)
def test_many_speakers_are_a_map(drawn, tmp_path, heads, tokens, titles):
    given = weights(17, heads, tokens)
    write_styles(tmp_path / "styles.png", [f"p{n}" for n in range(17)], given)
    *maps, _ = drawn[0].axes  # the last is the scale of the colours
    assert [axes.get_title() for axes in maps] == titles
    expected = [given.mean(axis=1), *np.moveaxis(given, 1, 0)][: len(titles)]
    for axes, values in zip(maps, expected, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), values)
        assert axes.images[0].get_clim() == (0, max(values.max() for values in expected))
    assert [label.get_text() for label in maps[0].get_yticklabels()][16] == "p16"


def test_plots_of_a_real_size_are_small_files(tmp_path):
    names = [f"speaker-{n}" for n in range(150)]
    vectors = np.random.default_rng(0).normal(size=(150, 128))
    for path in (
        write_voices(tmp_path / "a/voices.png", names, vectors),
        write_styles(tmp_path / "a/styles.png", names, weights(150, 4, 10)),
    ):
        assert 5_000 < path.stat().st_size < 200_000


def test_missing_matplotlib_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"myxtts\[plots\]"):
        write_voices(tmp_path / "voices.png", ["anna", "ben"], CROSS[:2])
