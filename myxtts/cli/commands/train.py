"""`myxtts train`: from a corpus to a voice; it resumes where it was stopped."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from myxtts.cli.commands.tune import tuned_for_run, tuned_for_worker
from myxtts.cli.settings import add_settings, check_corpus, resolve_settings
from myxtts.cli.terminal import INTERRUPTED, Parser, add_command, add_verbose
from myxtts.cli.terminal import run as run_command
from myxtts.cli.workers import add_workers, launch_workers, own_worker
from myxtts.config.config import XTTSConfig
from myxtts.text.languages import greeting


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train a voice on a corpus, resuming from its last checkpoint if there is one"
    parser = add_command(verbs, "train", about, run)
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every setting, and what to do about an earlier run in the same folder."""
    add_resuming(parser)
    add_workers(parser)
    add_settings(parser)
    parser.usage = "%(prog)s [--resume | --resume-from FOLDER | --reset-training] [settings]"


def add_resuming(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what becomes of an earlier run."""
    earlier = parser.add_argument_group("an earlier run").add_mutually_exclusive_group()
    about = "fail where there is nothing to resume from"
    earlier.add_argument("--resume", action="store_true", help=about)
    about = "resume from this checkpoint, a folder called step-..."
    earlier.add_argument("--resume-from", metavar="FOLDER", type=Path, help=about)
    about = "start over, and keep the old run next to the new one"
    earlier.add_argument("--reset-training", action="store_true", help=about)


def main(argv: Sequence[str] | None = None) -> int:
    """The program `train_main.py`."""
    return run_command(run, parse_args(argv))


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the arguments of `train_main.py`."""
    parser = Parser("train_main.py", description=__doc__)
    add_arguments(parser)
    add_verbose(parser)
    args = parser.parse_args(argv)
    args.words = ["train", *(sys.argv[1:] if argv is None else argv)]
    return args


def build_config(args: argparse.Namespace) -> XTTSConfig:
    """The configuration that the arguments of `train_main.py` settle, from `parse_args`."""
    return resolve_settings(args).config


def run(args: argparse.Namespace) -> int:
    """Train, and return 0, or 130 where a signal ended it: what was reached is kept."""
    from myxtts.workflows.train import train

    resolved = resolve_settings(args)
    config = resolved.config
    check_corpus(config.data)
    ended = launch_workers(args, Path(config.training.checkpoint_dir).expanduser())
    if ended is not None:
        return ended
    worker = own_worker(args)
    tune_loading = None
    if config.training.auto_tune and worker:
        tune_loading = tuned_for_worker(resolved, worker)
    elif config.training.auto_tune:
        config = tuned_for_run(resolved, resume_choice(args))
    reason = train(config, resume_choice(args), worker, tune_loading)
    if worker and not worker.is_chief:
        return INTERRUPTED if reason.is_interrupted else 0
    folder = config.training.checkpoint_dir
    if reason.is_interrupted:
        return print_stopped(args, reason, folder)
    if config.training.two_stage_training:
        print(f"its vocoder is in {Path(folder) / 'stage2'}")
    print(f"the voice is in {folder}; speak with it:")
    print(speak_hint(folder, config.data.language))
    return 0


def speak_hint(folder: str | Path, wanted: str, flags: str = "") -> str:
    """A command that lets a voice speak, in the wanted language or else in its first."""
    from myxtts.checkpoints import CheckpointError, read_languages

    try:
        languages = read_languages(folder)
    except CheckpointError:  # an export that failed was reported as such
        languages = (wanted,)
    language = wanted if wanted in languages else languages[0]
    chosen = "" if language == languages[0] else f"--language {language} "
    text = f"--text {shlex.quote(greeting(language))} -o hello.wav"
    return f"  myxtts synthesize --voice {shlex.quote(str(folder))} {flags}{chosen}{text}"


def print_stopped(args: argparse.Namespace, reason: str, folder: str | Path) -> int:
    """Print how to resume a run that a signal ended, and return its exit code."""
    again = "run it without --reset-training" if args.reset_training else "run the same command"
    again = "run it without --resume-from" if args.resume_from else again
    print(f"stopped by {reason}: saved in {folder}; {again} to resume")
    return INTERRUPTED


def resume_choice(args: argparse.Namespace) -> bool | Path | None:
    """What the flags say of an earlier run, as XTTSTrainer takes it."""
    if args.reset_training:
        return False
    return args.resume_from or args.resume or None
