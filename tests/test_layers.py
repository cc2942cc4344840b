"""The layers of the package: imports go down only, and the lower ones need no TensorFlow."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import myxtts

PACKAGE = Path(myxtts.__file__).parent
# From the lowest to the highest. Who shares a layer does not import each other.
LAYERS = (
    ("errors", "files", "resources"),
    ("atomic",),
    ("config", "monitoring"),
    ("text", "audio", "weights", "runtime", "cluster"),
    ("data", "models", "demo_corpus"),
    ("checkpoints",),
    ("training", "inference", "evaluation", "export"),
    ("workflows", "bench"),
    ("serving",),
    ("cli",),
)
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}
# The floors of `data`, in the same way; the faces of the contract stand on top.
DATA_FLOORS = (
    ("rejections", "padding"),
    ("corpus",),
    ("store",),
    ("features",),
    ("batches",),
    ("segments",),
    ("ljspeech", "pipeline"),
)
DATA_FLOOR = {part: number for number, parts in enumerate(DATA_FLOORS) for part in parts}
# Faces import anything, and nothing imports them.
FACES = ("utils",)
WITHOUT_TENSORFLOW = (
    *("config", "text", "monitoring", "data.corpus", "data.store"),
    *("data.features.prepare", "data.batches.plan", "inference", "models.onnx"),
)

MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(module: Path) -> str:
    """The part of the package that a file belongs to; the package's own docstring to none."""
    first = module.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_parts(source: str) -> set[str]:
    """Which parts of the package some source imports, at whatever depth of the code."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides its layer"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("myxtts.")}
    return found - {"__version__"}


def imported_floors(source: str) -> set[str]:
    """Which parts of `data` some source imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("myxtts.data."):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name.split(".")[2] for name in names}
    return found


def may_import(importer: str, imported: str) -> bool:
    if importer in FACES or imported == importer:
        return True
    return imported in LAYER and LAYER[imported] < LAYER[importer]


def test_imports_are_found_wherever_they_stand():
    source = """
import numpy, myxtts.text.symbols
from myxtts import runtime, __version__
from myxtts.data.store.packed_cache import PackedCache
def f():
    from myxtts.models import xtts
"""
    assert imported_parts(source) == {"text", "runtime", "data", "models"}


def test_the_table_allows_only_what_lies_lower():
    assert may_import("data", "audio") and may_import("cli", "training")
    assert may_import("data", "data") and may_import("utils", "cli")
    assert not may_import("data", "models") and not may_import("models", "data")
    assert not may_import("config", "monitoring") and not may_import("training", "inference")
    assert not may_import("audio", "data") and not may_import("training", "cli")
    assert not may_import("cli", "utils")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_lies_lower(module):
    part = part_of(module)
    assert part == "" or part in LAYER or part in FACES, f"give {part} a layer"
    found = imported_parts(module.read_text(encoding="utf-8"))
    wrong = {name for name in found if part == "" or not may_import(part, name)}
    assert not wrong, f"{module.relative_to(PACKAGE)} imports {', '.join(sorted(wrong))}"


@pytest.mark.parametrize(
    "module",
    [module for module in MODULES if module.is_relative_to(PACKAGE / "data")],
    ids=lambda path: str(path.relative_to(PACKAGE / "data")),
)
def test_inside_data_too(module):
    part = module.relative_to(PACKAGE / "data").parts[0].removesuffix(".py")
    floor = -1 if part == "__init__" else DATA_FLOOR[part]
    found = imported_floors(module.read_text(encoding="utf-8")) - {part}
    wrong = {name for name in found if DATA_FLOOR[name] >= floor}
    assert not wrong, f"{module.relative_to(PACKAGE)} imports {', '.join(sorted(wrong))}"


_IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    heavy = {"tensorflow", "keras", "librosa", "torch"} & sys.modules.keys()
    if heavy:
        sys.exit(f"{name} imports {', '.join(sorted(heavy))}")
"""


def module_names(prefix: str) -> list[str]:
    names = [str(path.relative_to(PACKAGE).with_suffix("")).replace("/", ".") for path in MODULES]
    names = [name.removesuffix(".__init__") for name in names]
    return [f"myxtts.{name}" for name in names if f"{name}.".startswith(f"{prefix}.")]


def test_the_lower_modules_import_without_tensorflow():
    names = [name for prefix in WITHOUT_TENSORFLOW for name in module_names(prefix)]
    assert {f"myxtts.{prefix}" for prefix in WITHOUT_TENSORFLOW} <= set(names)
    command = [sys.executable, "-c", _IMPORT_ALL, *names]
    result = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
