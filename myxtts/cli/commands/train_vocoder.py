"""`myxtts train-vocoder`: a vocoder for the recordings of a corpus, or for a voice's mels."""

import argparse
import shlex
from pathlib import Path

from myxtts.cli.commands.train import add_resuming, print_stopped, resume_choice
from myxtts.cli.settings import (
    DATA_FIELDS,
    add_settings,
    all_but,
    check_corpus,
    resolve_settings,
    warn_untuned,
)
from myxtts.cli.terminal import INTERRUPTED, add_command
from myxtts.cli.workers import add_workers, launch_workers, own_worker
from myxtts.config.config import affecting
from myxtts.text.languages import greeting

FOLDER = "runs/vocoder"
_PLACE = "training.checkpoint_dir"
_RUN = (
    *(_PLACE, "training.seed", "training.save_interval", "training.validation_interval"),
    "training.enable_eager_debug",
)


def fields() -> list[str]:
    """The settings that affect the second stage."""
    chosen = {*DATA_FIELDS, *affecting("vocoder"), *_RUN}
    second_stage = ("training.stage2_", "training.vocoder_")
    return [
        path
        for path in all_but("training.stage2_on_predicted_mels")
        if path in chosen or path.startswith(second_stage)
    ]


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train a vocoder on a corpus, from nothing or from published weights"
    parser = add_command(verbs, "train-vocoder", about, run)
    about = "train on the teacher-forced (GTA) mels of this voice"
    parser.add_argument("--on-predicted-mels", metavar="VOICE", type=Path, help=about)
    add_resuming(parser)
    add_workers(parser)
    add_settings(parser, fields())
    parser.usage = "%(prog)s --data CORPUS [--vocoder istft|hifigan] [--from WEIGHTS] [settings]"


def run(args: argparse.Namespace) -> int:
    """Train, and return 0, or 130 where a signal ended it: what was reached is kept."""
    from myxtts.workflows.train import train_vocoder

    resolved = resolve_settings(args)
    config = resolved.config
    check_corpus(config.data)
    warn_untuned(config)
    if resolved.origins[_PLACE].startswith("default"):
        config.training.checkpoint_dir = FOLDER
    folder = config.training.checkpoint_dir
    ended = launch_workers(args, Path(folder).expanduser())
    if ended is not None:
        return ended
    worker = own_worker(args)
    reason = train_vocoder(config, resume_choice(args), args.on_predicted_mels, worker)
    if worker and not worker.is_chief:
        return INTERRUPTED if reason.is_interrupted else 0
    if reason.is_interrupted:
        return print_stopped(args, reason, folder)
    print(f"the vocoder is in {folder}; speak through it:")
    text = shlex.quote(greeting(config.data.language))
    where = shlex.quote(str(folder))
    print(f"  myxtts synthesize --voice VOICE --vocoder {where} --text {text} -o hello.wav")
    return 0
