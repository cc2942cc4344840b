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
    worker = (
        "prepare the share of one of N workers that run at the same time or one after the other, "
        "on one host or several; I is from 1 to N, for example 3/8"
    )
    parser.add_argument("--worker", metavar="I/N", help=worker)
    cluster = (
        "prepare on a Ray cluster (the extra `cluster`): HOST:PORT, ray://HOST:PORT, or auto, "
        "which joins the one that RAY_ADDRESS names or starts one on the cores of this machine"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help=cluster)


def run(args: argparse.Namespace) -> None:
    from myxtts.data.features.share import Share
    from myxtts.data.rejections import list_rejections
    from myxtts.workflows.prepare import count_utterances, prepare

    if args.worker is not None and args.cluster is not None:
        raise UserError("--worker and --cluster exclude each other: Ray shares out the work itself")
    worker = Share.parse(args.worker) if args.worker is not None else None
    config = corpus_config(args)
    if config.data.preprocessing_mode == "runtime":
        logger.warning("preprocessing_mode is runtime: training will not read what is stored here")
    if config.model.is_encoder_frozen:
        import_tensorflow()
    bad = prepare(config, print, worker=worker, cluster=args.cluster)
    if bad and not args.skip_bad:
        raise UserError(
            f"{count_utterances(len(bad))} could not be prepared:\n{list_rejections(bad)}\n"
            "All others are stored. Fix these recordings or their lines in the metadata "
            "and run the same command again, or skip them with --skip-bad"
        )
    if bad:
        print(f"{count_utterances(len(bad))} dropped:\n{list_rejections(bad)}")
