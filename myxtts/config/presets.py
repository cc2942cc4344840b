"""What each model size sets, wherever nobody has set it explicitly."""

from typing import Any

from myxtts.config.config import DataConfig, ModelConfig, XTTSConfig

# The defaults are those of `small`; 1000 frames hold the longest sentence of LJSpeech.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"data.batch_size": 8, "data.max_mel_frames": 1000},
    "small": {},
    "normal": {"data.batch_size": 48},
    "big": {"data.batch_size": 64},
}


def create_default_config(data_path: str = DataConfig.dataset_path, **overrides: Any) -> XTTSConfig:
    """Return the preset of `model_size` for a corpus, with `overrides` as flat keywords."""
    size = ModelConfig(model_size=overrides.get("model_size", ModelConfig.model_size)).model_size
    preset = {path.rpartition(".")[2]: value for path, value in PRESETS[size].items()}
    return XTTSConfig(**{**preset, "data_path": data_path, **overrides})
