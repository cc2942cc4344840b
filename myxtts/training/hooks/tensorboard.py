"""Scalars, images and audio for TensorBoard, where it is installed."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from myxtts.training.loop import Listener, StepRecord, notify

logger = logging.getLogger(__name__)


class TensorBoardHook(Listener):
    """Writes event files; without the package it says so once and stays inactive."""

    def __init__(self, folder: Path, log_interval: int):
        self.folder, self.log_interval = Path(folder), log_interval
        self._writer = None

    @property
    def is_active(self) -> bool:
        """Whether there is anything to write to."""
        return self._writer is not None

    def start(self, step: int) -> None:
        # TensorFlow borrows its summaries from this package, and says so only when one is written.
        try:
            import tensorboard  # noqa: F401
        except ModuleNotFoundError:
            logger.warning("TensorBoard is inactive: pip install 'myxtts[tensorboard]' enables it")
            return
        import tensorflow as tf

        self._writer = tf.summary.create_file_writer(str(self.folder))

    def after_step(self, record: StepRecord) -> None:
        if record.step % self.log_interval == 0:
            losses = {_tag(name): value for name, value in record.metrics.items()}
            times = {f"time/{name}": value for name, value in record.figures.items()}
            times["time/utilisation"] = record.times.utilisation
            self._scalars(record.step, losses | times)

    def record_validation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write what a validation after `step` measured."""
        self._scalars(step, {f"val/{name}": value for name, value in metrics.items()})

    def images(self, step: int, name: str, array: np.ndarray) -> None:
        """Write a picture: a matrix [rows, columns], in grey from its least value to its greatest,
        or colours [rows, columns, 1 or 3], which are uint8 or lie between 0 and 1."""
        if self._writer is None:
            return
        import tensorflow as tf

        picture = grey(array) if array.ndim == 2 else array
        with self._writer.as_default(step):
            tf.summary.image(name, picture[np.newaxis])
        self._writer.flush()

    def audio(self, step: int, name: str, samples: np.ndarray, rate: int) -> None:
        """Write a recording [samples] between -1 and 1."""
        if self._writer is None:
            return
        import tensorflow as tf

        with self._writer.as_default(step):
            tf.summary.audio(name, samples.astype(np.float32)[np.newaxis, :, np.newaxis], rate)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _scalars(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is None:
            return
        import tensorflow as tf

        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writer.flush()


class Boards:
    """Several places for pictures and audio, as one; those that are not active are skipped."""

    def __init__(self, boards: Sequence[Listener]):
        self.boards = boards

    @property
    def is_active(self) -> bool:
        return any(board.is_active for board in self.boards)

    def images(self, step: int, name: str, array: np.ndarray) -> None:
        for board in self.boards:
            if board.is_active:
                notify(board, lambda one: one.images(step, name, array))

    def audio(self, step: int, name: str, samples: np.ndarray, rate: int) -> None:
        for board in self.boards:
            if board.is_active:
                notify(board, lambda one: one.audio(step, name, samples, rate))


def grey(matrix: np.ndarray) -> np.ndarray:
    """Scale a matrix to [rows, columns, 1] between 0 and 1; a constant one becomes black."""
    values = matrix.astype(np.float32) - matrix.min()
    return (values / (values.max() or 1.0))[..., np.newaxis]


def _tag(name: str) -> str:
    """TensorBoard groups by what stands before the slash."""
    return name if "/" in name else f"train/{name}"
