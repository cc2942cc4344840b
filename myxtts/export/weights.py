"""The weights of a graph in fewer bits: they are expanded to float32 when the graph is opened."""

from collections.abc import Sequence
from typing import Any

import numpy as np

FLOAT32, FLOAT16, INT8 = KINDS = ("float32", "float16", "int8")
# Small tensors are sizes, scales and biases: they cost little and may need their bits.
_LEAST_VALUES = 1024
_MOST_INT8, _LARGEST_FLOAT16 = 127, 65504.0


def pack_weights(model: Any, kind: str, tables: Sequence[np.ndarray] = ()) -> Any:
    """Store the large tensors of an ONNX model as another kind, in place.

    A tensor of 8 bits has a scale for each of its last axis: that of the outputs in a product.
    Tables, such as those of a Fourier transform, are no weights and keep their bits.
    """
    if kind == FLOAT32:
        return model
    from onnx import TensorProto, numpy_helper

    graph = model.graph
    kept, nodes = [], []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or values.size < _LEAST_VALUES:
            kept.append(tensor)
            continue
        if any(_is_equal(values, table) for table in tables):
            if not _fits_half(values):
                kept.append(tensor)
                continue
            tensors, expanding = _packed(tensor.name, values, FLOAT16)
        else:
            tensors, expanding = _packed(tensor.name, values, kind)
        kept += tensors
        nodes += expanding
    del graph.initializer[:]
    graph.initializer.extend(kept)
    # Nodes are in the order in which they run.
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    return model


def _is_equal(values: np.ndarray, table: np.ndarray) -> bool:
    return values.size == table.size and np.array_equal(np.squeeze(values), np.squeeze(table))


def _fits_half(values: np.ndarray) -> bool:
    """Whether no bit is lost in float16."""
    with np.errstate(over="ignore"):
        return bool(np.array_equal(values.astype(np.float16).astype(np.float32), values))


def _packed(name: str, values: np.ndarray, kind: str) -> tuple[list[Any], list[Any]]:
    """The tensors that a weight is stored as, and the nodes that make it of them."""
    from onnx import TensorProto, helper, numpy_helper

    small = f"{name}:{kind}"
    if kind == FLOAT16:
        half = np.clip(values, -_LARGEST_FLOAT16, _LARGEST_FLOAT16).astype(np.float16)
        cast = helper.make_node("Cast", [small], [name], to=TensorProto.FLOAT)
        return [numpy_helper.from_array(half, small)], [cast]
    axis = _scaled_axis(values)
    others = tuple(number for number in range(values.ndim) if number != axis)
    scale = np.maximum(np.abs(values).max(axis=others, keepdims=True), 1e-12) / _MOST_INT8
    whole = np.round(values / scale).astype(np.int8)
    tensors = [
        numpy_helper.from_array(whole, small),
        numpy_helper.from_array(scale.astype(np.float32), f"{small}:scale"),
    ]
    nodes = [
        helper.make_node("Cast", [small], [f"{small}:float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{small}:float", f"{small}:scale"], [name]),
    ]
    return tensors, nodes


def _scaled_axis(values: np.ndarray) -> int:
    """The axis of outputs: the first in a convolution's [outputs, inputs, ...], else the last."""
    return 0 if values.ndim > 2 else values.ndim - 1
