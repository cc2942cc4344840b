"""What each model size and each audio preset sets, unless it is set explicitly."""

from collections.abc import Mapping
from typing import Any

from myxtts.config.config import SETTINGS, AudioSpec, DataConfig, XTTSConfig
from myxtts.config.fields import coerce

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
        "training.ema_decay": 0.995,
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

# The defaults are those of `22k`. `24k` has the mels of BigVGAN's 24 kHz models: all that such
# recordings hold, in as many samples per frame as before.
AUDIO_PRESETS: dict[str, dict[str, Any]] = {
    "22k": {},
    "24k": {
        "data.sample_rate": 24_000,
        "data.n_fft": 1024,
        "data.hop_length": 256,
        "data.win_length": 1024,
        "data.n_mels": 100,
        "data.fmin": 0.0,
        "data.fmax": 12_000.0,
    },
}

# The settings that name a preset, and what each of their values sets.
NAMED_PRESETS: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "model.model_size": PRESETS,
    "data.audio": AUDIO_PRESETS,
}


def create_default_config(data_path: str = DataConfig.dataset_path, **overrides: Any) -> XTTSConfig:
    """Return the presets of `model_size` and `audio` for a corpus, with `overrides` as keywords."""
    preset: dict[str, Any] = {}
    for path, table in NAMED_PRESETS.items():
        chosen = overrides.get(path.rpartition(".")[2], SETTINGS[path].default)
        preset |= table[coerce(path, SETTINGS[path], chosen)]
    names = {path.rpartition(".")[2]: value for path, value in preset.items()}
    return XTTSConfig(**{**names, "data_path": data_path, **overrides})


def preset_values(setting: str, name: str) -> dict[str, Any]:
    """What a preset gives every setting, by path, that a preset of its kind may change."""
    table = NAMED_PRESETS[setting]
    paths = {path for preset in table.values() for path in preset}
    return {path: table[name].get(path, SETTINGS[path].default) for path in paths}


def audio_preset_of(spec: AudioSpec) -> str | None:
    """The audio preset that gives these mels, if there is one."""
    known = {name: create_default_config(audio=name).data.audio_spec for name in AUDIO_PRESETS}
    return next((name for name, own in known.items() if own == spec), None)
