"""Every setting, with its one default, its meaning and its limits, in three checked sections."""

import dataclasses
from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.fields import ConfigError, Effect, Section, option, section, unknown_setting
from myxtts.config.sizes import check_size
from myxtts.config.vocoders import VOCODERS

__all__ = [
    "ALIASES",
    "SECTIONS",
    "SETTINGS",
    "AudioSpec",
    "ConfigError",
    "DataConfig",
    "ModelConfig",
    "TrainingConfig",
    "XTTSConfig",
    "affecting",
    "audio_spec_of",
]

_SPEC = AudioSpec()
_XLA = "training.enable_xla_compilation"
LAST_RATE_SHARE = 0.02
# Far above any real use: a file with more than that is broken, or means to exhaust the machine.
_WIDEST, _DEEPEST = 8192, 128


@section("data", data_path="dataset_path", enhanced_gpu_prefetch="prefetch_to_gpu")
@dataclass
class DataConfig(Section):
    """Where the corpus lies, how it becomes features, and how features become batches."""

    # The corpus
    dataset_path: str = option("./data/ljspeech", "the corpus", affects="path")
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
    pitch_fmin: float = option(
        65.0, "lowest pitch that is looked for, Hz", low=1.0, affects="preprocessing"
    )
    pitch_fmax: float = option(
        600.0, "highest pitch that is looked for, Hz", low=1.0, affects="preprocessing"
    )
    text_units: str = option(
        "characters",
        "what a token stands for",
        choices=("characters", "phonemes"),
        affects="features",
    )

    # The cache
    preprocessing_mode: str = option(
        "auto",
        "precompute: all features before the first step; runtime: none on disk; auto: as fits",
        choices=("auto", "precompute", "runtime"),
    )
    cache_dir: str = option(
        "", "where features are stored, if not next to the corpus", affects="path"
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
    mixed_precision: bool | None = option(
        None, "compute in half precision (null: where there is a GPU)"
    )
    enable_xla: bool | None = option(None, f"old name of {_XLA}", same_as=_XLA)

    profiler: Any = option(None, "object that is told of cache hits and timings", stored=False)

    @property
    def audio_spec(self) -> AudioSpec:
        """The numbers that define the log-mel, in one piece."""
        names = {f.name: "mel_floor" if f.name == "floor" else f.name for f in _spec_fields()}
        return AudioSpec(**{name: getattr(self, own) for name, own in names.items()})

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        nyquist = self.sample_rate / 2
        seconds = self.max_mel_frames * self.hop_length / self.sample_rate
        _require(self, self.dataset_path != "", "{dataset_path} is empty: name the corpus")
        _require(self, self.win_length <= self.n_fft, "{win_length} is more than {n_fft}")
        _require(self, self.hop_length <= self.win_length, "{hop_length} is more than {win_length}")
        _require(self, self.fmin < self.fmax, "{fmin} is not below {fmax}")
        _require(self, self.fmax <= nyquist, "{fmax} is above half of {sample_rate}")
        _require(
            self,
            self.fmax - self.fmin >= 2 * self.sample_rate / self.n_fft,
            "between {fmin} and {fmax} there is no frequency that {n_fft} can tell apart",
        )
        _require(
            self,
            self.batch_size % max(1, self.utterances_per_speaker) == 0,
            "{batch_size} is not a multiple of {utterances_per_speaker}",
        )
        _require(self, self.pitch_fmin < self.pitch_fmax, "{pitch_fmin} is not below {pitch_fmax}")
        _require(self, self.pitch_fmax <= nyquist, "{pitch_fmax} is above half of {sample_rate}")
        _require(
            self,
            self.min_seconds < seconds,
            f"{{min_seconds}} leaves nothing below {{max_mel_frames}}, which is {seconds:.2f} s",
        )


@section("model")
@dataclass
class ModelConfig(Section):
    """How large the model is and of which parts."""

    model_size: str = option(
        "small",
        "preset that sets what is not set",
        choices=("tiny", "small", "normal", "big"),
        affects="origin",
    )
    text_encoder_dim: int = option(256, "width of the text encoder", low=8, high=_WIDEST)
    text_encoder_conv_layers: int = option(
        3, "convolutions of the text encoder, before the attention", low=0, high=_DEEPEST
    )
    text_encoder_layers: int = option(
        4, "self-attention layers of the text encoder", low=0, high=_DEEPEST
    )
    text_encoder_heads: int = option(
        4, "heads of each self-attention layer of the text encoder", low=1, high=256
    )
    decoder_strategy: str = option(
        "parallel",
        "parallel: all frames at once; autoregressive: some frames at a time",
        choices=("parallel", "autoregressive"),
        old_words={"non_autoregressive": "parallel"},
    )
    decoder_dim: int = option(256, "width of the decoder", low=8, high=_WIDEST)
    decoder_layers: int = option(6, "convolution blocks of the decoder", low=1, high=_DEEPEST)
    decoder_reduction: int = option(2, "frames that the decoder makes at a time", low=1, high=16)
    audio_encoder_dim: int = option(192, "width of the reference encoder", low=8, high=_WIDEST)
    audio_encoder_layers: int = option(4, "convolutions of the reference encoder", low=1, high=16)
    speaker_embedding_dim: int = option(192, "width of the speaker embedding", low=2, high=_WIDEST)
    use_pretrained_speaker_encoder: bool | None = option(
        None,
        "take speaker embeddings from a published encoder (null: if speaker_encoder_path is set)",
        affects="origin",
    )
    speaker_encoder_type: str = option(
        "ecapa_tdnn",
        "published speaker encoder",
        choices=("ecapa_tdnn", "resemblyzer", "coqui"),
        affects="origin",
    )
    speaker_encoder_path: str = option(
        "",
        "weights of the speaker encoder (empty: where `myxtts weights get` puts them)",
        affects="path",
    )
    freeze_speaker_encoder: bool = option(
        True, "keep the published speaker encoder as it is, and embed each recording only once"
    )
    use_gst: bool = option(
        True, "use global style tokens (GST) in addition to the speaker embedding"
    )
    gst_num_style_tokens: int = option(10, "style tokens", low=1, high=4096)
    gst_style_token_dim: int = option(256, "width of a style token", low=1, high=_WIDEST)
    gst_style_embedding_dim: int = option(256, "width of the style embedding", low=1, high=_WIDEST)
    gst_num_heads: int = option(4, "heads of the attention over the style tokens", low=1, high=256)
    dropout: float = option(0.1, "share of activations dropped in training", low=0.0, high=0.9)

    # The vocoder
    vocoder_type: str = option(
        "hifigan",
        "vocoder of the second stage",
        choices=VOCODERS,
        affects="vocoder",
    )
    hifigan_version: str = option(
        "v1", "published size of HiFi-GAN", choices=("v1", "v2", "v3"), affects="vocoder"
    )
    istft_dim: int = option(
        128, "width of the istft vocoder", low=8, high=_WIDEST, affects="vocoder"
    )
    istft_blocks: int = option(
        2, "residual blocks of the istft vocoder", low=1, high=_DEEPEST, affects="vocoder"
    )
    istft_projections: int = option(
        4,
        "how often the istft vocoder corrects its spectrum towards the mel (0: fastest)",
        low=0,
        high=100,
        affects="vocoder",
    )

    @property
    def speaker_encoder(self) -> str:
        """The published encoder that describes voices; empty where the model learns its own."""
        wanted = self.use_pretrained_speaker_encoder
        wanted = bool(self.speaker_encoder_path) if wanted is None else wanted
        return self.speaker_encoder_type if wanted else ""

    @property
    def is_encoder_frozen(self) -> bool:
        """Whether voices are described once and for all, before training."""
        return bool(self.speaker_encoder) and self.freeze_speaker_encoder

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        _require(
            self,
            self.text_encoder_dim % self.text_encoder_heads == 0,
            "{text_encoder_dim} is not a multiple of {text_encoder_heads}",
        )
        _require(
            self,
            self.gst_style_embedding_dim % self.gst_num_heads == 0,
            "{gst_style_embedding_dim} is not a multiple of {gst_num_heads}",
        )
        check_size(self)


@section("training")
@dataclass
class TrainingConfig(Section):
    """How long, from which seed, by which losses, and how TensorFlow runs it."""

    # How long
    epochs: int = option(1000, "passes over the corpus", low=1)
    max_steps: int = option(0, "end after so many steps (0: after the epochs)", low=0)
    seed: int = option(
        42, "what every random choice derives from", low=0, high=2**32 - 1, affects="plan"
    )

    # The optimizer
    learning_rate: float = option(1e-3, "highest learning rate", low=1e-9, high=1.0)
    min_learning_rate: float | None = option(
        None, "learning rate at the end (null: 1/50 of learning_rate)", low=0.0, high=1.0
    )
    lr_schedule: str = option(
        "cosine", "how the learning rate falls after the warm-up", choices=("cosine", "constant")
    )
    warmup_steps: int = option(1000, "steps over which the learning rate rises", low=0)
    beta1: float = option(0.9, "decay of the mean of the gradients", low=0.0, high=0.9999)
    beta2: float = option(0.98, "decay of the mean of the squared gradients", low=0.0, high=0.99999)
    weight_decay: float = option(0.0, "decoupled weight decay (0: none)", low=0.0, high=1.0)
    gradient_clip_norm: float = option(1.0, "largest norm of all gradients (0: any)", low=0.0)
    gradient_accumulation_steps: int = option(
        1, "batches per update of the weights", low=1, high=65_536
    )
    ema_decay: float = option(0.999, "decay of the EMA weights (0: none)", low=0.0, high=0.99999)

    # The losses
    mel_loss_weight: float = option(1.0, "weight of the mel loss", low=0.0)
    stop_loss_weight: float = option(0.2, "weight of the stop loss", low=0.0)
    stop_token_positive_weight: float = option(
        5.0, "weight of the stop frames in the stop loss", low=0.0
    )
    alignment_loss_weight: float = option(0.5, "weight of the alignment loss", low=0.0)
    alignment_prior_steps: int = option(
        200, "steps over which the diagonal prior of the alignment fades", low=0
    )
    duration_loss_weight: float = option(0.3, "weight of the duration loss", low=0.0)
    pitch_loss_weight: float = option(0.1, "weight of the pitch loss", low=0.0)
    energy_loss_weight: float = option(0.1, "weight of the energy loss", low=0.0)
    voice_similarity_loss_weight: float = option(
        0.1,
        "weight of the distance between the reference and the output speaker embedding",
        low=0.0,
    )
    speaker_classification_loss_weight: float = option(
        0.1, "weight of classifying the speakers of the corpus", low=0.0
    )
    contrastive_loss_weight: float = option(
        0.1, "weight of having embeddings of a speaker nearer than those of others", low=0.0
    )
    contrastive_loss_temperature: float = option(
        0.1,
        "temperature of the contrastive loss: smaller is stricter with the nearest other speakers",
        low=0.01,
        high=10.0,
    )
    contrastive_loss_margin: float = option(
        0.2,
        "how much nearer embeddings of the same speaker must be, as a cosine",
        low=0.0,
        high=2.0,
    )
    adaptive_loss_weights: bool = option(
        False, "scale each weight, by a quarter to four, so that no term drowns the others"
    )

    # The run
    checkpoint_dir: str = option(
        "runs/voice", "where checkpoints, logs and the voice are kept", affects="path"
    )
    auto_tune: bool = option(
        False, "choose reader, workers, prefetch depth and batch size by short measurements"
    )
    save_interval: int = option(1000, "steps between two checkpoints", low=1)
    keep_checkpoints: int = option(3, "checkpoints that are kept besides the best", low=1)
    log_interval: int = option(20, "steps between two entries of the log", low=1)
    validation_interval: int = option(1000, "steps between two validations", low=1)
    sample_interval: int = option(5000, "steps between two spoken samples (0: none)", low=0)
    enable_evaluation: bool = option(False, "evaluate the speech of the voice during training")
    evaluation_interval: int = option(25, "epochs between two evaluations", low=1)
    evaluation_sentences: int = option(8, "held-out sentences of each evaluation", low=1)
    evaluation_metric: str = option(
        "cer",
        "score that decides which voice is the best: a metric of the evaluation, or loss",
    )
    tensorboard_log_dir: str = option(
        "", "TensorBoard's folder, if not in the checkpoint folder", affects="path"
    )
    use_wandb: bool = option(False, "log to Weights & Biases as well")
    wandb_project: str = option("myxtts", "project of Weights & Biases")

    # The second stage
    two_stage_training: bool = option(False, "train a vocoder after the voice")
    stage1_epochs: int = option(0, "passes of the first stage (0: as epochs says)", low=0)
    stage1_learning_rate: float = option(
        0.0,
        "highest learning rate of the first stage (0: as learning_rate says)",
        low=0.0,
        high=1.0,
    )
    stage2_epochs: int = option(1000, "passes of the vocoder over the corpus", low=1)
    stage2_max_steps: int = option(0, "steps of the vocoder (0: as many as the epochs take)", low=0)
    stage2_learning_rate: float = option(
        0.0,
        "learning rate of the vocoder (0: 2e-4 against discriminators, else 2e-3)",
        low=0.0,
        high=1.0,
    )
    stage2_batch_size: int = option(
        16, "segments of recordings per batch of the vocoder", low=1, high=65_536
    )
    stage2_max_audio_seconds: float = option(
        0.0,
        "length of a segment (0: 32 frames against discriminators, else 48)",
        low=0.0,
        high=60.0,
    )
    stage2_from: str = option(
        "",
        "what the vocoder starts from: public weights by name, a checkpoint, or a vocoder's folder",
    )
    stage2_on_predicted_mels: bool = option(
        False, "train the vocoder on teacher-forced (GTA) mels of the voice"
    )
    vocoder_adversarial: bool | None = option(
        None, "train the vocoder against discriminators (null: as suits its kind)"
    )
    discriminator_width: int = option(
        1, "divide the discriminators' channels by so much: 1 is as published", low=1, high=32
    )

    # TensorFlow
    enable_graph_mode: bool = option(True, "run steps as compiled graphs (false: eagerly)")
    enable_xla_compilation: bool | None = option(
        None, "compile graphs with XLA (null: where there is a GPU)"
    )
    enable_eager_debug: bool = option(False, "run everything eagerly, to debug step by step")

    @property
    def last_learning_rate(self) -> float:
        """The learning rate at the end; it follows the highest one unless it is set."""
        if self.min_learning_rate is None:
            return LAST_RATE_SHARE * self.learning_rate
        return self.min_learning_rate

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        _require(
            self,
            self.last_learning_rate <= self.learning_rate,
            "{min_learning_rate} is above {learning_rate}",
        )


SECTIONS: dict[str, type[Section]] = {
    cls.section: cls for cls in (DataConfig, ModelConfig, TrainingConfig)
}


def _declared() -> dict[str, Field]:
    return {
        f"{name}.{spec.name}": spec
        for name, cls in SECTIONS.items()
        for spec in dataclasses.fields(cls)
    }


# Everything that a file, a flag or the environment may set, by its path.
SETTINGS: dict[str, Field] = {
    path: spec
    for path, spec in _declared().items()
    if spec.metadata["stored"] and not spec.metadata["same_as"]
}
# A second name, by its path, and the path that it stands for.
ALIASES: dict[str, str] = {
    f"{name}.{alias}": f"{name}.{known}"
    for name, cls in SECTIONS.items()
    for alias, known in cls.aliases.items()
} | {
    path: spec.metadata["same_as"] for path, spec in _declared().items() if spec.metadata["same_as"]
}


def affecting(*kinds: Effect) -> tuple[str, ...]:
    """The paths of the settings of all sections that affect one of these."""
    return tuple(f"{name}.{own}" for name, cls in SECTIONS.items() for own in cls.affecting(*kinds))


@dataclass(init=False)
class XTTSConfig:
    """All sections; any field of any section may also be given as a keyword of its own."""

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    def __init__(
        self,
        *,
        data: DataConfig | None = None,
        model: ModelConfig | None = None,
        training: TrainingConfig | None = None,
        **flat: Any,
    ) -> None:
        given = {"data": data, "model": model, "training": training}
        values = _by_section(flat)
        for name, cls in SECTIONS.items():
            setattr(self, name, _build(cls, given[name], values[name]))
        self._xla: bool | None = None
        self.check()

    def replace(self, **changes: Any) -> "XTTSConfig":
        """A copy with other sections or settings; a setting goes by its name or by its path."""
        given = {name: changes.pop(name, getattr(self, name)) for name in SECTIONS}
        copy = XTTSConfig(**given)
        for owner, values in _by_section(changes).items():
            for name, value in values.items():
                setattr(getattr(copy, owner), name, value)
        copy.check()
        return copy

    def check(self) -> None:
        """Raise ConfigError where values do not fit; call it after changing several of them."""
        for name in SECTIONS:
            getattr(self, name).check()
        self._settle_xla()

    def _settle_xla(self) -> None:
        """Give the switch that has two names one value: that of whichever was changed."""
        named = (self.data.enable_xla, self.training.enable_xla_compilation)
        changed = {value for value in named if value != self._xla}
        if len(changed) > 1:
            raise ConfigError(
                f"data.enable_xla is {named[0]} and {_XLA} is {named[1]}: they are one switch "
                f"under two names; set only {_XLA}"
            )
        if changed:
            (self._xla,) = changed
            self.data.enable_xla = self.training.enable_xla_compilation = self._xla


def audio_spec_of(values: Mapping[str, Any]) -> AudioSpec:
    """The spec that a file holds as a dict; a ConfigError names what cannot be."""
    names = {spec.name for spec in _spec_fields()}
    if values.keys() != names:
        differing = ", ".join(sorted(map(str, values.keys() ^ names)))
        raise ConfigError(f"the mels are not described by {', '.join(sorted(names))} ({differing})")
    own = {"mel_floor" if name == "floor" else name: value for name, value in values.items()}
    # What a mel has nothing to do with must not be in its way.
    return DataConfig(**own, min_seconds=0.0, pitch_fmin=1.0, pitch_fmax=1.5).audio_spec


def _spec_fields() -> tuple[Field, ...]:
    return dataclasses.fields(AudioSpec)


def _require(config: Section, holds: bool, complaint: str) -> None:
    """Raise `complaint` unless it holds; a {name} in it becomes the setting and its value."""
    if not holds:
        named = {
            spec.name: f"{config.section}.{spec.name} ({getattr(config, spec.name)})"
            for spec in dataclasses.fields(config)
        }
        raise ConfigError(complaint.format(**named))


def _by_section(flat: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort flat keywords by the section that owns them."""
    values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    paths = [*_declared(), *ALIASES]
    for name, value in flat.items():
        owners = {path.split(".")[0] for path in paths if f".{path}".endswith(f".{name}")}
        if not owners:
            raise unknown_setting(name, paths, "among the keywords of XTTSConfig")
        if len(owners) > 1:
            raise ConfigError(f"{name!r} belongs to {' and '.join(sorted(owners))}: give a section")
        values[owners.pop()][name.rpartition(".")[2]] = value
    return values


def _build(cls: type[Section], given: Section | None, values: dict[str, Any]) -> Section:
    """Return a section of its own: later changes to `given` do not reach it, nor back."""
    if given is None:
        return cls(**values)
    if not isinstance(given, cls):
        raise ConfigError(f"{cls.section} must be a {cls.__name__}, got {given!r}")
    named = {cls.aliases.get(name, name) for name in values}
    kept = {
        spec.name: getattr(given, spec.name)
        for spec in dataclasses.fields(cls)
        if spec.name not in named
    }
    return cls(**kept, **values)
