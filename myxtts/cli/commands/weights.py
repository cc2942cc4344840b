"""`myxtts weights`: fetch published weights, and look into files of them."""

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import Any

from myxtts.cli.terminal import add_command
from myxtts.monitoring.console import columns
from myxtts.monitoring.progress import stage_progress

_MEGABYTE = 1_000_000


def add(verbs: argparse._SubParsersAction) -> None:
    about = "fetch published weights, or look into a file of them"
    more = "Every command looks for them in the folder that MYXTTS_WEIGHTS_DIR names, or else in "
    more += "./checkpoints."
    verb = verbs.add_parser("weights", help=about, description=f"{about}. {more}")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "fetch published weights by name, verified"
    parser = add_command(actions, "get", about, get)
    parser.add_argument(
        "name", metavar="NAME", help="name of public weights, as `myxtts weights list` prints it"
    )
    _add_folder(parser)
    about = "list the weights that can be fetched, with their licences, and whether they are here"
    _add_folder(add_command(actions, "list", about, list_public))
    about = "list the tensors of a checkpoint of torch or safetensors; none of its code is run"
    parser = add_command(actions, "show", about, show)
    parser.add_argument("file", metavar="FILE", help="a checkpoint")


def get(args: argparse.Namespace) -> None:
    from myxtts.weights import default_folder, get_weights

    with stage_progress(in_bytes=("download", "unpack")) as report:
        path = get_weights(args.name, args.folder or default_folder(), progress=report)
    print(f"{args.name} is in {path}")


def list_public(args: argparse.Namespace) -> None:
    from myxtts.weights import PUBLIC, default_folder

    folder = args.folder or default_folder()
    rows = [("name", "package", "size", "licence", "here", "about")]
    for weights in PUBLIC.values():
        size = f"{weights.size / _MEGABYTE:.0f} MB"
        here = _presence(weights, folder)
        rows.append((weights.name, weights.requirement, size, weights.licence, here, weights.about))
    print(columns(rows))


def show(args: argparse.Namespace) -> None:
    from myxtts.weights import read_checkpoint
    from myxtts.weights.pickles import printable

    leaves = [(printable(name), value) for name, value in _leaves(read_checkpoint(args.file))]
    tensors = [(name, value) for name, value in leaves if hasattr(value, "shape")]
    others = [name for name, value in leaves if not hasattr(value, "shape")]
    rows = [(name, str(list(array.shape)), str(array.dtype)) for name, array in tensors]
    print(columns([("tensor", "shape", "type"), *rows]))
    values = sum(array.size for _, array in tensors)
    size = sum(array.nbytes for _, array in tensors)
    print(f"\n{len(tensors):,} tensors, {values:,} values, {size / _MEGABYTE:.1f} MB")
    if others:
        print(f"next to them {len(others):,} other values: {_some(others)}")


def _add_folder(parser: argparse.ArgumentParser) -> None:
    about = "where public weights are kept (default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--folder", metavar="DIR", help=about)


def _presence(weights, folder: str | os.PathLike) -> str:
    from myxtts.weights import WeightsError, is_present

    try:
        return "yes" if is_present(weights, folder) else "no"
    except WeightsError:
        return "another file"


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What is not a container, with the keys and numbers that lead to it."""
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, (list, tuple)):
        inner = enumerate(value)
    else:
        yield name, value
        return
    for key, item in inner:
        yield from _leaves(item, f"{name}/{key}" if name else str(key))


def _some(names: list[str], shown: int = 8) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more:,} more" if more > 0 else "")
