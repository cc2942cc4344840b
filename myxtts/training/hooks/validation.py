"""Scoring what was not trained on, with its real inputs and the EMA weights."""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from myxtts.checkpoints import SavedState
from myxtts.monitoring.heartbeat import doing
from myxtts.training.ending import Ending
from myxtts.training.loop import Hook, OutOfMemory, StepRecord, TrainingDiverged, notify
from myxtts.training.optimizer import ema_weights
from myxtts.training.references import own_references
from myxtts.training.steps import CompiledStep, complete

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Scoring:
    """What a validation scores: a model with its EMA weights, on batches, by a step.

    `mean_mel_loss` is what it is compared with, and `shown` the losses in its line of the log.
    """

    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    evaluate: CompiledStep
    batches: Iterable
    mean_mel_loss: float
    shown: Sequence[str] = ("stop_loss", "duration_loss")


class ValidationHook(Hook):
    """Every so often, and at the end, scores all validation batches and reports to listeners."""

    def __init__(
        self,
        scoring: Scoring,
        interval: int,
        listeners: Sequence[Hook],
        resumed: SavedState | None = None,
    ):
        self.scoring, self.interval, self.listeners = scoring, interval, listeners
        self.scored: dict[int, dict[str, float]] = {}
        self._has_begun = False
        known = (resumed.facts.get("known") or {}) if resumed else {}
        if known.get("scores"):
            self.scored[resumed.step] = known["scores"]
        elif known:
            # It was saved before it was scored, which is done if the run ends with this step.
            self._has_begun = True

    def is_due(self, step: int) -> bool:
        return step % self.interval == 0

    def after_step(self, record: StepRecord) -> None:
        self._has_begun = True
        if self.is_due(record.step):
            self.validate(record.step)

    def finish(self, step: int, reason: Ending) -> None:
        # Who sends a signal soon sends a harder one: saving comes before knowing.
        if reason == Ending.FINISHED and self._has_begun and step not in self.scored:
            self.validate(step)

    def validate(self, step: int) -> dict[str, float]:
        """The means of all terms over the validation utterances."""
        scoring = self.scoring
        with (
            doing(f"validating after step {step:,}"),
            ema_weights(scoring.model, scoring.optimizer),
        ):
            metrics = self._scores(step)
        bad = [name for name, value in metrics.items() if not math.isfinite(value)]
        if bad:
            raise TrainingDiverged(
                f"validation after step {step} is no number: {', '.join(bad)}; resume from an "
                "earlier checkpoint with --resume-from and a lower --learning-rate"
            )
        self.scored[step] = metrics
        logger.info(
            "validation after step %d: loss=%.4g, mel_loss=%.4g (predicting the mean mel scores "
            "%.4g), %s",
            step,
            metrics["loss"],
            metrics["mel_loss"],
            scoring.mean_mel_loss,
            ", ".join(f"{name}={metrics[name]:.4g}" for name in scoring.shown),
        )
        reported = {**metrics, "mean_mel_loss": scoring.mean_mel_loss}
        for hook in self.listeners:
            notify(hook, lambda one: one.record_validation(step, reported))
        return metrics

    def _scores(self, step: int) -> dict[str, float]:
        try:
            return scores(self.scoring.evaluate, self.scoring.batches)
        except tf.errors.ResourceExhaustedError as error:
            raise OutOfMemory(
                f"out of memory while validating after step {step}: lower --batch-size (and raise "
                "--grad-accum by as much), or drop long utterances with --max-mel-frames; what "
                "was saved is intact"
            ) from error


def scores(evaluate: CompiledStep, batches: Iterable) -> dict[str, float]:
    """Mean metrics over batches, each counting as many times as it has utterances."""
    sums: dict[str, float] = {}
    total = 0
    for batch in batches:
        count = int(batch["mel"].shape[0])
        for name, value in evaluate.read(evaluate(batch, 0)).items():
            sums[name] = sums.get(name, 0.0) + count * value
        total += count
    return {name: value / total for name, value in sums.items()}


def mean_mel_loss(batches: Iterable, most: int = 16) -> float:
    """The mel loss of predicting the mean mel everywhere, measured on some batches."""
    mels = [mel for _, mel in zip(range(most), _real_frames(batches), strict=False)]
    frames = np.concatenate(mels)
    return float(np.abs(frames - frames.mean(axis=0)).mean())


def _real_frames(batches: Iterable):
    for batch in batches:
        mel = np.asarray(batch["mel"], np.float32)
        lengths = np.asarray(batch.get("mel_lengths", [mel.shape[1]] * len(mel)))
        yield np.concatenate([row[:length] for row, length in zip(mel, lengths, strict=True)])


def speaker_embeddings(model: keras.Model, batches: Iterable, num_speakers: int) -> np.ndarray:
    """The mean embedding [speakers, dim] of each speaker's utterances in some batches."""
    sums = np.zeros((num_speakers, model.speaker_embedding_dim), np.float32)
    counts = np.zeros(num_speakers, np.int64)
    for batch in batches:
        inputs = own_references(complete(batch))
        embeddings = model.embed(inputs).numpy()
        speakers = np.asarray(batch["speaker"])
        np.add.at(sums, speakers, embeddings)
        np.add.at(counts, speakers, 1)
    return sums / np.maximum(counts, 1)[:, None]
