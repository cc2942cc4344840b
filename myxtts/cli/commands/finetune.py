"""`myxtts finetune`: add a speaker, or a language, to a voice from a few minutes of speech."""

import argparse
import logging
import shlex
from pathlib import Path

from myxtts.cli.commands.train import add_resuming, print_stopped, resume_choice, speak_hint
from myxtts.cli.settings import (
    add_settings,
    all_but,
    check_corpus,
    warn_overruled,
    warn_untuned,
)
from myxtts.cli.terminal import INTERRUPTED, add_command, print_line
from myxtts.cli.workers import add_workers, launch_workers, own_worker
from myxtts.config.config import DataConfig, TrainingConfig
from myxtts.config.flags import flag_values
from myxtts.config.io import Setting, given_settings
from myxtts.errors import UserError
from myxtts.resources import default_voice

logger = logging.getLogger(__name__)

_CORPUS, _FOLDER = "data.dataset_path", "training.checkpoint_dir"
_PATIENCE = "training.worker_timeout"


def add(verbs: argparse._SubParsersAction) -> None:
    about = "add a speaker to a trained voice, from a few minutes of recordings"
    parser = add_command(verbs, "finetune", about, run)
    which = "the voice to begin from: its folder, that of the run that made it, or that of an "
    which += "export (default: the English voice inside the package)"
    parser.add_argument("--voice", metavar="DIR", default=default_voice(), type=Path, help=which)
    add_resuming(parser)
    add_workers(parser)
    # A short run is over before measuring would pay.
    add_settings(parser, all_but("training.auto_tune"))
    parser.usage = "%(prog)s [--voice DIR] --data CORPUS [--checkpoint-dir FOLDER] [settings]"
    parser.epilog = (
        "The model, its features and its text units are the voice's own and cannot be set. What "
        "else is not given is chosen for a short run, whatever defaults are shown here: it is "
        "printed when the run begins, and is in config.yaml in its folder."
    )


def run(args: argparse.Namespace) -> int:
    """Train from a voice; return 0, or 130 where a signal ended it: what was reached is kept."""
    from myxtts.workflows import finetune as workflow

    given = settings_given(args)
    if _CORPUS not in given:
        raise UserError("name the recordings of the new speaker with --data")
    check_corpus(DataConfig(dataset_path=given[_CORPUS].value))
    default = workflow.default_folder(args.voice)
    folder = Path(given[_FOLDER].value if _FOLDER in given else default).expanduser()
    ended = launch_workers(args, folder)
    if ended is not None:
        return ended
    worker = own_worker(args)
    from myxtts.cluster.replicas import joined

    patience = given[_PATIENCE].value if _PATIENCE in given else TrainingConfig.worker_timeout
    with joined(worker, folder, patience) as replicas:
        voice = workflow.load_start(args.voice)
        resolved = workflow.settle(voice.config, given, f"voice {args.voice}", folder)
        workflow.check_folder(folder, voice)
        warn_untuned(resolved.config)
        if replicas.is_chief:
            print(f"in {folder}: {workflow.describe_choices(resolved)}")
        reason, speaker = workflow.finetune(
            resolved.config,
            resume_choice(args),
            voice,
            print_line if replicas.is_chief else logger.info,
            replicas,
        )
    if not replicas.is_chief:
        return INTERRUPTED if reason.is_interrupted else 0
    if reason.is_interrupted:
        return print_stopped(args, reason, folder)
    print(f"the voice is in {folder}; speak with it:")
    language = resolved.config.data.language
    print(speak_hint(folder, language, f"--speaker {shlex.quote(speaker)} "))
    return 0


def settings_given(args: argparse.Namespace) -> dict[str, Setting]:
    """What the user has set: in the environment, then by flag, then in a file."""
    flags = flag_values(args)
    given = given_settings(args.config, flags)
    warn_overruled(flags, {path: setting.origin for path, setting in given.items()})
    return given
