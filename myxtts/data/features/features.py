"""What one recording becomes: mel, energy and pitch per frame."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from myxtts.audio.bounds import AudioInfo
from myxtts.audio.cleanup import normalise_loudness, trim_silence
from myxtts.audio.io import AudioError, check_audible, read_audio, resample, resampled_length
from myxtts.audio.mel import mel_and_energy, num_frames
from myxtts.audio.pitch import mel_energy_and_pitch
from myxtts.audio.yin import yin
from myxtts.config.config import AudioSpec, DataConfig
from myxtts.data.rejections import NOT_FINITE
from myxtts.data.store.shard_writer import Column
from myxtts.monitoring.timers import FEATURES, stage

# Raised whenever the same settings give other numbers.
FEATURES_VERSION = 1


@dataclass(frozen=True)
class FeatureSettings:
    """Everything but the recording that determines the bytes of its features."""

    spec: AudioSpec
    dtype: str = "float16"
    with_pitch: bool = True
    pitch_method: str = "spectrum"
    pitch_fmin: float = 65.0
    pitch_fmax: float = 600.0
    trim_top_db: float | None = None
    loudness_lufs: float | None = None
    min_seconds: float = 0.1

    @classmethod
    def from_config(cls, config: DataConfig) -> "FeatureSettings":
        return cls(
            spec=config.audio_spec,
            dtype=config.cache_dtype,
            with_pitch=config.with_pitch,
            pitch_method=config.pitch_method,
            pitch_fmin=config.pitch_fmin,
            pitch_fmax=config.pitch_fmax,
            trim_top_db=config.trim_top_db if config.trim_silence else None,
            loudness_lufs=config.loudness_lufs,
            min_seconds=config.min_seconds,
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """Mel in the chosen type; a number per frame is cheap enough to stay exact."""
        mel = Column("mel", self.dtype, self.spec.n_mels)
        energy, pitch = Column("energy", "float32"), Column("pitch", "float32")
        return (mel, energy, pitch) if self.with_pitch else (mel, energy)

    @property
    def keeps_length(self) -> bool:
        """Whether a recording's header tells how many frames it will have."""
        return self.trim_top_db is None

    def as_dict(self) -> dict:
        """What a store is named by; those of before pitch had a method were filled by YIN."""
        settings = {"version": FEATURES_VERSION, **asdict(self)}
        if not self.with_pitch or self.pitch_method == "yin":
            del settings["pitch_method"]
        return settings


def load_samples(path: Path, settings: FeatureSettings, speed: float = 1.0) -> np.ndarray:
    """Decode, resample, trim and level a recording; raises AudioError where it cannot be used."""
    rate = settings.spec.sample_rate
    samples = at_speed(read_audio(path, rate), rate, speed)
    check_audible(samples, path)
    if settings.trim_top_db is not None:
        samples = trim_silence(samples, rate, settings.trim_top_db)
    if settings.loudness_lufs is not None:
        samples = normalise_loudness(samples, rate, settings.loudness_lufs)
    check_audible(samples, path, min_samples=round(settings.min_seconds * rate))
    return samples


def at_speed(samples: np.ndarray, rate: int, speed: float) -> np.ndarray:
    """Play samples `speed` times as fast; their pitch and formants rise with it."""
    return samples if speed == 1.0 else resample(samples, round(rate * speed), rate)


def compute_features(
    path: Path, settings: FeatureSettings, speed: float = 1.0
) -> dict[str, np.ndarray]:
    """The stored arrays of one recording, {mel [frames, mels], energy [frames], pitch [frames]}."""
    arrays = features_of(load_samples(path, settings, speed), settings)
    check_finite(arrays, path)
    return arrays


def check_finite(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Raise where features are no numbers: stored once, they would spoil every training."""
    for name, array in arrays.items():
        if not _is_finite(array):
            detail = f"its {name} holds NaN or infinite values; export it anew from its source"
            raise AudioError(path, NOT_FINITE, detail)


def _is_finite(array: np.ndarray) -> bool:
    """Whether all are numbers: of float16 by exponents, which takes a tenth of `np.isfinite`."""
    if array.dtype != np.float16:
        return bool(np.isfinite(array).all())
    exponents = array.view(np.uint16) & np.uint16(0x7C00)
    return bool((exponents != np.uint16(0x7C00)).all())


def features_of(samples: np.ndarray, settings: FeatureSettings) -> dict[str, np.ndarray]:
    """The same from samples that are already clean."""
    with stage(FEATURES):
        spec, limits = settings.spec, (settings.pitch_fmin, settings.pitch_fmax)
        arrays = {}
        if settings.with_pitch and settings.pitch_method == "spectrum":
            mel, energy, arrays["pitch"] = mel_energy_and_pitch(samples, spec, *limits)
        else:
            mel, energy = mel_and_energy(samples, spec)
            if settings.with_pitch:
                arrays["pitch"] = yin(samples, spec, *limits)
        return {"mel": mel.astype(settings.dtype), "energy": energy, **arrays}


def frames_of_header(info: AudioInfo, settings: FeatureSettings, speed: float = 1.0) -> int:
    """How many frames a recording will have, or at most where silence is trimmed."""
    rate = settings.spec.sample_rate
    samples = resampled_length(info.frames, info.sample_rate, rate)
    samples = resampled_length(samples, round(rate * speed), rate)
    return num_frames(samples, settings.spec)
