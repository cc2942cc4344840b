"""A stop at losses that are not finite."""

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np

from myxtts.training.hooks.log import WEIGHTED, listed
from myxtts.training.loop import Hook, StepRecord, TrainingDiverged

# Loss scaling halves its scale each time: by then it has given up all that float16 can spare.
MOST_SKIPPED = 20


class NonFiniteHook(Hook):
    """Stops the run at a metric that is not finite, naming terms, utterances and a way back.

    `ids_of` gives the ids of a batch's positions, `last_checkpoint` the newest good checkpoint or
    None. With float16 a step may overflow and be skipped by the loss scaling: `ignored` then names
    the metrics for which that is no news, such as the gradient norm.
    """

    def __init__(
        self,
        ids_of: Callable[[np.ndarray], Sequence[str]],
        last_checkpoint: Callable[[], Path | None],
        ignored: Collection[str] = (),
    ):
        self.ids_of, self.last_checkpoint, self.ignored = ids_of, last_checkpoint, set(ignored)
        self._skipped = 0

    def after_step(self, record: StepRecord) -> None:
        found = {name: v for name, v in record.metrics.items() if not math.isfinite(v)}
        self._skipped = self._skipped + 1 if found else 0
        bad = {
            name: value
            for name, value in found.items()
            if name not in self.ignored or self._skipped >= MOST_SKIPPED
        }
        if bad:
            raise TrainingDiverged(self._describe(record, bad))

    def _describe(self, record: StepRecord, bad: dict[str, float]) -> str:
        # A weighted term says nothing that its raw one does not.
        shown = {n: v for n, v in bad.items() if n.removeprefix(WEIGHTED) not in bad.keys() - {n}}
        checkpoint = self.last_checkpoint()
        back = f"the last good checkpoint is {checkpoint}" if checkpoint else "no checkpoint yet"
        return (
            f"training diverged at step {record.step} (epoch {record.epoch + 1}, batch "
            f"{record.number + 1}): {listed(shown)}; the batch's utterances: "
            f"{', '.join(self.ids_of(record.index))}; {back}. Look at these recordings and "
            "texts, and resume with a lower --learning-rate"
        )
