"""`myxtts train-vocoder`: a vocoder for the recordings of a corpus, or for a voice's mels."""

import argparse
import logging
import shlex
from pathlib import Path

from myxtts.cli.commands.train import add_resuming, print_stopped, resume_choice
from myxtts.cli.settings import (
    DATA_FIELDS,
    add_settings,
    check_corpus,
    resolve_settings,
    warn_untuned,
)
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.config import affecting
from myxtts.config.flags import FLAGS
from myxtts.text.languages import greeting

FOLDER = "runs/vocoder"
_PLACE = "training.checkpoint_dir"
_RUN = ("seed", "save_interval", "validation_interval", "enable_eager_debug")
_ONLY_TWO_STAGES = "training.stage2_on_predicted_mels"


def fields() -> list[str]:
    """The settings that have a say in the second stage."""
    named = {flag.field for flag in FLAGS}
    chosen = [_PLACE, *affecting("vocoder")]
    chosen += [f"training.{name}" for name in _RUN]
    chosen += [path for path in named if path.startswith(("training.stage2_", "training.vocoder_"))]
    return [
        *DATA_FIELDS,
        *(path for path in dict.fromkeys(chosen) if path in named and path != _ONLY_TWO_STAGES),
    ]


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train a vocoder on a corpus, from nothing or from published weights"
    parser = add_command(verbs, "train-vocoder", about, run)
    about = "train on the mels that this voice predicts along the true alignments"
    parser.add_argument("--on-predicted-mels", metavar="VOICE", type=Path, help=about)
    add_resuming(parser)
    add_settings(parser, fields())
    parser.usage = "%(prog)s --data CORPUS [--vocoder istft|hifigan] [--from WEIGHTS] [settings]"


def run(args: argparse.Namespace) -> int:
    """Train, and return 0, or 130 where a signal ended it: what was reached is kept."""
    from myxtts.workflows.train import load_predicting_voice, train_vocoder

    resolved = resolve_settings(args)
    config = resolved.config
    check_corpus(config.data)
    warn_untuned(config)
    if resolved.origins[_PLACE].startswith("default"):
        config.training.checkpoint_dir = FOLDER
    import_tensorflow()
    logging.getLogger("myxtts").setLevel(logging.INFO)
    voice = None
    if args.on_predicted_mels:
        voice, config = load_predicting_voice(args.on_predicted_mels, config)
    reason = train_vocoder(config, resume_choice(args), voice)
    folder = config.training.checkpoint_dir
    if reason.is_interrupted:
        return print_stopped(args, reason, folder)
    print(f"the vocoder is in {folder}; speak through it:")
    text = shlex.quote(greeting(config.data.language))
    where = shlex.quote(str(folder))
    print(f"  myxtts synthesize --voice VOICE --vocoder {where} --text {text} -o hello.wav")
    return 0
