"""An ONNX graph that is run by the names of its inputs and outputs."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.errors import UserError

_REMEDY = "export the voice again, or copy it anew"
# How a graph says that a tensor is in another file: a key behind its length, which ends like this.
_EXTERNAL = re.compile(rb"[\x00\x08]location")
# A file and a function of onnxruntime's, with the types that it takes.
_PLACE = re.compile(r"^(\[ONNXRuntimeError\] : \d+ : \w+ : )?(\S+:\d+ [^(]*\([^)]*\) )?")
_TYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


class GraphError(UserError):
    """A graph that cannot be opened or run."""


class Graph:
    """A session of onnxruntime. It runs on one core: sentences are what is run in parallel."""

    def __init__(self, content: bytes, path: Path, threads: int = 1):
        # A file may name any path as the home of its weights, also outside of its folder.
        if _EXTERNAL.search(content):
            raise GraphError(f"{path} refers to weights in other files, which is not read")
        self.path = path
        self.content, self._threads = content, threads

    @cached_property
    def _session(self) -> Any:
        """Opened when it is first needed: few texts need the graphs of cloning."""
        runtime = import_onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        # To plan which results share memory takes two thirds of the time to open a graph; the plans
        # of single lengths stay in memory. The arena reuses what is freed all the same.
        options.enable_mem_reuse = options.enable_mem_pattern = False
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        try:
            return runtime.InferenceSession(self.content, options, providers=providers)
        except Exception as error:  # onnxruntime's own have no common base
            said = f"{self.path} is no graph that can be run ({_first(error)}): {_REMEDY}"
            raise GraphError(said) from error

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The types of the inputs by name."""
        return {one.name: _TYPES.get(one.type) for one in self._session.get_inputs()}

    @cached_property
    def shapes(self) -> dict[str, tuple]:
        """The shapes of the inputs by name."""
        return {one.name: tuple(one.shape) for one in self._session.get_inputs()}

    @cached_property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [one.name for one in self._session.get_outputs()]

    def run(self, **values: Any) -> dict[str, np.ndarray]:
        """The outputs by name. A value is converted to what its input takes."""
        feed = {name: np.asarray(values[name], kind) for name, kind in self.inputs.items()}
        try:
            found = self._session.run(None, feed)
        except Exception as error:
            raise GraphError(f"{self.path} cannot be run ({_first(error)}): {_REMEDY}") from error
        return dict(zip(self.outputs, found, strict=True))

    def check(self, inputs: set[str], outputs: set[str]) -> "Graph":
        """Raise unless the graph has these inputs and outputs, among others."""
        missing = (inputs - set(self.inputs)) | (outputs - set(self.outputs))
        if missing:
            raise GraphError(f"{self.path} has no {', '.join(sorted(missing))}: {_REMEDY}")
        return self


def import_onnxruntime() -> Any:
    """onnxruntime, or an error that names the extra that it belongs to."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(
            f"an exported voice needs onnxruntime ({error}): install it with "
            "pip install 'myxtts[speak]'"
        ) from error
    return onnxruntime


def _first(error: Exception) -> str:
    """The first line of what onnxruntime says, without the place in its own code."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    return (_PLACE.sub("", said) or said)[:200]
