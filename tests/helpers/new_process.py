"""Calls a test's function in a new process: one that has used TensorFlow cannot be forked."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, json, sys
from pathlib import Path
module, name, folder, answer = sys.argv[1:]
found = getattr(importlib.import_module(module), name)(Path(folder))
json.dump(found, open(answer, "w"))
"""


def in_new_process(function: Callable[[Path], Any], folder: Path) -> Any:
    """What a function at the top of its module makes of a folder, as JSON gives it back."""
    answer = folder / "answer.json"
    names = [function.__module__, function.__name__]
    words = [sys.executable, "-c", PROGRAM, *names, str(folder), str(answer)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stderr
    return json.loads(answer.read_text())
