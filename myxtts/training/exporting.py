"""The voice of a model that is being trained: its EMA weights, and what is measured with them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np

from myxtts.audio.postfilter import modulation_gains
from myxtts.audio.threads import single_threaded_blas
from myxtts.checkpoints import Voice, save_voice
from myxtts.config.config import SETTINGS, XTTSConfig, affecting
from myxtts.data.batches.training_data import TrainingData
from myxtts.training.calibration import MOST, calibrated
from myxtts.training.hooks.validation import speaker_embeddings
from myxtts.training.optimizer import ema_weights
from myxtts.training.predictions import TeacherForced, predict_mels
from myxtts.training.warm_start import with_known_embeddings

# Enough to measure the modulation of a voice: every export predicts their mels.
POSTFILTER_UTTERANCES = 32


class VoiceMaker:
    """Makes voices of a model and the data that it learns from; `start` is what it began with."""

    def __init__(
        self,
        folder: Path,
        config: XTTSConfig,
        data: TrainingData,
        model: keras.Model,
        start: Voice | None,
    ):
        self.folder, self.config, self.data = folder, config, data
        self.model, self.start = model, start
        # What the model predicts along true alignments, whatever weights it has at the moment.
        self.teacher_forced = TeacherForced(model)

    @contextmanager
    def ema_voice(self, optimizer, val_batches: Iterable | None) -> Iterator[Voice]:
        """The voice of the EMA weights, while the model has them."""
        cache = self.data.train.cache
        with (
            ema_weights(self.model, optimizer),
            calibrated(self.teacher_forced, val_batches or self.data.speaker_batches(MOST)),
        ):
            voices = speaker_embeddings(
                self.model, self.data.speaker_batches(), len(cache.speakers)
            )
            if self.start:
                voices = with_known_embeddings(voices, self.start.voices, cache.speaker)
            yield Voice(
                self.folder / "voice",
                portable(self.config),
                self.data.tokenizer,
                self.model,
                tuple(cache.speakers),
                tuple(cache.languages),
                voices,
                self._gains(),
            )

    def _gains(self) -> np.ndarray:
        """The gains of the post-filter, from some utterances of every speaker."""
        each = -(-POSTFILTER_UTTERANCES // len(self.data.train.cache.speakers))
        with single_threaded_blas():  # these products are small, and there are many
            return modulation_gains(
                (mel[:length], predicted)
                for batch in self.data.speaker_batches(each)
                for mel, length, predicted in zip(
                    np.asarray(batch["mel"], np.float32),
                    np.asarray(batch["mel_lengths"]),
                    predict_mels(self.teacher_forced, batch),
                    strict=True,
                )
            )


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
        gains=voice.gains,
    )


def portable(config: XTTSConfig) -> XTTSConfig:
    """The settings without this machine's paths: a voice goes anywhere."""
    plain = {path: SETTINGS[path].default for path in affecting("path")}
    # The encoder's weights are among the voice's own.
    return config.replace(
        **plain, use_pretrained_speaker_encoder=bool(config.model.speaker_encoder)
    )
