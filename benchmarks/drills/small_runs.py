"""Corpora and runs of a few seconds, the commands that make them, and how their files compare.

Every path is relative to a folder that holds them all, so that a copy of that folder behaves as the
folder itself: change into it first.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.drills import children
from benchmarks.drills.cases import CRASHED, HUNG, TRACEBACK, WRONG, Outcome
from tests.helpers.runs import SMALL

CORPUS, RUN, VOCODER, FINE = "corpus", "run", "vocoder-run", "fine"
TEXT = "Amber bridge."

# As few layers and steps as there can be. So few steps run eagerly: tracing them takes longer.
SETTINGS = {
    **SMALL,
    "enable_eager_debug": True,
    "max_steps": 3,
    "save_interval": 1,
    "validation_interval": 1,
    "keep_checkpoints": 2,
    "vocoder_type": "istft",
    "istft_dim": 8,
    "istft_blocks": 1,
    "istft_projections": 1,
    "stage2_max_steps": 3,
    "stage2_batch_size": 4,
    "stage2_max_audio_seconds": 0.15,
}

Command = tuple[str, ...]

PREPARE = ("prepare", CORPUS, "--num-workers", "1")
VERIFY = ("cache", "verify", CORPUS)
FIX = ("cache", "fix", CORPUS, "--num-workers", "1")
GC = ("cache", "gc", CORPUS)
TRAIN = ("train", "--config", "train.yaml")
TRAIN_VOCODER = ("train-vocoder", "--config", "vocoder.yaml")
ON_PREDICTIONS = (*TRAIN_VOCODER, "--on-predicted-mels", RUN)
FINETUNE = ("finetune", "--voice", RUN, "--config", "finetune.yaml")
SPEAK = ("synthesize", "--voice", RUN, "--text", TEXT, "-o", "said.wav")
DEMO = ("data", "demo", "demo", "--speakers", "1", "--clauses", "2")


def make_corpus(folder: Path, seed: int, count: int = 10) -> None:
    """Write the recordings of a corpus, and the settings of every command next to it."""
    from tests.helpers.make_corpus import make_corpus

    make_corpus(folder / CORPUS, count, seed, speakers=2, seconds=(0.3, 0.6))
    _write_settings(folder / "train.yaml", checkpoint_dir=RUN)
    _write_settings(folder / "vocoder.yaml", checkpoint_dir=VOCODER)
    _write_finetuning(folder / "finetune.yaml")


def run(folder: Path, *words: str, before: Callable[[], None] | None = None) -> None:
    """Run a command in a folder; it must succeed."""
    ended = attempt(folder, words, folder.parent / f"{folder.name}.log", before=before)
    if ended.code:
        raise RuntimeError(f"{' '.join(words)} ended with {ended.code}:\n{ended.text[-3000:]}")


def attempt(
    folder: Path,
    words: Iterable[str],
    log: Path,
    before: Callable[[], None] | None = None,
    seconds: float = 240.0,
) -> children.Ended:
    """Run a command in a folder and say how it ended."""

    def enter() -> None:
        os.chdir(folder)
        if before:
            before()

    return children.command(list(words), log, seconds, before=enter)


def copy(source: Path, target: Path) -> Path:
    """Copy a folder with the times of its files, which tell recordings apart."""
    return Path(shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True))


def broken(ended: children.Ended, codes: tuple[int, ...] = (0, 2)) -> Outcome | None:
    """How a command ended, where it must never end so."""
    last = " ".join(ended.text.split())[-300:]
    if ended.is_late:
        return Outcome(HUNG, last)
    if ended.has_traceback or ended.code == children.CRASH:
        return Outcome(TRACEBACK, raised(ended.text))
    if ended.code < 0:
        return Outcome(CRASHED, f"signal {-ended.code}: {last}")
    if ended.code not in codes:
        return Outcome(WRONG, f"exit code {ended.code}: {last}")
    return None


def contents(folder: Path, *below: str) -> dict[str, bytes]:
    """Every file by its name, without what the clock, locks and other processes decide."""
    found = {}
    for root in below or ("",):
        for path in sorted([folder / root, *(folder / root).rglob("*")]):
            name = path.relative_to(folder)
            if path.is_file() and not _is_incidental(name):
                found[str(name)] = _timeless(path)
    return found


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> str:
    """Which files differ; nothing where all are equal."""
    parts = {
        "missing": [name for name in expected if name not in found],
        "surplus": [name for name in found if name not in expected],
        "other": [name for name in expected if found.get(name, expected[name]) != expected[name]],
    }
    return "; ".join(f"{what}: {', '.join(names[:4])}" for what, names in parts.items() if names)


def stored(corpus: Path, skip_unreadable: bool = False) -> dict[str, dict[str, bytes]]:
    """What the cache of a corpus holds, by store and then by utterance and column.

    Shards depend on which command made them; what they hold does not. Nothing is checked here:
    these are the numbers that a reader without checks would get.
    """
    from myxtts.data.store.errors import CacheError
    from myxtts.data.store.places import read_store
    from myxtts.data.store.view import StoreView

    found: dict[str, dict[str, bytes]] = {}
    for folder in sorted((corpus / "cached_features").glob("*-*")):
        try:
            store = read_store(folder)
        except CacheError:
            if skip_unreadable:  # as one that was just begun
                continue
            raise
        view = StoreView(store)
        own = found.setdefault(folder.name, {})
        for row in view.latest.tolist():
            shard = view.shards[view.shard[row]]
            for column in store.columns:
                first, size = int(view.offsets[row]), int(view.lengths[row])
                with open(store.column_path(shard.name, column.name), "rb") as file:
                    file.seek(first * column.row_bytes)
                    own[f"{view.ids[row]}.{column.name}"] = file.read(size * column.row_bytes)
    return found


def store_differences(found: dict, expected: dict, is_whole: bool = True) -> str:
    """How stores differ; with `is_whole` off, what is not stored yet is no difference."""
    parts = []
    for name, own in expected.items():
        if name in found or is_whole:
            said = differences(found.get(name, {}), own)
            if not is_whole:
                said = "; ".join(part for part in said.split("; ") if "missing: " not in part)
            parts += [f"{name}: {said}"] if said else []
    return "; ".join(parts)


def kill_in_step(number: int) -> None:
    """Let this process be killed where the training step of this number would begin."""
    from myxtts.training.loop import TrainingLoop

    take_step, begun = TrainingLoop._step, []

    def step(self, *args):
        begun.append(1)
        if len(begun) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return take_step(self, *args)

    TrainingLoop._step = step


def warnings_of(text: str) -> str:
    """The lines of a log that warn."""
    return "\n".join(line for line in text.splitlines() if line.startswith("warning:"))


def _write_settings(path: Path, **settings) -> None:
    from myxtts.config.config import XTTSConfig
    from myxtts.config.io import save_config

    save_config(XTTSConfig(data_path=CORPUS, **{**SETTINGS, **settings}), path)


def _write_finetuning(path: Path) -> None:
    """Only what is asked for: the rest is the voice's own."""
    training = ("enable_eager_debug", "log_interval", "sample_interval", "warmup_steps")
    training += ("save_interval", "validation_interval", "keep_checkpoints")
    values = {
        "data": {"dataset_path": CORPUS, "batch_size": 4, "num_workers": 1, "val_fraction": 0.2},
        "training": {name: SETTINGS[name] for name in training}
        | {"checkpoint_dir": FINE, "max_steps": 2},
    }
    path.write_text(json.dumps(values), encoding="utf-8")  # which YAML reads as well


def _is_incidental(name: Path) -> bool:
    return (
        name.name in (".lock", "performance.html", "log")
        or "tensorboard" in name.parts
        or name.suffix == ".log"
    )


def _timeless(path: Path) -> bytes:
    if path.name != "history.jsonl":
        return path.read_bytes()
    lines = []
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            lines.append(line.decode("utf-8", "replace"))
            continue
        lines.append({name: v for name, v in entry.items() if not _is_time(name)})
    return json.dumps(lines).encode()


def _is_time(name: str) -> bool:
    return name.endswith(("_ms", "_seconds", "per_second")) or name == "check"


def raised(text: str) -> str:
    """The last line of a stack trace, and where it was raised."""
    lines = [line for line in text.splitlines() if line.strip()]
    starts = [n for n, line in enumerate(lines) if line.startswith("Traceback (most recent")]
    if not starts:
        return " ".join(lines[-1:])[:300]
    after = lines[starts[-1] + 1 :]
    places = [line.strip() for line in after if line.startswith("  File ") and "myxtts" in line]
    says = next((line for line in after if not line.startswith(" ")), "")
    return f"{says[:200]} ({places[-1] if places else 'elsewhere'})"
