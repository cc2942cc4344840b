"""`myxtts studio`: the server, with a page to record, train, compare and speak."""

import argparse
import os
import sys
import webbrowser
from pathlib import Path

from myxtts.cli.commands import serve
from myxtts.cli.terminal import add_command, print_line

FOLDER = "./studio"


def add(verbs: argparse._SubParsersAction) -> None:
    about = "serve voices as `serve` does, with a studio: from recordings to a voice in a browser"
    parser = add_command(verbs, "studio", about, run)
    about = f"folder of its corpora, runs, voices and jobs (default: {FOLDER})"
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=Path, default=FOLDER, help=about
    )
    about = "make the built-in corpus in a folder that has no corpus"
    parser.add_argument("--demo", action="store_true", help=about)
    about = "open the page in a browser, where there is a display"
    parser.add_argument("--open", action="store_true", help=about)
    serve.add_arguments(parser)
    parser.usage = "%(prog)s [FOLDER] [options]"


def run(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C; jobs that were started go on."""
    folder = Path(args.folder).expanduser().absolute()

    def started(address: str) -> None:
        page = f"{address}/studio"
        print_line(f"{page}  (folder {folder}; Ctrl-C ends the server, jobs go on)")
        if args.open and _has_display():
            webbrowser.open(page)

    serve.start(args, serve.settings_of(args, folder, args.demo), started)


def _has_display() -> bool:
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
