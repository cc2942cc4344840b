"""The verbs of the command `myxtts`, one module each, in the order of its help."""

from importlib import import_module

_NAMES = (
    *("demo", "demo_voices", "data", "download", "prepare", "train", "train_vocoder", "finetune"),
    *("synthesize", "serve", "studio", "export", "evaluate", "voices", "cache", "weights"),
    *("profile", "tune", "bench", "cluster", "monitor", "doctor", "config", "text", "language"),
)
VERBS = tuple(import_module(f"myxtts.cli.commands.{name}") for name in _NAMES)
