"""The same scalars, images and audio for Weights & Biases, where a run asks for it."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from myxtts.errors import UserError
from myxtts.training.hooks.tensorboard import grey
from myxtts.training.loop import Listener, StepRecord


def import_wandb() -> ModuleType:
    """Return the package, or raise what to install."""
    try:
        import wandb
    except ModuleNotFoundError as error:
        raise UserError(
            "Weights & Biases was asked for and is not installed: "
            "pip install 'myxtts[wandb]', or set training.use_wandb to false"
        ) from error
    return wandb


class WandbHook(Listener):
    """Logs to one W&B run, which a restart resumes."""

    def __init__(self, project: str, config: Mapping[str, Any], folder: Path, log_interval: int):
        self._wandb, self._run, self._step = import_wandb(), None, 0
        self.project, self.config = project, dict(config)
        self.folder, self.log_interval = Path(folder), log_interval

    def start(self, step: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = self.folder / "wandb_run_id"
        # From step 0 it is another run: W&B would drop every step that it has seen.
        known = name.read_text(encoding="utf-8").strip() if step and name.exists() else ""
        settings = {"project": self.project, "config": self.config, "dir": str(self.folder)}
        try:
            self._run = self._wandb.init(**settings, id=known or None, resume="allow")
        except self._wandb.Error as error:
            raise UserError(
                f"Weights & Biases cannot start ({error}): run `wandb login`, set "
                "WANDB_MODE=offline, or leave --wandb out"
            ) from error
        name.write_text(f"{self._run.id}\n", encoding="utf-8")

    def after_step(self, record: StepRecord) -> None:
        if record.step % self.log_interval == 0:
            values = {"epoch": record.epoch, **record.metrics, **record.figures}
            values["utilisation"] = record.times.utilisation
            self._log(record.step, values)

    def record_validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log what a validation after `step` measured."""
        self._log(step, {f"val/{name}": value for name, value in metrics.items()})

    @property
    def is_active(self) -> bool:
        """Whether there is a run to log to."""
        return self._run is not None

    def images(self, step: int, name: str, array: np.ndarray) -> None:
        """Log a picture, as TensorBoardHook.images takes it."""
        picture = grey(array) if array.ndim == 2 else array
        self._log(step, {name: self._wandb.Image(picture)})

    def audio(self, step: int, name: str, samples: np.ndarray, rate: int) -> None:
        """Log a recording [samples] between -1 and 1."""
        self._log(step, {name: self._wandb.Audio(samples.astype(np.float32), rate)})

    def close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.finish()

    def _log(self, step: int, values: Mapping[str, Any]) -> None:
        """Log for a step; W&B drops what comes for one that is past, so that it names its own."""
        late = {"late/step": step} if step < self._step else {}
        self._step = max(self._step, step)
        self._run.log({**values, **late}, step=self._step)
