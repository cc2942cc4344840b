"""Training on several workers from the command line: the flags, and which worker a process is."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import import_tensorflow
from myxtts.errors import UserError
from myxtts.monitoring.console import show_log

if TYPE_CHECKING:
    from myxtts.cluster.rendezvous import Worker


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the flags that share a training among several processes."""
    group = parser.add_argument_group("several workers (see docs/cluster.md)")
    about = "train with so many processes on this machine, one for each GPU"
    group.add_argument("--devices", type=int, metavar="N", help=about)
    about = (
        "addresses of all workers, in the order of their ranks, as in a:2222,b:2222; with "
        "--cluster, how many workers there are"
    )
    group.add_argument("--workers", default="", metavar="ADDRESSES", help=about)
    about = "number of this process among the --workers, from 0; TF_CONFIG or SLURM name both too"
    group.add_argument("--rank", type=int, metavar="NUMBER", help=about)
    about = (
        "train on a Ray cluster (the extra `cluster`): HOST:PORT, ray://HOST:PORT, or auto, which "
        "joins the one that RAY_ADDRESS names or starts one on this machine"
    )
    group.add_argument("--cluster", metavar="ADDRESS", help=about)


def launch_workers(args: argparse.Namespace, folder: Path) -> int | None:
    """Start the workers that the flags ask for, and return how they ended; None: train here."""
    named = {"--devices": args.devices, "--cluster": args.cluster, "--rank": args.rank}
    if args.devices is not None:
        named["--workers"] = args.workers or None
    given = [flag for flag, value in named.items() if value is not None]
    if len(given) > 1:
        raise UserError(
            f"{' and '.join(given)} exclude each other: --devices starts workers on this machine, "
            "--cluster on Ray, and --rank says which of the --workers this process is"
        )
    if args.devices is not None:
        from myxtts.workflows.gang import train_on_devices

        return train_on_devices(args.devices, args.words, folder)
    if args.cluster is not None:
        from myxtts.workflows.ray_gang import train_on_cluster

        logging.getLogger("myxtts").setLevel(logging.INFO)
        return train_on_cluster(args.cluster, args.workers, args.words, folder)
    return None


def own_worker(args: argparse.Namespace) -> "Worker | None":
    """Which worker this process is, if it is one of several; its log shows what concerns the user.

    TensorFlow is imported, and has to connect the workers before it does anything else.
    """
    from myxtts.cluster.rendezvous import find_worker

    worker = find_worker(args.workers, args.rank)
    import_tensorflow()
    if worker is None or worker.is_chief:
        logging.getLogger("myxtts").setLevel(logging.INFO)
    else:
        show_log(logging.WARNING, f"worker {worker.rank}: ")
    return worker
