import numpy as np
import pytest

from myxtts.weights import WeightsError, check_fit

SHAPES = {"a": (2, 3), "b": (4,), "n.count": ()}


def arrays(**others):
    return {"a": np.zeros((2, 3)), "b": np.zeros(4), "n.count": np.array(1)} | others


def test_what_fits_is_let_through():
    assert check_fit(arrays(), SHAPES, "x.pth") is None


def test_what_is_ignored_may_be_there_or_not_and_be_anything():
    bare = {"a": np.zeros((2, 3)), "b": np.zeros(4)}
    assert check_fit(arrays(), {"a": (2, 3), "b": (4,)}, "x.pth", ignored=["*.count"]) is None
    assert check_fit(bare, SHAPES, "x.pth", ignored=["*.count"]) is None
    assert check_fit(arrays(b=np.array([np.nan])), SHAPES, "x.pth", ignored=["b"]) is None


def test_all_differences_are_named_with_both_shapes():
    given = {"a": np.zeros((3, 2)), "n.count": np.array(np.inf), "c": np.zeros(1)}
    expected = (
        "x.pth does not fit the model: 1 missing: b; 1 surplus: c; 1 of another shape: "
        "a (in the file [3, 2], needed [2, 3]); 1 not finite: n.count. It holds the weights of "
        "another model or another version of it, or it is damaged: name another file"
    )
    with pytest.raises(WeightsError) as caught:
        check_fit(given, SHAPES, "x.pth")
    assert str(caught.value) == expected


def test_many_differences_are_counted():
    with pytest.raises(WeightsError, match="9 missing: w0, w1, w2, w3, w4 and 4 more"):
        check_fit({}, {f"w{n}": (1,) for n in range(9)}, "x.pth")


def test_names_that_steer_a_terminal_are_shown_in_full():
    with pytest.raises(WeightsError, match=r"surplus: '\\x1b\[2J'"):
        check_fit({"\x1b[2J": np.zeros(1)}, {}, "x.pth")
