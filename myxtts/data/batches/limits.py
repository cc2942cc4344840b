"""The limits of a configuration: what training drops, and when that is too much."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.audio.bounds import AudioInfo
from myxtts.audio.io import MIN_SAMPLES, TOO_SHORT, examine_audio
from myxtts.config.config import DataConfig
from myxtts.data.batches.split import Split
from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.headers import inspect_recordings
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.features.features import FeatureSettings, frames_of_header
from myxtts.data.features.prepare import encode_all
from myxtts.data.rejections import (
    NO_TOKENS,
    TEXT_TOO_LONG,
    TOO_FAST,
    TOO_LONG,
    Rejection,
    describe_rejections,
    is_too_much,
)
from myxtts.data.store.errors import PreparationError
from myxtts.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

# A share of a handful of validation utterances says nothing: so many may always be dropped.
FEW = 3


@dataclass(frozen=True)
class Examination:
    """The corpus as training would see it, the seconds of its utterances, and its sample rates."""

    corpus: Corpus
    seconds: tuple[float, ...]
    sample_rates: Counter[int]

    def check(self, max_rejected: float) -> None:
        """Reject a corpus of which nothing or too little is left."""
        dropped, kept = len(self.corpus.rejections), len(self.corpus.utterances)
        if is_too_much(dropped, dropped + kept, max_rejected):
            raise CorpusError(
                f"{self.corpus.root}: {dropped:,} of {dropped + kept:,} utterances would be "
                f"dropped; at most {max_rejected:.0%} may be. Fix the recordings or the metadata, "
                "or raise the limits (--max-mel-frames, --max-text-length, max_rejected)"
            )


def examine(
    corpus: Corpus,
    data: DataConfig,
    tokenizer: Tokenizer,
    progress: Callable[[int, int], None] | None = None,
    states: int = 1,
) -> Examination:
    """Read the headers of all recordings, and apply every limit of the settings.

    Each of the `states` of a token takes a frame at least.
    Recordings in float are decoded as well, since their samples could be no audio at all.
    """
    utterances = corpus.utterances
    infos, rejections = inspect_recordings(
        utterances, data.num_workers, progress, read=examine_audio
    )
    tokens = [len(ids) for ids in encode_all(utterances, tokenizer)]
    settings = FeatureSettings.from_config(data)
    for utterance, info, count in zip(utterances, infos, tokens, strict=True):
        if info is None:
            continue
        fault = next(_faults(info, len(utterance.text), states * count, data, settings), None)
        if fault:
            rejections.append(Rejection(utterance.id, *fault, info.seconds))
    lengths = {u.id: info.seconds for u, info in zip(utterances, infos, strict=True) if info}
    rates = Counter(info.sample_rate for info in infos if info)
    left = corpus.without(rejections)
    return Examination(left, tuple(lengths[u.id] for u in left.utterances), rates)


def _faults(
    info: AudioInfo, characters: int, tokens: int, data: DataConfig, settings: FeatureSettings
) -> Iterator[tuple[str, str]]:
    """Yield reason and detail of each limit that an utterance breaks."""
    frames = frames_of_header(info, settings)
    least = max(data.min_seconds, MIN_SAMPLES / data.sample_rate)
    if info.seconds < least:
        yield TOO_SHORT, f"{info.seconds:.3f} s, at least {least:.3f} s"
    if frames > data.max_mel_frames:
        yield TOO_LONG, f"{frames:,} frames, at most {data.max_mel_frames:,} (--max-mel-frames)"
    if characters > data.max_text_length:
        most = data.max_text_length
        yield TEXT_TOO_LONG, f"{characters:,} characters, at most {most:,} (--max-text-length)"
    if tokens == 0:
        yield NO_TOKENS, "its text holds nothing that can be spoken"
    if tokens > frames:
        yield TOO_FAST, f"{tokens:,} tokens or parts of them in {frames:,} frames"


def within_limits(split: Split, data: DataConfig, states: int = 1) -> Split:
    """Drop what is too long to train on, or has fewer frames than states of tokens."""
    texts = np.array([len(u.text) for u in split.utterances])
    reasons = (
        (split.plan_lengths > data.max_mel_frames, TOO_LONG),
        (texts > data.max_text_length, TEXT_TOO_LONG),
        (states * split.cache.text_lengths > split.plan_lengths, TOO_FAST),
    )
    keep = np.ones(len(split), bool)
    rejections = []
    for bad, reason in reasons:
        for i in np.flatnonzero(bad & keep).tolist():
            seconds = split.location.settings.spec.seconds(float(split.plan_lengths[i]))
            rejections.append(Rejection(split.utterances[i].id, reason, "", seconds))
        keep &= ~bad
    return split.keep(keep, rejections)


def check_dropped(
    rejections: Sequence[Rejection],
    total: int,
    data: DataConfig,
    *,
    unusable: int = 0,
    advice: str = "Fix the corpus, or raise max_rejected",
) -> None:
    """Log what is dropped of a part of the corpus; raise where it is too much.

    `unusable` utterances are dropped as well, and were reported before.
    """
    found = describe_rejections(rejections, total, verb="dropped")
    if is_too_much(len(rejections) + unusable, total, data.max_rejected, FEW):
        more = f", {unusable} more are unusable" if unusable else ""
        raise CorpusError(f"{found}{more}; at most {data.max_rejected:.0%} may be. {advice}")
    if rejections:
        logger.warning("%s", found)


def check_unusable(rejections: Sequence[Rejection], split: Split, data: DataConfig) -> None:
    """The same for what could not be derived from a split; the mode precompute accepts none."""
    if rejections and split.mode == "precompute":
        raise PreparationError(describe_rejections(rejections, len(split)))
    check_dropped(rejections, len(split), data)
