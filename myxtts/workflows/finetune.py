"""Fine-tune a voice: add a speaker, or a language, from a few minutes of speech."""

import logging
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.config.config import SECTIONS, XTTSConfig
from myxtts.config.io import Resolved, Setting, resolve
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.workflows.stages import Announce

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.training.ending import Ending

_FOLDER = "training.checkpoint_dir"
_RATE, _LAST_RATE = "training.learning_rate", "training.min_learning_rate"
_EPOCHS, _STEPS = "training.epochs", "training.max_steps"

# For about five minutes of speech, which are a few batches.
SHORT_RUN = {
    _STEPS: 1000,
    "training.warmup_steps": 50,
    "training.alignment_prior_steps": 0,  # the voice knows which sound belongs to which letter
    "training.ema_decay": 0.99,  # averages of a hundred steps forget the weights of the beginning
    "training.save_interval": 200,
    "training.validation_interval": 200,
}
# A quarter: the peak that weights were drawn from nothing with would wash out what they know,
# while with the rate that they ended with a thousand steps would hardly move them.
RATE_SHARE = 0.25

logger = logging.getLogger(__name__)


def load_start(path: Path) -> "Voice":
    """Load the voice to begin from."""
    from myxtts.checkpoints import load_voice
    from myxtts.runtime import configure_gpus

    configure_gpus()  # while no GPU is in use yet: afterwards its memory cannot be shared any more
    return load_voice(path)


def settle(voice: XTTSConfig, asked: Mapping[str, Setting], origin: str, folder: Path) -> Resolved:
    """Settle every setting: asked for, then chosen for a short run, then the voice's, then preset.

    `voice` are the settings of the voice, of which `origin` says where they come from.
    """
    from myxtts.training.warm_start import LASTING, check_lasting

    check_lasting(voice, asked)
    plain = resolve(environ={}, preset=voice.model.model_size)
    settled = {
        path: Setting(attrgetter(path)(plain.config), by) for path, by in plain.origins.items()
    }
    kept = (*LASTING, "data.language", *(path for path in settled if _is_of_losses(path)))
    settled |= {path: Setting(attrgetter(path)(voice), origin) for path in kept}
    chosen = short_run(voice, asked) | {_FOLDER: str(folder)}
    settled |= {path: Setting(value, "fine-tuning") for path, value in chosen.items()}
    settled |= asked
    origins = {path: setting.origin for path, setting in settled.items()}
    return Resolved(_build(settled), origins)


def short_run(voice: XTTSConfig, asked: Mapping[str, Setting]) -> dict[str, Any]:
    """What is chosen for the user who has not said otherwise."""
    rate = RATE_SHARE * voice.training.learning_rate
    peak = asked[_RATE].value if _RATE in asked else rate
    chosen = SHORT_RUN | {_RATE: rate}
    chosen[_LAST_RATE] = min(RATE_SHARE * voice.training.last_learning_rate, peak)
    if _EPOCHS in asked:  # who counts epochs wants all of them
        chosen[_STEPS] = 0
    return chosen


def describe_choices(resolved: Resolved) -> str:
    """What was chosen for the user."""
    parts = [
        f"{path.partition('.')[2]} {attrgetter(path)(resolved.config):g}"
        for path, origin in resolved.origins.items()
        if origin == "fine-tuning" and path != _FOLDER
    ]
    return ", ".join(parts) or "every setting as given"


def default_folder(voice: Path) -> Path:
    """A folder next to the voice, or next to the run that made it."""
    folder = voice.resolve()
    folder = folder.parent if (folder.parent / "checkpoints").is_dir() else folder
    return folder.with_name(f"{folder.name}-finetuned")


def check_folder(folder: Path, voice: "Voice") -> None:
    """Keep a run from writing over the voice that it begins from."""
    target = folder.resolve()
    if voice.folder.resolve() in (target, target / "voice", target / "voice-best"):
        raise UserError(
            f"{folder} is where the voice lies that is begun from: choose another --checkpoint-dir"
        )


def finetune(
    config: XTTSConfig,
    resume: bool | Path | None,
    voice: "Voice",
    announce: Announce = logger.info,
) -> "tuple[Ending, str]":
    """Open the corpus with a progress bar and train; return why it ended, and the new speaker.

    `announce` is given which speakers and languages are new to the voice.
    """
    from myxtts.training.trainer import XTTSTrainer
    from myxtts.workflows.evaluate_training import training_evaluator

    evaluator = training_evaluator(config)
    trainer = XTTSTrainer(config, resume=resume, start=voice, evaluator=evaluator)
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
    """Whether a setting belongs to what the voice has been trained for."""
    return "_loss" in path or path == "training.stop_token_positive_weight"


def _build(settled: Mapping[str, Setting]) -> XTTSConfig:
    values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for path, setting in settled.items():
        section, name = path.split(".")
        values[section][name] = setting.value
    return XTTSConfig(**{name: cls(**values[name]) for name, cls in SECTIONS.items()})
