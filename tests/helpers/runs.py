"""A run that takes seconds: its settings, and ways to start it in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from myxtts.checkpoints import load_state, saved_states
from myxtts.config.config import XTTSConfig

ROOT = Path(__file__).parents[2]

# As few layers as there can be: tracing the step takes longer than all of its steps.
SMALL = {
    "use_gst": False,
    "token_states": 1,
    "pitch_contour": "token",
    "adversarial_loss_weight": 0.0,
    "text_encoder_dim": 16,
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 0,
    "text_encoder_heads": 2,
    "decoder_dim": 16,
    "decoder_layers": 1,
    "audio_encoder_dim": 8,
    "audio_encoder_layers": 1,
    "speaker_embedding_dim": 4,
    "batch_size": 4,
    "num_workers": 1,
    "val_fraction": 0.2,
    "warmup_steps": 4,
    "ema_decay": 0.9,
    "alignment_prior_steps": 10,
    "log_interval": 1,
    "sample_interval": 0,
}


def run_config(corpus: Path, folder: Path, **settings) -> XTTSConfig:
    """A configuration of a run in `folder` on a tiny corpus."""
    return XTTSConfig(data_path=str(corpus), checkpoint_dir=str(folder), **{**SMALL, **settings})


# Trains, and sends itself a signal at a step of this process, or some seconds after its first.
PROGRAM = """
import os, sys, threading
from myxtts.cli.main import main
from myxtts.training.loop import TrainingLoop

number, seconds, at_step = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
take_step = TrainingLoop._step
seen = []

def step(self, *args):
    take_step(self, *args)
    seen.append(self.done)
    if not at_step and len(seen) == 1:
        threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
    elif len(seen) == at_step:
        os.kill(os.getpid(), number)

if number:
    TrainingLoop._step = step
sys.exit(main(sys.argv[4:]))
"""


def train(
    *argv, signal_number: int = 0, after: float = 0, at_step: int = 0, verb: str = "train"
) -> subprocess.CompletedProcess:
    """`myxtts train`, or another verb that trains, in a new process; SIGKILL comes `after` seconds,
    other signals so many steps, from its first step on, or any of them `at_step`."""
    if signal_number != signal.SIGKILL:
        at_step = at_step or int(after)
    words = [sys.executable, "-c", PROGRAM, int(signal_number), after, at_step, verb, *argv]
    environment = {name: x for name, x in os.environ.items() if not name.startswith("MYXTTS_")}
    return subprocess.run(
        [str(word) for word in words],
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )


def final_state(folder: Path) -> dict[str, np.ndarray]:
    """Every variable of a run's last checkpoint."""
    return dict(load_state(saved_states(folder / "checkpoints")[-1]).arrays)


def assert_equal_states(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """To the bit, all of them."""
    assert found.keys() == expected.keys()
    different = [
        name for name, value in expected.items() if value.tobytes() != found[name].tobytes()
    ]
    assert different == []
