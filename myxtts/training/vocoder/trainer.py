"""The second stage: a vocoder trained on segments of a corpus, in a folder it resumes from."""

import hashlib
import json
import logging
from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from myxtts import __version__
from myxtts.audio.postfilter import sharpen
from myxtts.checkpoints import (
    Voice,
    as_voice_encoder,
    saved_states,
    variables_of,
    weights_of,
)
from myxtts.checkpoints.states import SavedState
from myxtts.checkpoints.vocoders import load_vocoder, named_vocoder, save_vocoder
from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.config.config import ModelConfig, TrainingConfig, XTTSConfig
from myxtts.config.io import load_config
from myxtts.config.presets import PRESETS
from myxtts.data.batches.split import Split, split_batches
from myxtts.data.batches.training_data import KnownTables, TrainingData, batch_options
from myxtts.data.segments.predictions import Predictor
from myxtts.data.segments.segments import SegmentSource
from myxtts.data.segments.vocoder_data import VocoderData
from myxtts.errors import UserError
from myxtts.models.vocoders.discriminators import MultiPeriodDiscriminator, MultiScaleDiscriminator
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.models.vocoders.registry import build_vocoder, in_float32
from myxtts.training.ending import Ending
from myxtts.training.fused_adam import FusedAdamW
from myxtts.training.hooks.tensorboard import Boards, TensorBoardHook
from myxtts.training.loop import Hook, Listener, StepRecord
from myxtts.training.optimizer import WarmUp
from myxtts.training.predictions import TeacherForced, predict_mels
from myxtts.training.resuming import difference, raise_if_other
from myxtts.training.run import Schedule, TrainingRun, Wiring, digest
from myxtts.training.vocoder.losses import SpectralLoss
from myxtts.training.vocoder.part_steps import (
    make_adversarial_parts_step,
    make_spectral_parts_step,
)
from myxtts.training.vocoder.steps import (
    ADVERSARIAL_WEIGHTS,
    SPECTRAL_WEIGHTS,
    make_adversarial_step,
    make_spectral_step,
    make_vocoder_evaluation,
)

logger = logging.getLogger(__name__)

# As published: 8,192 samples. Without discriminators longer segments cost little and steady it.
SEGMENT_FRAMES = {True: 32, False: 48}
LEARNING_RATE = {True: 2e-4, False: 2e-3}
WARM_UP, LAST_SHARE = 100, 0.02  # of the spectral schedule
DECAY = 0.999  # per epoch, of the adversarial one
# Settings that name a published size of a kind, and all that a preset decides about a vocoder.
_FIELDS = ModelConfig.affecting("vocoder")
VERSIONS = tuple(name for name in _FIELDS if name.endswith("_version"))
_SIZES = (*(f"model.{name}" for name in VERSIONS), "training.discriminator_width")


class VocoderTrainer(TrainingRun):
    """Trains the vocoder of a configuration on a corpus, from nothing or from `stage2_from`.

    With `voice` it is trained on the teacher-forced (GTA) mels of that voice.
    """

    exports = ("vocoder", "vocoder-best")
    plan_facts = ("pieces", "seed")
    shown_losses = ("stft_loss",)

    def __init__(
        self,
        config: XTTSConfig,
        folder: str | Path,
        resume: bool | Path | str | None = None,
        voice: Voice | None = None,
        replicas: Replicas = ALONE,
    ):
        super().__init__(config, folder, resume, replicas)
        if resume is not False:
            self.config = config = as_begun(config, self.folder)
        self.voice, self.spec = voice, config.data.audio_spec
        self.model = self._build()
        self.kind = self.model.kind
        asked = config.training.vocoder_adversarial
        self.is_adversarial = self.model.is_adversarial if asked is None else asked
        self.segments: VocoderData | None = None

    def prepare_datasets(self, progress=None, data: TrainingData | None = None) -> VocoderData:
        """Open the corpus, or take one that is open, and store the waveforms that it lacks."""
        with self.replicas.chief_first():
            data = data or self._open(progress)
            predictor = self._predictor() if self.voice else None
            size = self.config.training.stage2_batch_size
            self.segments = VocoderData(data, self.frames, size, progress, predictor)
        return self.segments

    def train(self) -> Ending:
        """Train to the end, and return how it ended."""
        if self.segments is None:
            self.prepare_datasets()
        val_batches = self.segments.val_batches() if self.segments.val is not None else None
        return self.run(self.segments, val_batches, self.ids_of)

    @property
    def frames(self) -> int:
        """Frames of a segment."""
        seconds = self.config.training.stage2_max_audio_seconds
        if not seconds:
            return SEGMENT_FRAMES[self.is_adversarial]
        return max(1, int(seconds * self.spec.sample_rate / self.spec.hop_length))

    def _open(self, progress) -> TrainingData:
        """The corpus; under a voice, as that voice knows it."""
        if self.voice is None:
            return TrainingData(self.config, progress)
        voice = self.voice
        known = KnownTables(voice.tokenizer, voice.speakers, voice.languages)
        encoder = None
        if voice.model.wants_embeddings:
            encoder = as_voice_encoder(voice.model.published_voice.speaker_encoder)
        return TrainingData(self.config, progress, encoder, known)

    def _build(self) -> NeuralVocoder:
        config = self.config
        model = build_vocoder(config.model, self.spec)
        if config.training.stage2_from:
            start = load_vocoder(named_vocoder(config.training.stage2_from, self.spec))
            start.check(self.spec)
            if start.kind != model.kind:
                raise UserError(
                    f"{start.path} is a vocoder of the kind {start.kind}, and "
                    f"{config.model.vocoder_type} is to be trained: choose --vocoder {start.kind}"
                )
            model = start.model
        model.check_frames(self.spec)
        return model

    def limits(self) -> tuple[int, int]:
        return self.config.training.stage2_epochs, self.config.training.stage2_max_steps

    def check_resumed(self, saved: SavedState) -> None:
        raise_if_other(self.folder, vocoder_differences(saved.facts, self.facts()))

    def wire(self, batch: dict, schedule: Schedule) -> Wiring:
        model, loss, signature = self.model, SpectralLoss(self.spec), _signature(batch)
        optimizer = self._optimizer(schedule)
        make_adversarial, make_spectral = make_adversarial_step, make_spectral_step
        if self.share:
            shared = {"replicas": self.replicas, "share": self.share}
            make_adversarial = partial(make_adversarial_parts_step, **shared)
            make_spectral = partial(make_spectral_parts_step, **shared)
        elif self.steps_per_call > 1:
            make_adversarial = partial(make_adversarial, takes_many=True)
            make_spectral = partial(make_spectral, takes_many=True)
        if self.is_adversarial:
            judges, theirs = build_discriminators(self.config.training), self._optimizer(schedule)
            step = make_adversarial(
                model, optimizer, judges, theirs, loss, signature, **self.compiling
            )
            variables = adversarial_variables(model, optimizer, judges, theirs)
            weights = ADVERSARIAL_WEIGHTS
        else:
            step = make_spectral(model, optimizer, loss, signature, **self.compiling)
            variables, weights = variables_of(model, optimizer), SPECTRAL_WEIGHTS
        signature.pop("part", None)  # validation is not shared
        evaluate = make_vocoder_evaluation(model, loss, signature, **self.compiling)
        return Wiring(optimizer, step, evaluate, variables, weights)

    def describe(self) -> str:
        how = "against discriminators" if self.is_adversarial else "on spectra alone"
        return f"vocoder {self.kind}, {super().describe()}, {how}"

    def export(self, folder: Path, optimizer) -> None:
        save_vocoder(folder, self.model, self.spec)

    def boards(self) -> list[Listener]:
        return [TensorBoardHook(self.folder / "tensorboard", self.config.training.log_interval)]

    def sample(self, wired: Wiring, batches, boards: Boards) -> Hook:
        return CopyHook(self.model, self.segments.val, self.config.training.sample_interval, boards)

    def ids_of(self, positions: np.ndarray) -> list[str]:
        """The utterances behind a batch's positions."""
        return [str(self.segments.train.ids[int(one)]) for one in np.asarray(positions)]

    def _optimizer(self, schedule: Schedule) -> keras.optimizers.Optimizer:
        rate = self.config.training.stage2_learning_rate or LEARNING_RATE[self.is_adversarial]
        if self.is_adversarial:
            decay = keras.optimizers.schedules.ExponentialDecay(
                rate, schedule.epoch_size, DECAY, staircase=True
            )
            return FusedAdamW(decay, weight_decay=0.01, beta_1=0.8, beta_2=0.99)
        warm_up = WarmUp(rate, WARM_UP, schedule.total_steps, LAST_SHARE * rate)
        clip = self.config.training.gradient_clip_norm or None
        return FusedAdamW(warm_up, weight_decay=1e-4, beta_2=0.99, global_clipnorm=clip)

    def facts(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "settings": json.loads(json.dumps(self.model.to_settings())),
            "pieces": [len(self.segments.train), self.frames, self.segments.batch_size],
            "mels": voice_hash(self.voice) if self.voice else "recorded",
            "discriminators": self.config.training.discriminator_width
            if self.is_adversarial
            else 0,
            "seed": self.config.training.seed,
            **{name: getattr(self.config.model, name) for name in VERSIONS},
        }

    def common_facts(self) -> dict[str, Any]:
        source = self.segments.train
        return {
            "versions": [__version__, keras.version()],
            "settings of the vocoder": self.facts(),
            "corpus": [digest(source.ids), digest(source.lengths)],
        }

    def _predictor(self) -> Predictor:
        """How the voice makes teacher-forced mels of recordings, as a vocoder will get them."""
        gains = None if self.voice.model.refiner else self.voice.gains
        teacher_forced = TeacherForced(self.voice.model)

        def predict(split: Split, positions: np.ndarray) -> list[np.ndarray]:
            part = split.keep(np.isin(np.arange(len(split)), positions), ())
            plan = part.plan(batch_options(self.config), shuffle=False)
            order = np.flatnonzero(np.isin(np.arange(len(split)), positions))
            found = {}
            for batch in split_batches(part, plan, self.config.data):
                mels = predict_mels(teacher_forced, batch, is_refined=True)
                for at, mel in zip(np.asarray(batch["index"]).tolist(), mels, strict=True):
                    found[int(order[at])] = mel if gains is None else sharpen(mel, gains)
            return [found[int(position)] for position in positions]

        return Predictor(voice_hash(self.voice), predict)


class CopyHook(Hook):
    """Lets the vocoder say the first validation utterance again every so often."""

    def __init__(self, model, source: SegmentSource, interval: int, board: Boards):
        self.model, self.source, self.interval, self.board = model, source, interval, board
        self._is_recorded = False

    def is_due(self, step: int) -> bool:
        return self.board.is_active and step % self.interval == 0

    def after_step(self, record: StepRecord) -> None:
        if not self.is_due(record.step):
            return
        one, rate = self.source.utterance(0), self.source.settings.spec.sample_rate
        if not self._is_recorded:
            recorded = one["wave"].reshape(-1).astype(np.float32) / 32768.0
            self.board.audio(record.step, "sample/recorded", recorded, rate)
            self._is_recorded = True
        generated = self.model.waveform(one["mel"][None].astype(np.float32))
        copied = np.clip(generated[0].numpy(), -1.0, 1.0)
        self.board.audio(record.step, "sample/copied", copied, rate)
        self.board.images(record.step, "sample/mel", np.flipud(one["mel"].astype(np.float32).T))


def vocoder_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each fact of a checkpoint that its vocoder cannot be resumed with."""
    if "kind" not in before:
        return [difference("what is trained", "a voice", "a vocoder")]
    if before["kind"] != now["kind"]:
        return [difference("model.vocoder_type", before["kind"], now["kind"])]
    kind, version = now["kind"], f"{now['kind']}_version"
    earlier, own = (_by_setting(kind, facts["settings"]) for facts in (before, now))
    lines = [
        difference(name, value, own[name])
        for name, value in earlier.items()
        if own.get(name, value) != value
    ]
    if lines and before.get(version, now.get(version)) != now.get(version):
        lines = [difference(f"model.{version}", before[version], now[version])]
    if before["mels"] != now["mels"]:
        words = [_mels_in_words(facts["mels"]) for facts in (before, now)]
        lines.append(difference("mels that it is trained on", *words))
    # The version before did not write this.
    width = before.get("discriminators", now["discriminators"])
    if bool(width) != bool(now["discriminators"]):
        lines.append(difference("training.vocoder_adversarial", bool(width), not width))
    elif width != now["discriminators"]:
        name = "training.discriminator_width"
        lines.append(difference(name, width, now["discriminators"]))
    return lines


def _by_setting(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that a vocoder was built from, by the names that the settings have for them."""
    known = {name: f"model.{kind}_{name}" for name in settings if f"{kind}_{name}" in _FIELDS}
    spec = {f"data.{name}": value for name, value in settings.get("spec", {}).items()}
    own = {known.get(name, f"{kind} {name}"): x for name, x in settings.items() if name != "spec"}
    return own | spec


def _mels_in_words(mels: str) -> str:
    return "those of the recordings" if mels == "recorded" else f"those of the voice {mels}"


def as_begun(config: XTTSConfig, folder: Path) -> XTTSConfig:
    """The settings with the sizes that the run in a folder was begun with, unless others were
    chosen: a preset may have had other ones then."""
    preset = PRESETS[config.model.model_size]
    chosen = {path: attrgetter(path)(config) for path in _SIZES}
    if any(preset.get(path) != value for path, value in chosen.items()):
        return config
    if not saved_states(folder / "checkpoints") or not (folder / "config.yaml").exists():
        return config
    begun = load_config(folder / "config.yaml")
    sizes = {path.rpartition(".")[2]: attrgetter(path)(begun) for path in _SIZES}
    if tuple(sizes.values()) == tuple(chosen.values()):
        return config
    logger.info("as %s was begun: %s", folder, ", ".join(f"{k}: {v}" for k, v in sizes.items()))
    return config.replace(**sizes)


def build_discriminators(training: TrainingConfig) -> list[keras.Model]:
    """Both discriminators of HiFi-GAN, as published or narrower."""
    kinds = (MultiPeriodDiscriminator, MultiScaleDiscriminator)
    with in_float32():
        found = [kind(width=training.discriminator_width) for kind in kinds]
        for one in found:
            one.build((None, None))
    return found


def adversarial_variables(model, optimizer, discriminators, their_optimizer) -> dict[str, Any]:
    """All that training changes, by name: the vocoder's, and its judges'."""
    variables = variables_of(model, optimizer)
    for one in discriminators:
        named = weights_of(one).items()
        variables |= {f"discriminators/{one.name}/{name}": value for name, value in named}
    named = enumerate(their_optimizer.variables)
    return variables | {f"discriminators/optimizer/{n}": value for n, value in named}


def voice_hash(voice: Voice) -> str:
    """A hash of what a voice's mels depend on: its weights and its post-filter."""
    found = hashlib.sha256()
    for name, value in sorted(weights_of(voice.model).items()):
        found.update(name.encode() + np.asarray(value).tobytes())
    if voice.gains is not None:
        found.update(voice.gains.tobytes())
    return found.hexdigest()[:16]


def _signature(batch: dict[str, tf.Tensor]) -> dict[str, tf.TensorSpec]:
    """The shapes and types that all batches of segments have; the last one may be smaller."""
    shapes = {name: [None, *x.shape[1:]] if x.shape.rank else [] for name, x in batch.items()}
    return {name: tf.TensorSpec(shapes[name], batch[name].dtype) for name in batch}
