"""Names and layouts of a published PyTorch network's tensors in its Keras counterpart."""

import re
from collections.abc import Mapping

import numpy as np

Shapes = dict[str, tuple[int, ...]]

_OF_LAYER = {"weight": "kernel", "bias": "bias"}
_OF_NORM = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


def keras_name(name: str, names: Mapping[str, object]) -> str:
    """Return a variable's path; `names`, all of the network's, distinguish norms from layers.

    A module's number joins its name, as in `blocks.1.tdnn1.bias` -> `blocks_1/tdnn1/bias`.
    """
    module, _, leaf = name.rpartition(".")
    leaf = (_OF_NORM if f"{module}.running_mean" in names else _OF_LAYER)[leaf]
    return "/".join([*re.sub(r"\.(\d+)", r"_\1", module).split("."), leaf])


def keras_value(array: np.ndarray) -> np.ndarray:
    """Reverse the axes, [out, in, kernel] to [kernel, in, out]; a kernel of 1 is a product's."""
    array = np.transpose(array)
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    return array


def layer_shapes(name: str, *shape: int, bias: bool = True) -> Shapes:
    """Name the tensors of a convolution or product of [out, in, *kernel]."""
    return {f"{name}.weight": shape} | ({f"{name}.bias": shape[:1]} if bias else {})


def norm_shapes(name: str, channels: int) -> Shapes:
    """Name the tensors of a batch norm."""
    return {f"{name}.{leaf}": (channels,) for leaf in _OF_NORM}
