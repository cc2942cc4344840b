"""How a training run ends."""

from enum import StrEnum


class Ending(StrEnum):
    """After its last step, by a fault, or by a signal after the step that was running."""

    FINISHED = "finished"
    FAILED = "failed"
    SIGINT = "SIGINT"
    SIGTERM = "SIGTERM"

    @property
    def is_interrupted(self) -> bool:
        return self in (Ending.SIGINT, Ending.SIGTERM)
