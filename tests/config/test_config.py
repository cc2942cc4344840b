import ast
import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import myxtts
from myxtts.config.config import (
    SETTINGS,
    AudioSpec,
    ConfigError,
    DataConfig,
    ModelConfig,
    TrainingConfig,
    XTTSConfig,
    affecting,
)
from myxtts.config.presets import PRESETS, create_default_config
from myxtts.errors import UserError


def test_flat_keywords_reach_their_sections():
    config = XTTSConfig(data_path="./d", preprocessing_mode="precompute", batch_size=48, epochs=3)
    assert config.data.dataset_path == "./d"
    assert config.data.preprocessing_mode == "precompute"
    assert (config.data.batch_size, config.training.epochs) == (48, 3)


def test_sections_and_flat_keywords_mix_and_the_section_given_stays_as_it_was():
    data = DataConfig(batch_size=4, num_workers=2)
    config = XTTSConfig(data=data, model=ModelConfig(model_size="big"), batch_size=5)
    assert (config.data.batch_size, config.data.num_workers) == (5, 2)
    assert config.model.model_size == "big"
    assert data.batch_size == 4


@pytest.mark.parametrize("make", [DataConfig, XTTSConfig, create_default_config])
def test_wrong_mode_names_the_three(make):
    with pytest.raises(ValueError, match="auto, precompute, runtime; got 'fast'"):
        make(preprocessing_mode="fast")


def test_errors_are_for_the_user_and_are_value_errors():
    assert issubclass(ConfigError, UserError) and issubclass(ConfigError, ValueError)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batch_size": 0}, ["data.batch_size", "at least 1", "0"]),
        ({"batch_size": 10**6}, ["data.batch_size", "at most 65536", "1000000"]),
        ({"max_mel_frames": 10**10}, ["data.max_mel_frames", "at most 1000000000"]),
        ({"batch_size": True}, ["data.batch_size", "whole number", "True"]),
        ({"batch_size": 4.5}, ["data.batch_size", "whole number", "4.5"]),
        ({"batch_size": "many"}, ["data.batch_size", "'many'"]),
        ({"memory_cache": "true"}, ["data.memory_cache", "true or false", "'true'"]),
        ({"fmin": float("nan")}, ["data.fmin", "finite", "nan"]),
        ({"fmax": 10**400}, ["data.fmax", "finite"]),
        ({"language": 5}, ["data.language", "text", "5"]),
        ({"language": b"en"}, ["data.language", "text"]),
        ({"dataset_path": ""}, ["data.dataset_path", "empty"]),
        ({"win_length": 2048}, ["data.win_length (2048)", "data.n_fft (1024)"]),
        ({"hop_length": 1025}, ["data.hop_length (1025)", "data.win_length (1024)"]),
        ({"fmax": 11026}, ["data.fmax (11026.0)", "data.sample_rate (22050)"]),
        ({"fmin": 8000}, ["data.fmin (8000.0)", "data.fmax (8000.0)"]),
        ({"pitch_fmin": 700}, ["data.pitch_fmin (700.0)", "data.pitch_fmax (600.0)"]),
        ({"pitch_fmax": 11026}, ["data.pitch_fmax (11026.0)", "data.sample_rate (22050)"]),
        # 100 frames of 256 samples at 22,050 Hz last 1.16 s
        ({"max_mel_frames": 100, "min_seconds": 2}, ["data.min_seconds (2.0)", "1.16 s"]),
        ({"loudness_lufs": 3}, ["data.loudness_lufs", "at most 0"]),
    ],
)
def test_nonsense_is_rejectd_by_name_and_value(values, words):
    with pytest.raises(ConfigError) as error:
        DataConfig(**values)
    for word in words:
        assert word in str(error.value)


def test_values_become_their_field_s_type_where_nothing_is_lost():
    data = DataConfig(
        mel_floor="1e-4", fmax=7600, batch_size=48.0, n_mels=np.int64(100), cache_dir=Path("c")
    )
    assert data.mel_floor == 1e-4
    assert data.fmax == 7600.0 and isinstance(data.fmax, float)
    assert type(data.batch_size) is int and type(data.n_mels) is int
    assert data.cache_dir == "c"
    assert DataConfig(cache_dir=None).cache_dir == ""


def test_a_later_change_is_checked_too():
    config = XTTSConfig()
    config.data.batch_size = "12"
    assert config.data.batch_size == 12
    with pytest.raises(ConfigError, match="at least 1"):
        config.data.batch_size = 0
    with pytest.raises(ConfigError, match="'bach_size' in data: did you mean 'batch_size'"):
        config.data.bach_size = 3
    config.data.win_length = 4096
    with pytest.raises(ConfigError, match="win_length"):
        config.check()


@pytest.mark.parametrize("make", [DataConfig, XTTSConfig])
def test_unknown_keyword_names_the_nearest(make):
    with pytest.raises(ConfigError, match="'prefetch_bufer_size'.*prefetch_buffer_size"):
        make(prefetch_bufer_size=3)


def test_a_section_of_the_wrong_kind_is_rejectd():
    with pytest.raises(ConfigError, match="data must be a DataConfig"):
        XTTSConfig(data=TrainingConfig())


def test_gpu_prefetch_is_one_switch_under_two_names():
    data = DataConfig(enhanced_gpu_prefetch=False)
    assert data.prefetch_to_gpu is False and data.enhanced_gpu_prefetch is False
    data.enhanced_gpu_prefetch = True
    assert data.prefetch_to_gpu is True
    assert XTTSConfig(enhanced_gpu_prefetch=False).data.prefetch_to_gpu is False
    assert DataConfig(enhanced_gpu_prefetch=True, prefetch_to_gpu=True).prefetch_to_gpu
    for make in (DataConfig, XTTSConfig):
        with pytest.raises(ConfigError, match="one switch under two names.*True and False"):
            make(enhanced_gpu_prefetch=True, prefetch_to_gpu=False)
    with pytest.raises(ConfigError, match="one switch"):
        XTTSConfig(data=DataConfig(), enhanced_gpu_prefetch=True, prefetch_to_gpu=False)


def test_replace_changes_a_field_that_has_two_names():
    assert dataclasses.replace(DataConfig(), prefetch_to_gpu=False).enhanced_gpu_prefetch is False


def test_xla_is_one_switch_under_two_names():
    old = XTTSConfig(enable_xla=False)
    assert old.training.enable_xla_compilation is False and old.data.enable_xla is False
    new = XTTSConfig(enable_xla_compilation=True)
    assert new.data.enable_xla is True
    assert XTTSConfig().training.enable_xla_compilation is None
    with pytest.raises(ConfigError, match="enable_xla is True.*enable_xla_compilation is False"):
        XTTSConfig(enable_xla=True, enable_xla_compilation=False)


def test_xla_changed_later_under_either_name_holds_for_both():
    config = XTTSConfig(enable_xla=True)
    config.training.enable_xla_compilation = False
    config.check()
    assert config.data.enable_xla is False
    config.data.enable_xla = None
    config.check()
    assert config.training.enable_xla_compilation is None
    config.data.enable_xla, config.training.enable_xla_compilation = True, False
    with pytest.raises(ConfigError, match="one switch"):
        config.check()


def test_audio_spec_is_derived_and_its_defaults_are_not_repeated():
    assert DataConfig().audio_spec == AudioSpec()
    spec = DataConfig(sample_rate=16000, n_mels=100, mel_floor=1e-6).audio_spec
    assert spec == AudioSpec(sample_rate=16000, n_mels=100, floor=1e-6)


def test_defaults_of_the_documents():
    data = DataConfig()
    assert (data.preprocessing_mode, data.num_workers, data.prefetch_buffer_size) == ("auto", 8, 4)
    assert data.shuffle_buffer_multiplier == 10
    fast = ("use_tf_native_loading", "enhanced_gpu_prefetch", "optimize_cpu_gpu_overlap")
    sure = ("enable_memory_mapping", "cache_verification", "auto_rebuild_token_cache")
    assert all(getattr(data, name) is True for name in (*fast, *sure, "auto_rebuild_mel_cache"))


def test_profiler_is_any_object_and_no_part_of_the_settings():
    config = XTTSConfig()
    config.data.profiler = profiler = object()
    assert config.data.profiler is profiler
    assert config == XTTSConfig() and "profiler" not in repr(config)
    assert XTTSConfig(data=config.data, batch_size=2).data.profiler is profiler
    assert "data.profiler" not in SETTINGS


def test_configurations_copy_and_pickle():
    config = XTTSConfig(batch_size=7, enable_xla=False)
    assert copy.deepcopy(config) == config == pickle.loads(pickle.dumps(config))
    assert config != XTTSConfig(batch_size=8, enable_xla=False)


def test_every_name_belongs_to_one_section_and_says_what_it_means():
    names = [path.partition(".")[2] for path in SETTINGS]
    assert len(names) == len(set(names))
    assert all(spec.metadata["help"] for spec in SETTINGS.values())


def test_presets_yield_to_what_is_explicit():
    assert create_default_config() == XTTSConfig()
    tiny = create_default_config("./d", model_size="tiny")
    assert (tiny.data.batch_size, tiny.data.dataset_path) == (8, "./d")
    assert create_default_config(model_size="tiny", batch_size=3).data.batch_size == 3
    sizes = [create_default_config(model_size=size).data.batch_size for size in PRESETS]
    assert sizes == [8, 32, 48, 64]
    assert tuple(PRESETS) == SETTINGS["model.model_size"].metadata["choices"]
    assert all(path in SETTINGS for preset in PRESETS.values() for path in preset)


def test_the_smallest_size_has_a_vocoder_of_its_own_size_unless_one_is_chosen():
    vocoders = {}
    for size in PRESETS:
        config = create_default_config(model_size=size)
        vocoders[size] = config.model.hifigan_version, config.training.discriminator_width
    assert vocoders == {"tiny": ("v3", 16), **dict.fromkeys(("small", "normal", "big"), ("v1", 1))}
    chosen = create_default_config(model_size="tiny", hifigan_version="v1", discriminator_width=2)
    assert (chosen.model.hifigan_version, chosen.training.discriminator_width) == ("v1", 2)


def test_config_imports_no_tensorflow():
    modules = "myxtts.config.config, myxtts.config.io, myxtts.config.flags, myxtts.runtime"
    code = f"import sys, {modules}; sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_model_that_no_machine_holds_is_rejectd_with_what_to_lower():
    with pytest.raises(
        ConfigError, match="weights, and 4,000,000,000 are the most: lower"
    ) as error:
        ModelConfig(decoder_dim=8192, decoder_layers=128)
    assert "model.decoder_layers" in str(error.value)
    for size in PRESETS:
        create_default_config(model_size=size).model.check()


def test_every_setting_that_sizes_the_model_is_bounded():
    for name, spec in ModelConfig.__dataclass_fields__.items():
        if spec.type is int:
            with pytest.raises(ConfigError, match=f"model.{name} must be at most"):
                ModelConfig(**{name: 10**6})


def test_replace_changes_a_copy_by_name_by_path_or_by_section():
    config = XTTSConfig(batch_size=8, enable_xla=True)
    other = config.replace(batch_size=4, **{"training.seed": 7, "data.fmax": 7000.0})
    assert (other.data.batch_size, other.training.seed, other.data.fmax) == (4, 7, 7000.0)
    assert (config.data.batch_size, config.training.seed) == (8, 42)
    model = ModelConfig(model_size="tiny")
    assert config.replace(model=model, dropout=0.2).model == dataclasses.replace(model, dropout=0.2)
    # One switch under two names stays one.
    assert config.replace(enable_xla_compilation=False).data.enable_xla is False
    with pytest.raises(ConfigError, match="did you mean .*batch_size"):
        config.replace(batch_sice=4)
    with pytest.raises(ConfigError, match="win_length"):
        config.replace(win_length=4096)


def test_what_a_setting_affects_is_declared_with_it():
    assert "training.seed" in affecting("plan") and "data.batch_size" in affecting("plan")
    assert set(ModelConfig.affecting("vocoder")) >= {"vocoder_type", "istft_dim"}
    assert "n_fft" in DataConfig.affecting("features")
    assert "trim_silence" not in DataConfig.affecting("features")
    named = {"dir", "path", "file"}
    paths = {path for path in SETTINGS if named & set(path.split("_"))}
    assert paths == set(affecting("path"))


def test_every_setting_is_read_by_something():
    read = {
        node.attr
        for file in Path(myxtts.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    # These are read by a composed name: a vocoder's settings by its kind, losses by their term.
    composed = {"mel_floor", "dropout", *ModelConfig.affecting("vocoder")}
    names = {path.partition(".")[2] for path in SETTINGS} - composed
    assert {name for name in names - read if not name.endswith("_loss_weight")} == set()
