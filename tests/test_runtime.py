import logging
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

from myxtts import runtime
from myxtts.config.config import XTTSConfig
from myxtts.utils import commons


@pytest.fixture(autouse=True)
def plain_tensorflow(monkeypatch):
    """No forced choices, and TensorFlow's own state afterwards."""
    monkeypatch.delenv("MYXTTS_ENABLE_MIXED_PRECISION", raising=False)
    monkeypatch.delenv("MYXTTS_ENABLE_XLA", raising=False)
    yield
    keras.config.set_dtype_policy("float32")
    tf.config.optimizer.set_jit(False)
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: [])


@pytest.fixture
def gpu(monkeypatch):
    """One GPU of a given capability, as far as TensorFlow's own answers go."""

    def plug_in(*capability: int) -> SimpleNamespace:
        device = SimpleNamespace(name="/physical_device:GPU:0", growth=False)
        experimental = tf.config.experimental
        details = {"compute_capability": capability} if capability else {}
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: [device])
        monkeypatch.setattr(experimental, "get_device_details", lambda d: details)
        monkeypatch.setattr(
            experimental, "set_memory_growth", lambda d, on: setattr(d, "growth", on)
        )
        monkeypatch.setattr(experimental, "get_memory_growth", lambda d: d.growth)
        return device

    return plug_in


@pytest.fixture
def cpu(monkeypatch, tmp_path):
    """A function that makes it a CPU with these flags; it has none before."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(runtime, "_CPU_INFO", path)
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    return lambda flags: path.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n")


def in_force() -> tuple[str, bool, bool]:
    return (
        keras.config.dtype_policy().name,
        bool(tf.config.optimizer.get_jit()),
        tf.config.functions_run_eagerly(),
    )


@pytest.fixture(autouse=True)
def plain_cpu(cpu):
    """What this machine can do changes nothing."""


def test_without_a_gpu_what_needs_one_is_off_and_says_so(no_gpu, caplog):
    with caplog.at_level(logging.INFO, logger="myxtts.runtime"):
        state = runtime.configure_gpus()
    assert in_force() == ("float32", False, False)
    assert (state.gpus, state.policy, state.xla, state.eager) == ((), "float32", False, False)
    assert state.notes == dict.fromkeys(("precision", "XLA", "memory growth"), "inactive: no GPU")
    assert "precision: float32 (inactive: no GPU); XLA: off (inactive: no GPU)" in caplog.text
    assert runtime.gpus() == []


def test_an_explicit_choice_is_obeyed_without_a_gpu(no_gpu):
    state = runtime.configure_gpus(enable_mixed_precision=True, enable_xla=True)
    assert in_force() == ("mixed_float16", True, False)
    assert (state.policy, state.xla) == ("mixed_float16", True)
    assert "precision" not in state.notes
    assert "jit_compile" in state.notes["XLA"]
    off = runtime.configure_gpus(enable_mixed_precision=False, enable_xla=False)
    assert in_force() == ("float32", False, False)
    assert "XLA" not in off.notes and "precision" not in off.notes


@pytest.mark.parametrize(
    ("capability", "policy"),
    [((8, 0), "mixed_bfloat16"), ((7, 5), "mixed_float16"), ((), "mixed_float16")],
)
def test_with_a_gpu_everything_is_on(gpu, capability, policy):
    device = gpu(*capability)
    state = runtime.configure_gpus()
    assert in_force() == (policy, True, False)
    assert state.gpus == ("GPU:0",) == tuple(runtime.gpus())
    assert state.memory_growth and device.growth and state.notes == {}
    runtime.configure_gpus(enable_mixed_precision=False, enable_xla=False, memory_growth=False)
    assert in_force() == ("float32", False, False) and device.growth is False


@pytest.mark.parametrize("choice", [None, True])
def test_a_cpu_that_multiplies_bfloat16_does_so_in_convolutions(no_gpu, cpu, choice, caplog):
    cpu("fpu avx512f avx512_bf16")
    with caplog.at_level(logging.INFO, logger="myxtts.runtime"):
        state = runtime.configure_gpus(enable_mixed_precision=choice)
    assert in_force() == ("float32", False, False)
    assert state.convolutions == "bfloat16" and "precision" not in state.notes
    assert "precision: float32, convolutions in bfloat16 while training;" in caplog.text


@pytest.mark.parametrize(
    ("flags", "onednn", "choice"),
    [
        ("avx512f", "1", None),
        # oneDNN would use the tiles, which the kernel may withhold.
        ("avx512_bf16 amx_bf16 amx_tile", "1", None),
        ("avx512_bf16", "0", None),
        ("avx512_bf16", "1", False),
    ],
)
def test_convolutions_stay_in_full_where_half_gains_nothing(
    no_gpu, cpu, monkeypatch, flags, onednn, choice
):
    cpu(flags)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", onednn)
    state = runtime.configure_gpus(enable_mixed_precision=choice)
    assert (state.convolutions, state.precision) == ("float32", "float32")


def test_a_gpu_decides_for_convolutions_too(gpu, cpu):
    cpu("avx512_bf16")
    gpu(7, 5)
    state = runtime.configure_gpus()
    assert (state.convolutions, state.precision) == ("float16", "mixed_float16")


def test_the_weakest_gpu_decides_the_half_type():
    assert runtime.half_precision([(8, 6), (7, 5)]) == "mixed_float16"
    assert runtime.half_precision([(10, 0), (8, 0)]) == "mixed_bfloat16"
    assert runtime.half_precision([]) == "mixed_float16"


def test_memory_growth_that_comes_too_late_is_told_not_claimed(gpu, monkeypatch, caplog):
    def refuse(device, on):
        raise RuntimeError("already initialized")

    gpu(8, 0)
    monkeypatch.setattr(tf.config.experimental, "set_memory_growth", refuse)
    state = runtime.configure_gpus()
    assert state.memory_growth is False
    assert "running already" in state.notes["memory growth"] and "memory growth" in caplog.text


@pytest.mark.parametrize(
    "choice", [{"enable_eager_debug": True}, {"enable_graph_mode": False}], ids=str
)
def test_eager_running_is_real(no_gpu, choice):
    @tf.function
    def is_eager():
        return tf.executing_eagerly()

    assert runtime.configure_gpus(**choice).eager is True
    assert is_eager() is True
    assert runtime.configure_gpus().eager is False
    assert bool(is_eager()) is False


def test_environment_wins_over_arguments(no_gpu, monkeypatch):
    monkeypatch.setenv("MYXTTS_ENABLE_MIXED_PRECISION", "0")
    monkeypatch.setenv("MYXTTS_ENABLE_XLA", "1")
    state = runtime.configure_gpus(enable_mixed_precision=True, enable_xla=False)
    assert (state.policy, state.xla) == ("float32", True)


def test_configure_takes_its_choices_from_the_configuration(no_gpu):
    config = XTTSConfig(
        mixed_precision=True, enable_xla=True, enable_eager_debug=True, enable_graph_mode=True
    )
    runtime.configure(config)
    assert in_force() == ("mixed_float16", False, True)  # what runs eagerly is not compiled
    config.data.enable_xla = False
    config.training.enable_eager_debug = False
    config.training.enable_graph_mode = False
    runtime.configure(config)
    assert in_force() == ("mixed_float16", False, True)


def test_configure_seeds_every_generator(no_gpu):
    runtime.configure(XTTSConfig(seed=7))
    first = tf.random.uniform([3]).numpy()
    runtime.configure(XTTSConfig(seed=7))
    assert (tf.random.uniform([3]).numpy() == first).all()


def test_the_old_name_is_the_same_function():
    assert commons.configure_gpus is runtime.configure_gpus


@pytest.mark.parametrize(
    ("options", "variables", "cause"),
    [
        ({"enable_eager_debug": True}, {}, "--enable-eager-debug"),
        ({"enable_graph_mode": False}, {}, "enable_graph_mode: false"),
        (
            {"enable_graph_mode": False},
            {"MYXTTS_TRAINING_ENABLE_GRAPH_MODE": "false"},
            "MYXTTS_TRAINING_ENABLE_GRAPH_MODE",
        ),
    ],
)
def test_what_made_functions_eager_is_noted(monkeypatch, options, variables, cause):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    state = runtime.configure_gpus(**options)
    assert state.notes["functions"] == cause and f"functions: eager ({cause})" in str(state)
    assert "functions" not in runtime.configure_gpus().notes


@pytest.mark.parametrize(
    ("cores", "asked", "environment", "chosen"),
    [
        (2, None, {}, 1),
        (1, None, {}, 0),
        (8, None, {}, 0),
        (8, 3, {}, 3),
        (2, 0, {}, 0),
        (2, None, {"TF_NUM_INTRAOP_THREADS": "2"}, None),
        (2, 1, {"TF_NUM_INTEROP_THREADS": "1"}, None),
    ],
)
def test_two_cores_compute_an_operation_each(
    no_gpu, monkeypatch, cores, asked, environment, chosen
):
    found = []
    monkeypatch.setattr(runtime, "available_cores", lambda: cores)
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", found.append)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    monkeypatch.delenv("TF_NUM_INTEROP_THREADS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    runtime.spread_operations(asked)
    assert found == ([] if chosen is None else [chosen])


def test_with_a_gpu_an_operation_has_the_threads_that_tensorflow_chooses(gpu, monkeypatch):
    gpu(8, 0)
    found = []
    monkeypatch.setattr(runtime, "available_cores", lambda: 2)
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", found.append)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    runtime.spread_operations(None)
    assert found == [0]


def test_threads_cannot_be_changed_once_tensorflow_runs(no_gpu, monkeypatch, caplog):
    tf.zeros([])  # it runs
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    before = runtime.operation_threads()
    runtime.spread_operations(before + 3)
    assert "not changed: TensorFlow was running already" in caplog.text
    assert runtime.operation_threads() == before
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "5")
    assert str(runtime.configure_gpus()).endswith(f"threads an operation: {before or 5}")
