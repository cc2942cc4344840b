"""The arguments that several commands take: settings, a corpus, a voice; and what they become."""

import argparse
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.flags import FLAGS, FlagValue, add_flags, flag_values
from myxtts.config.io import Resolved, resolve
from myxtts.config.model import USUAL_REFINE_STEPS, USUAL_TEMPERATURE
from myxtts.config.vocoders import VOCODERS
from myxtts.errors import UserError
from myxtts.resources import default_voice
from myxtts.workflows.evaluate_training import metric_choices

logger = logging.getLogger(__name__)

_CORPUS = "data.dataset_path"
FIELDS = tuple(dict.fromkeys(flag.field for flag in FLAGS))
DATA_FIELDS = tuple(field for field in FIELDS if field.startswith("data."))
MODEL_FIELDS = tuple(field for field in FIELDS if field.startswith("model."))
ENCODER_FIELDS = tuple(field for field in FIELDS if "speaker_encoder" in field)


def add_settings(parser: argparse.ArgumentParser, fields: Iterable[str] | None = None) -> None:
    """Add --config and the flags of some settings, or of all."""
    parser.set_defaults(corpus=None)
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings")
    choices = {"training.evaluation_metric": metric_choices()}
    add_flags(parser.add_argument_group("settings"), fields, choices)


def all_but(*fields: str) -> list[str]:
    """Every setting that has a flag, without some."""
    return [field for field in FIELDS if field not in fields]


def add_corpus(parser: argparse.ArgumentParser, others: Iterable[str] = ()) -> None:
    """Add CORPUS and every setting that concerns data, and some others."""
    add_settings(parser, (*DATA_FIELDS, *others))
    parser.usage = "%(prog)s [options] [settings] [CORPUS]"
    about = f"the corpus, as --data would name it (default: {DataConfig.dataset_path})"
    parser.add_argument("corpus", metavar="CORPUS", nargs="?", help=about)


def add_simulated_step(parser: argparse.ArgumentParser) -> None:
    """Add --simulate-step-ms."""
    about = "an accelerator that takes so long stands in for the model"
    parser.add_argument("--simulate-step-ms", type=float, default=0.0, metavar="MS", help=about)


def add_voice(
    parser: argparse._ActionsContainer, required: bool = False, has_default: bool = False
) -> None:
    """Add --voice under all its names; the default is the voice inside the package."""
    about = "the voice: its folder, that of the run that made it, or that of an export"
    about += " (default: the English voice inside the package)" if has_default else ""
    default = default_voice() if has_default else None
    names = ("--voice", "--checkpoint", "--checkpoint-dir")
    how = {"required": required, "default": default, "dest": "voice"}
    parser.add_argument(*names, metavar="DIR", help=about, **how)


def add_refining(parser: argparse._ActionsContainer) -> None:
    """Add the flags of what is done to the mels of a voice before they are vocoded."""
    about = "leave the mels as the decoder predicts them, which is smoother than speech"
    parser.add_argument("--no-postfilter", action="store_false", dest="postfilter", help=about)
    about = f"steps in which a voice with a refiner adds detail (default: {USUAL_REFINE_STEPS}; "
    about += "0: none)"
    parser.add_argument("--refine-steps", metavar="N", type=int, help=about)
    about = "how much melody and tempo vary with the seed, from 0 (default) to 1, as those of "
    about += "recordings do, and beyond; with refine steps, how much these vary (default: "
    about += f"{USUAL_TEMPERATURE})"
    parser.add_argument("--temperature", type=float, metavar="T", help=about)


def add_vocoder(parser: argparse.ArgumentParser) -> None:
    """Add --vocoder under both its names."""
    about = f"how a mel becomes a waveform: {', '.join(VOCODERS)}, or the path of a trained "
    about += "vocoder (auto, the default: the one that the voice's run has trained, if any)"
    names = ("--vocoder", "--vocoder-type")
    parser.add_argument(*names, metavar="NAME", default="auto", dest="vocoder", help=about)


def resolve_settings(args: argparse.Namespace) -> Resolved:
    """Settle every setting: environment, then flag, then file, then default."""
    flags = flag_values(args)
    if args.corpus is not None:
        if _CORPUS in flags:
            name = flags[_CORPUS].name
            raise UserError(f"the corpus is named twice, by {args.corpus} and by {name}: keep one")
        flags[_CORPUS] = FlagValue(args.corpus, "CORPUS")
    resolved = resolve(args.config, flags)
    warn_overruled(flags, resolved.origins)
    return resolved


def warn_overruled(flags: Mapping[str, FlagValue], origins: Mapping[str, str]) -> None:
    """Name the flags that the environment wins over."""
    for path, flag in flags.items():
        if origins[path].startswith("environment"):
            logger.warning("%s has no effect: %s wins over it", flag.name, origins[path])


def corpus_config(args: argparse.Namespace) -> XTTSConfig:
    """Settle every setting of a command that cannot do without the corpus."""
    config = resolve_settings(args).config
    check_corpus(config.data)
    return config


def warn_untuned(config: XTTSConfig) -> None:
    """Warn that auto_tune, set in a file or by the environment, has no effect here."""
    if config.training.auto_tune:
        logger.warning("auto_tune has no effect here: only `myxtts train` tunes itself")


def check_corpus(data: DataConfig) -> None:
    """Raise where the corpus is missing, and say where to get one."""
    missing = [one for one in data.corpora if not Path(one).expanduser().exists()]
    if missing:
        raise UserError(
            f"there is no corpus at {missing[0]}: name yours on the command line, fetch one "
            "with `myxtts download ljspeech`, or make the built-in one with `myxtts data demo`"
        )
