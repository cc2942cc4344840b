"""Train a voice, or a vocoder, from settings to the end of the run."""

from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.config.config import XTTSConfig
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.training.ending import Ending


def train(config: XTTSConfig, resume: bool | Path | None = None) -> "Ending":
    """Open the corpus with a progress bar, train, and return why the run ended."""
    from myxtts.workflows.evaluate_training import training_evaluator

    if config.training.two_stage_training:
        from myxtts.training.two_stage_trainer import TwoStageTrainer as Trainer
    else:
        from myxtts.training.trainer import XTTSTrainer as Trainer

    trainer = Trainer(config, resume=resume, evaluator=training_evaluator(config))
    with progress("preparing") as report:
        datasets = trainer.prepare_datasets(report)
    return trainer.train(*datasets)


def train_vocoder(
    config: XTTSConfig, resume: bool | Path | None = None, voice: "Voice | None" = None
) -> "Ending":
    """Train a vocoder, on the mels that a voice predicts where one is given."""
    from myxtts.training.vocoder.trainer import VocoderTrainer

    trainer = VocoderTrainer(config, config.training.checkpoint_dir, resume, voice)
    with progress("preparing") as report:
        trainer.prepare_datasets(report)
    return trainer.train()


def load_predicting_voice(path: Path, config: XTTSConfig) -> "tuple[Voice, XTTSConfig]":
    """A voice, and the settings with the features and the text units that it was trained on."""
    from myxtts.checkpoints import load_voice
    from myxtts.training.warm_start import FEATURES

    voice = load_voice(path)
    own = {name: getattr(voice.config.data, name) for name in FEATURES}
    return voice, config.replace(**own)
