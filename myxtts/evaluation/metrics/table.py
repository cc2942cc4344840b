"""The table of metrics: a new one is a file in this folder and a row here.

Nothing is imported before a metric runs: the table also fills the choices of command-line flags.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from myxtts.evaluation.metrics.session import Session

# Where speech comes from. The words are keys of evaluation.json.
SPEECH, RECORDED, RESYNTHESIS = "speech", "recordings", "copies"

# What a metric may need. The words are keys of evaluation.json.
ASR, RATER, ENCODER = "listening", "rating", "voices"
RECORDINGS, HARD_TEXTS = "comparing", "robustness"  # of the same words; spoken by the voice
NOTHING = "levels"  # the part of those that need the speech alone

LOWER, HIGHER = "lower", "higher"

# By source of the speech: a value of each sentence [sentences], NaN where it has none, or pairs
# [sentences, 2] such as (errors, words), of which the figure is the ratio of sums.
Values = Mapping[str, "np.ndarray"]


@dataclass(frozen=True)
class Metric:
    """A row: how a figure is shown, which way is better (if any), what it needs, what runs it.

    `is_per_sentence` is False where `run` returns values of something else than the sentences.
    """

    title: str
    unit: str
    digits: int
    better: str
    needs: tuple[str, ...]
    run: "Callable[[Session], Values]"
    is_per_sentence: bool = True

    @property
    def label(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def part(self) -> str:
        """The part of an evaluation that its time, and what is wrong with it, is counted under."""
        return self.needs[0] if self.needs else NOTHING


def _in(module: str, function: str, *arguments: str) -> "Callable[[Session], Values]":
    """A function of a module of this folder, imported when it is called."""

    def run(session: "Session") -> Values:
        found = import_module(f"myxtts.evaluation.metrics.{module}")
        return getattr(found, function)(session, *arguments)

    return run


def _rating(title: str, opinion: str) -> Metric:
    run = _in("quality", "ratings", opinion)
    return Metric(title, "", 2, HIGHER, (RATER,), run, is_per_sentence=False)


def _likeness(title: str, unit: str, digits: int, better: str, name: str) -> Metric:
    return Metric(title, unit, digits, better, (RECORDINGS,), _in("spectral", "likeness", name))


def _level(title: str, unit: str, digits: int, better: str, name: str) -> Metric:
    return Metric(title, unit, digits, better, (), _in("levels", "levels", name))


# In the order in which they are shown. The names are keys of evaluation.json and of histories.
METRICS: dict[str, Metric] = {
    "wer": Metric("WER", "", 3, LOWER, (ASR,), _in("intelligibility", "word_errors")),
    "cer": Metric("CER", "", 3, LOWER, (ASR,), _in("intelligibility", "character_errors")),
    "mos": _rating("DNSMOS overall", "overall"),
    "mos_signal": _rating("DNSMOS signal", "signal"),
    "mos_background": _rating("DNSMOS background", "background"),
    "mcd": _likeness("MCD", "dB", 2, LOWER, "mcd"),
    "f0_correlation": _likeness("F0 correlation", "", 3, HIGHER, "f0_correlation"),
    "f0_rmse": _likeness("F0 RMSE", "cents", 0, LOWER, "f0_rmse"),
    "voicing_error": _likeness("voicing error", "", 3, LOWER, "voicing_error"),
    "warped_estoi": _likeness("warped ESTOI", "", 3, HIGHER, "warped_estoi"),
    "length_ratio": _likeness("length ratio", "", 3, "", "length_ratio"),
    "skipped": Metric(
        "skipped sentences", "share", 3, LOWER, (RECORDINGS,), _in("robustness", "skipped")
    ),
    "endless": Metric(
        "endless sentences", "share", 3, LOWER, (RECORDINGS,), _in("robustness", "endless")
    ),
    "similarity": Metric(
        "speaker similarity", "", 3, HIGHER, (ENCODER,), _in("speaker", "similarity")
    ),
    "right_speaker": Metric(
        "nearest to the right speaker", "share", 3, HIGHER, (ENCODER,),
        _in("speaker", "right_speaker"),
    ),
    "loudness": _level("loudness", "dBFS", 1, "", "loudness"),
    "peak": _level("peak", "", 3, "", "peak"),
    "clipped": _level("clipped share", "", 5, LOWER, "clipped"),
    "silent": _level("silent share", "", 3, "", "silent"),
    "longest_pause": _level("longest pause", "s", 2, "", "longest_pause"),
    "dc_offset": _level("DC offset", "", 5, "", "dc_offset"),
    "faulty_texts": Metric(
        "faulty hard texts", "share", 3, LOWER, (HARD_TEXTS,), _in("robustness", "faulty_texts"),
        is_per_sentence=False,
    ),
}  # fmt: skip


def metrics_that_need(*needs: str) -> list[str]:
    """The names of the metrics that need nothing else than these."""
    return [name for name, metric in METRICS.items() if set(metric.needs) <= set(needs)]
