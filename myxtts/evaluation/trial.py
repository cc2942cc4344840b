"""A trial: sentences that a model says beside recordings of the same ones, and what is judged."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.audio.mel import log_mel
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.alignment import Alignment
from myxtts.evaluation.asr import ErrorRates, Moonshine, error_rates
from myxtts.evaluation.metrics.quality import WINDOW_SECONDS
from myxtts.evaluation.metrics.robustness import compare_lengths, is_complete, lost, stuck
from myxtts.evaluation.report.report import Score
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress

# (log-mel [frames, mels], spec, seed) -> samples [frames * hop_length]
Vocode = Callable[[np.ndarray, AudioSpec, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class Trial:
    """Sentences, each as samples and log-mel of what the model says, and as samples of a recording,
    at the spec's rate."""

    what: str
    language: str
    sentences: Sequence[str]
    spoken: Sequence[np.ndarray]
    spoken_mels: Sequence[np.ndarray]
    recorded: Sequence[np.ndarray]
    spec: AudioSpec
    vocoder: str = "Griffin-Lim"

    @cached_property
    def recorded_mels(self) -> list[np.ndarray]:
        """The log-mels [frames, mels] of the recordings."""
        return [log_mel(samples, self.spec) for samples in self.recorded]


def score_trial(
    trial: Trial, recogniser: Moonshine, progress: Progress | None = None
) -> tuple[Score, Score]:
    """Let a recogniser hear the model and the recordings, which are its ceiling."""
    heard = _hear(trial, [*trial.spoken, *trial.recorded], recogniser, progress)
    count = len(trial.sentences)
    spoken, recorded = (
        error_rates(trial.sentences, part, trial.language)
        for part in (heard[:count], heard[count:])
    )
    return (
        Score(f"model, {trial.what}", spoken, recorded),
        Score(f"recordings, {trial.what}", recorded),
    )


def score_model(
    trial: Trial, recogniser: Moonshine, ceiling: ErrorRates, progress: Progress | None = None
) -> Score:
    """Let a recogniser hear the model alone, where what it makes of the recordings is known."""
    heard = _hear(trial, trial.spoken, recogniser, progress)
    rates = error_rates(trial.sentences, heard, trial.language)
    return Score(f"model, {trial.what}", rates, ceiling)


def copy_recordings(trial: Trial, vocode: Vocode) -> list[np.ndarray]:
    """The recordings as a vocoder makes them from their log-mels."""
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(lambda mel: vocode(mel, trial.spec, 0), trial.recorded_mels))


def score_copies(
    trial: Trial,
    recogniser: Moonshine,
    progress: Progress | None = None,
    copies: Sequence[np.ndarray] | None = None,
) -> Score:
    """Score the recordings through the trial's vocoder: what it costs by itself."""
    if copies is None:
        copies = copy_recordings(trial, griffin_lim)
    heard = _hear(trial, copies, recogniser, progress)
    rates = error_rates(trial.sentences, heard, trial.language)
    return Score(f"recordings through {trial.vocoder}", rates)


def joined(speech: Sequence[np.ndarray], rate: int, most: int) -> list[tuple[np.ndarray, int]]:
    """Sentences one behind the other, in at most so many recordings that are long enough to rate.

    A shorter one would be rated as an echo of itself.
    """
    least, parts, found = WINDOW_SECONDS * rate, [], []
    for samples in speech:
        parts.append(samples)
        if sum(map(len, parts)) >= least:
            found.append((np.concatenate(parts), rate))
            parts = []
    if parts and not found:
        found.append((np.concatenate(parts), rate))
    return found[:most]


def measure_trial(
    trial: Trial, alignments: Sequence[Alignment], score: Score | None = None
) -> dict[str, float | int | str]:
    """Compare lengths, check alignments, and count what was not said to its end or without one."""
    lengths = compare_lengths(*([len(x) for x in part] for part in (trial.spoken, trial.recorded)))
    skipped, endless = lengths.too_short, lengths.too_long
    if score:
        skipped |= lost(score.rates, score.ceiling)
    frame_seconds = trial.spec.hop_length / trial.spec.sample_rate
    endless |= stuck([one.durations for one in alignments], frame_seconds)
    whole = sum(is_complete(one.frame_tokens, len(one.tokens)) for one in alignments)
    return {
        "skipped sentences": len(skipped),
        "endless sentences": len(endless),
        "length ratio, spoken / recorded": lengths.ratio,
        "least and greatest length ratio": f"{lengths.lowest:.2f}, {lengths.highest:.2f}",
        # True of any search that had a frame for each token: the two below can tell a bad one.
        "alignments monotonic and complete": f"{whole} of {len(alignments)}",
        "longest sound in an alignment, s": longest_sound(alignments) * frame_seconds,
        "correlation of predicted and aligned durations": correlation(alignments),
    }


def longest_sound(alignments: Sequence[Alignment]) -> int:
    """Return the most frames that an alignment gives to one token."""
    return max(int(one.aligned_durations.max()) for one in alignments)


def correlation(alignments: Sequence[Alignment]) -> float:
    """Correlate the logarithms of predicted and of aligned durations over all tokens."""
    predicted = np.concatenate([one.durations for one in alignments])
    aligned = np.concatenate([one.aligned_durations for one in alignments])
    return float(np.corrcoef(np.log(np.maximum((predicted, aligned), 1.0)))[0, 1])


def _hear(
    trial: Trial, speech: Sequence[np.ndarray], recogniser: Moonshine, progress: Progress | None
) -> list[str]:
    rate = trial.spec.sample_rate
    return recogniser.transcribe_many([(samples, rate) for samples in speech], progress)
