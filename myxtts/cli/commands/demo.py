"""`myxtts demo`: from nothing to a voice that speaks unseen sentences, and a report on it."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.cli.terminal import (
    INTERRUPTED,
    add_command,
    check_least,
    import_tensorflow,
    print_line,
)
from myxtts.demo_corpus.sentences import GRAMMARS
from myxtts.workflows.demo import DemoSettings

if TYPE_CHECKING:
    from myxtts.workflows.demo import DemoResult

# The flags of how much there is of everything: default, least, meaning.
Counts = dict[str, tuple[int, int, str]]
COUNTS: Counts = {
    "steps": (DemoSettings.steps, 1, "training steps of the voice"),
    "vocoder_steps": (DemoSettings.vocoder_steps, 1, "training steps of the vocoder"),
    "speakers": (DemoSettings.speakers, 2, "voices of the corpus, at least 2"),
    "clauses": (DemoSettings.clauses, 1, "sentences of each speaker in the corpus"),
    "sentences": (DemoSettings.sentences, 1, "unseen sentences that are spoken and judged"),
}


def add(verbs: argparse._SubParsersAction) -> None:
    about = "make the built-in corpus, train a voice on it, let it speak, and judge it, in minutes"
    parser = add_command(verbs, "demo", about, run)
    add_place_and_counts(parser, "runs/demo", COUNTS)
    about = "language of the voice (default: %(default)s)"
    parser.add_argument("--language", choices=tuple(GRAMMARS), default="en", help=about)
    about = "speak through the public weights of HiFi-GAN as well, which are fetched (56 MB)"
    parser.add_argument("--hifigan", action="store_true", help=about)


def add_place_and_counts(parser: argparse.ArgumentParser, folder: str, counts: Counts) -> None:
    """Add where a demonstration is kept, and its flags of how many."""
    where = "where everything is kept; what is there already is used (default: %(default)s)"
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=Path, default=folder, help=where
    )
    for name, (default, _, about) in counts.items():
        flag, about = f"--{name.replace('_', '-')}", f"{about} (default: %(default)s)"
        parser.add_argument(flag, type=int, metavar="N", default=default, help=about)


def run(args: argparse.Namespace) -> int:
    from myxtts.workflows.demo import run_demo

    return demonstrate(args, COUNTS, run_demo, _print_report)


def demonstrate(
    args: argparse.Namespace,
    counts: Counts,
    run_stages: Callable[..., Any],
    print_result: Callable[..., None],
) -> int:
    """Run all stages and print the result; return 130 where a signal stopped them."""
    check_least(args, **{name: least for name, (_, least, _) in counts.items()})
    import_tensorflow()
    names = {field.name for field in fields(DemoSettings)}
    settings = DemoSettings(**{name: value for name, value in vars(args).items() if name in names})
    result = run_stages(settings, print_line)
    if result.stopped_by:
        print(f"stopped by {result.stopped_by}; run the same command to resume")
        return INTERRUPTED
    print_result(settings, result)
    print(result.stages.describe())
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
    print(f"\naudio   {settings.audio}")
    print(f"voice   {settings.folder}")
    print(f"plots   {result.page.parent}")
    print(f"report  {result.page}")
