"""Predicted opinions of listeners on speech (Distill-MOS), by a process of another interpreter.

Distill-MOS runs on torch, which must not be in the same process as TensorFlow. So it is installed
in an environment of its own, whose interpreter `MYXTTS_MOS_PYTHON` names.
"""

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soxr

from myxtts.errors import UserError
from myxtts.evaluation import distillmos_process
from myxtts.evaluation.asr import Recording
from myxtts.evaluation.ceilings import answers
from myxtts.evaluation.metrics.levels import finite, is_silent
from myxtts.monitoring.progress import Progress

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Session

INTERPRETER = "MYXTTS_MOS_PYTHON"
_PACKAGE = "distillmos"
# Its torchaudio, whose last version is 2.11, must be of the same version as torch.
_INSTALL = f'`pip install {_PACKAGE} "torch==2.11.*"` in an environment of its own'
_FIND = f"import importlib.metadata as found; print(found.version({_PACKAGE!r}))"
_FIND_SECONDS = 60


class DistillMos:
    """Distill-MOS: a network that predicts the mean opinion of listeners, 1 (bad) to 5."""

    sample_rate = distillmos_process.SAMPLE_RATE

    def __init__(self, interpreter: str, version: str):
        self.interpreter = interpreter
        self.name = self.identity = f"Distill-MOS {version}"

    @classmethod
    def find(cls) -> "DistillMos":
        """Find the package in the interpreter that the environment names."""
        interpreter = os.environ.get(INTERPRETER)
        if not interpreter:
            raise UserError(f"it needs {_INSTALL}, whose python {INTERPRETER} names")
        try:
            found = _run([interpreter, "-c", _FIND], _FIND_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{INTERPRETER}={interpreter} cannot be run ({error})") from error
        if found.returncode:
            raise UserError(f"{INTERPRETER}={interpreter} has no {_PACKAGE}: it needs {_INSTALL}")
        return cls(interpreter, found.stdout.strip())

    def score_many(
        self, recordings: Sequence[Recording], progress: Progress | None = None
    ) -> list[float]:
        """Rate recordings, samples [-1, 1] each; NaN for silence."""
        prepared = [self._prepared(*one) for one in recordings]
        audible = {str(number): one for number, one in enumerate(prepared) if len(one)}
        scores = self._ask(audible) if audible else {}
        if progress:
            progress(len(recordings), len(recordings))
        return [float(scores.get(str(number), math.nan)) for number in range(len(prepared))]

    def _prepared(self, samples: np.ndarray, rate: int) -> np.ndarray:
        """Samples at the network's rate; none where they are silent."""
        samples = finite(samples).astype(np.float32)
        if is_silent(samples):
            return samples[:0]
        return soxr.resample(samples, rate, self.sample_rate)

    def _ask(self, recordings: dict[str, np.ndarray]) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="myxtts-mos-") as folder:
            path = Path(folder) / "recordings.npz"
            np.savez(path, **recordings)
            try:
                found = _run([self.interpreter, distillmos_process.__file__, str(path)])
            except OSError as error:
                raise UserError(f"{INTERPRETER}={self.interpreter}: {error}") from error
        if found.returncode:
            why = (found.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise UserError(f"{self.name} failed in {self.interpreter}: {why}")
        return json.loads(found.stdout)


def predicted_opinions(session: "Session") -> dict[str, np.ndarray]:
    """The predicted opinion on each sentence, by source."""
    judge, rate = session.judges.opinion, session.sample_rate
    sources = {name: [(one, rate) for one in own] for name, own in session.judged.items()}

    def ask(recordings: list[Recording]) -> list[float]:
        with session.watch("predicting opinions", "recordings") as report:
            return judge.score_many(recordings, report)

    found = answers(session.cache, lambda: judge.identity, sources, ask)
    return {source: np.array(own, np.float64) for source, own in found.items()}


def _run(command: list[str], seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program, without the modules of this interpreter."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, env=kept, timeout=seconds)
