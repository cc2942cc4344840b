"""`myxtts demo`: from nothing to a voice that speaks unseen sentences, and a report on it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import INTERRUPTED, add_command, import_tensorflow
from myxtts.demo_corpus.sentences import GRAMMARS
from myxtts.errors import UserError
from myxtts.workflows.demo import DemoSettings

if TYPE_CHECKING:
    from myxtts.workflows.demo import DemoResult

LEAST = {"speakers": 2, "clauses": 1, "steps": 1, "vocoder_steps": 1, "sentences": 1}


def add(verbs: argparse._SubParsersAction) -> None:
    about = "make the built-in corpus, train a voice on it, let it speak, and judge it, in minutes"
    parser = add_command(verbs, "demo", about, run)
    add_place_and_counts(
        parser,
        "runs/demo",
        ("--steps", DemoSettings.steps, "training steps of the voice"),
        ("--vocoder-steps", DemoSettings.vocoder_steps, "training steps of the vocoder"),
        (
            "--speakers",
            DemoSettings.speakers,
            "voices of the corpus, at least 2",
        ),
        ("--clauses", DemoSettings.clauses, "sentences of each speaker in the corpus"),
        ("--sentences", DemoSettings.sentences, "unseen sentences that are spoken and judged"),
    )
    about = "language of the voice (default: %(default)s)"
    parser.add_argument("--language", choices=tuple(GRAMMARS), default="en", help=about)
    about = "speak through the public weights of HiFi-GAN as well, which are fetched (56 MB)"
    parser.add_argument("--hifigan", action="store_true", help=about)


def add_place_and_counts(
    parser: argparse.ArgumentParser, folder: str, *counts: tuple[str, int, str]
) -> None:
    """Add where a demonstration is kept, and flags (name, default, meaning) of how many."""
    where = "where everything is kept; what is there already is used (default: %(default)s)"
    named = {"metavar": "FOLDER", "nargs": "?", "type": Path, "default": folder}
    parser.add_argument("folder", **named, help=where)
    for name, default, about in counts:
        about = f"{about} (default: %(default)s)"
        parser.add_argument(name, type=int, metavar="N", default=default, help=about)


def check_counts(args: argparse.Namespace, least: dict[str, int]) -> None:
    """Raise where a count is below its least."""
    for name, number in least.items():
        if getattr(args, name) < number:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} must be at least {number}, not {getattr(args, name)}")


def print_line(line: str) -> None:
    print(line, flush=True)


def run(args: argparse.Namespace) -> int:
    """Run the demo and print what came of it."""
    check_counts(args, LEAST)
    import_tensorflow()
    from myxtts.workflows.demo import run_demo

    names = ("folder", "language", *LEAST, "hifigan")
    settings = DemoSettings(**{name: getattr(args, name) for name in names})
    result = run_demo(settings, print_line)
    if result.stopped_by:
        print(f"stopped by {result.stopped_by}; run the same command to resume")
        return INTERRUPTED
    _print_report(settings, result)
    return 0


def _print_report(settings: DemoSettings, result: "DemoResult") -> None:
    """Print the figures, whether they meet their targets, and where everything is."""
    from myxtts.evaluation.report.rows import measure_rows
    from myxtts.evaluation.report.summary import compared_rows, format_fact
    from myxtts.evaluation.report.tables import aligned

    report = result.report
    print()
    if rows := compared_rows(report.evaluations):
        print(aligned(rows))
    for line in report.verdicts:
        print(line)
    print(f"\n{aligned(measure_rows(report.main))}\n")
    for name, value in report.facts.items():
        print(f"{name}: {format_fact(value)}")
    for what, why in report.not_measured.items():
        print(f"not measured: {what}. {why}")
    print()
    print(f"audio   {settings.audio}")
    print(f"voice   {settings.folder}")
    print(f"plots   {result.page.parent}")
    print(f"report  {result.page}")
    print(result.stages.describe())
