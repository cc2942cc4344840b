"""The verbs of the command `myxtts`, one module each, in the order of its help."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

_NAMES = (
    *("demo", "demo_voices", "data", "download", "prepare", "train", "train_vocoder", "finetune"),
    *("synthesize", "serve", "studio", "export", "evaluate", "voices", "cache", "weights"),
    *("profile", "tune", "bench", "cluster", "monitor", "doctor", "config", "text", "language"),
)


def find_verbs(words: Sequence[str] = ()) -> tuple[ModuleType, ...]:
    """The module of the verb that a command line begins with, else those of all verbs.

    The modules of all take a fifth of a second to import.
    """
    name = words[0].replace("-", "_") if words else ""
    names = (name,) if name in _NAMES else _NAMES
    return tuple(import_module(f"myxtts.cli.commands.{name}") for name in names)
