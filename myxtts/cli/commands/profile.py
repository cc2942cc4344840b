"""`myxtts profile`: what holds training back, by short runs that differ in one thing each."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.settings import (
    DATA_FIELDS,
    MODEL_FIELDS,
    add_settings,
    check_corpus,
    resolve_settings,
)
from myxtts.cli.terminal import Parser, add_command, add_verbose, import_tensorflow
from myxtts.cli.terminal import run as run_command
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.bench.profiling import Profile

ABOUT = "find out what holds training back: short runs, the verdict, a table and a page"
FOLDER, PAGE, FIGURES = "runs/profile", "profile.html", "profile.json"
# What else has a say in the time of a step.
STEP_FIELDS = (
    *("training.gradient_accumulation_steps", "training.enable_eager_debug", "training.seed"),
)
HEAD = (
    *("fed from", "steps", "ms a step", "device busy", "waits for data", "copies", "logging"),
    *("host", "compiling", "ms a batch, unused"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    _add_arguments(add_command(verbs, "profile", ABOUT, run))


def main(argv: Sequence[str] | None = None) -> int:
    """The program `utilities/gpu_profiler.py`."""
    parser = Parser("gpu_profiler.py", description=ABOUT)
    _add_arguments(parser)
    add_verbose(parser)
    return run_command(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    if args.steps < 5:
        raise UserError(f"--steps must be at least 5, got {args.steps}")
    if args.simulate_step_ms < 0:
        raise UserError(f"--simulate-step-ms must be above 0, got {args.simulate_step_ms}")
    config = resolve_settings(args).config
    check_corpus(config.data)
    import_tensorflow()
    from myxtts.bench.profiling import profile_training
    from myxtts.training.trainer import XTTSTrainer

    trainer = XTTSTrainer(config)
    with progress("preparing") as report:
        trainer.prepare_datasets(report)
    with progress("profiling", "runs") as told:
        profile = profile_training(
            trainer, steps=args.steps, simulate_ms=args.simulate_step_ms, told=told
        )
    print(describe(profile))
    page = write(profile, args.output, str(config.data.dataset_path))
    print(f"\nthe page is {page}")


def describe(profile: "Profile") -> str:
    """The loading of the run as it is configured, the table, and the verdict."""
    from myxtts.bench.profiling import CONFIGURED, WHAT
    from myxtts.bench.timing import table
    from myxtts.monitoring.verdict import (
        GOOD_MS,
        MODERATE_MS,
        distribution,
        loading_grade,
        waiting_grade,
    )

    own = profile[CONFIGURED]
    ms = distribution(own.recorder.series["data"])
    share = own.evidence.wait_ms / max(1e-9, own.evidence.wall_ms)
    lines = [
        "Data Loading Performance",
        f"  waiting for a batch: {ms}",
        f"  {loading_grade(own.load_ms).capitalize()}: {own.load_ms:.1f} ms mean load time (good "
        f"below {GOOD_MS:.0f} ms, moderate below {MODERATE_MS:.0f} ms, slow beyond), the data "
        f"engine alone; beside these steps it is {waiting_grade(share)}: the device waits "
        f"{100 * share:.1f} % of the time for data",
    ]
    if stages := profile.evidence.stages:
        work = ", ".join(f"{name} {spent:.1f} ms" for name, spent in stages.items())
        lines.append(f"  work for each batch: {work}")
    lines += ["", "The same steps, fed in different ways", table(HEAD, rows(profile))]
    lines += [f"  {trial.name}: {WHAT[trial.name]}" for trial in profile.trials]
    return "\n".join([*lines, "", f"Verdict: {profile.verdict}"])


def rows(profile: "Profile") -> list[tuple[str, ...]]:
    """One row for each run."""
    found = []
    for trial in profile.trials:
        one = trial.evidence
        shares = (one.wait_ms, one.copy_ms, one.hooks_ms, one.host_ms, one.compile_ms)
        found.append(
            (
                trial.name,
                str(one.steps),
                f"{one.wall_ms:.1f}",
                f"{100 * one.utilisation:.1f} %",
                *(f"{100 * ms / max(1e-9, one.wall_ms):.1f} %" for ms in shares),
                f"{trial.load_ms:.1f}",
            )
        )
    return found


def write(profile: "Profile", folder: Path, corpus: str) -> Path:
    """Write the page and the figures, and return the page."""
    from myxtts.bench.profiling import CONFIGURED, WHAT
    from myxtts.monitoring.page import PageFacts, Table, write_page
    from myxtts.training.hooks.performance import phases_of, shapes_of, utilisation_of

    recorder = profile[CONFIGURED].recorder
    facts = PageFacts(
        title=f"Profile of training on {corpus}",
        verdict=profile.verdict.sentence,
        is_healthy=profile.verdict.is_healthy,
        steps=recorder.steps,
        phases=phases_of(recorder),
        utilisation=utilisation_of(recorder),
        shapes=shapes_of(recorder, {}),
        tables=[Table("The same steps, fed in different ways", HEAD, rows(profile))],
        notes=[f"{trial.name}: {WHAT[trial.name]}" for trial in profile.trials],
    )
    page = write_page(folder / PAGE, facts)
    figures = {
        "verdict": asdict(profile.verdict),
        "trials": {
            trial.name: asdict(trial.evidence) | {"utilisation": trial.evidence.utilisation}
            for trial in profile.trials
        },
    }
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    (folder / FIGURES).write_text(text + "\n", encoding="utf-8")
    return page


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "steps of each run; slow ones end earlier (default: 40)"
    parser.add_argument("--steps", type=int, default=40, metavar="N", help=about)
    about = "an accelerator that takes so long stands in for the model"
    parser.add_argument("--simulate-step-ms", type=float, default=0.0, metavar="MS", help=about)
    about = f"where the page and the figures go (default: {FOLDER})"
    parser.add_argument(
        "--output", "-o", type=Path, default=Path(FOLDER), metavar="DIR", help=about
    )
    add_settings(parser, (*DATA_FIELDS, *MODEL_FIELDS, *STEP_FIELDS))
