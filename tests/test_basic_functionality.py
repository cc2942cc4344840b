"""The quick check: what a user imports is there, and a tiny corpus becomes batches."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

CORPUS = {"count": 10}


def parameters(function) -> dict[str, object]:
    """Names of the arguments and their defaults, as a caller sees them."""
    found = inspect.signature(function).parameters
    return {name: value.default for name, value in found.items() if name != "self"}


# From recordings to a batch


def test_a_corpus_becomes_batches_and_its_cache_is_whole(shared_corpus):
    from myxtts.config.config import DataConfig
    from myxtts.data.ljspeech import LJSpeechDataset

    dataset = LJSpeechDataset(str(shared_corpus), DataConfig(batch_size=4))
    assert len(dataset) == 10
    assert dataset.precompute_mels(num_workers=2, overwrite=False).made == 10
    assert dataset.precompute_tokens(num_workers=2, overwrite=False).made == 10
    batches = dataset.create_tf_dataset(batch_size=4, use_cache_files=True, num_parallel_calls=2)
    batch = next(iter(batches))
    count, frames, mels = batch["mel"].shape
    assert (count, mels) == (4, 80) and frames % 32 == 0
    assert batch["tokens"].shape[0] == 4
    for row in range(4):
        length = int(batch["mel_lengths"][row])
        assert 0 < length <= frames
        assert np.isfinite(batch["mel"][row, :length]).all()
        assert not np.any(batch["mel"][row, length:])
        assert 0 < int(batch["text_lengths"][row]) <= length
    report = dataset.verify_and_fix_cache(fix=True)
    assert (report.problems, report.remade.made) == ([], 0)
    assert "10 stored, 0 missing" in dataset.get_performance_report()


@pytest.mark.parametrize("mode", ["auto", "precompute", "runtime"])
def test_every_mode_trains_on_the_same_utterances(shared_corpus, mode):
    from myxtts.config.config import XTTSConfig
    from myxtts.data.batches.training_data import TrainingData

    config = XTTSConfig(data_path=str(shared_corpus), preprocessing_mode=mode, batch_size=4)
    data = TrainingData(config)
    seen = [int(i) for batch in data.train_batches() for i in batch["index"]]
    assert sorted(seen) == list(range(9))
    assert [len(batch["index"]) for batch in data.val_batches()] == [1]


# The surface, as it is documented


def test_the_configuration_takes_flat_keywords_and_sections():
    from myxtts.config.config import DataConfig, ModelConfig, TrainingConfig, XTTSConfig

    config = XTTSConfig(data_path="/corpus", preprocessing_mode="runtime", batch_size=3)
    assert config.data.dataset_path == "/corpus"
    assert (config.data.preprocessing_mode, config.data.batch_size) == ("runtime", 3)
    sections = (DataConfig, ModelConfig, TrainingConfig)
    assert tuple(type(getattr(config, name)) for name in ("data", "model", "training")) == sections
    with pytest.raises(ValueError, match="auto, precompute, runtime; got 'sometimes'"):
        XTTSConfig(preprocessing_mode="sometimes")


def test_the_default_configuration_comes_from_the_old_name_too():
    from myxtts.config.config import XTTSConfig
    from trainTestFile import create_default_config

    config = create_default_config(data_path="/corpus", batch_size=5)
    assert isinstance(config, XTTSConfig)
    assert (config.data.dataset_path, config.data.batch_size) == ("/corpus", 5)
    assert create_default_config() == XTTSConfig()


DATA_DEFAULTS = {
    "dataset_path": "./data/ljspeech",
    "val_dataset_path": "",
    "metadata_train_file": "",
    "metadata_eval_file": "",
    "wavs_train_dir": "",
    "wavs_eval_dir": "",
    "language": "en",
    "sample_rate": 22050,
    "batch_size": 32,
    "preprocessing_mode": "auto",
    "num_workers": 8,
    "prefetch_buffer_size": 4,
    "shuffle_buffer_multiplier": 10,
    "enable_memory_mapping": True,
    "cache_verification": True,
    "auto_rebuild_token_cache": True,
    "auto_rebuild_mel_cache": True,
    "use_tf_native_loading": True,
    "enhanced_gpu_prefetch": True,
    "optimize_cpu_gpu_overlap": True,
    "prefetch_to_gpu": True,
    "memory_cache": False,
    "mixed_precision": None,
    "enable_xla": None,
    "max_mel_frames": 1600,
    "max_text_length": 600,
    "max_frames_per_batch": 0,
    "cache_dir": "",
    "profiler": None,
}


@pytest.mark.parametrize(("name", "default"), DATA_DEFAULTS.items())
def test_a_data_setting_has_its_documented_name_and_default(name, default):
    from myxtts.config.config import DataConfig, XTTSConfig

    assert getattr(DataConfig(), name) == default
    assert getattr(DataConfig(**{name: default}), name) == default
    assert XTTSConfig(**{name: default}) == XTTSConfig()


def test_one_switch_has_two_names():
    from myxtts.config.config import DataConfig

    assert DataConfig(enhanced_gpu_prefetch=False).prefetch_to_gpu is False
    assert DataConfig(prefetch_to_gpu=False).enhanced_gpu_prefetch is False
    with pytest.raises(ValueError, match="enhanced_gpu_prefetch and prefetch_to_gpu"):
        DataConfig(enhanced_gpu_prefetch=False, prefetch_to_gpu=True)


def test_the_training_section_has_the_documented_switches():
    from myxtts.config.config import TrainingConfig

    fields = {field.name: field.default for field in dataclasses.fields(TrainingConfig)}
    assert fields["enable_graph_mode"] is True
    assert fields["enable_xla_compilation"] is None
    assert fields["enable_eager_debug"] is False


def test_the_dataset_has_the_documented_methods():
    from myxtts.data.ljspeech import LJSpeechDataset

    assert list(parameters(LJSpeechDataset))[:3] == ["data_path", "config", "subset"]
    assert parameters(LJSpeechDataset)["subset"] == "all"
    prepare = {"num_workers": None, "overwrite": False}
    assert parameters(LJSpeechDataset.precompute_mels) == prepare
    assert parameters(LJSpeechDataset.precompute_tokens) == prepare
    made = parameters(LJSpeechDataset.create_tf_dataset)
    expected = {"batch_size": None, "use_cache_files": True, "num_parallel_calls": None}
    assert dict(list(made.items())[:3]) == expected
    assert parameters(LJSpeechDataset.verify_and_fix_cache) == {"fix": True}
    assert parameters(LJSpeechDataset.get_performance_report) == {}


def test_gpus_are_configured_under_the_documented_names():
    from myxtts.utils.commons import configure_gpus

    names = {"enable_mixed_precision", "enable_xla", "enable_eager_debug"}
    assert names <= parameters(configure_gpus).keys()


# The flags of `trainTestFile.py` that concern data.
FLAGS = """
--mode --config --output --data-path --data --train-data --preprocessing-mode --batch-size --epochs
--language --sample-rate --seed --num-workers --prefetch-buffer-size --disable-tf-native-loading
--disable-gpu-prefetch --disable-cpu-gpu-overlap --metadata-train-file --metadata-eval-file
--wavs-train-dir --wavs-eval-dir --cache-dir --max-mel-frames --max-text-length
""".split()


def test_the_flags_that_concern_data_are_there(capsys):
    from myxtts.cli.train_test_file import main

    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert not [flag for flag in FLAGS if flag not in shown]


def test_a_configuration_is_created_and_read_back(tmp_path):
    from myxtts.cli.train_test_file import main
    from myxtts.config.config import DataConfig
    from myxtts.config.io import load_config

    file = tmp_path / "config.yaml"
    arguments = ["--data-path", str(tmp_path), "--batch-size", "48", "--preprocessing-mode", "auto"]
    assert main(["--mode", "create-config", "--output", str(file), *arguments]) == 0
    data = load_config(file).data
    assert (data.dataset_path, data.batch_size) == (str(tmp_path), 48)
    assert data.num_workers == DataConfig().num_workers
