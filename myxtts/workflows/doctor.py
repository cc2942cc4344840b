"""What is installed, visible and active on this machine, and what will not work and why."""

import ctypes.util
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from myxtts import __version__
from myxtts.config.config import XTTSConfig
from myxtts.config.io import resolve
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.gpus import NOT_INSTALLED, GpuReader, names_by_nvidia_smi
from myxtts.monitoring.system import MemoryLimit

if TYPE_CHECKING:
    from myxtts.data.batches.graph_reader import ReaderOptions
    from myxtts.runtime import RuntimeState

OK, INACTIVE, BROKEN = "ok", "inactive", "broken"
SCARCE_BYTES = 2e9  # LJSpeech's cache takes 1.2 GB
CUDA_LIBRARIES = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn")
NO_GPU = "no GPU"


@dataclass(frozen=True)
class Finding:
    """The state of one thing, and what does not work because of it."""

    name: str
    state: str
    text: str
    lost: str = ""
    section: str = ""


@dataclass(frozen=True)
class Facts:
    """The facts about this machine that are to be judged."""

    requires: Sequence[str]  # as in the package's metadata
    versions: Mapping[str, str]  # of installed packages, by canonical name
    config: XTTSConfig
    tensorflow_error: str = ""
    cores: int = 1
    machine_cores: int = 1
    memory: tuple[float, float] = (0, 0)  # bytes used, and the limit
    free: Mapping[str, float | None] = field(default_factory=dict)  # bytes, by folder
    driver: str = ""
    driver_gpus: tuple[str, ...] = ()
    driver_reason: str = ""  # why the driver cannot be read
    tensorflow_gpus: tuple[str, ...] = ()
    built_with_cuda: bool = False
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES
    missing_libraries: tuple[str, ...] = ()
    runtime: "RuntimeState | None" = None  # None where TensorFlow does not import
    reader: "ReaderOptions | None" = None


def diagnose(facts: Facts) -> list[Finding]:
    """Judge the facts."""
    sections = {
        "installed": _installed(facts),
        "visible": _visible(facts),
        "active": _active(facts),
    }
    return [replace(one, section=name) for name, own in sections.items() for one in own]


def describe(findings: Sequence[Finding]) -> str:
    """Return all findings by section, and at the end what will not work."""
    lines = []
    width = max(len(one.name) for one in findings)
    for section in dict.fromkeys(one.section for one in findings):
        lines.append(f"{section}:")
        own = [one for one in findings if one.section == section]
        lines += [f"  {one.state:<8}  {one.name:<{width}}  {one.text}" for one in own]
    lost = [f"  {one.lost}: {one.text}" for one in findings if one.lost]
    lines += ["will not work here:", *lost] if lost else ["nothing is missing here"]
    return "\n".join(lines)


def gather(import_tensorflow: Callable[[], None] = lambda: None) -> Facts:
    """Look at this machine, with TensorFlow configured as for a training run.

    `import_tensorflow` is called before TensorFlow is imported here.
    """
    config = resolve().config
    reader = GpuReader.open()
    driver, names = reader.driver or "", tuple(gpu.name for gpu in reader.read())
    reader.close()
    driver_gpus = names or names_by_nvidia_smi()
    packages = importlib.metadata.distributions()
    return Facts(
        requires=importlib.metadata.requires("myxtts") or (),
        versions={canonicalize_name(one.name): one.version for one in packages if one.name},
        config=config,
        cores=available_cores(),
        machine_cores=os.cpu_count() or 1,
        memory=MemoryLimit().read(),
        free={folder: _free(folder) for folder in (".", "/dev/shm")},
        driver=driver,
        driver_gpus=driver_gpus,
        driver_reason="" if names else reader.reason,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        **_tensorflow_facts(import_tensorflow, config, len(driver_gpus)),
    )


def _tensorflow_facts(
    import_tensorflow: Callable[[], None], config: XTTSConfig, driver_gpus: int
) -> dict[str, object]:
    try:
        import_tensorflow()
        import tensorflow as tf

        from myxtts import runtime
        from myxtts.data.batches.graph_reader import reader_options
    except UserError as error:
        return {"tensorflow_error": str(error)}
    except Exception as error:  # a broken installation may raise anything
        return {"tensorflow_error": f"{type(error).__name__}: {error}"}
    gpus, has_cuda = runtime.gpus(), tf.test.is_built_with_cuda()
    unseen = has_cuda and len(gpus) < driver_gpus
    return {
        "tensorflow_gpus": tuple(gpus),
        "built_with_cuda": has_cuda,
        "missing_libraries": tuple(_missing_libraries(sys.path)) if unseen else (),
        "runtime": runtime.configure(config),
        "reader": reader_options(config.data),
    }


def _free(folder: str) -> float | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _missing_libraries(folders: Sequence[str]) -> Iterator[str]:
    """Yield the libraries that neither the system nor NVIDIA's packages have."""
    for name in CUDA_LIBRARIES:
        packaged = (Path(folder).glob(f"nvidia/*/lib/lib{name}.so*") for folder in folders)
        if not ctypes.util.find_library(name) and not any(next(p, None) for p in packaged):
            yield f"lib{name}"


# Installed


def _installed(facts: Facts) -> Iterator[Finding]:
    yield Finding("Python", OK, f"{platform.python_version()} ({sys.executable})")
    yield Finding("myxtts", OK, __version__)
    yield _tensorflow(facts)
    yield _core_packages(facts)
    for extra in _extras(facts.requires):
        yield _extra(extra, facts)


def _tensorflow(facts: Facts) -> Finding:
    if facts.tensorflow_error:
        lost = "training, synthesis and every batch"
        return Finding("TensorFlow", BROKEN, facts.tensorflow_error, lost)
    packages = [name for name in ("tensorflow", "tensorflow-cpu") if name in facts.versions]
    said = ", ".join(f"{name} {facts.versions[name]}" for name in packages)
    return Finding("TensorFlow", OK, said or "of a package that pip does not know")


def _core_packages(facts: Facts) -> Finding:
    needed = [Requirement(one) for one in facts.requires]
    needed = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    said, wrong = _versions(needed, facts.versions)
    if wrong:
        text = f"{', '.join(wrong)}: run `pip install myxtts` again"
        return Finding("core packages", BROKEN, text, "what uses them")
    return Finding("core packages", OK, ", ".join(said))


def _extra(extra: str, facts: Facts) -> Finding:
    """One extra; either of two extras installs TensorFlow, which has its own finding."""
    needed = _requirements_of(extra, facts.requires)
    said, wrong = _versions(needed, facts.versions)
    if not wrong:
        return Finding(f"extra {extra}", OK, ", ".join(said))
    text, install = ", ".join(wrong), f"pip install 'myxtts[{extra}]'"
    is_other_tensorflow = any(one.name.startswith("tensorflow") for one in needed)
    if is_other_tensorflow and not facts.tensorflow_error:
        text += f"; TensorFlow is there without it ({install} if you want it)"
        return Finding(f"extra {extra}", INACTIVE, text)
    lost = f"what needs the extra {extra!r}"
    return Finding(f"extra {extra}", INACTIVE, f"{text}: {install}", lost)


def _extras(requires: Sequence[str]) -> list[str]:
    """The extras in a package's requirements, in their order."""
    found = [Requirement(one) for one in requires]
    marked = [str(one.marker) for one in found if one.marker and "extra ==" in str(one.marker)]
    return list(dict.fromkeys(text.rpartition("extra ==")[2].strip(" \"'()") for text in marked))


def _requirements_of(extra: str, requires: Sequence[str]) -> list[Requirement]:
    """The requirements that an extra adds, directly or through other extras."""
    own, named = [], []
    for one in map(Requirement, requires):
        is_added = one.marker and not one.marker.evaluate({"extra": ""})
        if is_added and one.marker.evaluate({"extra": extra}):
            if canonicalize_name(one.name) == "myxtts":
                named += sorted(one.extras)
            else:
                own.append(one)
    return own + [more for name in named for more in _requirements_of(name, requires)]


def _versions(
    needed: Sequence[Requirement], versions: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The installed versions of requirements, and what is missing or has a wrong version."""
    said, wrong = [], []
    for one in needed:
        version = versions.get(canonicalize_name(one.name))
        if version is None:
            wrong.append(f"{one.name} is not installed")
        elif not one.specifier.contains(version, prereleases=True):
            wrong.append(f"{one.name} is {version}, not {one.specifier}")
        else:
            said.append(f"{one.name} {version}")
    return list(dict.fromkeys(said)), list(dict.fromkeys(wrong))


# Visible


def _visible(facts: Facts) -> Iterator[Finding]:
    yield Finding("cores", OK, f"{facts.cores} of the machine's {facts.machine_cores}")
    used, limit = facts.memory
    yield Finding("memory", OK, f"{used / 1e9:.1f} of {limit / 1e9:.1f} GB are used")
    for folder, free in facts.free.items():
        yield _disk(folder, free)
    yield from _gpus(facts)


def _disk(folder: str, free: float | None) -> Finding:
    name = "disk, this folder" if folder == "." else f"disk, {folder}"
    if free is None:
        return Finding(name, INACTIVE, "it is not there")
    text = f"{free / 1e9:.1f} GB are free"
    if folder == "." and free < SCARCE_BYTES:
        lost = "preparing a corpus of many hours in this folder"
        return Finding(name, INACTIVE, f"{text}: free some, or use --cache-dir", lost)
    return Finding(name, OK, text)


def _gpus(facts: Facts) -> Iterator[Finding]:
    """The GPUs of the driver and those of TensorFlow, which should be the same."""
    if facts.driver_gpus:
        driver = f" (driver {facts.driver})" if facts.driver else ""
        yield Finding("GPUs, by driver", OK, ", ".join(facts.driver_gpus) + driver)
    else:
        text = facts.driver_reason or NO_GPU
        text = f"nvidia-smi names none ({text})" if text == NOT_INSTALLED else text
        yield Finding("GPUs, by driver", INACTIVE, text)
    if facts.driver_gpus and facts.driver_reason == NOT_INSTALLED:
        yield Finding("GPU readings", INACTIVE, NOT_INSTALLED, "watching the GPUs")
    if not facts.tensorflow_error:
        yield _tensorflow_gpus(facts)


def _tensorflow_gpus(facts: Facts) -> Finding:
    name, seen = "GPUs, by TensorFlow", len(facts.tensorflow_gpus)
    if seen >= len(facts.driver_gpus):
        if seen:
            return Finding(name, OK, ", ".join(facts.tensorflow_gpus))
        return Finding(name, INACTIVE, NO_GPU, "training and speaking on a GPU")
    text = f"{seen} of the driver's {len(facts.driver_gpus)}: {_why_unseen(facts)}"
    if seen and facts.visible_devices is not None:  # some are hidden on purpose
        return Finding(name, OK, text)
    return Finding(name, BROKEN, text, "computing on a GPU that is there")


def _why_unseen(facts: Facts) -> str:
    if facts.visible_devices is not None:
        return (
            f"CUDA_VISIBLE_DEVICES is {facts.visible_devices!r} and hides the others: "
            "unset it to see all"
        )
    if not facts.built_with_cuda:
        return (
            "the installed TensorFlow has no CUDA in it: pip uninstall tensorflow-cpu, "
            "then pip install 'myxtts[gpu]'"
        )
    if facts.missing_libraries:
        missing = ", ".join(facts.missing_libraries)
        return f"{missing} cannot be found: pip install 'myxtts[gpu]', which brings them"
    return (
        "TensorFlow cannot open it, perhaps because the driver is older than its CUDA: "
        "`myxtts doctor --verbose` shows what TensorFlow says"
    )


# Active


def _active(facts: Facts) -> Iterator[Finding]:
    state, reader = facts.runtime, facts.reader
    if state is None or reader is None:
        yield Finding("switches", INACTIVE, "TensorFlow cannot be asked")
        return
    data, training = facts.config.data, facts.config.training
    is_mixed = state.precision != "float32"
    yield _switch("mixed precision", is_mixed, state.precision, _reason(state, "precision"))
    yield _switch("XLA", state.xla, state.notes.get("XLA", "on"), _reason(state, "XLA"))
    eager = (
        "enable_eager_debug is on" if training.enable_eager_debug else "enable_graph_mode is off"
    )
    yield _switch("graph mode", not state.eager, "on", eager)
    yield _switch("GPU memory growth", state.memory_growth, "on", _reason(state, "memory growth"))
    off = NO_GPU if data.prefetch_to_gpu else "prefetch_to_gpu is off"
    off = off if data.optimize_cpu_gpu_overlap else "optimize_cpu_gpu_overlap is off"
    yield _switch("GPU prefetch", bool(reader.device), f"to {reader.device}", off)
    ahead = f"{reader.prefetch} batches ahead"
    yield _switch("overlap", reader.overlap, ahead, "optimize_cpu_gpu_overlap is off")
    off = "enable_memory_mapping and memory_cache are off"
    off = off if data.use_tf_native_loading else "use_tf_native_loading is off"
    yield _switch("native loading", reader.native, "one gather a batch, in the graph", off)


def _switch(name: str, is_on: bool, on: str, off: str) -> Finding:
    return Finding(name, OK if is_on else INACTIVE, on if is_on else off)


def _reason(state: "RuntimeState", name: str) -> str:
    return state.notes.get(name, "off by the settings").removeprefix("inactive: ")
