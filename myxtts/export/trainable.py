"""Where the weights of a voice are in its graphs, so that an export can be fine-tuned.

A conversion keeps almost all weights as they are, but for the order of their axes. An export
records which tensor each one has become, and stores the few that no graph has.
"""

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

import numpy as np

# The graph, the tensor in it, the weight's axes in their order there, and its shape.
Place = dict[str, Any]


def locate_weights(
    weights: Mapping[str, np.ndarray], graphs: Mapping[str, Any]
) -> tuple[dict[str, Place], dict[str, np.ndarray]]:
    """The place of each weight among the tensors of ONNX models, and the weights without one."""
    by_size: dict[int, list[tuple[str, str, np.ndarray]]] = {}
    for graph, name, values in _tensors(graphs):
        by_size.setdefault(values.size, []).append((graph, name, values))
    places, rest = {}, {}
    for weight, values in weights.items():
        values = np.asarray(values)
        found = (_place(values, *one) for one in by_size.get(values.size, ()))
        place = next(filter(None, found), None)
        if place:
            places[weight] = place
        else:
            rest[weight] = values
    return places, rest


def _tensors(graphs: Mapping[str, Any]) -> Iterator[tuple[str, str, np.ndarray]]:
    from onnx import TensorProto, numpy_helper

    for graph, model in graphs.items():
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                yield graph, tensor.name, numpy_helper.to_array(tensor)


def _place(weight: np.ndarray, graph: str, name: str, tensor: np.ndarray) -> Place | None:
    """The place of a weight, if the tensor is that weight; axes of size 1 do not count."""
    shape, weight, tensor = weight.shape, np.squeeze(weight), np.squeeze(tensor)
    for axes in permutations(range(weight.ndim)):
        turned = weight.transpose(axes)
        if turned.shape == tensor.shape and np.array_equal(turned, tensor):
            return {"graph": graph, "tensor": name, "axes": list(axes), "shape": list(shape)}
    return None
