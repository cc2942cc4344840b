"""`myxtts config`: write a settings file, or show every setting and where it comes from."""

import argparse
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from myxtts.cli.settings import add_settings, resolve_settings
from myxtts.cli.terminal import add_command

OUTPUT = "config.yaml"


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("config", help="write or show settings")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "write a file of what is chosen here, with every other setting as a comment"
    creating = add_command(actions, "create", about, create)
    creating.add_argument("-o", "--output", metavar="FILE", default=OUTPUT, help="where to")
    about = "show all settings, and with --explain where each comes from"
    showing = add_command(actions, "show", about, show)
    showing.add_argument("--explain", action="store_true", help="print where each value comes from")
    for parser in (creating, showing):
        add_settings(parser)


def create(args: argparse.Namespace) -> None:
    """Write the settings; a file that is replaced is kept next to the new one."""
    from myxtts.config.io import save_choices

    resolved = resolve_settings(args)
    output = Path(args.output)
    if output.is_file():
        kept = next(name for name in _backups(output) if not name.exists())
        output.replace(kept)
        print(f"kept what was in {output} as {kept}")
    save_choices(resolved, output)
    print(f"wrote {output}")


def _backups(output: Path) -> Iterator[Path]:
    """Names under which an earlier file may be kept: x.yaml.bak, x.yaml.bak2, and so on."""
    yield output.with_name(output.name + ".bak")
    yield from (output.with_name(f"{output.name}.bak{number}") for number in count(2))


def show(args: argparse.Namespace) -> None:
    import yaml

    from myxtts.config.io import explain, to_dict

    resolved = resolve_settings(args)
    if args.explain:
        print(explain(resolved))
    else:
        print(yaml.safe_dump(to_dict(resolved.config), sort_keys=False, allow_unicode=True), end="")
