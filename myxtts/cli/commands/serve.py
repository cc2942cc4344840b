"""`myxtts serve`: voices over HTTP, as OpenAI's API offers speech, and over Wyoming."""

import argparse
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from myxtts.cli.settings import add_vocoder
from myxtts.cli.terminal import add_command, print_line
from myxtts.errors import UserError
from myxtts.serving.limits import Limits
from myxtts.serving.settings import ServerSettings

KEY_VARIABLE = "MYXTTS_API_KEY"
_LIMITS = {
    "max_queue": "requests that may wait or be spoken; others are told to come back (429)",
    "max_batch": "lines that are spoken in one batch; 1 speaks them one by one",
    "max_text": "characters of a request",
    "max_upload_mb": "megabytes of a recording to be cloned",
    "max_seconds": "seconds that a request may take",
    "max_connections": "connections at a time",
    "max_loaded": "voices in memory; the least recently used one is unloaded",
    "max_clones": "cloned voices",
}


def add(verbs: argparse._SubParsersAction) -> None:
    about = "serve voices over HTTP (OpenAI's speech API, and a page) and Wyoming (Home Assistant)"
    add_arguments(add_command(verbs, "serve", about, run))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "a voice: its folder, that of the run that made it, or that of an export; may be given "
    about += "several times (default: the English voice inside the package)"
    parser.add_argument("--voice", metavar="DIR", action="append", default=[], help=about)
    add_vocoder(parser)
    host, port = ServerSettings.host, ServerSettings.port
    about = f"address to listen on (default: {host}, which only this machine reaches)"
    parser.add_argument("--host", default=host, help=about)
    about = f"port of HTTP (default: {port}; 0: any that is free)"
    parser.add_argument("--port", type=int, default=port, help=about)
    about = f"key that clients have to send as a bearer token (default: ${KEY_VARIABLE}; a command "
    about += "line is seen by other users of the machine, the variable is not)"
    parser.add_argument("--api-key", metavar="KEY", help=about)
    about = "serve others than this machine without a key"
    parser.add_argument("--without-api-key", action="store_true", help=about)
    about = "a name under which this machine is addressed, as by a proxy; may be given several "
    about += "times (default: localhost alone, where only this machine is served)"
    parser.add_argument("--allow-host", metavar="NAME", action="append", default=[], help=about)
    about = "also serve Wyoming on a port, such as 10200; HOST:PORT names an address too"
    parser.add_argument("--wyoming", metavar="PORT", type=_address, help=about)
    about = "folder of cloned voices (default: myxtts/voices in the user's data)"
    parser.add_argument("--clones", metavar="DIR", type=Path, help=about)
    limits = parser.add_argument_group("limits")
    for limit in fields(Limits):
        flag, default = f"--{limit.name.replace('_', '-')}", limit.default
        about = f"{_LIMITS[limit.name]} (default: {default})"
        limits.add_argument(flag, metavar="N", type=int, default=default, help=about)


def run(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    start(args, settings_of(args), print_line)


def start(
    args: argparse.Namespace, settings: ServerSettings, started: Callable[[str], None]
) -> None:
    """Serve voices as the arguments say; `started` is told the address."""
    from functools import partial

    from myxtts.cli.commands.synthesize import load_synthesizer

    try:
        from myxtts.serving.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("myxtts"):
            raise
        raise UserError(
            f"serving needs {error.name}: install it with pip install 'myxtts[serve]'"
        ) from error
    serve(settings, partial(load_synthesizer, vocoder=args.vocoder), started)


def settings_of(
    args: argparse.Namespace, studio: Path | None = None, demo: bool = False
) -> ServerSettings:
    """What the arguments say; clones are kept with a studio, where there is one."""
    own = studio / "clones" if studio else default_clones()
    return ServerSettings(
        voices=args.voice,
        clones=args.clones or own,
        host=args.host,
        port=args.port,
        api_key=args.api_key or os.environ.get(KEY_VARIABLE) or None,
        without_key=args.without_api_key,
        hosts=args.allow_host,
        wyoming=args.wyoming,
        limits=Limits(**{field.name: getattr(args, field.name) for field in fields(Limits)}),
        studio=studio,
        demo=demo,
    )


def default_clones() -> Path:
    """Where cloned voices are kept: with the user's other data."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "myxtts" / "voices"


def _address(text: str) -> tuple[str, int]:
    """PORT, or HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a port nor HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
