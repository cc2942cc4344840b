"""The acceptance test: this machine, the modes, the loader's switches, the step, the targets."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from myxtts.bench.loaders import DataBench, bench_data
from myxtts.bench.modes import PRECOMPUTE, ModeResult, ModesBench, bench_modes
from myxtts.bench.simulated import SimulatedStep
from myxtts.bench.targets import Figures, mode_targets, summary, targets
from myxtts.config.config import XTTSConfig
from myxtts.config.io import Resolved
from myxtts.data.store.remote import is_url
from myxtts.errors import UserError
from myxtts.monitoring.gpus import GpuReader
from myxtts.monitoring.progress import progress
from myxtts.monitoring.system import SystemSampler
from myxtts.runtime import RuntimeState

CORPUS, CLAUSES = "./data/gpu_benchmark", 400
BATCH_SIZE, MODEL_SIZE = 16, "tiny"
STEP_MS, SAMPLE_SECONDS = 20.0, 0.1
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


def settle(resolved: Resolved) -> XTTSConfig:
    """The configuration with what nobody has set: small batches, and the built-in corpus."""
    chosen: dict[str, Any] = {}
    if "data.batch_size" not in resolved.given:
        chosen["batch_size"] = BATCH_SIZE
    if "data.dataset_path" not in resolved.given:
        chosen["data_path"] = make_built_in(CORPUS, CLAUSES)
    return resolved.config.replace(**chosen)


def make_built_in(folder: str, clauses: int) -> str:
    """Make a built-in corpus of one voice, unless it is there."""
    from myxtts.demo_corpus.corpus import make_demo

    with progress("speaking") as report:
        return str(make_demo(Path(folder), speakers=1, clauses=clauses, progress=report))


def measure(
    config: XTTSConfig, step_ms: float | None, effort: Effort, show: Callable[[str], None]
) -> Figures:
    """Measure one thing after the other, and show each as it is known.

    Steps take `step_ms` on a simulated device; 0 takes the real step, and so does None where there
    is a GPU.
    """
    from myxtts import runtime

    state = runtime.configure(config)
    show(f"TensorFlow: {state}")
    if step_ms is None:
        step_ms = 0.0 if state.gpus else STEP_MS
    reader = GpuReader.open() if state.gpus and not step_ms else None
    with _folder(config) as folder:
        modes = _modes(config, step_ms, effort, folder, state, reader)
        show(f"\nThe modes\n{modes}")
        stored = config.replace(preprocessing_mode="precompute", cache_dir=str(folder / PRECOMPUTE))
        loaders = _loaders(stored, step_ms or STEP_MS, effort)
        show(f"\nThe loader's switches\n{loaders}")
        steps = _steps(stored, effort, state)
        show(f"\nGraph and eager\n{steps}")
    no_driver = reader.reason if reader else SIMULATED if state.gpus else NO_GPU
    return Figures(modes, loaders, steps, step_ms, no_driver, str(state))


def conclude(found: Figures) -> tuple[str, bool]:
    """Every target next to what was measured, and whether all that was measured is met."""
    bars, aims = mode_targets(found), targets(found)
    missed = [aim.what for aim in (*bars, *aims) if aim.is_met is False]
    named = [f"NOT met: {'; '.join(missed)}"] if missed else []
    return "\n".join([*map(str, [*bars, *aims]), *named, summary(aims)]), not missed


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


def _modes(config, step_ms: float, effort: Effort, folder: Path, state, reader) -> ModesBench:
    """The modes on a simulated device, or on the real one by the real step."""
    from myxtts.bench.step import TimedSteps

    watch = nullcontext
    if reader and not reader.reason:
        watch = partial(SystemSampler, SAMPLE_SECONDS, sources={"gpus": reader.read})
    if step_ms:
        make_step = lambda data, batches: SimulatedStep(step_ms)  # noqa: E731
        device = f"a simulated accelerator, {step_ms:g} ms a step"
    else:
        make_step = TimedSteps(config, state.xla, state.convolutions)
        where = state.gpus[0] if state.gpus else "the CPU"
        device = f"{where}, the real step of size {config.model.model_size}"
    with progress("modes", "batches") as report:
        return bench_modes(
            *(config, make_step, device, folder),
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


def _steps(config: XTTSConfig, effort: Effort, state: RuntimeState):
    from myxtts.bench.step import measure_steps
    from myxtts.data.batches.training_data import TrainingData

    how = {"xla": state.xla, "convolutions": state.convolutions}
    with progress("graph and eager", "steps") as report:
        return measure_steps(config, TrainingData(config), effort.step_rounds, report, **how)


@contextmanager
def _folder(config: XTTSConfig) -> Iterator[Path]:
    """A folder for caches that begin empty, in --cache-dir if it is given."""
    if is_url(config.data.cache_dir):
        raise UserError(
            f"{config.data.cache_dir}: this measures caches on a disk: give --cache-dir a folder"
        )
    above = Path(config.data.cache_dir).expanduser() if config.data.cache_dir else None
    if above:
        above.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="myxtts-bench-", dir=above) as folder:
        yield Path(folder)


def _figures(mode: ModeResult) -> dict[str, Any]:
    names = [name for name, value in vars(ModeResult).items() if isinstance(value, property)]
    return asdict(mode) | {name: getattr(mode, name) for name in names}
