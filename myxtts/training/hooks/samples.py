"""Looking and listening while it trains: mels, alignments and audio of a validation utterance."""

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.config.config import AudioSpec
from myxtts.models.expansion import tokens_of_frames
from myxtts.training.hooks.tensorboard import Boards
from myxtts.training.loop import Hook, StepRecord
from myxtts.training.optimizer import ema_weights
from myxtts.training.references import own_references
from myxtts.training.steps import complete


@dataclass(frozen=True)
class Sample:
    """One utterance: as recorded, as said along the true alignment, and as said freely."""

    target: np.ndarray  # mel [frames, mels]
    copied: np.ndarray  # mel [frames, mels]
    path: np.ndarray  # [frames, tokens], 1 where the token is said
    spoken: np.ndarray  # mel [frames, mels]


def take_sample(model: keras.Model, batch: dict[str, tf.Tensor], row: int = 0) -> Sample:
    """What a model makes of one row of a batch."""
    inputs = own_references(complete({name: x[row : row + 1] for name, x in batch.items()}))
    inputs["prior_weight"] = tf.constant(0.0)
    outputs = model(inputs)
    frames, tokens = int(inputs["mel_lengths"][0]), int(inputs["text_lengths"][0])
    frame_tokens = tokens_of_frames(outputs["durations"], frames) // model.token_states
    spoken = model.synthesize(
        inputs["tokens"],
        inputs["text_lengths"],
        inputs["language"],
        outputs["voice"],
        tf.ones([1]),
    )
    return Sample(
        inputs["mel"][0, :frames].numpy(),
        outputs["mel"][0, :frames].numpy(),
        tf.one_hot(frame_tokens[0], tokens).numpy(),
        spoken["mel"][0, : int(spoken["mel_lengths"][0])].numpy(),
    )


class SampleHook(Hook):
    """Draws and speaks the first validation utterance every so often."""

    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        batch: dict[str, tf.Tensor],
        interval: int,
        board: Boards,
        spec: AudioSpec,
    ):
        self.model, self.optimizer, self.batch = model, optimizer, batch
        self.interval, self.board, self.spec = interval, board, spec

    def is_due(self, step: int) -> bool:
        return self.board.is_active and step % self.interval == 0

    def after_step(self, record: StepRecord) -> None:
        if self.is_due(record.step):
            self.show(record.step)

    def show(self, step: int) -> None:
        """Write pictures with low bands and first tokens at the bottom, and the audio."""
        with ema_weights(self.model, self.optimizer):
            sample = take_sample(self.model, self.batch)
        for name in ("target", "copied", "spoken", "path"):
            self.board.images(step, f"sample/{name}", np.flipud(getattr(sample, name).T))
        spoken = griffin_lim(sample.spoken, self.spec)
        spoken = spoken / max(1.0, float(np.abs(spoken).max()))
        self.board.audio(step, "sample/audio", spoken, self.spec.sample_rate)
