"""`myxtts finetune`: add a speaker, or a language, to a voice from a few minutes of speech."""

import argparse
import logging
import os
import shlex
from operator import attrgetter
from pathlib import Path

from myxtts.cli.commands.train import add_resuming, print_stopped, resume_choice, speak_hint
from myxtts.cli.settings import add_settings, all_but, check_corpus, warn_untuned
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.config import DataConfig
from myxtts.config.flags import flag_values
from myxtts.config.io import Setting, environment_settings, resolve
from myxtts.errors import UserError

logger = logging.getLogger(__name__)

_CORPUS = "data.dataset_path"


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
    from myxtts.workflows import finetune as workflow

    asked = asked_settings(args)
    if _CORPUS not in asked:
        raise UserError("name the recordings of the new speaker with --data")
    check_corpus(DataConfig(dataset_path=asked[_CORPUS].value))
    import_tensorflow()
    voice = workflow.load_start(args.voice)
    folder = workflow.default_folder(args.voice)
    resolved = workflow.settle(voice.config, asked, f"voice {args.voice}", folder)
    folder = Path(resolved.config.training.checkpoint_dir).expanduser()
    workflow.check_folder(folder, voice)
    warn_untuned(resolved.config)
    print(f"in {folder}: {workflow.describe_choices(resolved)}")
    logging.getLogger("myxtts").setLevel(logging.INFO)
    reason, speaker = workflow.finetune(
        resolved.config, resume_choice(args), voice, lambda line: print(line, flush=True)
    )
    if reason.is_interrupted:
        return print_stopped(args, reason, folder)
    print(f"the voice is in {folder}; speak with it:")
    language = resolved.config.data.language
    print(speak_hint(folder, language, f"--speaker {shlex.quote(speaker)} "))
    return 0


def asked_settings(args: argparse.Namespace) -> dict[str, Setting]:
    """What the user has set: in the environment, then by flag, then in a file."""
    asked: dict[str, Setting] = {}
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
