"""The one table from command-line flag to setting, for every command and root script."""

import argparse
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, dataclass
from typing import Any, NamedTuple

from myxtts.config.config import SETTINGS
from myxtts.config.fields import ConfigError, coerce


@dataclass(frozen=True)
class Flag:
    """Names that set one field: to the value that follows, to true, or to false."""

    names: tuple[str, ...]
    field: str
    kind: str = "value"
    help: str = ""

    @property
    def spec(self) -> Field:
        """The field, whose own help, choices and default `--help` shows."""
        return SETTINGS[self.field]

    @property
    def choices(self) -> Collection[str] | None:
        """The words that may follow the flag, if they are few."""
        return self.spec.metadata["choices"] or None


class FlagValue(NamedTuple):
    """The value of a flag, and the name under which it was given."""

    value: Any
    name: str


# Settings that hold several values, one for each time that their flag is given.
ADDED_UP = ("data.dataset_path",)

FLAGS: tuple[Flag, ...] = (
    Flag(("--data", "--data-path", "--train-data"), "data.dataset_path"),
    Flag(("--val-data",), "data.val_dataset_path"),
    Flag(("--metadata-train-file",), "data.metadata_train_file"),
    Flag(("--metadata-eval-file",), "data.metadata_eval_file"),
    Flag(("--wavs-train-dir",), "data.wavs_train_dir"),
    Flag(("--wavs-eval-dir",), "data.wavs_eval_dir"),
    Flag(("--language",), "data.language"),
    Flag(("--speaker-pattern",), "data.speaker_pattern"),
    Flag(("--val-fraction",), "data.val_fraction"),
    Flag(("--max-mel-frames",), "data.max_mel_frames"),
    Flag(("--max-text-length",), "data.max_text_length"),
    Flag(("--audio",), "data.audio"),
    Flag(("--sample-rate",), "data.sample_rate"),
    Flag(("--trim-silence",), "data.trim_silence", "true"),
    Flag(("--pitch-method",), "data.pitch_method"),
    Flag(("--loudness-lufs",), "data.loudness_lufs"),
    Flag(("--text-units",), "data.text_units"),
    Flag(("--espeak-alone",), "data.espeak_alone", "true"),
    Flag(("--preprocessing-mode",), "data.preprocessing_mode"),
    Flag(("--cache-dir",), "data.cache_dir"),
    Flag(("--local-cache-dir",), "data.local_cache_dir"),
    Flag(("--local-cache-gb",), "data.local_cache_gb"),
    Flag(("--cache-budget-gb",), "data.cache_budget_gb"),
    Flag(("--cache-dtype",), "data.cache_dtype"),
    Flag(
        ("--no-cache-verification",),
        "data.cache_verification",
        "false",
        "do not check what is read from the cache",
    ),
    Flag(
        ("--no-memory-mapping",),
        "data.enable_memory_mapping",
        "false",
        "read the cache's files instead of mapping them",
    ),
    Flag(("--memory-cache",), "data.memory_cache", "true"),
    Flag(("--batch-size",), "data.batch_size"),
    Flag(("--max-frames-per-batch",), "data.max_frames_per_batch"),
    Flag(("--balance-speakers",), "data.balance_speakers", "true"),
    Flag(("--utterances-per-speaker",), "data.utterances_per_speaker"),
    Flag(("--voice-augmentation",), "data.voice_augmentation"),
    Flag(("--num-workers",), "data.num_workers"),
    Flag(("--prefetch-buffer-size",), "data.prefetch_buffer_size"),
    Flag(
        ("--disable-tf-native-loading",),
        "data.use_tf_native_loading",
        "false",
        "copy batches on the host instead of gathering them in the TensorFlow graph",
    ),
    Flag(("--prefetch-to-gpu",), "data.prefetch_to_gpu", "true"),
    Flag(
        ("--no-prefetch-to-gpu", "--disable-gpu-prefetch"),
        "data.prefetch_to_gpu",
        "false",
        "move each batch to the GPU when its step begins",
    ),
    Flag(("--cache-on-device",), "data.cache_on_device"),
    Flag(("--cache-on-device-share",), "data.cache_on_device_share"),
    Flag(
        ("--disable-cpu-gpu-overlap",),
        "data.optimize_cpu_gpu_overlap",
        "false",
        "prepare each batch when its step begins",
    ),
    Flag(("--model-size",), "model.model_size"),
    Flag(("--decoder-strategy",), "model.decoder_strategy"),
    Flag(("--token-states",), "model.token_states"),
    Flag(("--pitch-contour",), "model.pitch_contour"),
    Flag(("--text-voice",), "model.text_voice"),
    Flag(("--refiner-layers",), "model.refiner_layers"),
    Flag(("--adversarial-loss-weight",), "training.adversarial_loss_weight"),
    Flag(("--enable-gst",), "model.use_gst", "true"),
    Flag(
        ("--disable-gst",),
        "model.use_gst",
        "false",
        "use the speaker embedding without style tokens",
    ),
    Flag(("--gst-num-style-tokens",), "model.gst_num_style_tokens"),
    Flag(("--gst-style-token-dim",), "model.gst_style_token_dim"),
    Flag(("--gst-style-embedding-dim",), "model.gst_style_embedding_dim"),
    Flag(("--gst-num-heads",), "model.gst_num_heads"),
    Flag(("--use-pretrained-speaker-encoder",), "model.use_pretrained_speaker_encoder", "true"),
    Flag(
        ("--disable-pretrained-speaker-encoder",),
        "model.use_pretrained_speaker_encoder",
        "false",
        "let the model learn its own speaker embeddings",
    ),
    Flag(("--speaker-encoder-type",), "model.speaker_encoder_type"),
    Flag(("--speaker-encoder-path",), "model.speaker_encoder_path"),
    Flag(("--freeze-speaker-encoder",), "model.freeze_speaker_encoder", "true"),
    Flag(
        ("--unfreeze-speaker-encoder",),
        "model.freeze_speaker_encoder",
        "false",
        "fine-tune the published speaker encoder, which then runs in every step",
    ),
    Flag(("--vocoder", "--vocoder-type"), "model.vocoder_type"),
    Flag(("--hifigan-version",), "model.hifigan_version"),
    Flag(("--two-stage-training",), "training.two_stage_training", "true"),
    Flag(("--stage1-epochs",), "training.stage1_epochs"),
    Flag(("--stage1-lr",), "training.stage1_learning_rate"),
    Flag(("--stage2-epochs",), "training.stage2_epochs"),
    Flag(("--stage2-max-steps",), "training.stage2_max_steps"),
    Flag(("--stage2-lr",), "training.stage2_learning_rate"),
    Flag(("--stage2-batch-size",), "training.stage2_batch_size"),
    Flag(("--stage2-max-audio-seconds",), "training.stage2_max_audio_seconds"),
    Flag(("--stage2-from", "--from"), "training.stage2_from"),
    Flag(("--stage2-on-predicted-mels",), "training.stage2_on_predicted_mels", "true"),
    Flag(("--adversarial",), "training.vocoder_adversarial", "true"),
    Flag(
        ("--no-adversarial",),
        "training.vocoder_adversarial",
        "false",
        "train the vocoder on spectra alone",
    ),
    Flag(("--contrastive-loss-temperature",), "training.contrastive_loss_temperature"),
    Flag(("--contrastive-loss-margin",), "training.contrastive_loss_margin"),
    Flag(("--epochs",), "training.epochs"),
    Flag(("--max-steps",), "training.max_steps"),
    Flag(("--auto-tune",), "training.auto_tune", "true"),
    Flag(("--lr", "--learning-rate"), "training.learning_rate"),
    Flag(("--grad-accum",), "training.gradient_accumulation_steps"),
    Flag(("--steps-per-call",), "training.steps_per_call"),
    Flag(("--operation-threads",), "training.operation_threads"),
    Flag(("--micro-batches",), "training.micro_batches"),
    Flag(("--exact-sums",), "training.exact_sums", "true"),
    Flag(("--worker-timeout",), "training.worker_timeout"),
    Flag(("--checkpoint-dir",), "training.checkpoint_dir"),
    Flag(("--save-interval",), "training.save_interval"),
    Flag(("--validation-interval",), "training.validation_interval"),
    Flag(("--enable-evaluation",), "training.enable_evaluation", "true"),
    Flag(("--evaluation-interval",), "training.evaluation_interval"),
    Flag(("--evaluation-sentences",), "training.evaluation_sentences"),
    Flag(("--evaluation-metric",), "training.evaluation_metric"),
    Flag(("--tensorboard-log-dir",), "training.tensorboard_log_dir"),
    Flag(("--wandb",), "training.use_wandb", "true"),
    Flag(("--enable-eager-debug",), "training.enable_eager_debug", "true"),
    Flag(("--seed",), "training.seed"),
)


# Settings that count only while a switch is on.
NEEDED_SWITCHES: dict[str, tuple[str, ...]] = {
    "model.use_gst": (
        *("model.gst_num_style_tokens", "model.gst_style_token_dim"),
        *("model.gst_style_embedding_dim", "model.gst_num_heads"),
    ),
    "model.use_pretrained_speaker_encoder": (
        *("model.speaker_encoder_path", "model.speaker_encoder_type"),
        "model.freeze_speaker_encoder",
    ),
}


def add_flags(
    parser: argparse.ArgumentParser,
    wanted: Iterable[str] | None = None,
    choices: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Add flags to a parser: all of them, or those of the wanted fields and flag names.

    `choices` are those of fields whose values a higher layer knows.
    """
    for flag in _select(wanted):
        known = (choices or {}).get(flag.field) or flag.choices
        takes: dict[str, Any] = {"type": _reader(flag), "choices": known}
        if flag.kind != "value":
            takes = {"nargs": 0, "const": flag.kind == "true"}
        parser.add_argument(
            *flag.names,
            dest=flag.field,
            action=_Keep,
            default=argparse.SUPPRESS,
            metavar=None if known else flag.field.rpartition(".")[2].upper(),
            help=_help(flag),
            **takes,
        )


def flag_values(args: argparse.Namespace) -> dict[str, FlagValue]:
    """Return what the flags that were given say, by the path of the field they set."""
    given = {path: value for path, value in vars(args).items() if isinstance(value, FlagValue)}
    for switch, needing in NEEDED_SWITCHES.items():
        idle = [given[path].name for path in needing if path in given]
        if idle and switch in given and given[switch].value is False:
            raise ConfigError(
                f"{', '.join(idle)} would have no effect with {given[switch].name}: remove either"
            )
    return given


class _Keep(argparse.Action):
    """Keeps a flag's value together with the name that was typed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        value = self.const if self.nargs == 0 else values
        before = getattr(namespace, self.dest, None)
        if before and self.dest in ADDED_UP and before.name == option_string:
            value = os.pathsep.join(dict.fromkeys([*before.value.split(os.pathsep), value]))
        elif before and before.name != option_string and before.value != value:
            raise argparse.ArgumentError(
                None, f"{before.name} and {option_string} contradict each other: keep one of them"
            )
        setattr(namespace, self.dest, FlagValue(value, option_string or self.option_strings[0]))


def _select(wanted: Iterable[str] | None) -> tuple[Flag, ...]:
    if wanted is None:
        return FLAGS
    names = set(wanted)
    chosen = tuple(flag for flag in FLAGS if names & {flag.field, *flag.names})
    unknown = names - {name for flag in chosen for name in (flag.field, *flag.names)}
    if unknown:
        raise ConfigError(f"no flag or flagged field is called {', '.join(sorted(unknown))}")
    return chosen


def _reader(flag: Flag) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return coerce(flag.field, flag.spec, text, text=True)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _help(flag: Flag) -> str:
    default = flag.spec.default
    if flag.kind == "false":
        default = None  # it is the setting's default, not this flag's
    elif isinstance(default, bool):
        default = "on" if default else "off"
    shown = "" if default in (None, "") else f" (default: {default})"
    return f"{flag.help or flag.spec.metadata['help']}{shown}".replace("%", "%%")
