"""`myxtts cluster`: what a run on many workers would be like."""

import argparse
import math
from collections.abc import Callable

from myxtts.cli.settings import (
    DATA_FIELDS,
    ENCODER_FIELDS,
    MODEL_FIELDS,
    add_settings,
    check_corpus,
    resolve_settings,
)
from myxtts.cli.terminal import add_command
from myxtts.monitoring.progress import progress

# What decides how long a step takes; a pretrained speaker encoder cannot be measured.
_STEP_FIELDS = tuple(
    field for field in MODEL_FIELDS if field not in ENCODER_FIELDS and "vocoder" not in field
)
# What else decides how workers share a run.
SHARING_FIELDS = (
    *("training.micro_batches", "training.save_interval", "training.validation_interval"),
    "training.seed",
)


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("cluster", help="forecast a run on many workers")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "forecast what would hold a run on many workers back, from figures of this machine"
    parser = add_command(actions, "simulate", about, simulate)
    run = parser.add_argument_group("the run")
    _add(run, "--utterances", _whole, "N", "utterances of the corpus, as in 1e9", required=True)
    _add(run, "--gpus", _whole, "N", "workers of the run, each with one device", required=True)
    hosts = parser.add_argument_group("the cluster; what is not given is measured here or assumed")
    _add_hosts(hosts)
    add_settings(parser, (*DATA_FIELDS, *_STEP_FIELDS, *SHARING_FIELDS))
    parser.usage = "%(prog)s --utterances N --gpus N [options] [settings]"


def simulate(args: argparse.Namespace) -> None:
    resolved = resolve_settings(args)
    has_corpus = resolved.origins["data.dataset_path"] != "default"
    if has_corpus:
        check_corpus(resolved.config.data)
    from myxtts.bench.cluster.measure import Given
    from myxtts.bench.cluster.simulation import HOSTS, Asked, forecast

    figures_given = {name: getattr(args, name) for name in Given.__dataclass_fields__}
    hosts = {name: getattr(args, name) for name in HOSTS}
    asked = Asked(args.utterances, args.gpus, Given(**figures_given), hosts)
    with progress("measuring", "parts") as report:
        found = forecast(resolved.config, asked, has_corpus, report)
    print(found)


def _add_hosts(group: argparse._ArgumentGroup) -> None:
    about = "milliseconds of one micro-batch on one device (`myxtts profile` there measures it)"
    _add(group, "--step-ms", _positive, "MS", about)
    about = "bandwidth of each host's network, in Gbit/s"
    _add(group, "--network-gbps", _positive, "GBPS", about)
    about = "microseconds of a message between two hosts"
    _add(group, "--latency-us", _positive, "US", about)
    about = "speed at which each host reads the cache, in GB/s"
    _add(group, "--disk-gbps", _positive, "GBPS", about)
    _add(group, "--workers-per-host", _whole, "N", "workers that share a host (default: 1)")
    about = "cores that each worker has (default: those of this machine)"
    _add(group, "--cores-per-worker", _whole, "N", about)
    about = "memory of each host, in GB (default: that of this machine)"
    _add(group, "--memory-gb", _positive, "GB", about)
    about = "failures of each worker per hour (default: 0)"
    _add(group, "--failures-per-worker-hour", _not_negative, "RATE", about)
    about = "seconds until failed workers run again, without opening the corpus (default: 60)"
    _add(group, "--restart-seconds", _not_negative, "S", about)


def _add(
    group: argparse._ArgumentGroup,
    name: str,
    kind: Callable,
    metavar: str,
    about: str,
    required: bool = False,
) -> None:
    group.add_argument(name, type=kind, metavar=metavar, help=about, required=required)


def _number(text: str, wanted: str, is_right: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and is_right(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def _whole(text: str) -> int:
    wanted = "a whole number of at least 1, such as 1024 or 1e9"
    return int(_number(text, wanted, lambda value: value >= 1 and value == int(value)))


def _positive(text: str) -> float:
    return _number(text, "a number above 0", lambda value: value > 0)


def _not_negative(text: str) -> float:
    return _number(text, "a number of at least 0", lambda value: value >= 0)
