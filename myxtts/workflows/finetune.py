"""Fine-tune a voice: add a speaker, or a language, from a few minutes of speech."""

import logging
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.config.config import XTTSConfig
from myxtts.config.io import Resolved, Setting, resolve
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.resources import default_voice
from myxtts.workflows.stages import Announce

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.cluster.replicas import Replicas
    from myxtts.training.ending import Ending

_FOLDER = "training.checkpoint_dir"
_RATE, _LAST_RATE = "training.learning_rate", "training.min_learning_rate"
_USES_ENCODER, _ENCODER = "model.use_pretrained_speaker_encoder", "model.speaker_encoder_path"
_EPOCHS, _STEPS = "training.epochs", "training.max_steps"

# For about five minutes of speech: a few batches.
SHORT_RUN = {
    _STEPS: 1000,
    "training.warmup_steps": 50,
    "training.refiner_start": 0.0,  # it has a mel to refine from the first step on
    "training.alignment_prior_steps": 0,  # the voice can align already
    "training.ema_decay": 0.99,  # about 100 steps, so that the EMA forgets the initial weights
    "training.save_interval": 200,
    "training.validation_interval": 200,
}
# The peak rate of training from scratch would destroy what the weights know; with the last rate, a
# thousand steps would hardly change them.
RATE_SHARE = 0.25

logger = logging.getLogger(__name__)


def load_start(path: Path) -> "Voice":
    """Load the voice to start from."""
    from myxtts.checkpoints import load_trainable
    from myxtts.runtime import configure_gpus

    configure_gpus()  # before a GPU is in use: memory growth cannot be set later
    return load_trainable(path)


def settle(voice: XTTSConfig, asked: Mapping[str, Setting], origin: str, folder: Path) -> Resolved:
    """Resolve every setting: given ones, then those of a short run, the voice's, the preset's.

    `voice` are the settings of the voice, and `origin` says where they come from.
    """
    from myxtts.training.warm_start import AUDIO, LASTING, check_lasting

    check_lasting(voice, asked)
    plain = resolve(environ={}, preset=voice.model.model_size)
    settled = {
        path: Setting(attrgetter(path)(plain.config), by) for path, by in plain.origins.items()
    }
    kept = (*LASTING, AUDIO, "data.language", *(path for path in settled if _is_of_losses(path)))
    settled |= {path: Setting(attrgetter(path)(voice), origin) for path in kept}
    chosen = short_run(voice, asked) | {_FOLDER: str(folder)}
    settled |= {path: Setting(value, "fine-tuning") for path, value in chosen.items()}
    if _ENCODER in asked and _USES_ENCODER not in asked:
        # As for a new run: a voice without one says that it has none.
        settled[_USES_ENCODER] = Setting(bool(asked[_ENCODER].value), asked[_ENCODER].origin)
    settled |= asked
    config = XTTSConfig(**{path: setting.value for path, setting in settled.items()})
    return Resolved(config, {path: setting.origin for path, setting in settled.items()})


def short_run(voice: XTTSConfig, asked: Mapping[str, Setting]) -> dict[str, Any]:
    """The defaults of a short run."""
    rate = RATE_SHARE * voice.training.learning_rate
    peak = asked[_RATE].value if _RATE in asked else rate
    chosen = SHORT_RUN | {_RATE: rate}
    chosen[_LAST_RATE] = min(RATE_SHARE * voice.training.last_learning_rate, peak)
    if _EPOCHS in asked:  # all of the given epochs
        chosen[_STEPS] = 0
    return chosen


def describe_choices(resolved: Resolved) -> str:
    """The settings that fine-tuning chose."""
    parts = [
        f"{path.partition('.')[2]} {attrgetter(path)(resolved.config):g}"
        for path, origin in resolved.origins.items()
        if origin == "fine-tuning" and path != _FOLDER
    ]
    return ", ".join(parts) or "every setting as given"


def default_folder(voice: Path) -> Path:
    """A folder next to the voice, or next to the run that made it; here, for the package's own."""
    folder = voice.resolve()
    if folder == default_voice().resolve():
        return Path.cwd() / f"{folder.name}-finetuned"
    folder = folder.parent if (folder.parent / "checkpoints").is_dir() else folder
    return folder.with_name(f"{folder.name}-finetuned")


def check_folder(folder: Path, voice: "Voice") -> None:
    """Raise where a run would overwrite the voice that it starts from."""
    target = folder.resolve()
    if voice.folder.resolve() in (target, target / "voice", target / "voice-best"):
        raise UserError(f"{folder} holds the voice to start from: choose another --checkpoint-dir")


def finetune(
    config: XTTSConfig,
    resume: bool | Path | None,
    voice: "Voice",
    announce: Announce = logger.info,
    replicas: "Replicas | None" = None,
) -> "tuple[Ending, str]":
    """Open the corpus with a progress bar and train; return why it ended, and the new speaker.

    `announce` is called with the speakers and languages that are new to the voice.
    """
    from myxtts.cluster.replicas import ALONE
    from myxtts.training.trainer import XTTSTrainer
    from myxtts.workflows.evaluate_training import training_evaluator

    replicas = replicas or ALONE
    evaluator = training_evaluator(config) if replicas.is_chief else None
    trainer = XTTSTrainer(config, None, resume, voice, evaluator, replicas)
    with progress("preparing") as report:
        datasets = trainer.prepare_datasets(report)
    cache = trainer.data.train.cache
    speakers = [cache.speakers[number] for number in sorted(set(cache.speaker.tolist()))]
    new_languages = cache.languages[len(voice.languages) :]
    announce(describe_additions(voice, speakers, new_languages))
    return trainer.train(*datasets), speakers[-1]


def describe_additions(voice: "Voice", speakers: Sequence[str], languages: Sequence[str]) -> str:
    """Which speakers of a corpus, and which languages, are new to a voice."""
    parts = {
        "adding": [name for name in speakers if name not in voice.speakers],
        "taken for the voice's own of this name": [
            name for name in speakers if name in voice.speakers
        ],
        "new languages": languages,
    }
    said = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
    return f"{voice.folder} knows {', '.join(voice.speakers)}; {'; '.join(said)}"


def _is_of_losses(path: str) -> bool:
    """Whether a setting is part of the losses that the voice was trained with."""
    return "_loss" in path or path == "training.stop_token_positive_weight"
