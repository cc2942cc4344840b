"""A training run: data, model, step, loop and hooks, wired as a configuration says."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import keras
import numpy as np

from myxtts import runtime
from myxtts.checkpoints import (
    Voice,
    abandon_after,
    as_voice_encoder,
    encoder_path,
    load_speaker_encoder,
    restore,
    save_voice,
    variables_of,
)
from myxtts.checkpoints.states import SavedState
from myxtts.config.config import SETTINGS, DataConfig, XTTSConfig, affecting
from myxtts.config.io import Setting, save_config, to_dict
from myxtts.data.batches.training_data import KnownTables, TrainingData
from myxtts.data.features.embeddings import VoiceEncoder
from myxtts.errors import UserError
from myxtts.models.xtts import build_xtts
from myxtts.monitoring.console import show_log_unless_set_up
from myxtts.monitoring.heartbeat import doing, heartbeat
from myxtts.training.adaptive_weights import AdaptiveWeights
from myxtts.training.hooks.evaluation import Candidates, EvaluationHook, Evaluator
from myxtts.training.hooks.performance import PerformanceHook, setup_of
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.hooks.records import HistoryHook, LogHook, NonFiniteHook
from myxtts.training.hooks.samples import SampleHook
from myxtts.training.hooks.saving import METRIC, SavingHook
from myxtts.training.hooks.tensorboard import Boards, TensorBoardHook
from myxtts.training.hooks.validation import ValidationHook, mean_mel_loss, speaker_voices
from myxtts.training.hooks.wandb import WandbHook, import_wandb
from myxtts.training.loop import Hook, TrainingLoop
from myxtts.training.losses import XTTSLoss
from myxtts.training.optimizer import averaged_weights, build_optimizer
from myxtts.training.references import own_references
from myxtts.training.resuming import (
    check_corpus_facts,
    check_run_of,
    check_settings,
    decisive_settings,
)
from myxtts.training.run_folder import alone_in, describe_step, own_state, state_to_resume
from myxtts.training.sources import batches_per_epoch, endless, name_by_position
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
    grow_from,
    identity,
    keep_describing,
    with_known_voices,
)

log = logging.getLogger(__name__)

# Settings that decide which utterances share a batch: a place in another plan is no place.
PLAN_SETTINGS = affecting("plan")


@dataclass(frozen=True, eq=False)
class Wiring:
    """What a run computes with, besides its model."""

    optimizer: keras.optimizers.Optimizer
    loss: XTTSLoss
    balance: AdaptiveWeights | None
    step: CompiledStep
    evaluate: CompiledStep


class XTTSTrainer:
    """Trains a model on a corpus, in a folder from which it can go on.

    `config` may be the data's section alone, the others then have their defaults; `build_model`
    builds a `model` for it, as the trainer does where none is given.
    `resume` is None to go on from the folder's last checkpoint where there is one, True to fail
    where there is none, False to start over (the old run is kept beside), or a checkpoint's path.
    With `start` a run begins from that voice instead of from nothing: its tokenizer stays, as does
    how it describes voices, and speakers and languages that it does not know are added to its own.
    An `evaluator` judges what the voice says of held-out texts, where evaluation is enabled.
    """

    def __init__(
        self,
        config: XTTSConfig | DataConfig,
        model: keras.Model | None = None,
        resume: bool | Path | str | None = None,
        start: Voice | None = None,
        evaluator: Evaluator | None = None,
    ):
        show_log_unless_set_up()
        config = config if isinstance(config, XTTSConfig) else XTTSConfig(data=config)
        if config.training.use_wandb:
            import_wandb()  # whose absence is to be known before anything is prepared
        self.config, self.model, self.resume, self.start = config, model, resume, start
        self.evaluator = evaluator
        self.encoder = None
        self.encoder_weights = ""  # of a frozen one: what lies in the cache is by these
        self.folder = Path(config.training.checkpoint_dir).expanduser()
        self.data: TrainingData | None = None
        self.runtime = runtime.configure(config)
        setup = setup_of(config, self.runtime)
        self.performance = PerformanceHook(self.folder, str(self.folder), setup=setup)

    def prepare_datasets(self, progress=None) -> tuple[TrainingData, Iterable | None]:
        """Open the corpus: what is trained on, and the validation batches if there are any."""
        # Before hours of preparation: what differs in the settings alone is known by now.
        check_run_of(self.folder, self.resume, self.config)
        if self.start:
            own = _portable(self.config)
            asked = {path: Setting(_setting(own, path), "as configured") for path in LASTING}
            check_lasting(_portable(self.start.config), asked)
        encoder = self._load_encoder()
        known = self.start and KnownTables(
            self.start.tokenizer, self.start.speakers, self.start.languages
        )
        self.data = TrainingData(self.config, progress, encoder, known)
        return self.data, self._own_validation()

    def train(self, train_dataset=None, val_dataset: Iterable | None = None) -> str:
        """Train to the end, and say why it ended; both datasets default to the corpus's own.

        Another dataset is any iterable of batches, of which one pass is an epoch.
        """
        if self.data is None:
            self.prepare_datasets()
        self._check_evaluation()
        source = self.data if train_dataset is None else train_dataset
        val_dataset = self._own_validation() if val_dataset is None else val_dataset
        with alone_in(self.folder), doing("building the model"), heartbeat(log.info):
            return self._train(source, val_dataset)

    def _load_encoder(self) -> VoiceEncoder | None:
        """The published encoder, if one is used, as far as the data need it: where it is frozen.

        A voice that is gone on from has its own copy of it.
        """
        model = self.config.model
        if not model.speaker_encoder:
            return None
        if self.start:
            self.encoder = self.start.model.published_voice.speaker_encoder
        else:
            self.encoder = load_speaker_encoder(model.speaker_encoder, encoder_path(model))
        if not model.is_encoder_frozen:
            return None
        described = as_voice_encoder(self.encoder)
        self.encoder_weights = described.weights
        return described

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

    def _train(self, source, val_dataset: Iterable | None) -> str:
        config, training = self.config, self.config.training
        saved = state_to_resume(self.folder, self.resume)
        self._check_resumed(saved)
        epoch_size = batches_per_epoch(source)
        total = epoch_size * training.epochs
        total = min(total, training.max_steps) if training.max_steps else total

        self.model = self.model or self._build_model()
        self._begin(saved)
        done, epoch, number = self._place_of(saved)
        items = endless(source, epoch, number)
        first = next(items)
        wired = self._wire(first[2], total)
        step, optimizer = wired.step, wired.optimizer
        variables = variables_of(self.model, optimizer)
        if wired.balance:
            variables |= {"balance/means": wired.balance.means}
        if saved:
            restore(variables, saved.arrays)
            abandon_after(self.folder / "checkpoints", saved.step)
        save_config(config, self.folder / "config.yaml")
        own = own_state(self.folder, saved)
        hooks = partial(self._hooks, total, epoch_size, wired, val_dataset, variables, own)
        log.info(
            "%d weights; %d steps of %d batches an epoch, in %s; %d done",
            self.model.count_params(),
            total,
            epoch_size,
            self.folder,
            done,
        )
        ids_of = self.ids_of if source is self.data else name_by_position
        recorder = self.performance.recorder
        loop = TrainingLoop(step, hooks(ids_of), training.epochs, total, ids_of, done, recorder)
        reason = loop.run(chain([first], items))
        log.info(
            "%s after %d steps; the step ran %s",
            reason,
            loop.done,
            describe_step(step) if loop.done > done else "never",
        )
        return reason

    def build_step(self, batch: dict) -> CompiledStep:
        """The step of a new run on batches like this one, for whoever wants to measure it."""
        self.model = self.model or self._build_model()
        self._begin(None)
        return self._wire(batch, total=1000).step

    def _wire(self, batch: dict, total: int) -> "Wiring":
        """The steps that train and evaluate the model on batches like this one."""
        config, training = self.config, self.config.training
        if self.model.dtype_policy != keras.config.dtype_policy():
            raise UserError(
                f"the model was built for {self.model.dtype_policy.name}, but the run is to be "
                f"{keras.config.dtype_policy().name}: build it after runtime.configure(config)"
            )
        optimizer = build_optimizer(training, total)
        loss = XTTSLoss.from_config(config)
        balance = AdaptiveWeights(loss.weights) if training.adaptive_loss_weights else None
        signature = batch_signature(batch, config.data.n_mels)
        how = {"graph": not self.runtime.eager, "xla": self.runtime.xla}
        step = make_train_step(
            self.model,
            optimizer,
            loss,
            signature,
            seed=training.seed,
            prior_steps=training.alignment_prior_steps,
            balance=balance,
            **how,
        )
        evaluate = make_eval_step(self.model, loss, signature, **how)
        return Wiring(optimizer, loss, balance, step, evaluate)

    def ids_of(self, positions: np.ndarray) -> list[str]:
        """The utterances behind a batch's positions."""
        ids = self.data.train.cache.ids
        return [str(ids[int(position)]) for position in np.asarray(positions)]

    def export_voice(self, folder: Path, optimizer) -> None:
        """Write the averaged weights as a voice that speaks anywhere."""
        with self.averaged_voice(optimizer) as voice:
            write_voice(folder, voice)

    @contextmanager
    def averaged_voice(self, optimizer) -> Iterator[Voice]:
        """The voice that the averaged weights are, while the model has them."""
        cache = self.data.train.cache
        with averaged_weights(self.model, optimizer):
            voices = speaker_voices(self.model, self.data.speaker_batches(), len(cache.speakers))
            if self.start:
                voices = with_known_voices(voices, self.start.voices, cache.speaker)
            yield Voice(
                self.folder / "voice",
                _portable(self.config),
                self.data.tokenizer,
                self.model,
                tuple(cache.speakers),
                tuple(cache.languages),
                voices,
            )

    def _build_model(self) -> keras.Model:
        cache = self.data.train.cache
        return build_xtts(
            self.config.model,
            self.config.data.audio_spec,
            self.data.tokenizer.vocab_size,
            len(cache.languages),
            len(cache.speakers),
        )

    def _begin(self, saved: SavedState | None) -> None:
        """Give a new run's model what it begins with; tell what its losses cannot teach it."""
        if self.start:
            keep_describing(self.model)
        self.model.listens &= self.config.training.voice_similarity_loss_weight > 0.0
        if len(self.data.train.cache.speakers) < 2:
            log.info(
                "there is one speaker only: voice_similarity_loss, contrastive_loss and "
                "speaker_loss have nobody to tell from another and stay 0"
            )
        if saved is not None:
            return
        if self.start:
            grow_from(self.model, self.start.model)
        elif self.encoder:
            published = self.model.published_voice
            published.encoder.set_weights(self.encoder.network.get_weights())
            published.adapt(self._known_embeddings())

    def _known_embeddings(self) -> np.ndarray:
        """What the encoder says of some utterances of each speaker."""
        if self.model.wants_embeddings:
            found = [batch["embedding"] for batch in self.data.speaker_batches()]
        else:
            references = (own_references(complete(one)) for one in self.data.speaker_batches())
            hear = self.model.published_voice.hear
            found = [hear(one["reference"], one["reference_lengths"]) for one in references]
        return np.concatenate([np.asarray(one) for one in found])

    def _hooks(
        self, total, epoch_size: int, wired: "Wiring", val_dataset, variables, resumed, ids_of
    ) -> list[Hook]:
        training, optimizer = self.config.training, wired.optimizer
        interval = training.log_interval
        history = HistoryHook(self.folder, interval, resumed)
        listeners: list[Hook] = [history]
        board = TensorBoardHook(
            Path(training.tensorboard_log_dir or self.folder / "tensorboard"), interval
        )
        boards: list[Hook] = [board]
        if training.use_wandb:
            project, settings = training.wandb_project, to_dict(self.config)
            boards.append(WandbHook(project, settings, self.folder, interval))
        listeners += boards
        validation = None
        if val_dataset is not None:
            validation = ValidationHook(
                self.model,
                optimizer,
                wired.evaluate,
                val_dataset,
                training.validation_interval,
                listeners,
                mean_mel_loss(val_dataset),
                resumed=resumed,
            )
        evaluation = self._evaluation(epoch_size, optimizer, listeners, Boards(boards), resumed)
        chooses = evaluation is not None and training.evaluation_metric != METRIC
        saving = SavingHook(
            self.folder,
            variables,
            self._facts(),
            training.save_interval,
            training.keep_checkpoints,
            validation,
            lambda folder: self.export_voice(folder, optimizer),
            evaluation=evaluation,
            metric=training.evaluation_metric if chooses else METRIC,
            resumed=resumed,
            history=history,
        )
        # Losses that are no number stop the run before anything is saved.
        scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        hooks: list[Hook] = [
            NonFiniteHook(
                ids_of, lambda: saving.last, {"gradient_norm"} if scaled else frozenset()
            ),
            LogHook(wired.loss.weights),
            *listeners,
            ProgressHook(total, interval, is_compiled=not wired.step.is_eager),
            self.performance,
        ]
        if evaluation is not None:
            hooks.append(evaluation)
        if validation is not None:
            hooks.append(validation)
            if training.sample_interval:
                sample = next(iter(val_dataset))
                hooks.append(
                    SampleHook(
                        self.model,
                        optimizer,
                        sample,
                        training.sample_interval,
                        Boards(boards),
                        self.config.data.audio_spec,
                    )
                )
        return [*hooks, saving]

    def _evaluation(
        self, epoch_size, optimizer, listeners, board, resumed
    ) -> EvaluationHook | None:
        """What judges the voice as it is learnt, if that is wanted."""
        training = self.config.training
        if not training.enable_evaluation:
            return None
        chooses = training.evaluation_metric != METRIC
        return EvaluationHook(
            self.evaluator,
            self.data.val.utterances,
            lambda: self.averaged_voice(optimizer),
            training.evaluation_interval * epoch_size,
            listeners,
            board,
            Candidates(self.folder / "candidates") if chooses else None,
            write_voice,
            resumed,
        )

    def _facts(self) -> dict[str, Any]:
        """What a checkpoint says of its run, to see whether it can go on."""
        cache = self.data.train.cache
        return {
            "start": self.start and identity(self.start),
            "plan": {path: _setting(self.config, path) for path in PLAN_SETTINGS},
            "utterances": len(cache),
            "settings": decisive_settings(self.config),
            "tokenizer": self.data.tokenizer.fingerprint(),
            "symbols": list(self.data.tokenizer.symbols),
            "speaker encoder": self.encoder_weights,
            "speakers": list(cache.speakers),
            "languages": list(cache.languages),
        }

    def _check_resumed(self, saved: SavedState | None) -> None:
        """Refuse a checkpoint of another run before anything is built for it."""
        if saved is not None:
            check_beginning(saved, self.start)
            check_settings(saved.path, saved.facts, self.config)
            check_corpus_facts(saved, self._facts(), self.config.data.text_units)

    def _place_of(self, saved: SavedState | None) -> tuple[int, int, int]:
        """The steps that a checkpoint has behind it, and the epoch and batch that come next."""
        if saved is None:
            return 0, 0, 0
        facts = self._facts()
        epoch, number = saved.facts["epoch"], saved.facts["number"]
        changed = [name for name in ("plan", "utterances") if saved.facts[name] != facts[name]]
        if changed and number:
            log.warning(
                "the batches are not those of %s any more (%s changed): going on with the first "
                "batch of epoch %d",
                saved.path,
                " and ".join(changed),
                epoch + 1,
            )
            number = 0
        log.info("going on from %s: step %d, epoch %d", saved.path, saved.step, epoch + 1)
        return saved.step, epoch, number


def build_model(config: XTTSConfig | DataConfig, progress=None) -> keras.Model:
    """Build the model of a configuration for its corpus, which is opened to learn the sizes."""
    trainer = XTTSTrainer(config)
    trainer.prepare_datasets(progress)
    return trainer._build_model()


def write_voice(folder: Path, voice: Voice) -> None:
    """Save a voice whose model has the weights that are to be kept."""
    save_voice(
        folder,
        voice.model,
        voice.config,
        voice.tokenizer,
        voice.speakers,
        voice.languages,
        voice.voices,
    )


def _portable(config: XTTSConfig) -> XTTSConfig:
    """The settings without this machine's paths: a voice goes anywhere."""
    plain = {path: SETTINGS[path].default for path in affecting("path")}
    # The encoder's weights are among the voice's own.
    return config.replace(
        **plain, use_pretrained_speaker_encoder=bool(config.model.speaker_encoder)
    )


def _setting(config: XTTSConfig, path: str) -> Any:
    return attrgetter(path)(config)
