import argparse
from dataclasses import replace

import pytest

from myxtts.cli.commands import doctor as command
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.graph_reader import ReaderOptions
from myxtts.monitoring.gpus import NOT_INSTALLED, GpuReader
from myxtts.runtime import NO_GPU, RuntimeState
from myxtts.workflows import doctor
from myxtts.workflows.doctor import BROKEN, INACTIVE, OK, Facts, describe, diagnose

ON_GPU = RuntimeState(("GPU:0",), "mixed_bfloat16", xla=True, eager=False, memory_growth=True)
ON_CPU = RuntimeState(
    (),
    "float32",
    xla=False,
    eager=False,
    memory_growth=False,
    notes={"precision": NO_GPU, "XLA": NO_GPU, "memory growth": NO_GPU},
)
FACTS = Facts(
    requires=(
        "keras<4,>=3.15",
        'tensorflow-cpu==2.21.*; extra == "cpu"',
        'tensorflow[and-cuda]==2.21.*; extra == "gpu"',
        'nvidia-ml-py>=13; extra == "gpu"',
        'jiwer>=4; extra == "eval"',
        'pystoi>=0.4.1; extra == "eval"',
        'wandb>=0.26; extra == "wandb"',
        'myxtts[eval,wandb]; extra == "demo"',
    ),
    versions={
        "keras": "3.15.1",
        "tensorflow": "2.21.0",
        "nvidia-ml-py": "13.590.48",
        "jiwer": "4.0.0",
        "pystoi": "0.4.1",
        "wandb": "0.26.0",
    },
    config=XTTSConfig(),
    cores=8,
    machine_cores=64,
    memory=(3e9, 32e9),
    free={".": 100e9, "/dev/shm": 16e9},
    driver="570.86.15",
    driver_gpus=("NVIDIA L4",),
    tensorflow_gpus=("GPU:0",),
    built_with_cuda=True,
    runtime=ON_GPU,
    reader=ReaderOptions(device="/GPU:0"),
)
WITHOUT_GPU = replace(
    FACTS,
    driver="",
    driver_gpus=(),
    driver_reason="no NVIDIA driver answers",
    tensorflow_gpus=(),
    runtime=ON_CPU,
    reader=ReaderOptions(),
)


def found(facts, name):
    (finding,) = [one for one in diagnose(facts) if one.name == name]
    return finding


def without(*packages):
    return {name: version for name, version in FACTS.versions.items() if name not in packages}


def test_on_a_complete_machine_nothing_is_broken():
    states = {one.name: one.state for one in diagnose(FACTS)}
    assert states.pop("extra cpu") == INACTIVE  # TensorFlow comes with the other extra
    assert set(states.values()) == {OK}
    assert describe(diagnose(FACTS)).endswith("nothing is missing here")


def test_versions_and_resources_are_shown():
    assert found(FACTS, "extra eval").text == "jiwer 4.0.0, pystoi 0.4.1"
    assert found(FACTS, "cores").text == "8 of the machine's 64"
    assert found(FACTS, "memory").text == "3.0 of 32.0 GB are used"
    assert found(FACTS, "disk, this folder").text == "100.0 GB are free"
    assert found(FACTS, "GPUs, by driver").text == "NVIDIA L4 (driver 570.86.15)"
    assert found(FACTS, "mixed precision").text == "mixed_bfloat16"
    assert found(FACTS, "GPU prefetch").text == "to /GPU:0"


def test_a_missing_extra_names_the_command_that_installs_it():
    facts = replace(FACTS, versions=without("pystoi"))
    finding = found(facts, "extra eval")
    assert finding.state == INACTIVE
    assert finding.text == "pystoi is not installed: pip install 'myxtts[eval]'"
    assert f"what needs the extra 'eval': {finding.text}" in describe(diagnose(facts))


def test_an_extra_of_extras_needs_their_requirements():
    facts = replace(FACTS, versions=without("wandb"))
    assert found(facts, "extra demo").text == "wandb is not installed: pip install 'myxtts[demo]'"
    assert found(FACTS, "extra demo").text == "jiwer 4.0.0, pystoi 0.4.1, wandb 0.26.0"


def test_a_wrong_version_is_shown():
    facts = replace(FACTS, versions={**FACTS.versions, "wandb": "0.1", "keras": "2.9.0"})
    assert found(facts, "extra wandb").text.startswith("wandb is 0.1, not >=0.26: pip install")
    core = found(facts, "core packages")
    assert core.state == BROKEN and core.text.startswith("keras is 2.9.0, not <4,>=3.15")


def test_tensorflow_that_does_not_import_is_broken():
    facts = replace(FACTS, tensorflow_error="ImportError: libfoo.so", runtime=None, reader=None)
    finding = found(facts, "TensorFlow")
    assert (finding.state, finding.text) == (BROKEN, "ImportError: libfoo.so")
    assert found(facts, "switches").state == INACTIVE
    assert "GPUs, by TensorFlow" not in {one.name for one in diagnose(facts)}


def test_without_a_gpu_what_needs_one_is_inactive_and_nothing_is_broken():
    findings = {one.name: one for one in diagnose(WITHOUT_GPU)}
    assert BROKEN not in {one.state for one in findings.values()}
    assert findings["GPUs, by driver"].text == "no NVIDIA driver answers"
    for name in ("GPUs, by TensorFlow", "mixed precision", "XLA", "GPU prefetch"):
        assert (findings[name].state, findings[name].text) == (INACTIVE, "no GPU"), name
    for name in ("graph mode", "overlap", "native loading"):
        assert findings[name].state == OK, name


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"visible_devices": ""}, "CUDA_VISIBLE_DEVICES is ''"),
        ({"visible_devices": "-1"}, "CUDA_VISIBLE_DEVICES is '-1'"),
        ({"built_with_cuda": False}, "pip uninstall tensorflow-cpu"),
        ({"missing_libraries": ("libcudnn", "libcufft")}, "libcudnn, libcufft cannot be found"),
        ({}, "the driver is older than its CUDA"),
    ],
)
def test_a_gpu_that_tensorflow_does_not_see_is_broken_and_explained(change, why):
    facts = replace(FACTS, tensorflow_gpus=(), **change)
    finding = found(facts, "GPUs, by TensorFlow")
    assert finding.state == BROKEN
    assert finding.text.startswith("0 of the driver's 1: ") and why in finding.text


def test_gpus_that_were_hidden_on_purpose_are_not_broken():
    facts = replace(FACTS, driver_gpus=("L4", "L4"), visible_devices="0")
    finding = found(facts, "GPUs, by TensorFlow")
    assert finding.state == OK and finding.text.startswith("1 of the driver's 2: CUDA_VISIBLE")
    assert found(replace(facts, visible_devices=None), "GPUs, by TensorFlow").state == BROKEN


def test_a_gpu_that_cannot_be_watched_names_the_package():
    facts = replace(FACTS, driver="", driver_reason=NOT_INSTALLED)
    assert found(facts, "GPU readings").text == NOT_INSTALLED
    assert found(facts, "GPUs, by driver").text == "NVIDIA L4"


@pytest.mark.parametrize(
    ("settings", "changes", "name", "why"),
    [
        ({"use_tf_native_loading": False}, {"native": False}, "native loading", "use_tf_native"),
        ({"enable_memory_mapping": False}, {"native": False}, "native loading", "memory_cache"),
        ({"prefetch_to_gpu": False}, {"device": ""}, "GPU prefetch", "prefetch_to_gpu is off"),
        ({"optimize_cpu_gpu_overlap": False}, {"overlap": False}, "overlap", "overlap is off"),
    ],
)
def test_a_switch_that_is_off_names_its_setting(settings, changes, name, why):
    facts = replace(FACTS, config=XTTSConfig(**settings), reader=ReaderOptions(**changes))
    finding = found(facts, name)
    assert finding.state == INACTIVE and why in finding.text


def test_eager_functions_name_their_setting():
    eager = replace(ON_CPU, eager=True)
    facts = replace(FACTS, runtime=eager, config=XTTSConfig(enable_eager_debug=True))
    assert found(facts, "graph mode").text == "enable_eager_debug is on"
    facts = replace(FACTS, runtime=eager, config=XTTSConfig(enable_graph_mode=False))
    assert found(facts, "graph mode").text == "enable_graph_mode is off"


def test_an_almost_full_disk_is_shown():
    facts = replace(FACTS, free={".": 1e9, "/dev/shm": None})
    assert found(facts, "disk, this folder").state == INACTIVE
    assert "preparing a corpus" in describe(diagnose(facts))
    assert found(facts, "disk, /dev/shm").text == "it is not there"


def test_libraries_are_searched_in_the_packages_too(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda name: None)
    folder = tmp_path / "nvidia" / "cudnn" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudnn.so.9").touch()
    missing = list(doctor._missing_libraries([str(tmp_path)]))
    assert missing == [f"lib{name}" for name in doctor.CUDA_LIBRARIES if name != "cudnn"]


def test_this_machine_is_examined(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "names_by_nvidia_smi", lambda: ())
    monkeypatch.setattr(doctor.GpuReader, "open", lambda: GpuReader(None, "no driver answers"))
    assert command.run(argparse.Namespace(verbose=False)) == 0
    out = capsys.readouterr().out
    for words in ("keras 3.", "extra phonemes", "extra wandb", "no driver answers", "graph mode"):
        assert words in out


def test_a_gpu_that_only_the_driver_has_fails(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "names_by_nvidia_smi", lambda: ("NVIDIA L4",) * 99)
    monkeypatch.setattr(doctor.GpuReader, "open", lambda: GpuReader(None, NOT_INSTALLED))
    assert command.run(argparse.Namespace(verbose=False)) == 1
    assert "of the driver's 99" in capsys.readouterr().out
