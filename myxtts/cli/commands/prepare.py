"""`myxtts prepare`: fill the cache, all of it, resumably."""

import argparse
import logging

from myxtts.cli.settings import ENCODER_FIELDS, add_corpus, corpus_config
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.errors import UserError

logger = logging.getLogger(__name__)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "compute the features and tokens of a corpus and store them"
    parser = add_command(verbs, "prepare", about, run)
    add_corpus(parser, ENCODER_FIELDS)
    skip = "skip what cannot be prepared, and call that a success"
    parser.add_argument("--skip-bad", action="store_true", help=skip)


def run(args: argparse.Namespace) -> None:
    from myxtts.data.rejections import list_rejections
    from myxtts.workflows.prepare import count_utterances, prepare

    config = corpus_config(args)
    if config.data.preprocessing_mode == "runtime":
        logger.warning("preprocessing_mode is runtime: training will not read what is stored here")
    if config.model.is_encoder_frozen:
        import_tensorflow()
    bad = prepare(config, print)
    if bad and not args.skip_bad:
        raise UserError(
            f"{count_utterances(len(bad))} could not be prepared:\n{list_rejections(bad)}\n"
            "All others are stored. Fix these recordings or their lines in the metadata "
            "and run the same command again, or skip them with --skip-bad"
        )
    if bad:
        print(f"{count_utterances(len(bad))} dropped:\n{list_rejections(bad)}")
