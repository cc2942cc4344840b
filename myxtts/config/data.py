"""The settings of the data: the corpus, its features, their cache and the batches."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.fields import ConfigError, Section, option, section

_SPEC = AudioSpec()
_XLA = "training.enable_xla_compilation"


@section("data", data_path="dataset_path", enhanced_gpu_prefetch="prefetch_to_gpu")
@dataclass
class DataConfig(Section):
    """Where the corpus is, how it becomes features, and how features become batches."""

    # The corpus
    dataset_path: str = option(
        "./data/ljspeech",
        "the corpus; several are trained on as one, with a colon between them, or a flag for each",
        affects="path",
    )
    val_dataset_path: str = option("", "a separate corpus for validation", affects="path")
    metadata_train_file: str = option("", "metadata of the training utterances", affects="path")
    metadata_eval_file: str = option("", "metadata of the validation utterances", affects="path")
    wavs_train_dir: str = option("", "recordings of the training utterances", affects="path")
    wavs_eval_dir: str = option("", "recordings of the validation utterances", affects="path")
    language: str = option("en", "language of utterances whose metadata name none")
    speaker_pattern: str = option("", "regular expression that finds the speaker in an id")
    val_fraction: float = option(
        0.02, "share of utterances for validation where the corpus has no split", low=0.0, high=0.5
    )
    max_rejected: float = option(
        0.25, "share of a corpus that may be dropped before that is an error", low=0.0, high=1.0
    )
    max_mel_frames: int = option(1600, "longer recordings are dropped and counted", low=1)
    max_text_length: int = option(600, "longer texts are dropped and counted", low=1)
    min_seconds: float = option(0.1, "shorter recordings are dropped and counted", low=0.0)
    voice_augmentation: int = option(
        0,
        "speakers made of each one by speed perturbation, which moves pitch and formants",
        low=0,
        high=8,
    )

    # Features
    audio: str = option(
        "22k",
        "preset of the mels that sets what is not set",
        choices=("22k", "24k"),
        affects="origin",
    )
    sample_rate: int = option(
        _SPEC.sample_rate,
        "samples per second of the features",
        low=1,
        high=384_000,
        affects="features",
    )
    n_fft: int = option(
        _SPEC.n_fft, "samples per Fourier transform", low=2, high=8192, affects="features"
    )
    hop_length: int = option(
        _SPEC.hop_length, "samples between two frames", low=1, high=8192, affects="features"
    )
    win_length: int = option(
        _SPEC.win_length, "samples under the window", low=2, high=8192, affects="features"
    )
    n_mels: int = option(_SPEC.n_mels, "mel bands", low=1, high=512, affects="features")
    fmin: float = option(
        _SPEC.fmin, "lowest frequency of the mel bands, Hz", low=0.0, affects="features"
    )
    fmax: float = option(
        _SPEC.fmax, "highest frequency of the mel bands, Hz", low=1.0, affects="features"
    )
    mel_floor: float = option(
        _SPEC.floor, "least magnitude before the logarithm", low=1e-12, affects="features"
    )
    trim_silence: bool = option(
        False, "cut silence at both ends of a recording", affects="preprocessing"
    )
    trim_top_db: float = option(
        40.0, "this far below the peak is silence, dB", low=1.0, affects="preprocessing"
    )
    loudness_lufs: float | None = option(
        None,
        "bring every recording to this loudness, LUFS (null: leave it as it is)",
        low=-70.0,
        high=0.0,
        affects="preprocessing",
    )
    with_pitch: bool = option(
        True, "compute and store the pitch of every frame", affects="features"
    )
    pitch_method: str = option(
        "spectrum",
        "how pitch is found: in the spectra that mels are made of; or by YIN, as it was before",
        choices=("spectrum", "yin"),
        affects="features",
        before="yin",
    )
    pitch_fmin: float = option(
        65.0, "lowest pitch that is looked for, Hz", low=1.0, affects="preprocessing"
    )
    pitch_fmax: float = option(
        600.0, "highest pitch that is looked for, Hz", low=1.0, affects="preprocessing"
    )
    text_units: str = option(
        "characters",
        "what a token stands for; piper: what players can type",
        choices=("characters", "phonemes", "piper"),
        affects="features",
    )
    espeak_alone: bool = option(
        False,
        "read phonemes by espeak-ng, without a language's own front end",
        affects="features",
    )

    # The cache
    preprocessing_mode: str = option(
        "auto",
        "precompute: all features before the first step; runtime: none on disk; auto: as fits",
        choices=("auto", "precompute", "runtime"),
    )
    cache_dir: str = option(
        "",
        "where features are stored, if not next to the corpus: a folder, or a URL such as "
        "s3://bucket/folder",
        affects="path",
    )
    local_cache_dir: str = option(
        "",
        "folder for what is fetched of a cache on object storage (empty: in ~/.cache/myxtts)",
        affects="path",
    )
    local_cache_gb: float = option(
        0.0,
        "disk that features fetched from object storage may take, GB (0: no limit); less than all "
        "of them means that epochs are shuffled within groups of shards",
        low=0.0,
    )
    cache_budget_gb: float = option(0.0, "disk that features may take, GB (0: no limit)", low=0.0)
    cache_dtype: str = option(
        "float16", "type of the stored features", choices=("float16", "float32")
    )
    cache_verification: bool = option(True, "check what is read from the cache by its checksums")
    auto_rebuild_token_cache: bool = option(True, "remake tokens that are missing or damaged")
    auto_rebuild_mel_cache: bool = option(True, "remake features that are missing or damaged")
    enable_memory_mapping: bool = option(True, "map the cache instead of reading its files")
    memory_cache: bool = option(False, "read the whole cache into RAM on opening (network disks)")

    # Batches
    batch_size: int = option(32, "utterances per batch", low=1, high=65_536, affects="plan")
    max_frames_per_batch: int = option(
        0, "mel frames per batch (0: no limit)", low=0, affects="plan"
    )
    pad_to_multiple: int = option(
        32, "padded lengths are multiples of this", low=1, high=4096, affects="plan"
    )
    balance_speakers: bool = option(False, "draw every speaker equally often", affects="plan")
    utterances_per_speaker: int = option(
        0,
        "utterances of a speaker that share a batch (0: as they come)",
        low=0,
        high=65_536,
        affects="plan",
    )
    shuffle_buffer_multiplier: int = option(
        10,
        "size of the pools that are sorted by length, in fives of batches",
        low=1,
        high=10_000,
        affects="plan",
    )
    num_workers: int = option(
        8, "parallel workers, never more than the cores there are", low=1, high=4096
    )
    prefetch_buffer_size: int = option(4, "batches that are prepared ahead", low=1, high=1024)
    use_tf_native_loading: bool = option(True, "gather batches in the TensorFlow graph")
    prefetch_to_gpu: bool = option(True, "move batches to the GPU ahead of their step")
    optimize_cpu_gpu_overlap: bool = option(True, "prepare batches while a step computes")

    # The device
    cache_on_device: str = option(
        "auto",
        "copy the cache to the device once and gather batches there; auto: on a GPU with room",
        choices=("auto", "on", "off"),
    )
    cache_on_device_share: float = option(
        0.5,
        "share of the device's free memory that the cache may take, seen after the first steps",
        low=0.0,
        high=1.0,
    )
    mixed_precision: bool | None = option(
        None,
        "compute in half precision (null: on a GPU; convolutions alone on a CPU with AVX-512 BF16)",
    )
    enable_xla: bool | None = option(None, f"old name of {_XLA}", same_as=_XLA)

    profiler: Any = option(None, "object that receives cache hits and timings", stored=False)

    @property
    def corpora(self) -> list[str]:
        """The folders that `dataset_path` names; one that exists is one, whatever its name."""
        if os.path.exists(os.path.expanduser(self.dataset_path)):
            return [self.dataset_path]
        parts = [part for part in self.dataset_path.split(os.pathsep) if part]
        return parts or [self.dataset_path]

    @property
    def audio_spec(self) -> AudioSpec:
        """The numbers that define the log-mel, as one object."""
        names = {f.name: "mel_floor" if f.name == "floor" else f.name for f in _spec_fields()}
        return AudioSpec(**{name: getattr(self, own) for name, own in names.items()})

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        nyquist = self.sample_rate / 2
        seconds = self.max_mel_frames * self.hop_length / self.sample_rate
        self.require(self.dataset_path != "", "{dataset_path} is empty: name the corpus")
        self.require(self.win_length <= self.n_fft, "{win_length} is more than {n_fft}")
        self.require(self.hop_length <= self.win_length, "{hop_length} is more than {win_length}")
        self.require(self.fmin < self.fmax, "{fmin} is not below {fmax}")
        self.require(self.fmax <= nyquist, "{fmax} is above half of {sample_rate}")
        self.require(
            self.fmax - self.fmin >= 2 * self.sample_rate / self.n_fft,
            "between {fmin} and {fmax} there is no frequency that {n_fft} can resolve",
        )
        self.require(
            self.batch_size % max(1, self.utterances_per_speaker) == 0,
            "{batch_size} is not a multiple of {utterances_per_speaker}",
        )
        self.require(self.pitch_fmin < self.pitch_fmax, "{pitch_fmin} is not below {pitch_fmax}")
        self.require(self.pitch_fmax <= nyquist, "{pitch_fmax} is above half of {sample_rate}")
        self.require(
            self.min_seconds < seconds,
            f"{{min_seconds}} leaves nothing below {{max_mel_frames}}, which is {seconds:.2f} s",
        )


def audio_spec_of(values: Mapping[str, Any]) -> AudioSpec:
    """The spec that a file holds as a dict; a ConfigError names what cannot be."""
    names = {spec.name for spec in _spec_fields()}
    if values.keys() != names:
        differing = ", ".join(sorted(map(str, values.keys() ^ names)))
        raise ConfigError(f"the mels are not described by {', '.join(sorted(names))} ({differing})")
    own = {"mel_floor" if name == "floor" else name: value for name, value in values.items()}
    # Settings that do not concern mels must not make this fail.
    return DataConfig(**own, min_seconds=0.0, pitch_fmin=1.0, pitch_fmax=1.5).audio_spec


def _spec_fields() -> tuple[Field, ...]:
    return dataclasses.fields(AudioSpec)
