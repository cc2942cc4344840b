"""`myxtts finetune`: add a speaker, or a language, to a voice from a few minutes of speech."""

import argparse
import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.cli.commands.train import add_resuming, resume_choice, speak_hint, tell_stopped
from myxtts.cli.settings import add_settings, all_but, check_corpus, tell_untuned
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.config import SECTIONS, DataConfig, XTTSConfig
from myxtts.config.flags import flag_values
from myxtts.config.io import Resolved, Setting, environment_settings, resolve
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice

logger = logging.getLogger(__name__)

Settings = dict[str, Setting]

_CORPUS, _FOLDER = "data.dataset_path", "training.checkpoint_dir"
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


def add(verbs: argparse._SubParsersAction) -> None:
    about = "add a speaker to a trained voice, from a few minutes of recordings"
    parser = add_command(verbs, "finetune", about, run)
    which = "the voice to begin from: its folder, or that of the run that made it"
    parser.add_argument("--voice", metavar="DIR", required=True, type=Path, help=which)
    add_resuming(parser)
    # A short run is over before measuring would pay.
    add_settings(parser, all_but("training.auto_tune"))
    parser.usage = "%(prog)s --voice DIR --data CORPUS [--checkpoint-dir FOLDER] [settings]"
    parser.epilog = (
        "The model, its features and its text units are the voice's own and cannot be set. What "
        "else is not given is chosen for a short run, whatever defaults are shown here: it is "
        "printed when the run begins, and is in config.yaml in its folder."
    )


def run(args: argparse.Namespace) -> int:
    """Train from a voice; return 0, or 130 where a signal ended it: what was reached is kept."""
    asked = asked_settings(args)
    if _CORPUS not in asked:
        raise UserError("name the recordings of the new speaker with --data")
    check_corpus(DataConfig(dataset_path=asked[_CORPUS].value))
    voice = load_start(args.voice)
    resolved = settle(voice.config, asked, f"voice {args.voice}", default_folder(args.voice))
    folder = Path(resolved.config.training.checkpoint_dir).expanduser()
    check_folder(folder, voice)
    tell_untuned(resolved.config)
    print(f"in {folder}: {describe_choices(resolved)}")
    logging.getLogger("myxtts").setLevel(logging.INFO)
    reason, speaker = finetune(resolved.config, resume_choice(args), voice)
    if reason.is_interrupted:
        return tell_stopped(args, reason, folder)
    print(f"the voice is in {folder}; speak with it:")
    language = resolved.config.data.language
    print(speak_hint(folder, language, f"--speaker {shlex.quote(speaker)} "))
    return 0


def asked_settings(args: argparse.Namespace) -> Settings:
    """What the user has said: in the environment, then by flag, then in a file."""
    asked: Settings = {}
    if args.config is not None:
        named = resolve(args.config, environ={})
        asked = {
            path: Setting(attrgetter(path)(named.config), origin)
            for path, origin in named.origins.items()
            if origin.startswith("file ")
        }
    flags = {
        path: Setting(value, f"flag {name}") for path, (value, name) in flag_values(args).items()
    }
    outside = environment_settings(os.environ)
    for path in flags.keys() & outside.keys():
        logger.warning(
            "%s has no effect: %s wins over it", flags[path].origin, outside[path].origin
        )
    return asked | flags | outside


def load_start(path: Path) -> "Voice":
    """Load the voice to begin from."""
    import_tensorflow()
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
    """A folder beside the voice, or beside the run that made it."""
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


def finetune(config: XTTSConfig, resume: bool | Path | None, voice: "Voice") -> tuple[str, str]:
    """Open the corpus with a progress bar and train; say why it ended, and who was learnt."""
    from myxtts.cli.evaluating import training_evaluator
    from myxtts.training.trainer import XTTSTrainer

    evaluator = training_evaluator(config)
    trainer = XTTSTrainer(config, resume=resume, start=voice, evaluator=evaluator)
    with progress("preparing") as report:
        datasets = trainer.prepare_datasets(report)
    cache = trainer.data.train.cache
    heard = [cache.speakers[number] for number in sorted(set(cache.speaker.tolist()))]
    new_languages = cache.languages[len(voice.languages) :]
    print(describe_growth(voice, heard, new_languages), flush=True)
    return trainer.train(*datasets), heard[-1]


def describe_growth(voice: "Voice", heard: Sequence[str], languages: Sequence[str]) -> str:
    """Say which of the speakers of a corpus are new to a voice, and which languages."""
    parts = {
        "adding": [name for name in heard if name not in voice.speakers],
        "taken for the voice's own of this name": [
            name for name in heard if name in voice.speakers
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
