"""How a model aligns texts with recordings that it was not trained on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from myxtts.data.padding import pad_rows
from myxtts.evaluation.metrics.robustness import is_complete

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice

BATCH = 16
BARELY_HEARD = 2  # frames


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Tokens [tokens] of a text, the token of each frame [frames] of its recording, and how many
    frames [tokens] the model would give each token by itself."""

    tokens: np.ndarray
    frame_tokens: np.ndarray
    durations: np.ndarray

    @property
    def aligned_durations(self) -> np.ndarray:
        """How many frames [tokens] of the recording each token has."""
        return np.bincount(self.frame_tokens, minlength=len(self.tokens))


def align(
    voice: "Voice", mels: Sequence[np.ndarray], texts: Sequence[str], language: str
) -> list[Alignment]:
    """Align recordings, as mels [frames, mels], with their texts; each is its own reference."""
    tokens = voice.tokenizer.encode_batch(texts, language)
    number = voice.languages.index(language)
    return [
        alignment
        for start in range(0, len(mels), BATCH)
        for alignment in _align_batch(
            voice.model, mels[start : start + BATCH], tokens[start : start + BATCH], number
        )
    ]


def alignment_facts(
    alignments: Sequence[Alignment], frame_seconds: float
) -> dict[str, float | str]:
    """How many alignments are complete, their longest sound, and how durations are predicted."""
    whole = sum(is_complete(one.frame_tokens, len(one.tokens)) for one in alignments)
    longest = max(int(one.aligned_durations.max()) for one in alignments)
    return {
        # Any search with a frame for each token is complete: the next two show a bad alignment.
        "alignments monotonic and complete": f"{whole} of {len(alignments)}",
        "longest sound in an alignment, s": longest * frame_seconds,
        "correlation of predicted and aligned durations": duration_correlation(alignments),
    }


def heard_sounds(
    voice: "Voice", texts: Sequence[str], durations: Sequence[np.ndarray], language: str
) -> tuple[int, int]:
    """How many sounds that the front end adds, such as ezafes, last longer than two frames.

    Also how many there are. `durations` are the frames [tokens] of the tokens of each text.
    """
    frames = [
        own[place]
        for text, own in zip(texts, durations, strict=True)
        for place in voice.tokenizer.added_sounds(text, language)
    ]
    return sum(bool(one > BARELY_HEARD) for one in frames), len(frames)


def duration_correlation(alignments: Sequence[Alignment]) -> float:
    """Correlate the logarithms of predicted and of aligned durations over all tokens."""
    predicted = np.concatenate([one.durations for one in alignments])
    aligned = np.concatenate([one.aligned_durations for one in alignments])
    return float(np.corrcoef(np.log(np.maximum((predicted, aligned), 1.0)))[0, 1])


def _align_batch(
    model, mels: Sequence[np.ndarray], tokens: Sequence[np.ndarray], language: int
) -> Iterator[Alignment]:
    import tensorflow as tf

    mel = pad_rows(mels, np.float32)
    mel_lengths = np.array([len(one) for one in mels], np.int32)
    # Pitch and energy only affect the decoder, whose mel is not used here.
    unused = np.zeros(mel.shape[:2], np.float32)
    inputs = {
        "tokens": pad_rows(tokens, np.int32),
        "text_lengths": np.array([len(one) for one in tokens], np.int32),
        "language": np.full(len(tokens), language, np.int32),
        "mel": mel,
        "mel_lengths": mel_lengths,
        "pitch": unused,
        "energy": unused,
        "reference": mel,
        "reference_lengths": mel_lengths,
        "prior_weight": np.float32(0),
    }
    if model.wants_embeddings:
        inputs["reference_embedding"] = model.published_voice.embed(mel, mel_lengths)
    outputs = model({name: tf.convert_to_tensor(value) for name, value in inputs.items()})
    found = zip(tokens, mel_lengths, outputs["frame_tokens"], outputs["log_durations"], strict=True)
    for own, frames, frame_tokens, log_durations in found:
        of_states = np.exp(log_durations.numpy()).reshape(-1, model.token_states)
        durations = of_states[: len(own)].sum(axis=1)
        yield Alignment(own, frame_tokens.numpy()[:frames], durations)
