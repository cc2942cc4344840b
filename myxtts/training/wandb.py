"""The same scalars for Weights & Biases, where a run asks for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from myxtts.errors import UserError
from myxtts.training.loop import Hook, StepRecord


class WandbHook(Hook):
    """Logs to one W&B run, which a restart goes on with."""

    def __init__(self, project: str, config: Mapping[str, Any], folder: Path, log_interval: int):
        try:
            import wandb
        except ModuleNotFoundError as error:
            raise UserError(
                "Weights & Biases was asked for and is not installed: "
                "pip install 'myxtts[wandb]', or set training.use_wandb to false"
            ) from error
        self._wandb, self._run = wandb, None
        self.project, self.config = project, dict(config)
        self.folder, self.log_interval = Path(folder), log_interval

    def start(self, step: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = self.folder / "wandb_run_id"
        # From step 0 it is another run: W&B would drop every step that it has seen.
        known = name.read_text(encoding="utf-8").strip() if step and name.exists() else None
        self._run = self._wandb.init(
            project=self.project, config=self.config, dir=str(self.folder), id=known, resume="allow"
        )
        name.write_text(f"{self._run.id}\n", encoding="utf-8")

    def after_step(self, record: StepRecord) -> None:
        if record.step % self.log_interval == 0:
            times = {"data_ms": record.data_ms, "compute_ms": record.compute_ms}
            values = {"epoch": record.epoch, **record.metrics, **times}
            self._run.log(values, step=record.step)

    def record_validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log what a validation after `step` measured."""
        self._run.log({f"val/{name}": value for name, value in metrics.items()}, step=step)

    def finish(self, step: int, reason: str) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None
