"""What `import myxtts` offers, and that it imports nothing before it is asked for."""

import subprocess
import sys

import pytest

import myxtts

_LIST_MODULES = """
import sys
before = set(sys.modules)
import myxtts
assert {"XTTSTrainer", "evaluate"} <= set(dir(myxtts))
print(*(set(sys.modules) - before))
"""


def test_importing_the_package_imports_none_of_its_modules():
    command = [sys.executable, "-c", _LIST_MODULES]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    packages = ("myxtts", "numpy", "tensorflow", "keras")
    assert [name for name in found if name.startswith(packages)] == ["myxtts"]


def test_what_scripts_use_most_is_at_the_top():
    from myxtts import Synthesizer, XTTSConfig, XTTSTrainer, evaluate, load_voice
    from myxtts.checkpoints import load_voice as own

    assert load_voice is own and callable(evaluate)
    assert {Synthesizer.__name__, XTTSConfig.__name__, XTTSTrainer.__name__} < set(myxtts.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'myxtts' has no attribute 'Trainer'"):
        _ = myxtts.Trainer
