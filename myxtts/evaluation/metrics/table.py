"""The table of metrics: a new one is a file in this folder and a row here.

Metrics are imported when they run: the table also fills the choices of command-line flags.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from myxtts.evaluation.metrics.session import Session

# Sources of speech. The words are keys of evaluation.json.
SPEECH, RECORDED, RESYNTHESIS = "speech", "recordings", "copies"
CEILINGS = (RECORDED, RESYNTHESIS)  # they do not depend on the voice

# What a metric may need. The words are keys of evaluation.json.
ASR, RATER, ENCODER = "listening", "rating", "voices"
OPINION, ALIGNMENT = "opinions", "aligning"  # predicted opinions; a voice's own alignments
RECORDINGS, HARD_TEXTS = (
    "comparing",
    "robustness",
)  # recordings of the same words; hard texts spoken by the voice
NOTHING = "levels"  # the part of metrics that need only the speech

LOWER, HIGHER = "lower", "higher"
NEAR_ONE = "near one"  # ratios to recordings: above 1 is as unnatural as below

# By source: values [sentences], NaN where a sentence has none, or pairs [sentences, 2] like
# (errors, words), whose figure is the ratio of sums.
Values = Mapping[str, "np.ndarray"]
Run = Callable[["Session"], Values]


@dataclass(frozen=True)
class Metric:
    """A row: how a figure is shown, which direction is better, what it needs, and what runs it.

    `is_per_sentence` is False where `run` returns values of something other than sentences.
    """

    title: str
    unit: str
    digits: int
    better: str
    needs: tuple[str, ...]
    run: Run
    is_per_sentence: bool = True

    @property
    def label(self) -> str:
        label = f"{self.title}, {self.unit}" if self.unit else self.title
        return label if self.target is None else f"{label} (natural: {self.target:g})"

    @property
    def target(self) -> float | None:
        """The best figure, where neither the lowest nor the highest is."""
        return 1.0 if self.better == NEAR_ONE else None

    @property
    def part(self) -> str:
        """The part of an evaluation under which its time and its errors are reported."""
        return self.needs[0] if self.needs else NOTHING


def _in(module: str, function: str) -> "Callable[[Session], Any]":
    """A function of a module of this folder, imported when it is called."""
    return lambda session: getattr(import_module(f"{__package__}.{module}"), function)(session)


def _each(find: "Callable[[Session], Mapping[str, Iterable]]", *fields: str) -> Run:
    """Fields of what a function finds in each sentence; it runs once for all metrics."""

    def run(session: "Session") -> Values:
        import numpy as np

        field = attrgetter(*fields)
        found = session.shared(find)
        return {source: np.array([field(one) for one in own]) for source, own in found.items()}

    return run


_ERRORS, _RATINGS = _in("intelligibility", "sentence_errors"), _in("quality", "ratings")
_LIKENESS, _LEVELS = _in("spectral", "likeness"), _in("levels", "levels")
_PAUSES = _in("rhythm", "pauses")


def _next_to_recordings(module: str, function: str) -> Run:
    """A function of frames, of each sentence and of its recording."""

    def run(session: "Session") -> Values:
        from myxtts.evaluation.metrics.frames import next_to_recordings

        measure = getattr(import_module(f"{__package__}.{module}"), function)
        return next_to_recordings(session, measure)

    return run


def _rating(title: str, field: str) -> Metric:
    return Metric(title, "", 2, HIGHER, (RATER,), _each(_RATINGS, field), is_per_sentence=False)


def _likeness(title: str, unit: str, digits: int, better: str, field: str) -> Metric:
    return Metric(title, unit, digits, better, (RECORDINGS,), _each(_LIKENESS, field))


def _liveliness(title: str, module: str, function: str) -> Metric:
    run = _next_to_recordings(module, function)
    return Metric(title, "", 3, NEAR_ONE, (RECORDINGS,), run)


def _pauses(title: str, unit: str, better: str, *fields: str) -> Metric:
    return Metric(title, unit, 3, better, (RECORDINGS,), _each(_PAUSES, *fields))


def _level(title: str, unit: str, digits: int, better: str, field: str) -> Metric:
    return Metric(title, unit, digits, better, (), _each(_LEVELS, field))


# In the order in which they are shown. The names are keys of evaluation.json and of histories.
METRICS: dict[str, Metric] = {
    "wer": Metric("WER", "", 3, LOWER, (ASR,), _each(_ERRORS, "errors", "words")),
    "cer": Metric("CER", "", 3, LOWER, (ASR,), _each(_ERRORS, "character_errors", "characters")),
    "mos": _rating("DNSMOS overall", "overall"),
    "mos_signal": _rating("DNSMOS signal", "signal"),
    "mos_background": _rating("DNSMOS background", "background"),
    "distill_mos": Metric(
        "Distill-MOS", "", 2, HIGHER, (OPINION,), _in("opinions", "predicted_opinions")
    ),
    "mcd": _likeness("MCD", "dB", 2, LOWER, "distortion"),
    "f0_correlation": _likeness("F0 correlation", "", 3, HIGHER, "pitch.correlation"),
    "f0_rmse": _likeness("F0 RMSE", "cents", 0, LOWER, "pitch.rmse_cents"),
    "voicing_error": _likeness("voicing error", "", 3, LOWER, "pitch.voicing_error"),
    "warped_estoi": _likeness("warped ESTOI", "", 3, HIGHER, "warped_estoi"),
    "length_ratio": _likeness("length ratio", "", 3, NEAR_ONE, "length_ratio"),
    "mel_variance": _liveliness("mel variance", "smoothness", "mel_variance"),
    "spectral_detail": _liveliness("spectral detail", "smoothness", "spectral_detail"),
    "modulation": _liveliness("modulation, 4 to 32 Hz", "smoothness", "modulation"),
    "f0_spread": _liveliness("F0 spread", "melody", "f0_spread"),
    "f0_dynamics": _liveliness("F0 slope", "melody", "f0_dynamics"),
    "energy_spread": _liveliness("energy spread", "melody", "energy_spread"),
    "missed_pauses": _pauses("missed pauses", "share", LOWER, "missed", "recorded"),
    "added_pauses": _pauses("added pauses", "share", LOWER, "added", "spoken"),
    "pause_length": _pauses("pause length", "", NEAR_ONE, "spoken_seconds", "recorded_seconds"),
    "duration_variety": Metric(
        "duration variety", "", 3, NEAR_ONE, (RECORDINGS, ALIGNMENT),
        _in("rhythm", "duration_variety"), is_per_sentence=False,
    ),
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
    """The names of the metrics that need only these."""
    return [name for name, metric in METRICS.items() if set(metric.needs) <= set(needs)]
