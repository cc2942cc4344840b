"""Kills `myxtts train` at random moments, and compares its end with that of an undisturbed run.

    python benchmarks/kill_training.py                      # ten kills
    python benchmarks/kill_training.py --kills 50 --seed 7

Every restart must go on from the last checkpoint that is whole. A run that gets finished between
two kills is compared, and the next kill begins with a new one, on a corpus without a cache.
Weights, averages, the optimizer, seeds, the history or the voice that differ by a bit end this
program with exit code 1.
"""

import argparse
import itertools
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from myxtts.checkpoints import latest_state, load_voice, saved_states
from myxtts.cli.terminal import import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.io import save_config

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = {
    "batch_size": 4,
    "num_workers": 2,
    "val_fraction": 0.1,
    "text_encoder_dim": 32,
    "text_encoder_conv_layers": 1,
    "text_encoder_layers": 1,
    "text_encoder_heads": 2,
    "decoder_dim": 32,
    "decoder_layers": 2,
    "audio_encoder_dim": 16,
    "audio_encoder_layers": 2,
    "speaker_embedding_dim": 8,
    "warmup_steps": 20,
    "ema_decay": 0.99,
    "adaptive_loss_weights": True,
    "log_interval": 1,
    "sample_interval": 0,
    "validation_interval": 50,
}


def main() -> None:
    arguments = _parse()
    import_tensorflow()  # quietly: voices are loaded to see whether they are whole
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        compare(Path(folder), arguments)


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    """Train undisturbed, then kill and finish others."""
    expected = Run(folder / "undisturbed", arguments)
    seconds = expected.finish()
    print(f"{arguments.steps} steps, saved every {arguments.save_interval}; undisturbed: ", end="")
    print(f"{seconds:.1f} s from the second step on", flush=True)
    runs = (Run(folder / f"killed-{number}", arguments) for number in itertools.count(1))
    run, chance, killed = next(runs), random.Random(arguments.seed), 0
    while killed < arguments.kills:
        delay = chance.uniform(0.0, arguments.latest) * seconds
        if run.kill(delay):
            killed += 1
            print(f"{killed:3} SIGKILL {delay:.2f} s after its second step: {run.describe()}")
        else:
            run.check_equal(expected)
            run = next(runs)
    run.finish()
    run.check_equal(expected)


class Run:
    """A training in a folder of its own, on a corpus of its own."""

    def __init__(self, folder: Path, arguments: argparse.Namespace):
        self.folder = folder / "run"
        self.config = folder / "config.yaml"
        corpus = _make_corpus(folder / "corpus", arguments.utterances)
        config = XTTSConfig(
            data_path=str(corpus),
            checkpoint_dir=str(self.folder),
            max_steps=arguments.steps,
            save_interval=arguments.save_interval,
            **SETTINGS,
        )
        save_config(config, self.config)

    def finish(self) -> float:
        """Train to the end; the seconds that it took from its second step on."""
        process = self._start()
        began = time.monotonic()
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"training failed with exit code {process.returncode}:\n{errors}")
        return time.monotonic() - began

    def kill(self, delay: float) -> bool:
        """Start and kill it a while after its second step; false where it was finished before."""
        before = self.saved_step()
        process = self._start()
        time.sleep(delay)
        process.kill()
        _, errors = process.communicate()
        found = re.search(r"resuming from .*: step (\d+)", errors)
        went_on_from = int(found[1]) if found else 0
        if went_on_from != before:
            sys.exit(f"it went on from step {went_on_from}, and step {before} was saved:\n{errors}")
        if process.returncode not in (0, -signal.SIGKILL):
            sys.exit(f"training failed with exit code {process.returncode}:\n{errors}")
        return process.returncode != 0

    def saved_step(self) -> int:
        """The step of the last whole checkpoint."""
        state = latest_state(self.folder / "checkpoints")
        return state.step if state else 0

    def describe(self) -> str:
        states = len(saved_states(self.folder / "checkpoints"))
        has_voice = (self.folder / "voice").exists()
        if has_voice:
            load_voice(self.folder)  # it must be whole at any moment
        voice = "a whole voice" if has_voice else "no voice yet"
        return f"{states} checkpoints, the last of step {self.saved_step()}, {voice}"

    def check_equal(self, other: "Run") -> None:
        """End the program unless both runs ended with the same bits."""
        states = [latest_state(run.folder / "checkpoints") for run in (self, other)]
        arrays, expected = (state.arrays for state in states)
        different = [
            name
            for name in expected.keys() | arrays.keys()
            if name not in arrays
            or name not in expected
            or arrays[name].tobytes() != expected[name].tobytes()
        ]
        if states[0].step != states[1].step or different:
            sys.exit(f"{self.folder}: step {states[0].step}; different: {sorted(different)}")
        if self.history() != other.history():
            sys.exit(f"{self.folder}: the history differs")
        voices = [run.folder / "voice" / "model.safetensors" for run in (self, other)]
        if voices[0].read_bytes() != voices[1].read_bytes():
            sys.exit(f"{self.folder}: the voice differs")
        print(
            f"finished at step {states[0].step}: {len(arrays)} variables, history and voice "
            "are identical to those of the undisturbed run"
        )

    def history(self) -> list[dict]:
        """The losses of every step; times differ."""
        lines = [json.loads(line) for line in self._history.read_text().splitlines()]
        return [
            {
                name: value
                for name, value in line.items()
                if not name.endswith("_ms") and name != "check"
            }
            for line in lines
        ]

    @property
    def _history(self) -> Path:
        return self.folder / "history.jsonl"

    def _start(self) -> subprocess.Popen:
        """Start it and wait for its second step, the first whose time is in the history.

        Importing and compiling take most of a small run.
        """
        step = self.saved_step() + 2
        before = self._line_of(step)
        process = subprocess.Popen(
            [sys.executable, "-m", "myxtts.cli.main", "train", "--config", str(self.config)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None and self._line_of(step) in (before, ""):
            time.sleep(0.01)
        return process

    def _line_of(self, step: int) -> str:
        """What the history says of a step: taken once more, it takes another time."""
        lines = self._history.read_text().splitlines() if self._history.exists() else []
        found = [line for line in lines if f'"step": {step},' in line and "compute_ms" in line]
        return found[-1] if found else ""


def _make_corpus(path: Path, utterances: int) -> Path:
    sys.path.insert(0, str(ROOT))
    from tests.helpers.make_corpus import make_corpus

    return make_corpus(path, utterances, speakers=2, seconds=(0.4, 0.9))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="kills in all (%(default)s)")
    parser.add_argument("--steps", type=int, default=300, help="of a run (%(default)s)")
    parser.add_argument("--save-interval", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--utterances", type=int, default=30, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (%(default)s)")
    parser.add_argument(
        "--latest", type=float, default=0.2, help="latest moment, in whole runs (%(default)s)"
    )
    parser.add_argument("--folder", help="where runs are made (the system's temporary folder)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
