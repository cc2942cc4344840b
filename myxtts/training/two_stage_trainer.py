"""Two stages, one after the other: first the voice, then the vocoder that speaks its mels."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from myxtts.checkpoints import load_voice
from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.config.config import XTTSConfig
from myxtts.data.segments.vocoder_data import check_predictable
from myxtts.training.ending import Ending
from myxtts.training.hooks.evaluation import Evaluator
from myxtts.training.trainer import XTTSTrainer
from myxtts.training.vocoder.trainer import VocoderTrainer

logger = logging.getLogger(__name__)

STAGE2 = "stage2"


class TwoStageTrainer:
    """Trains a voice in a folder, and its vocoder in `stage2` below it.

    Either stage resumes where it was; a stage that is finished takes no step again. `resume`
    is as `TrainingRun` takes it; a checkpoint's path names one of the first stage, which the
    `evaluator` judges.
    """

    def __init__(
        self,
        config: XTTSConfig,
        resume: bool | Path | str | None = None,
        evaluator: Evaluator | None = None,
        replicas: Replicas = ALONE,
    ):
        self.config, self.resume, self.replicas = config, resume, replicas
        self.folder = Path(config.training.checkpoint_dir).expanduser()
        self.first = XTTSTrainer(
            stage1_config(config), resume=resume, evaluator=evaluator, replicas=replicas
        )
        self.second: VocoderTrainer | None = None

    def prepare_datasets(self, progress=None):
        """Open the corpus for both stages."""
        # What the vocoder cannot be trained from is found before the voice is trained.
        if self.config.training.stage2_on_predicted_mels:
            check_predictable(self.config.data.preprocessing_mode)
        # A run that starts over sets its second stage aside with the first.
        resume = False if self.resume is False else None
        self.second = VocoderTrainer(
            self.config, self.folder / STAGE2, resume, replicas=self.replicas
        )
        self._progress = progress
        return self.first.prepare_datasets(progress)

    def load_as(self, chosen: Mapping[str, Any]) -> None:
        """Take other settings of how batches are loaded, in both stages."""
        self.first.load_as(chosen)
        self.second.config = self.second.config.replace(**chosen)

    def train(self, train_dataset=None, val_dataset=None) -> Ending:
        """Train both to the end, and return how it ended."""
        if self.second is None:
            self.prepare_datasets()
        reason = self.first.train(train_dataset, val_dataset)
        if reason.is_interrupted:
            return reason
        logger.info("the second stage: %s", self.second.kind)
        if self.config.training.stage2_on_predicted_mels:
            self.second.voice = load_voice(self.folder)
        self.second.prepare_datasets(self._progress, self.first.data)
        return self.second.train()


def stage1_config(config: XTTSConfig) -> XTTSConfig:
    """The settings of the first stage: its own epochs and learning rate, where they are given."""
    training = config.training
    epochs = training.stage1_epochs or training.epochs
    rate = training.stage1_learning_rate or training.learning_rate
    least = training.min_learning_rate
    least = None if least is None else min(least, rate)
    return config.replace(epochs=epochs, learning_rate=rate, min_learning_rate=least)
