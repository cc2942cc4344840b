"""Devices, precision, compilation and seeds: the only place that sets TensorFlow's global state."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from myxtts.config.config import XTTSConfig
from myxtts.config.io import environment_settings
from myxtts.monitoring.cores import available_cores

logger = logging.getLogger(__name__)

NO_GPU = "inactive: no GPU"
_CPU_INFO = Path("/proc/cpuinfo")
_THREADS = "TF_NUM_INTRAOP_THREADS"
_THREADS_SET = (_THREADS, "TF_NUM_INTEROP_THREADS")


@dataclass(frozen=True)
class RuntimeState:
    """What TensorFlow and Keras say of themselves, with the reason for what may surprise.

    `convolutions` is the type that training multiplies them in, also where the policy is float32.
    `operation_threads` are those of one operation, 0 where TensorFlow chooses.
    """

    gpus: tuple[str, ...]
    policy: str
    xla: bool
    eager: bool
    memory_growth: bool
    notes: dict[str, str] = field(default_factory=dict)
    convolutions: str = "float32"
    operation_threads: int = 0

    @property
    def precision(self) -> str:
        if self.policy != "float32" or self.convolutions == "float32":
            return self.policy
        return f"{self.policy}, convolutions in {self.convolutions} while training"

    def __str__(self) -> str:
        parts = {
            "devices": ", ".join(self.gpus) or "CPU",
            "precision": self.precision,
            "XLA": "on" if self.xla else "off",
            "functions": "eager" if self.eager else "graph",
            "memory growth": "on" if self.memory_growth else "off",
        }
        if self.operation_threads:
            parts["threads an operation"] = str(self.operation_threads)
        return "; ".join(
            f"{name}: {value}" + (f" ({self.notes[name]})" if name in self.notes else "")
            for name, value in parts.items()
        )


def configure(config: XTTSConfig) -> RuntimeState:
    """Set TensorFlow up as a configuration says, and seed every generator."""
    import keras

    config.check()
    keras.utils.set_random_seed(config.training.seed)
    return configure_gpus(
        enable_mixed_precision=config.data.mixed_precision,
        enable_xla=config.training.enable_xla_compilation,
        enable_eager_debug=config.training.enable_eager_debug,
        enable_graph_mode=config.training.enable_graph_mode,
    )


def configure_gpus(
    memory_growth: bool = True,
    enable_mixed_precision: bool | None = None,
    enable_xla: bool | None = None,
    enable_eager_debug: bool = False,
    enable_graph_mode: bool = True,
) -> RuntimeState:
    """Set devices, precision, XLA and eager running; return and log what is in force afterwards.

    None means where there is a GPU, and for the precision also where a CPU multiplies bfloat16. The
    environment's choice wins over an argument.
    """
    import keras
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    forced = environment_settings(os.environ)
    mixed = _choice(forced, "data.mixed_precision", enable_mixed_precision)
    xla = _choice(forced, "training.enable_xla_compilation", enable_xla)
    notes = _grow_memory(devices, memory_growth)
    notes |= _why_eager(forced, enable_eager_debug, enable_graph_mode)
    has_gpu = bool(devices)
    # There convolutions are all that gains from half precision.
    on_cpu = not has_gpu and mixed is not False and multiplies_bfloat16()
    notes |= _notes(has_gpu, True if on_cpu else mixed, xla)
    half = half_precision([_capability(device) for device in devices])
    is_mixed = _holds(mixed, has_gpu) and not on_cpu
    keras.config.set_dtype_policy(half if is_mixed else "float32")
    eager = enable_eager_debug or not enable_graph_mode
    # What runs eagerly is not compiled, whatever was asked for.
    tf.config.optimizer.set_jit("autoclustering" if _holds(xla, has_gpu) and not eager else False)
    tf.config.run_functions_eagerly(eager)

    state = _read_back(notes, "bfloat16" if on_cpu else "")
    logger.info("%s", state)
    return state


def spread_operations(threads: int | None) -> None:
    """Set how many threads of a CPU compute one operation: before TensorFlow has computed anything.

    None is one where there are two cores: operations that run next to each other keep both busy,
    and waking a thread for a part of one costs more than it saves. 0 is TensorFlow's choice. What
    the environment says of TensorFlow's threads wins.
    """
    import tensorflow as tf

    if any(os.environ.get(name) for name in _THREADS_SET):
        return
    chosen = threads
    if chosen is None:
        chosen = 1 if available_cores() == 2 and not gpus() else 0
    try:
        tf.config.threading.set_intra_op_parallelism_threads(chosen)
    except RuntimeError:  # TensorFlow is running, and keeps what it began with
        level = logging.INFO if threads is None else logging.WARNING
        logger.log(level, "threads an operation: not changed: TensorFlow was running already")


def operation_threads() -> int:
    """The threads of a CPU that compute one operation; 0 where TensorFlow chooses."""
    import tensorflow as tf

    given = os.environ.get(_THREADS, "")
    return tf.config.threading.get_intra_op_parallelism_threads() or (
        int(given) if given.isdecimal() else 0
    )


def gpus() -> list[str]:
    """Return the GPUs that TensorFlow sees, as names for `tf.device`."""
    import tensorflow as tf

    return [_name(device) for device in tf.config.list_physical_devices("GPU")]


def half_precision(capabilities: Sequence[tuple[int, int]]) -> str:
    """Return the mixed policy that every GPU computes natively; without a GPU it is float16."""
    # bfloat16 has float32's range and needs no loss scaling; NVIDIA has it since 8.0.
    has_bfloat16 = capabilities and all(c >= (8, 0) for c in capabilities)
    return "mixed_bfloat16" if has_bfloat16 else "mixed_float16"


def multiplies_bfloat16() -> bool:
    """Whether TensorFlow multiplies bfloat16 by instructions that this CPU has for it."""
    # The products are oneDNN's, which kills the process where the CPU has AMX and the kernel
    # withholds its tiles.
    return (
        os.environ.get("TF_ENABLE_ONEDNN_OPTS") != "0"
        and "avx512_bf16" in (flags := _cpu_flags())
        and not any(flag.startswith("amx") for flag in flags)
    )


def _cpu_flags() -> set[str]:
    """What Linux says that the CPU can do; nothing elsewhere."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def _why_eager(forced, eager_debug: bool, graph_mode: bool) -> dict[str, str]:
    """What switched graphs off, in the words in which a user sets it."""
    switches = {
        "training.enable_eager_debug": "--enable-eager-debug" if eager_debug else "",
        "training.enable_graph_mode": "" if graph_mode else "enable_graph_mode: false",
    }
    found = [
        # The environment wins over flags and files, so that removing those would not help.
        forced[path].origin.removeprefix("environment ") if path in forced else told
        for path, told in switches.items()
        if told
    ]
    return {"functions": " and ".join(found)} if found else {}


def _choice(forced, path: str, argument: bool | None) -> bool | None:
    return forced[path].value if path in forced else argument


def _holds(choice: bool | None, has_gpu: bool) -> bool:
    return has_gpu if choice is None else choice


def _notes(has_gpu: bool, mixed: bool | None, xla: bool | None) -> dict[str, str]:
    if has_gpu:
        return {}
    notes = {name: NO_GPU for name, on in (("precision", mixed), ("XLA", xla)) if on is None}
    if xla:
        notes["XLA"] = "on a CPU only functions marked jit_compile are compiled"
    return notes


def _grow_memory(devices, enabled: bool) -> dict[str, str]:
    import tensorflow as tf

    if not devices:
        return {"memory growth": NO_GPU} if enabled else {}
    try:
        for device in devices:
            tf.config.experimental.set_memory_growth(device, enabled)
    except RuntimeError:  # TensorFlow has opened the device, and keeps what it began with
        reason = "TensorFlow was running already; configure it first"
        logger.warning("GPU memory growth cannot be changed: %s", reason)
        return {"memory growth": reason}
    return {}


def _capability(device) -> tuple[int, int]:
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(device)
    return details.get("compute_capability", (0, 0))


def _name(device) -> str:
    return device.name.removeprefix("/physical_device:")


def _read_back(notes: dict[str, str], convolutions: str) -> RuntimeState:
    import keras
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    policy = keras.config.dtype_policy()
    growth = [bool(tf.config.experimental.get_memory_growth(device)) for device in devices]
    return RuntimeState(
        gpus=tuple(_name(device) for device in devices),
        policy=policy.name,
        xla=bool(tf.config.optimizer.get_jit()),
        eager=tf.config.functions_run_eagerly(),
        memory_growth=bool(growth) and all(growth),
        notes=notes,
        convolutions=convolutions or policy.compute_dtype,
        operation_threads=operation_threads(),
    )
