"""Commands that are killed, and what must be there once each has been run again to its end."""

import hashlib
import json
import os
import pickle
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drills import children
from benchmarks.drills.cases import LOST, TRACEBACK, Outcome
from benchmarks.drills.recorder import State, record
from myxtts.config.io import save_config
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config

# So few steps that running them eagerly is faster than tracing them. The learning rate is so high
# that validation goes up and down: the best checkpoint is not always the last.
SHORT = {
    "learning_rate": 0.03,
    "warmup_steps": 1,
    "enable_eager_debug": True,
    "use_tf_native_loading": False,
    "val_fraction": 0.2,
    "save_interval": 1,
    "validation_interval": 1,
    "keep_checkpoints": 1,
}
VOCODER = {
    "vocoder_type": "istft",
    "istft_dim": 8,
    "istft_blocks": 1,
    "istft_projections": 1,
    "stage2_max_steps": 5,
    "stage2_batch_size": 4,
    "stage2_max_audio_seconds": 0.15,
}
# Wall-clock figures and who is at work: no two runs share them.
_IGNORED = ("tensorboard", "performance.html", "performance.json", ".lock")
_SHARD = 8


@dataclass(frozen=True)
class Subject:
    """Something that works in `target`, a folder below the current one.

    `work` is given the folder that `make` filled, and returns an exit code.
    """

    name: str
    target: str
    work: Callable[[Path], int]

    def run(self, made: Path, log: Path, kill_after: float | None = None) -> children.Ended:
        return children.call(lambda: self.work(made), log, seconds=240, kill_after=kill_after)


@dataclass(frozen=True)
class Recorded:
    """What an undisturbed run of a subject left at each moment, and at its end."""

    kills: list[State]
    cuts: list[State]
    expected: dict[str, str]
    seconds: float


def _prepare(made: Path) -> int:
    from myxtts.data.features import prepare

    prepare.shard_size = lambda utterances: _SHARD
    return _myxtts("prepare", made / "large", "--cache-dir", "cache", "--num-workers", "1")


def _finetune(made: Path) -> int:
    start = ("--voice", made / "voice", "--data", made / "me")
    return _myxtts("finetune", *start, "--config", made / "finetune.yaml")


def _export(made: Path) -> int:
    """Write a voice, and another one in its place."""
    from myxtts.checkpoints import load_voice, save_voice

    for scale in (1.0, 2.0):
        voice = load_voice(made / "voice")
        known = (voice.config, voice.tokenizer, voice.speakers, voice.languages)
        save_voice(Path("run") / "voice", voice.model, *known, scale * voice.voices)
        load_voice(Path("run") / "voice")
    return 0


def _myxtts(*argv: str | Path) -> int:
    from myxtts.cli.main import main

    return main([str(word) for word in argv])


SUBJECTS = (
    Subject("prepare", "cache", _prepare),
    Subject("train", "run", lambda made: _myxtts("train", "--config", made / "train.yaml")),
    Subject(
        "train-vocoder",
        "run",
        lambda made: _myxtts("train-vocoder", "--config", made / "vocoder.yaml"),
    ),
    Subject("finetune", "run", _finetune),
    Subject("export a voice", "run", _export),
)


def make(folder: Path, seed: int) -> None:
    """Make corpora, configurations and a voice, and record every subject once."""
    make_corpus(folder / "large", 72, seed=seed, seconds=(0.3, 0.5))
    corpus = make_corpus(folder / "corpus", 10, seed=seed, speakers=2, seconds=(0.3, 0.5))
    make_corpus(folder / "me", 5, seed=seed + 1, seconds=(0.3, 0.5))
    save_config(run_config(corpus, "run", **SHORT, max_steps=5), folder / "train.yaml")
    save_config(run_config(corpus, "run", **SHORT, **VOCODER), folder / "vocoder.yaml")
    tuning = "training:\n  max_steps: 3\n  save_interval: 1\n  validation_interval: 1\n"
    tuning += "  keep_checkpoints: 1\n  enable_eager_debug: true\n  checkpoint_dir: run\n"
    (folder / "finetune.yaml").write_text(tuning + "data:\n  val_fraction: 0.2\n")
    for subject in SUBJECTS:
        # The first time fills the caches next to the corpora; the second is recorded.
        for attempt in ("warm", subject.name):
            work = folder / f"{attempt}-work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            os.chdir(work)
            name = subject.name if attempt != "warm" else ""
            ended = children.call(lambda s=subject, n=name: _record(s, folder, n), folder / "log")
            if ended.code:
                raise RuntimeError(f"{subject.name} failed:\n{ended.text[-3000:]}")
            if subject.name == "train":
                shutil.copytree(work / "run" / "voice", folder / "voice", dirs_exist_ok=True)


def _record(subject: Subject, made: Path, name: str) -> int:
    if not name:
        return subject.work(made)
    target, began = Path(subject.target).resolve(), time.monotonic()
    with record(target, made / "blobs") as recording:
        code = subject.work(made)
    if code == 0:
        seconds = time.monotonic() - began
        found = Recorded(recording.kills(), recording.cuts(0), contents(target), seconds)
        (made / f"{name}.pickle").write_bytes(pickle.dumps(found))
    return code


def recorded(made: Path, subject: Subject) -> Recorded:
    return pickle.loads((made / f"{subject.name}.pickle").read_bytes())


def resume(subject: Subject, made: Path, expected: dict[str, str]) -> Outcome | None:
    """Run it to its end in the current folder; an outcome where that is not as undisturbed."""
    ended = subject.run(made, Path("resumed.log").resolve())
    if ended.has_traceback:
        return Outcome(TRACEBACK, ended.text.strip().splitlines()[-1])
    if ended.code:
        last = ended.text.strip().splitlines()[-1:] or [""]
        return Outcome(LOST, f"exit code {ended.code}: {last[0]}")
    found = contents(Path(subject.target))
    names = sorted(expected.keys() | found.keys())
    other = [name for name in names if expected.get(name) != found.get(name)]
    return Outcome(LOST, f"differs in {', '.join(other[:6])}") if other else None


def contents(folder: Path) -> dict[str, str]:
    """What every file of a folder holds, without wall-clock figures."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or set(path.relative_to(folder).parts) & set(_IGNORED):
            continue
        content = path.read_bytes()
        if path.name == "history.jsonl":
            content = _timeless(content)
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def _timeless(history: bytes) -> bytes:
    lines = [json.loads(line) for line in history.splitlines()]
    kept = [
        {k: v for k, v in line.items() if not k.endswith("_ms") and k != "check"} for line in lines
    ]
    return json.dumps(kept).encode()
