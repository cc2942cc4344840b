"""Train a voice, or a vocoder, from settings to the end of the run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.cluster.rendezvous import Worker
    from myxtts.training.ending import Ending


def train(
    config: XTTSConfig,
    resume: bool | Path | None = None,
    worker: "Worker | None" = None,
    tune_loading: Callable[[XTTSConfig], Mapping[str, Any]] | None = None,
) -> "Ending":
    """Open the corpus with a progress bar, train, and return why the run ended.

    As one of several workers it shares every batch with the others, and `tune_loading` may choose
    how it loads its share.
    """
    from myxtts.cluster.replicas import joined
    from myxtts.workflows.evaluate_training import training_evaluator

    if config.training.two_stage_training:
        from myxtts.training.two_stage_trainer import TwoStageTrainer as Trainer
    else:
        from myxtts.training.trainer import XTTSTrainer as Trainer

    folder = Path(config.training.checkpoint_dir).expanduser()
    with joined(worker, folder, config.training.worker_timeout) as replicas:
        evaluator = training_evaluator(config) if replicas.is_chief else None
        trainer = Trainer(config, resume=resume, evaluator=evaluator, replicas=replicas)
        with progress("preparing") as report:
            datasets = trainer.prepare_datasets(report)
        if tune_loading:
            trainer.load_as(tune_loading(config))
        return trainer.train(*datasets)


def train_vocoder(
    config: XTTSConfig,
    resume: bool | Path | None = None,
    voice: Path | None = None,
    worker: "Worker | None" = None,
) -> "Ending":
    """Train a vocoder, on the mels that a voice predicts where one is given."""
    from myxtts.cluster.replicas import joined
    from myxtts.training.vocoder.trainer import VocoderTrainer

    folder = Path(config.training.checkpoint_dir).expanduser()
    with joined(worker, folder, config.training.worker_timeout) as replicas:
        start = None
        if voice is not None:
            start, config = _load_predicting_voice(voice, config)
        trainer = VocoderTrainer(config, folder, resume, start, replicas)
        with progress("preparing") as report:
            trainer.prepare_datasets(report)
        return trainer.train()


def _load_predicting_voice(path: Path, config: XTTSConfig) -> "tuple[Voice, XTTSConfig]":
    """A voice, and the settings with the features and the text units that it was trained on."""
    from myxtts.checkpoints import load_voice
    from myxtts.training.warm_start import FEATURES

    voice = load_voice(path)
    spec, asked = voice.config.data.audio_spec, config.data.audio
    if asked != DataConfig.audio and config.data.audio_spec != spec:
        raise UserError(
            f"audio is {asked}, but {path} predicts mels of {spec.sample_rate:,} Hz with "
            f"{spec.n_mels} bands up to {spec.fmax:,.0f} Hz: leave --audio out, or name a voice "
            f"that was trained with --audio {asked}"
        )
    own = {name: getattr(voice.config.data, name) for name in ("audio", *FEATURES)}
    return voice, config.replace(**own)
