"""A training run: data, model, step, loop and hooks, wired as a configuration says."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import keras
import numpy as np

from myxtts import __version__
from myxtts.checkpoints import (
    Voice,
    as_voice_encoder,
    encoder_path,
    load_speaker_encoder,
    variables_of,
)
from myxtts.checkpoints.states import SavedState
from myxtts.cluster.replicas import ALONE, Replicas
from myxtts.config.config import (
    DataConfig,
    XTTSConfig,
    affecting,
)
from myxtts.config.io import Setting, to_dict
from myxtts.data.batches.training_data import KnownTables, TrainingData
from myxtts.data.features.corpora import read_parts
from myxtts.data.features.embeddings import VoiceEncoder
from myxtts.data.features.prepare import prepare
from myxtts.errors import UserError
from myxtts.models.convolutions import FULL
from myxtts.models.xtts import build_xtts
from myxtts.monitoring.cores import available_cores
from myxtts.runtime import spread_operations
from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.adversary import Adversary
from myxtts.training.ending import Ending
from myxtts.training.exporting import VoiceMaker, portable, write_voice
from myxtts.training.hooks.evaluation import Candidates, EvaluationHook, Evaluator, Judged
from myxtts.training.hooks.samples import SampleHook
from myxtts.training.hooks.saving import METRIC
from myxtts.training.hooks.tensorboard import Boards, TensorBoardHook
from myxtts.training.hooks.wandb import WandbHook, import_wandb
from myxtts.training.loop import Hook, Listener
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import build_optimizer
from myxtts.training.part_steps import make_parts_step
from myxtts.training.references import own_references
from myxtts.training.resuming import (
    check_corpus_facts,
    check_run_of,
    check_settings,
    decisive_settings,
    threads_of_its_time,
    with_settings_of_its_time,
)
from myxtts.training.run import Schedule, TrainingRun, Wiring, digest
from myxtts.training.sources import name_by_position
from myxtts.training.steps import (
    CompiledStep,
    batch_signature,
    complete,
    make_eval_step,
    make_train_step,
)
from myxtts.training.warm_start import (
    LASTING,
    check_beginning,
    check_lasting,
    freeze_speaker_encoder,
    identity,
    warm_start,
)

logger = logging.getLogger(__name__)

# Settings that decide which utterances share a batch: a place in another plan is no place.
PLAN_SETTINGS = affecting("plan")
# The widest decoder that was not slower with one thread an operation: that of size tiny.
NARROW = 192


class XTTSTrainer(TrainingRun):
    """Trains a model on a corpus, in a folder from which it can be resumed.

    `config` may be the data's section alone, the others then have their defaults; `build_model`
    builds a `model` for it, as the trainer does where none is given. `resume` is as `TrainingRun`
    takes it. With `start` a run begins from that voice (a warm start): its tokenizer stays, as does
    its speaker encoder, and speakers and languages that it does not know are added to its own.
    An `evaluator` judges what the voice says of held-out texts, where evaluation is enabled.
    """

    exports = ("voice", "voice-best")
    plan_facts = ("plan", "utterances")
    shown_losses = ("stop_loss", "duration_loss")

    def __init__(
        self,
        config: XTTSConfig | DataConfig,
        model: keras.Model | None = None,
        resume: bool | Path | str | None = None,
        start: Voice | None = None,
        evaluator: Evaluator | None = None,
        replicas: Replicas = ALONE,
    ):
        config = config if isinstance(config, XTTSConfig) else XTTSConfig(data=config)
        if config.training.use_wandb:
            import_wandb()  # whose absence is to be known before anything is prepared
        folder = Path(config.training.checkpoint_dir)
        config = with_settings_of_its_time(folder, resume, config)
        spread_operations(_threads(config, folder, resume, replicas))
        super().__init__(config, folder, resume, replicas)
        self.model, self.start, self.evaluator = model, start, evaluator
        self.convolutions = self.runtime.convolutions
        self.encoder = None
        self.encoder_weights = ""  # of a frozen one: what lies in the cache is by these
        self.data: TrainingData | None = None

    def prepare_datasets(self, progress=None) -> tuple[TrainingData, Iterable | None]:
        """Open the corpus: what is trained on, and the validation batches if there are any."""
        # Before hours of preparation: what differs in the settings alone is known by now.
        check_run_of(self.folder, self.resume, self.config)
        if self.start:
            own = portable(self.config)
            asked = {path: Setting(_setting(own, path), "as configured") for path in LASTING}
            check_lasting(portable(self.start.config), asked)
        encoder = self._load_encoder()
        known = self.start and KnownTables(
            self.start.tokenizer, self.start.speakers, self.start.languages
        )
        with self.replicas.chief_first():
            if self.replicas.count > 1 and self.config.data.preprocessing_mode == "auto":
                self._fill_cache(progress)
            self.data = TrainingData(self.config, progress, encoder, known)
        return self.data, self._own_validation()

    def load_as(self, chosen: Mapping[str, Any]) -> None:
        """Take other settings of how batches are loaded; the batches stay the same."""
        self.config = self.config.replace(**chosen)
        if self.data is not None:
            self.data.config = self.data.config.replace(**chosen)

    def _fill_cache(self, progress) -> None:
        """In auto mode with several workers the chief stores all before the first step.

        Each would otherwise compute and store in its first epoch, and hold up the others.
        """
        data = self.config.data
        for part in read_parts(data) if self.replicas.is_chief else ():
            prepare(
                part.utterances,
                part.location,
                workers=data.num_workers,
                verify=data.cache_verification,
                progress=progress,
            )

    def train(self, train_dataset=None, val_dataset: Iterable | None = None) -> Ending:
        """Train to the end, and return how it ended; both datasets default to the corpus's own.

        Another dataset is any iterable of batches, of which one pass is an epoch.
        """
        if self.data is None:
            self.prepare_datasets()
        self._check_evaluation()
        source = self.data if train_dataset is None else train_dataset
        val_dataset = self._own_validation() if val_dataset is None else val_dataset
        ids_of = self.ids_of if source is self.data else name_by_position
        return self.run(source, val_dataset, ids_of)

    def _load_encoder(self) -> VoiceEncoder | None:
        """The published encoder, if one is used, as far as the data need it: where it is frozen.

        In a warm start the voice has its own copy of it.
        """
        model = self.config.model
        if not model.speaker_encoder:
            return None
        if self.start and self.start.model.published_voice:
            self.encoder = self.start.model.published_voice.speaker_encoder
        else:
            self.encoder = load_speaker_encoder(model.speaker_encoder, encoder_path(model))
        if not model.is_encoder_frozen:
            return None
        frozen = as_voice_encoder(self.encoder)
        self.encoder_weights = frozen.weights
        return frozen

    def _check_evaluation(self) -> None:
        if not self.config.training.enable_evaluation:
            return
        if self.evaluator is None:
            raise UserError(
                "training.enable_evaluation is on, but the trainer was given nothing that judges: "
                "train with `myxtts train`, pass evaluator=, or switch it off"
            )
        if self.data.val is None:
            raise UserError(
                "an evaluation takes held-out sentences, and this corpus has no validation part: "
                "raise --val-fraction, or leave --enable-evaluation out"
            )

    def _own_validation(self) -> Iterable | None:
        return self.data.val_batches() if self.data.val is not None else None

    def limits(self) -> tuple[int, int]:
        return self.config.training.epochs, self.config.training.max_steps

    def build_step(self, batch: dict) -> CompiledStep:
        """The step of a new run on batches like this one, for whoever wants to measure it."""
        self.build(None)
        return self.wire(batch, Schedule(total_steps=1000, epoch_size=1000, epochs=1)).step

    def wire(self, batch: dict, schedule: Schedule) -> Wiring:
        config, training = self.config, self.config.training
        if self.model.dtype_policy != keras.config.dtype_policy():
            raise UserError(
                f"the model was built for {self.model.dtype_policy.name}, but the run is to be "
                f"{keras.config.dtype_policy().name}: build it after runtime.configure(config)"
            )
        optimizer = build_optimizer(training, schedule.total_steps)
        loss = XTTSLoss.from_config(config)
        balance = AdaptiveWeights(loss.weights) if training.adaptive_loss_weights else None
        adversary = Adversary.from_config(config, schedule.total_steps)
        signature = batch_signature(batch, config.data.n_mels)
        make_step = make_train_step
        if self.share:
            make_step = partial(make_parts_step, replicas=self.replicas, share=self.share)
        elif self.steps_per_call > 1:
            make_step = partial(make_train_step, takes_many=True)
        step = make_step(
            self.model,
            optimizer,
            loss,
            signature,
            seed=training.seed,
            prior_steps=training.alignment_prior_steps,
            coarse_steps=round(training.refiner_start * schedule.total_steps),
            balance=balance,
            adversary=adversary,
            convolutions=self.convolutions,
            **self.compiling,
        )
        signature.pop("part", None)  # validation is not shared
        evaluate = make_eval_step(self.model, loss, signature, **self.compiling)
        variables = variables_of(self.model, optimizer)
        if balance:
            variables |= {"balance/means": balance.means}
        if adversary:
            theirs = variables_of(adversary.network, adversary.optimizer)
            variables |= {f"adversary/{name}": variable for name, variable in theirs.items()}
        since = adversary.start if adversary else 0
        weights = {**loss.weights, **(adversary.weights if adversary else {})}
        return Wiring(optimizer, step, evaluate, variables, weights, since)

    def ids_of(self, positions: np.ndarray) -> list[str]:
        """The utterances behind a batch's positions."""
        ids = self.data.train.cache.ids
        return [str(ids[int(position)]) for position in np.asarray(positions)]

    def export(self, folder: Path, optimizer) -> None:
        """Write the EMA weights as a voice that speaks anywhere."""
        with self.ema_voice(optimizer) as voice:
            write_voice(folder, voice)

    def ema_voice(self, optimizer) -> AbstractContextManager[Voice]:
        """The voice of the EMA weights, while the model has them."""
        return self._voice_maker.ema_voice(optimizer, self._own_validation())

    @cached_property
    def _voice_maker(self) -> VoiceMaker:
        return VoiceMaker(self.folder, self.config, self.data, self.model, self.start)

    def _build_model(self) -> keras.Model:
        cache = self.data.train.cache
        return build_xtts(
            self.config.model,
            self.config.data.audio_spec,
            self.data.tokenizer.vocab_size,
            len(cache.languages),
            len(cache.speakers),
        )

    def build(self, saved: SavedState | None) -> None:
        """Have the model; give a new one its first weights; log which losses have no effect."""
        self.convolutions = self._convolutions_of(saved)
        self.model = self.model or self._build_model()
        is_encoder_new = bool(self.encoder) and not (
            self.start and self.start.model.published_voice
        )
        if self.start and not is_encoder_new:
            freeze_speaker_encoder(self.model)
        self.model.embeds_output &= self.config.training.voice_similarity_loss_weight > 0.0
        if len(self.data.train.cache.speakers) < 2:
            logger.info(
                "there is one speaker only: voice_similarity_loss, contrastive_loss and "
                "speaker_loss have nobody to tell from another and stay 0"
            )
        if saved is not None:
            return
        if self.start:
            warm_start(self.model, self.start.model, self.start.voices)
        if is_encoder_new:
            published = self.model.published_voice
            published.encoder.set_weights(self.encoder.network.get_weights())
            published.adapt(self._known_embeddings())

    def _convolutions_of(self, saved: SavedState | None) -> str:
        """The type of convolutions: a run goes on in that which it began with, unless it is told
        otherwise or cannot."""
        own = self.runtime.convolutions
        if saved is None:
            return own
        # Before there was a choice it followed from the policy.
        known = saved.facts.get("convolutions", keras.config.dtype_policy().compute_dtype)
        if known != own and self.config.data.mixed_precision is None and known == FULL:
            return known
        if known != own:
            logger.warning(
                "%s was trained with convolutions in %s: from here on they are in %s",
                saved.path,
                known,
                own,
            )
        return own

    def _known_embeddings(self) -> np.ndarray:
        """What the encoder says of some utterances of each speaker."""
        if self.model.wants_embeddings:
            found = [batch["embedding"] for batch in self.data.speaker_batches()]
        else:
            references = (own_references(complete(one)) for one in self.data.speaker_batches())
            embed = self.model.published_voice.embed
            found = [embed(one["reference"], one["reference_lengths"]) for one in references]
        return np.concatenate([np.asarray(one) for one in found])

    def boards(self) -> list[Listener]:
        training = self.config.training
        folder = Path(training.tensorboard_log_dir or self.folder / "tensorboard")
        boards: list[Listener] = [TensorBoardHook(folder, training.log_interval)]
        if training.use_wandb:
            project, settings = training.wandb_project, to_dict(self.config)
            boards.append(WandbHook(project, settings, self.folder, training.log_interval))
        return boards

    def sample(self, wired: Wiring, batches: Iterable, boards: Boards) -> Hook:
        return SampleHook(
            self.model,
            wired.optimizer,
            next(iter(batches)),
            self.config.training.sample_interval,
            boards,
            self.config.data.audio_spec,
        )

    def evaluation(
        self, wired: Wiring, schedule: Schedule, listeners, boards: Boards, resumed
    ) -> EvaluationHook | None:
        training = self.config.training
        if not training.enable_evaluation:
            return None
        chooses = training.evaluation_metric != METRIC
        judged = Judged(
            self.evaluator,
            self.data.val.utterances,
            lambda: self.ema_voice(wired.optimizer),
            Candidates(self.folder / "candidates") if chooses else None,
            write_voice,
        )
        interval = training.evaluation_interval * schedule.epoch_size
        return EvaluationHook(judged, interval, listeners, boards, resumed)

    def facts(self) -> dict[str, Any]:
        cache = self.data.train.cache
        return {
            "start": self.start and identity(self.start),
            "plan": self._plan_facts(),
            "utterances": len(cache),
            "convolutions": self.convolutions,
            "threads": {
                "cores": available_cores(),
                "an operation": self.runtime.operation_threads,
            },
            "settings": decisive_settings(self.config),
            "tokenizer": self.data.tokenizer.fingerprint(),
            "symbols": list(self.data.tokenizer.symbols),
            "speaker encoder": self.encoder_weights,
            "speakers": list(cache.speakers),
            "languages": list(cache.languages),
        }

    def common_facts(self) -> dict[str, Any]:
        cache = self.data.train.cache
        sections = to_dict(portable(self.config))
        return {
            "versions": [__version__, keras.version()],
            "type of convolutions": self.convolutions,
            "settings of the model": sections["model"],
            "settings of training": sections["training"],
            "settings of the batches": list(self._plan_facts().values()),
            "corpus": [digest(cache.ids), list(cache.speakers), digest(cache.speaker)],
            "cache": [digest(cache.mel_lengths), digest(cache.text_lengths)],
        }

    def _plan_facts(self) -> dict[str, Any]:
        """What the order of batches follows from; where the disk is too small, the shards too."""
        found = {path: _setting(self.config, path) for path in PLAN_SETTINGS}
        if self.steps_per_call == 1:  # as all checkpoints are of before there was a choice
            del found["training.steps_per_call"]
        layout = self.data.train.layout
        return found | ({"shards": layout.fingerprint()} if layout else {})

    def check_resumed(self, saved: SavedState) -> None:
        check_beginning(saved, self.start)
        check_settings(saved.path, saved.facts, self.config)
        check_corpus_facts(saved, self.facts(), self.config.data.text_units)


def build_model(config: XTTSConfig | DataConfig, progress=None) -> keras.Model:
    """Build the model of a configuration for its corpus, which is opened to learn the sizes."""
    trainer = XTTSTrainer(config)
    trainer.prepare_datasets(progress)
    return trainer._build_model()


def _threads(
    config: XTTSConfig, folder: Path, resume: bool | Path | str | None, replicas: Replicas
) -> int | None:
    """The threads an operation, or None where the machine decides.

    Workers that share batches must have the same on any machine, and wide models take longer.
    """
    asked = config.training.operation_threads
    if asked is not None:
        return asked
    if replicas.count > 1:
        return 0
    known = threads_of_its_time(folder, resume)
    return 0 if known is None and config.model.decoder_dim > NARROW else known


def _setting(config: XTTSConfig, path: str) -> Any:
    return attrgetter(path)(config)
