"""MyXTTS: multilingual, voice-cloning text-to-speech training in TensorFlow."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# What scripts use most, each with its home. It is imported when it is first asked for, since
# TensorFlow takes seconds.
_HOMES = {
    "XTTSConfig": "myxtts.config.config",
    "XTTSTrainer": "myxtts.training.trainer",
    "Synthesizer": "myxtts.inference.synthesizer",
    "load_voice": "myxtts.checkpoints",
    "evaluate": "myxtts.workflows.evaluate_voice",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
