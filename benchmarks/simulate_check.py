"""Whether `myxtts cluster simulate` forecasts what several workers of this machine really do.

    python benchmarks/simulate_check.py [--work FOLDER] [--workers 1 2 4] [--steps 40]

The figures come from one process, and from two for adding up gradients. Then the same settings
train with `myxtts train --devices R`, and the medians of the steps in the history are compared.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from opening import run_in_work

from myxtts.bench import timing
from myxtts.bench.cluster.figures import Figures
from myxtts.bench.cluster.forecast import ADDING_UP, COMPUTE, Forecast
from myxtts.bench.cluster.forecast import simulate as simulate_run
from myxtts.bench.cluster.measure import Given, measure
from myxtts.bench.cluster.simulation import Asked, cluster_of
from myxtts.bench.timing import Target
from myxtts.config.config import XTTSConfig
from myxtts.config.presets import create_default_config
from myxtts.demo_corpus.corpus import make_demo

BATCH_SIZE, MICRO_BATCHES = 16, 4
CLAUSES, SPEAKERS = 80, 2
SKIPPED = 5  # steps that compile, and come before all workers have their batches ahead
FOREVER = 1_000_000


def main() -> None:
    run_in_work(run, _parse())


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Measure the figures, train with each number of workers, print both, and return the bars."""
    corpus = make_demo(work / "corpus", speakers=SPEAKERS, clauses=CLAUSES)
    config = create_default_config(
        str(corpus),
        model_size="tiny",
        batch_size=BATCH_SIZE,
        micro_batches=MICRO_BATCHES,
        save_interval=FOREVER,
        validation_interval=FOREVER,
    )
    figures = measure(config, BATCH_SIZE // MICRO_BATCHES, Given(), has_corpus=True)
    print(f"{figures.step}\n{figures.network}")
    rows, bars = [], []
    for count in asked.workers:
        found = train(corpus, work / f"run-{count}", count, asked.steps)
        forecast = forecast_on_this_machine(config, figures, count)
        rows += _rows(count, forecast, found)
        wrong = 100 * abs(1e3 * forecast.step_seconds / found["step"] - 1)
        what = f"difference of forecast and measured steps of `train --devices {count}`"
        bars.append(Target(what, wrong, 15, unit="%"))
    header = ("workers", "part of the step", "forecast, ms", "measured, ms", "ratio")
    print(f"\nmedians of {asked.steps - SKIPPED} steps")
    print(timing.table(header, rows))
    for bar in bars:
        print(bar)
    return bars


def forecast_on_this_machine(config: XTTSConfig, figures: Figures, count: int) -> Forecast:
    """The forecast where all workers share this machine."""
    hosts = {"workers_per_host": count}
    return simulate_run(figures, cluster_of(config, Asked(CLAUSES, count, hosts=hosts), figures))


def train(corpus: Path, folder: Path, count: int, steps: int) -> dict[str, float]:
    """Train as so many workers, and return the median milliseconds of a step and of its parts."""
    settings = {
        "data": corpus,
        "checkpoint-dir": folder,
        "model-size": "tiny",
        "batch-size": BATCH_SIZE,
        "micro-batches": MICRO_BATCHES,
        "max-steps": steps,
        "save-interval": FOREVER,
        "validation-interval": FOREVER,
        "preprocessing-mode": "precompute",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "myxtts.cli.main", "train", "--devices", str(count)]
    environment = os.environ | {"MYXTTS_TRAINING_LOG_INTERVAL": "1"}
    subprocess.run([*command, *words, "--reset-training"], check=True, env=environment)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    lines = [line for line in lines if "compute_ms" in line and line["step"] > SKIPPED]
    steps_ms = [line["compute_ms"] + line["data_ms"] for line in lines]
    reduce_ms = [line.get("reduce_ms", 0.0) for line in lines]
    rest = [whole - part for whole, part in zip(steps_ms, reduce_ms, strict=True)]
    found = {"computing": rest, "adding up": reduce_ms, "step": steps_ms}
    return {name: statistics.median(values) for name, values in found.items()}


def _rows(count: int, forecast: Forecast, found: dict[str, float]) -> list[tuple[str, ...]]:
    predicted = {
        "computing": forecast.causes[COMPUTE],
        "adding up": forecast.causes[ADDING_UP],
        "step": forecast.step_seconds,
    }
    return [
        (
            str(count),
            name,
            f"{1e3 * seconds:.1f}",
            f"{found[name]:.1f}",
            f"{1e3 * seconds / found[name]:.2f}" if found[name] else "",
        )
        for name, seconds in predicted.items()
    ]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, help="keep the corpus and the runs here")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    main()
