"""What every command that reads a corpus or a configuration takes, and what becomes of it."""

import argparse
import logging
from collections.abc import Iterable
from pathlib import Path

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.flags import FLAGS, FlagValue, add_flags, flag_values
from myxtts.config.io import Resolved, resolve
from myxtts.errors import UserError
from myxtts.workflows.evaluate_training import metric_choices

logger = logging.getLogger(__name__)

_CORPUS = "data.dataset_path"
DATA_FIELDS = tuple(dict.fromkeys(f.field for f in FLAGS if f.field.startswith("data.")))
MODEL_FIELDS = tuple(dict.fromkeys(f.field for f in FLAGS if f.field.startswith("model.")))
ENCODER_FIELDS = tuple(dict.fromkeys(f.field for f in FLAGS if "speaker_encoder" in f.field))


def add_settings(parser: argparse.ArgumentParser, fields: Iterable[str] | None = None) -> None:
    """Add --config and the flags of some settings, or of all."""
    parser.set_defaults(corpus=None)
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings")
    choices = {"training.evaluation_metric": metric_choices()}
    add_flags(parser.add_argument_group("settings"), fields, choices)


def all_but(*fields: str) -> list[str]:
    """Every setting that has a flag, without some."""
    return [flag.field for flag in FLAGS if flag.field not in fields]


def add_corpus(parser: argparse.ArgumentParser, others: Iterable[str] = ()) -> None:
    """Add CORPUS and every setting that concerns data, and some others."""
    add_settings(parser, (*DATA_FIELDS, *others))
    parser.usage = "%(prog)s [options] [settings] [CORPUS]"
    about = f"the corpus, as --data would name it (default: {DataConfig.dataset_path})"
    parser.add_argument("corpus", metavar="CORPUS", nargs="?", help=about)


def resolve_settings(args: argparse.Namespace) -> Resolved:
    """Settle every setting: environment, then flag, then file, then default."""
    flags = flag_values(args)
    if args.corpus is not None:
        if _CORPUS in flags:
            name = flags[_CORPUS].name
            raise UserError(f"the corpus is named twice, by {args.corpus} and by {name}: keep one")
        flags[_CORPUS] = FlagValue(args.corpus, "CORPUS")
    resolved = resolve(args.config, flags)
    for path, flag in flags.items():
        if resolved.origins[path].startswith("environment"):
            logger.warning("%s has no effect: %s wins over it", flag.name, resolved.origins[path])
    return resolved


def corpus_config(args: argparse.Namespace) -> XTTSConfig:
    """Settle every setting of a command that cannot do without the corpus."""
    config = resolve_settings(args).config
    check_corpus(config.data)
    return config


def warn_untuned(config: XTTSConfig) -> None:
    """Say that nothing is tuned here, to who asked for it in a file or by the environment."""
    if config.training.auto_tune:
        logger.warning("auto_tune has no say here: only `myxtts train` measures before it begins")


def check_corpus(data: DataConfig) -> None:
    """Tell a user whose corpus is not there where to get one."""
    if not Path(data.dataset_path).expanduser().exists():
        raise UserError(
            f"there is no corpus at {data.dataset_path}: name yours on the command line, fetch one "
            "with `myxtts download ljspeech`, or make the built-in one with `myxtts data demo`"
        )
