"""The acceptance test: this machine, the modes, the loader's switches, the step, the targets."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from myxtts.bench.loaders import DataBench, bench_data
from myxtts.bench.modes import PRECOMPUTE, ModeResult, ModesBench, bench_modes
from myxtts.bench.targets import Figures, mode_targets, targets
from myxtts.config.config import XTTSConfig
from myxtts.monitoring.gpus import GpuReader
from myxtts.monitoring.progress import progress
from myxtts.monitoring.simulated import SimulatedDevice

STEP_MS = 20.0
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


def as_json(found: Figures) -> dict[str, Any]:
    """All numbers: those of every round, and what was made of them."""
    aims = {"bars": mode_targets(found), "targets": targets(found)}
    return {
        "tensorflow": found.tensorflow,
        "step_ms": found.step_ms,
        "modes": asdict(found.modes) | {"modes": [_figures(mode) for mode in found.modes.modes]},
        "loaders": asdict(found.loaders),
        "steps": asdict(found.steps) | {"ratio": found.steps.ratio},
        **{
            name: [asdict(aim) | {"met": aim.is_met} for aim in some] for name, some in aims.items()
        },
    }


def measure(
    config: XTTSConfig, step_ms: float | None, effort: Effort, show: Callable[[str], None]
) -> Figures:
    """Measure one thing after the other, and show each as it is known.

    Steps take `step_ms` on a simulated device; 0 takes the real step, and so does None where there
    is a GPU.
    """
    with _folder(config) as folder:
        return _measure(config, step_ms, effort, folder, show)


def _measure(
    config: XTTSConfig,
    step_ms: float | None,
    effort: Effort,
    folder: Path,
    show: Callable[[str], None],
) -> Figures:
    from myxtts import runtime

    state = runtime.configure(config)
    show(f"TensorFlow: {state}")
    if step_ms is None:
        step_ms = 0.0 if state.gpus else STEP_MS
    reader = GpuReader.open() if state.gpus and not step_ms else None
    modes = _modes(config, step_ms, effort, folder, state, reader)
    show(f"\nThe modes\n{modes}")
    stored = config.replace(preprocessing_mode="precompute", cache_dir=str(folder / PRECOMPUTE))
    loaders = _loaders(stored, step_ms or STEP_MS, effort)
    show(f"\nThe loader's switches\n{loaders}")
    steps = _steps(stored, effort, state.xla)
    show(f"\nGraph and eager\n{steps}")
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


@contextmanager
def _folder(config: XTTSConfig) -> Iterator[Path]:
    """A folder for caches that begin empty, in --cache-dir if it is given."""
    above = Path(config.data.cache_dir).expanduser() if config.data.cache_dir else None
    if above:
        above.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="myxtts-bench-", dir=above) as folder:
        yield Path(folder)


def _figures(mode: ModeResult) -> dict[str, Any]:
    names = [name for name, value in vars(ModeResult).items() if isinstance(value, property)]
    return asdict(mode) | {name: getattr(mode, name) for name in names}
