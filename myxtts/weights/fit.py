"""Whether the arrays of a checkpoint are those that a model needs."""

import os
from collections.abc import Collection, Mapping

import numpy as np

from myxtts.weights.error import WeightsError
from myxtts.weights.pickles import printable
from myxtts.weights.torch_files import matches

_SHOWN = 5


def check_fit(
    arrays: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    source: str | os.PathLike[str],
    ignored: Collection[str] = (),
) -> None:
    """Raise WeightsError unless the arrays have these names and shapes and finite values.

    What is ignored may be there or not: names or patterns such as `*.num_batches_tracked`.
    """
    differences = misfit(arrays, shapes, ignored)
    if differences:
        raise WeightsError(
            f"{source} does not fit the model: {differences}. It holds the weights of another "
            "model or another version of it, or it is damaged: name another file"
        )


def misfit(
    arrays: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    ignored: Collection[str] = (),
) -> str:
    """Say how arrays differ from what is needed; nothing if they fit."""
    wanted = {name: tuple(shape) for name, shape in shapes.items() if not matches(name, ignored)}
    given = {name: array for name, array in arrays.items() if not matches(name, ignored)}
    both = [name for name in wanted if name in given]
    parts = {
        "missing": [name for name in wanted if name not in given],
        "surplus": [name for name in given if name not in wanted],
        "of another shape": [
            f"{name} (in the file {list(given[name].shape)}, needed {list(wanted[name])})"
            for name in both
            if given[name].shape != wanted[name]
        ],
        "not finite": [name for name in both if not _is_finite(given[name])],
    }
    return "; ".join(f"{len(n):,} {what}: {_some(n)}" for what, n in parts.items() if n)


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(printable(name) for name in names[:_SHOWN])
    return shown + (f" and {more:,} more" if more > 0 else "")
