"""What a user reads of a graph that onnxruntime does not open."""

from pathlib import Path

import pytest

from myxtts.models.onnx.graph import Graph, GraphError

onnx = pytest.importorskip("onnx", reason="onnx is not installed: the extra `export`")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: the extra `speak`")


def model():
    """A graph that adds a number to itself."""
    kind = onnx.TensorProto.FLOAT
    ends = (onnx.helper.make_tensor_value_info(name, kind, [1]) for name in ("x", "y"))
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    graph = onnx.helper.make_graph([node], "twice", *([end] for end in ends))
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    made.ir_version = 8
    return made


def test_a_graph_runs_by_its_names():
    assert Graph(model().SerializeToString(), Path("x.onnx")).run(x=[2.0]) == {"y": [4.0]}


@pytest.mark.parametrize("field, words", [("ir_version", "IR version: 99"), ("opset", "Opset 99")])
def test_a_later_version_is_named_without_the_inside_of_onnxruntime(field, words):
    made = model()
    if field == "opset":
        made.opset_import[0].version = 99
    else:
        made.ir_version = 99
    with pytest.raises(GraphError, match=words) as caught:
        Graph(made.SerializeToString(), Path("x.onnx")).run(x=[2.0])
    assert "x.onnx is no graph that can be run" in str(caught.value)
    assert "onnxruntime::" not in str(caught.value)


def test_half_a_graph_is_refused():
    content = model().SerializeToString()
    with pytest.raises(GraphError, match="no graph that can be run"):
        Graph(content[: len(content) // 2], Path("x.onnx")).run(x=[2.0])


def test_memory_is_not_planned_which_takes_longer_than_all_else_of_opening():
    graph = Graph(model().SerializeToString(), Path("x.onnx"))
    options = graph._session.get_session_options()
    assert not options.enable_mem_reuse and not options.enable_mem_pattern
