"""How long recordings are cut; without NumPy, since the command line has its defaults from here."""

import math
from dataclasses import dataclass

from myxtts.errors import UserError

CLIP_FORMATS = ("flac", "wav")
AUTO, LEVEL, VOICE = PAUSES_BY = ("auto", "level", "voice")
QUIETEST_DB = -60.0  # what is never louder is no speech


@dataclass(frozen=True, slots=True)
class SliceOptions:
    """How a recording is cut: times in seconds, levels in dBFS."""

    shortest: float = 1.0
    longest: float = 12.0
    pause: float = 0.4  # shorter ones are cut at only within what is longer than `longest`
    keep: float = 0.15  # silence that is left at both ends of a clip
    threshold: float | None = None  # what is quieter is a pause; None: from the levels
    most_clipped: float = 0.001  # a share of the samples of a clip
    # What tells a pause: its level, or that nobody speaks by the voice detector. By auto it is the
    # level, and the detector where noise leaves no pauses to be found so, if that is installed.
    pauses_by: str = AUTO

    def __post_init__(self) -> None:
        for name in ("shortest", "pause"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be above 0 seconds, not {getattr(self, name)}")
        if not 0.0 <= self.keep < math.inf:
            raise UserError(f"keep must be at least 0 seconds, not {self.keep}")
        if not self.shortest + 2 * self.keep < self.longest < math.inf:
            raise UserError(
                f"longest must be above shortest and twice keep, {self.shortest + 2 * self.keep:g} "
                f"seconds, not {self.longest}"
            )
        if self.threshold is not None and not QUIETEST_DB <= self.threshold < 0.0:
            raise UserError(
                f"threshold must be from {QUIETEST_DB:g} to below 0 dBFS, not {self.threshold}"
            )
        if self.pauses_by not in PAUSES_BY:
            known = ", ".join(PAUSES_BY)
            raise UserError(f"pauses_by must be one of {known}, not {self.pauses_by!r}")
        if self.pauses_by == VOICE and self.threshold is not None:
            raise UserError("a threshold is of levels: give it without pauses by voice")
        if not 0.0 <= self.most_clipped <= 1.0:
            raise UserError(f"most_clipped must be from 0 to 1, not {self.most_clipped}")
