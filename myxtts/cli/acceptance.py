"""The acceptance test: this machine, the modes, the loader's switches, the step, the targets."""

import argparse
import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from myxtts.bench import timing
from myxtts.bench.loaders import DataBench, bench_data
from myxtts.bench.modes import PRECOMPUTE, ModeResult, ModesBench, bench_modes
from myxtts.bench.targets import Figures, Target, bars, summary, targets, unmet
from myxtts.bench.timing import Bar
from myxtts.cli.settings import check_corpus
from myxtts.cli.terminal import import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.flags import flag_values
from myxtts.config.io import resolve
from myxtts.errors import UserError
from myxtts.monitoring.gpus import GpuReader
from myxtts.monitoring.progress import progress
from myxtts.monitoring.simulated import SimulatedDevice

CORPUS, CLAUSES = "./data/gpu_benchmark", 400
BATCH_SIZE, STEP_MS, MODEL_SIZE = 16, 20.0, "tiny"
NOT_MET = 1  # exit code
NO_GPU, SIMULATED = "TensorFlow sees no GPU here", "the step was simulated"


@dataclass(frozen=True)
class Effort:
    """How much is measured; the modes take two epochs at least, whatever is said here."""

    batches: int
    rounds: int
    loader_batches: int
    loader_rounds: int
    step_rounds: int


FULL = Effort(batches=200, rounds=2, loader_batches=60, loader_rounds=3, step_rounds=5)
QUICK = Effort(batches=1, rounds=1, loader_batches=20, loader_rounds=3, step_rounds=1)


def run(args: argparse.Namespace) -> int:
    """Measure one thing after the other, print each, and end with the targets.

    Returns 1 where one of them is not met; what could not be measured here is no failure.
    """
    _check(args)
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    machine = timing.describe_machine()
    config = settle(args)
    print(f"command: {command}\nmachine: {machine}", flush=True)
    with _folder(config) as folder:
        found = _measure(config, args.simulate_step_ms, QUICK if args.quick else FULL, folder)
    aims, limits = targets(found), bars(found)
    missed = unmet(aims, limits)
    named = ["NOT met: " + "; ".join(missed)] if missed else []
    print("\n".join(["", *map(str, limits), *map(str, aims), *named, summary(aims)]))
    if args.json:
        facts = {"command": command, "machine": machine, **as_json(found, aims, limits)}
        _write(args.json, json.dumps(facts, indent=2) + "\n")
    return NOT_MET if missed else 0


def settle(args: argparse.Namespace) -> XTTSConfig:
    """Settle every setting; where no corpus is named, the built-in one is made, unless it is."""
    resolved = resolve(args.config, flag_values(args), preset=MODEL_SIZE)
    chosen: dict[str, Any] = {}
    if resolved.origins["data.batch_size"].startswith(("default", "preset")):
        chosen["batch_size"] = BATCH_SIZE
    if resolved.origins["data.dataset_path"] == "default":
        chosen["data_path"] = _built_in_corpus()
    config = _changed(resolved.config, **chosen)
    check_corpus(config.data)
    return config


def as_json(found: Figures, aims: Sequence[Target], limits: Sequence[Bar]) -> dict[str, Any]:
    """All numbers: those of every round, and what was made of them."""
    return {
        "tensorflow": found.tensorflow,
        "step_ms": found.step_ms,
        "modes": asdict(found.modes) | {"modes": [_figures(mode) for mode in found.modes.modes]},
        "loaders": asdict(found.loaders),
        "steps": asdict(found.steps) | {"ratio": found.steps.ratio},
        "bars": [asdict(bar) | {"met": bar.is_met} for bar in limits],
        "targets": [asdict(aim) | {"met": aim.is_met} for aim in aims],
    }


def _measure(config: XTTSConfig, step_ms: float | None, effort: Effort, folder: Path) -> Figures:
    import_tensorflow()
    from myxtts import runtime

    state = runtime.configure(config)
    print(f"TensorFlow: {state}", flush=True)
    if step_ms is None:
        step_ms = 0.0 if state.gpus else STEP_MS
    reader = GpuReader.open() if state.gpus and not step_ms else None
    modes = _modes(config, step_ms, effort, folder, state, reader)
    print(f"\nThe modes\n{modes}", flush=True)
    stored = _changed(config, preprocessing_mode="precompute", cache_dir=str(folder / PRECOMPUTE))
    loaders = _loaders(stored, step_ms or STEP_MS, effort)
    print(f"\nThe loader's switches\n{loaders}", flush=True)
    steps = _steps(stored, effort, state.xla)
    print(f"\nGraph and eager\n{steps}", flush=True)
    no_driver = reader.reason if reader else SIMULATED if state.gpus else NO_GPU
    return Figures(modes, loaders, steps, step_ms, no_driver, str(state))


def _modes(config, step_ms: float, effort: Effort, folder: Path, state, reader) -> ModesBench:
    """The modes on a simulated device, or on the real one by the real step."""
    from myxtts.bench.step import GpuWatch, StepDevices

    watch = partial(GpuWatch, reader) if reader and not reader.reason else contextlib.nullcontext
    if step_ms:
        make_device = lambda data, batches: SimulatedDevice(step_ms)  # noqa: E731
        device = f"a simulated accelerator, {step_ms:g} ms a step"
    else:
        make_device = StepDevices(config, state.xla)
        where = state.gpus[0] if state.gpus else "the CPU"
        device = f"{where}, the real step of size {config.model.model_size}"
    with progress("modes", "batches") as report:
        return bench_modes(
            *(config, make_device, device, folder),
            batches=effort.batches,
            rounds=effort.rounds,
            watch=watch,
            progress=report,
        )


def _loaders(config: XTTSConfig, step_ms: float, effort: Effort) -> DataBench:
    with progress("loader") as report:
        return bench_data(
            config,
            batches=effort.loader_batches,
            rounds=effort.loader_rounds,
            step_ms=(int(step_ms) if step_ms.is_integer() else step_ms,),
            progress=report,
        )


def _steps(config: XTTSConfig, effort: Effort, xla: bool):
    from myxtts.bench.step import measure_steps
    from myxtts.data.batches.training_data import TrainingData

    with progress("graph and eager", "steps") as report:
        return measure_steps(config, TrainingData(config), effort.step_rounds, report, xla)


def _check(args: argparse.Namespace) -> None:
    """Refuse what would be found out only after minutes."""
    step_ms, file = args.simulate_step_ms, args.json
    if step_ms is not None and not 0 <= step_ms < float("inf"):
        raise UserError(f"--simulate-step-ms must be 0 or more, not {step_ms}")
    if file and (file.is_dir() or not os.access(file.parent, os.W_OK)):
        raise UserError(f"--json {file} cannot be written: name a file in a folder that can be")


def _built_in_corpus() -> str:
    from myxtts.demo_corpus.corpus import make_demo

    with progress("speaking") as report:
        return str(make_demo(Path(CORPUS), speakers=1, clauses=CLAUSES, progress=report))


@contextmanager
def _folder(config: XTTSConfig) -> Iterator[Path]:
    """A folder for caches that begin empty, in --cache-dir if it is given."""
    above = Path(config.data.cache_dir).expanduser() if config.data.cache_dir else None
    if above:
        above.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="myxtts-bench-", dir=above) as folder:
        yield Path(folder)


def _changed(config: XTTSConfig, **settings: Any) -> XTTSConfig:
    parts = {"data": config.data, "model": config.model, "training": config.training}
    return XTTSConfig(**parts, **settings)


def _figures(mode: ModeResult) -> dict[str, Any]:
    names = [name for name, value in vars(ModeResult).items() if isinstance(value, property)]
    return asdict(mode) | {name: getattr(mode, name) for name in names}


def _write(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
