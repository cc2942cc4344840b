"""What each model size sets, unless it is set explicitly."""

from typing import Any

from myxtts.config.config import DataConfig, ModelConfig, XTTSConfig

# The defaults are those of `small`; 1000 frames hold the longest sentence of LJSpeech.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "data.batch_size": 8,
        "data.max_mel_frames": 1000,
        "model.text_encoder_dim": 192,
        "model.text_encoder_layers": 2,
        "model.text_encoder_heads": 2,
        "model.decoder_dim": 192,
        "model.decoder_layers": 5,
        "model.audio_encoder_dim": 128,
        "model.audio_encoder_layers": 3,
        "model.speaker_embedding_dim": 128,
        "model.gst_style_token_dim": 128,
        "model.gst_style_embedding_dim": 128,
        "model.hifigan_version": "v3",
        "training.discriminator_width": 16,
        "training.learning_rate": 2e-3,
        "training.warmup_steps": 100,
        "training.ema_decay": 0.99,
        "training.save_interval": 200,
        "training.validation_interval": 200,
        "training.sample_interval": 1000,
    },
    "small": {},
    "normal": {
        "data.batch_size": 48,
        "model.text_encoder_dim": 384,
        "model.text_encoder_layers": 6,
        "model.text_encoder_heads": 6,
        "model.decoder_dim": 384,
        "model.decoder_layers": 8,
        "model.audio_encoder_dim": 256,
        "model.speaker_embedding_dim": 256,
        "training.learning_rate": 6e-4,
        "training.warmup_steps": 2000,
    },
    "big": {
        "data.batch_size": 64,
        "model.text_encoder_dim": 512,
        "model.text_encoder_layers": 8,
        "model.text_encoder_heads": 8,
        "model.decoder_dim": 512,
        "model.decoder_layers": 12,
        "model.audio_encoder_dim": 320,
        "model.audio_encoder_layers": 5,
        "model.speaker_embedding_dim": 320,
        "training.learning_rate": 4e-4,
        "training.warmup_steps": 4000,
    },
}


def create_default_config(data_path: str = DataConfig.dataset_path, **overrides: Any) -> XTTSConfig:
    """Return the preset of `model_size` for a corpus, with `overrides` as flat keywords."""
    size = ModelConfig(model_size=overrides.get("model_size", ModelConfig.model_size)).model_size
    preset = {path.rpartition(".")[2]: value for path, value in PRESETS[size].items()}
    return XTTSConfig(**{**preset, "data_path": data_path, **overrides})
