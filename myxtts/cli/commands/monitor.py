"""`myxtts monitor`: what the machine and its GPUs do."""

import argparse
import contextlib
import math
from collections.abc import Sequence

from myxtts.cli.terminal import add_command, parse_program
from myxtts.cli.terminal import run as run_command
from myxtts.errors import UserError

ABOUT = "show what cores, memory, disks and GPUs do, until Ctrl-C"
KEPT_SAMPLES = 86_400  # for the summary: a day of seconds


def add(verbs: argparse._SubParsersAction) -> None:
    _add_options(add_command(verbs, "monitor", ABOUT, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `gpu_monitor.py`."""
    return run_command(run, parse_program("gpu_monitor.py", ABOUT, _add_options, argv))


def run(args: argparse.Namespace) -> None:
    """Watch until the time is over or Ctrl-C, which is how a monitor ends; then sum up."""
    from myxtts.monitoring.gpus import GpuReader
    from myxtts.monitoring.live import describe, open_table, open_view, watch
    from myxtts.monitoring.system import SystemSampler

    _check(args)
    gpus = GpuReader.open()
    sampler = SystemSampler(args.interval, keep=KEPT_SAMPLES, gpus=gpus)
    with contextlib.ExitStack() as opened:
        opened.callback(gpus.close)
        write = opened.enter_context(open_table(args.log_file, gpus))
        try:
            with open_view(gpus) as show:
                watch(sampler, gpus, args.duration, lambda *seen: (write(seen[0]), show(*seen)))
        except KeyboardInterrupt:
            pass
    print(describe(sampler.summary(), len(sampler.samples), sampler.latest, sampler.cores))
    if write.path:
        print(f"every sample is in {write.path}")


def _add_options(parser: argparse.ArgumentParser) -> None:
    about = "seconds between samples (default: 1)"
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help=about)
    about = "write every sample to a CSV file (default: gpu_monitor_<time>.csv, here)"
    parser.add_argument("--log-file", nargs="?", const="", metavar="PATH", help=about)
    about = "seconds after which to stop (default: at Ctrl-C)"
    parser.add_argument("--duration", type=float, metavar="S", help=about)


def _check(args: argparse.Namespace) -> None:
    for name, value in (("--interval", args.interval), ("--duration", args.duration)):
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{name} must be a number of seconds above 0, got {value:g}")
