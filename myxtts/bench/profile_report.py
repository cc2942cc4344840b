"""What a profile found: as text, as a page, and as figures."""

import json
from dataclasses import asdict
from pathlib import Path

from myxtts.bench.profiling import CONFIGURED, WHAT, Profile
from myxtts.bench.timing import table
from myxtts.monitoring import timers
from myxtts.monitoring.page import PageFacts, Table, write_page
from myxtts.monitoring.verdict import (
    GOOD_MS,
    MODERATE_MS,
    distribution,
    loading_grade,
    waiting_grade,
)
from myxtts.training.hooks.performance import phases_of, shapes_of, utilisation_of

PAGE, FIGURES = "profile.html", "profile.json"
HEAD = (
    *("fed from", "steps", "ms a step", "device busy", "waits for data", "copies", "gathers"),
    *("logging", "host", "compiling", "ms a batch, unused"),
)


def describe(profile: Profile) -> str:
    """The loading of the run as it is configured, the table, and the verdict."""
    own = profile[CONFIGURED]
    ms = distribution(own.recorder.series["data"])
    share = own.evidence.wait_ms / max(1e-9, own.evidence.wall_ms)
    lines = [
        "Data Loading Performance",
        f"  waiting for a batch: {ms}",
        f"  {loading_grade(own.load_ms).capitalize()}: {own.load_ms:.1f} ms mean load time (good "
        f"below {GOOD_MS:.0f} ms, moderate below {MODERATE_MS:.0f} ms, slow beyond), the data "
        f"engine alone; next to these steps it is {waiting_grade(share)}: the device waits "
        f"{100 * share:.1f} % of the time for data",
    ]
    stages = dict(profile.evidence.stages)
    once = stages.pop(timers.TRANSFER, 0.0) * profile.evidence.steps / 1e3
    if once:
        lines.append(f"  copying the cache to the device, once: {once:.1f} s")
    if stages:
        work = ", ".join(f"{name} {spent:.1f} ms" for name, spent in stages.items())
        lines.append(f"  work for each batch: {work}")
    lines += ["", "The same steps, fed in different ways", table(HEAD, rows(profile))]
    lines += [f"  {trial.name}: {WHAT[trial.name]}" for trial in profile.trials]
    return "\n".join([*lines, "", f"Verdict: {profile.verdict}"])


def rows(profile: Profile) -> list[tuple[str, ...]]:
    """One row for each run."""
    found = []
    for trial in profile.trials:
        one = trial.evidence
        shares = (one.wait_ms, one.copy_ms, one.gather_ms, one.hooks_ms, one.host_ms)
        shares += (one.compile_ms,)
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


def write(profile: Profile, folder: Path, corpus: str) -> Path:
    """Write the page and the figures, and return the page."""
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
