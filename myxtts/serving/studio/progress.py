"""How a training run gets on, from the files that it writes itself."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from myxtts.errors import UserError
from myxtts.monitoring.evidence import Evidence
from myxtts.monitoring.history import HISTORY, VALIDATED, read_lines
from myxtts.monitoring.trend import trend_of
from myxtts.monitoring.verdict import LEAST_STEPS, NOT_INPUT_BOUND, diagnose

_MOST_POINTS = 300  # of a curve
_RECENT = 50  # lines that times are averaged over
_LOSS = "loss"
_TIMES = ("data_ms", "compute_ms", "device_ms", "stall_ms", "compile_ms")

Points = list[tuple[int, float]]


def read_progress(run: Path, total: int) -> dict[str, Any]:
    """Curves, times, the verdict and the trend of a run; empty where it has written nothing."""
    try:
        lines = [line.values for line in read_lines(run / HISTORY)]
    except (FileNotFoundError, UserError):
        return {"step": 0, "curves": {}, "scores": {}}
    steps = [line for line in lines if "data_ms" in line]
    rest = [line for line in lines if "data_ms" not in line]
    losses = [name for name in (steps[-1] if steps else ()) if _is_loss(name)]
    scores = _names(rest)
    validated = _points(rest, VALIDATED + _LOSS)
    trend = trend_of(validated)
    done = max((line["step"] for line in lines), default=0)
    return {
        "step": done,
        "curves": {name: _thinned(_points(steps, name)) for name in losses},
        "scores": {name: _thinned(_points(rest, VALIDATED + name)) for name in scores},
        "trend": {
            "kind": trend.kind,
            "count": trend.count,
            "percent": round(100 * abs(trend.change), 1),
            "sentence": trend.sentence,
        },
        **_times(steps[-_RECENT:], max(0, total - done)),
    }


def _times(lines: Sequence[Mapping[str, Any]], left: int) -> dict[str, Any]:
    """Time left, the share of it in which the device computes, and what holds it back."""
    # Those of earlier versions lack some.
    lines = [line for line in lines if all(name in line for name in _TIMES)]
    means = {
        name: math.fsum(line[name] or 0.0 for line in lines) / len(lines) if lines else 0.0
        for name in _TIMES
    }
    wall = means["device_ms"] + means["stall_ms"] + means["compile_ms"]
    if not wall:
        return {}
    waited = min(means["data_ms"], means["stall_ms"])
    evidence = Evidence(
        steps=max(LEAST_STEPS, len(lines)),
        wall_ms=wall,
        device_ms=means["device_ms"],
        wait_ms=waited,
        compile_ms=means["compile_ms"],
        load_ms=means["data_ms"],
    )
    # What else the device waits for is not in the history: only the run's own page can name it.
    verdict = diagnose(evidence).sentence if waited > NOT_INPUT_BOUND * wall else None
    return {
        "seconds_left": round(left * (means["data_ms"] + means["compute_ms"]) / 1e3),
        "step_ms": round(means["data_ms"] + means["compute_ms"], 1),
        "utilisation": round(evidence.utilisation, 4),
        "verdict": verdict,
    }


def _is_loss(name: str) -> bool:
    return name == _LOSS or (name.endswith("_loss") and "/" not in name)


def _names(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What validations and evaluations have measured."""
    found = {name for line in lines for name in line if name.startswith(VALIDATED)}
    return sorted(name.removeprefix(VALIDATED) for name in found)


def _points(lines: Sequence[Mapping[str, Any]], name: str) -> Points:
    return [(line["step"], line[name]) for line in lines if isinstance(line.get(name), int | float)]


def _thinned(points: Points) -> Points:
    """At most so many points, each the mean of its neighbours."""
    if len(points) <= _MOST_POINTS:
        return points
    size = -(-len(points) // _MOST_POINTS)
    groups = (points[at : at + size] for at in range(0, len(points), size))
    return [(part[-1][0], math.fsum(value for _, value in part) / len(part)) for part in groups]
