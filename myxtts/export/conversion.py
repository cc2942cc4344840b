"""Functions of TensorFlow as ONNX graphs, with the operations that tf2onnx lacks or gets wrong."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.errors import UserError

OPSET = 18


def convert(function: Callable, inputs: Sequence[tf.TensorSpec], outputs: Sequence[str]) -> Any:
    """An ONNX model of a function that returns as many tensors as there are names.

    Inputs have the names of their specs, and all sizes that these leave open stay open.
    """
    tf2onnx = import_tf2onnx()
    traced = tf.function(function, input_signature=list(inputs))
    with _quiet("tf2onnx"):
        model, _ = tf2onnx.convert.from_function(
            traced,
            input_signature=list(inputs),
            opset=OPSET,
            custom_op_handlers={name: (handler, []) for name, handler in _HANDLERS.items()},
        )
    _rename_outputs(model.graph, outputs)
    return model


def import_tf2onnx() -> Any:
    """tf2onnx, or an error that names the extra that it belongs to."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        import tf2onnx
    except ImportError as error:
        raise UserError(
            f"exporting needs tf2onnx ({error}): install it with pip install 'myxtts[export]'"
        ) from error
    return tf2onnx


def _rename_outputs(graph: Any, names: Sequence[str]) -> None:
    """Name a graph's outputs: tf2onnx calls them Identity:0, Identity_1:0 and so on."""
    given = dict(zip((output.name for output in graph.output), names, strict=True))
    for output in graph.output:
        output.name = given[output.name]
    for node in graph.node:
        for ends in (node.input, node.output):
            ends[:] = [given.get(name, name) for name in ends]


def _erfc(graph: Any, node: Any, name: str, args: Any) -> None:
    """1 - erf(x): ONNX has no operation of its own for it."""
    (x,) = node.input
    replaced = _take_out(graph, node)
    erf = graph.make_node("Erf", [x])
    one = graph.make_const(f"{name}_one", np.array(1.0, np.float32))
    graph.make_node("Sub", [one.output[0], erf.output[0]], name=name, **replaced)


def _floor_div(graph: Any, node: Any, name: str, args: Any) -> None:
    """Division rounded down; ONNX rounds that of integers towards zero."""
    first, second = node.input
    replaced = _take_out(graph, node)
    if replaced["dtypes"][0] in _integers():
        rest = graph.make_node("Mod", [first, second])
        first = graph.make_node("Sub", [first, rest.output[0]]).output[0]
        graph.make_node("Div", [first, second], name=name, **replaced)
        return
    quotient = graph.make_node("Div", [first, second])
    graph.make_node("Floor", quotient.output, name=name, **replaced)


def _floor_mod(graph: Any, node: Any, name: str, args: Any) -> None:
    """The rest of that division, which has the sign of the divisor."""
    first, second = node.input
    replaced = _take_out(graph, node)
    if replaced["dtypes"][0] in _integers():
        graph.make_node("Mod", [first, second], name=name, **replaced)
        return
    quotient = graph.make_node("Div", [first, second])
    whole = graph.make_node("Floor", quotient.output)
    part = graph.make_node("Mul", [whole.output[0], second])
    graph.make_node("Sub", [first, part.output[0]], name=name, **replaced)


def _take_out(graph: Any, node: Any) -> dict[str, Any]:
    """Remove a node, and return what its successor must produce."""
    replaced = {
        "outputs": list(node.output),
        "dtypes": list(node.output_dtypes),
        "shapes": list(node.output_shapes),
    }
    graph.remove_node(node.name)
    return replaced


def _integers() -> tuple[int, ...]:
    from onnx import TensorProto

    return TensorProto.INT32, TensorProto.INT64


_HANDLERS = {"Erfc": _erfc, "FloorDiv": _floor_div, "FloorMod": _floor_mod}


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library's log to errors."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
