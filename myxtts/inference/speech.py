"""Speech: a vocoder's samples at a normalised level, joined with pauses."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from myxtts.audio.cleanup import loudness
from myxtts.config.audio_spec import AudioSpec
from myxtts.text.reading import Reading

logger = logging.getLogger(__name__)

LOUDNESS_LUFS = -23.0
PEAK_LIMIT = 10.0 ** (-1.0 / 20.0)
_FADE_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Sentence:
    """How a sentence was read, the frames of each of its tokens, of all, and of the pause after it.

    The stop head ends a sentence some frames before or after its tokens do: `num_frames` is how
    many there are.
    """

    reading: Reading
    durations: np.ndarray
    num_frames: int
    pause_frames: int = 0


@dataclass(frozen=True, slots=True)
class Speech:
    """Samples [samples] at a level fit for listening, their log-mel [frames, mels], and the text.

    There are hop_length samples to a frame; pauses are frames at the floor of the log-mel. Each of
    the text's tokens [tokens] was given so many frames, durations [tokens], without the pauses.
    `spoken` has the same by sentence, in order: it is what times of words are made of.
    """

    samples: np.ndarray
    sample_rate: int
    mel: np.ndarray
    sentences: tuple[str, ...]
    tokens: np.ndarray
    durations: np.ndarray
    pause_frames: int = 0
    spoken: tuple[Sentence, ...] = ()

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate

    @property
    def spoken_frames(self) -> int:
        """How many frames there are without the pauses between sentences."""
        return len(self.mel) - self.pause_frames


def join_speech(parts: Sequence[Speech]) -> Speech:
    """Concatenate segments of speech."""
    return Speech(
        np.concatenate([part.samples for part in parts]),
        parts[0].sample_rate,
        np.concatenate([part.mel for part in parts]),
        tuple(sentence for part in parts for sentence in part.sentences),
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([part.durations for part in parts]),
        sum(part.pause_frames for part in parts),
        tuple(sentence for part in parts for sentence in part.spoken),
    )


def followed_by_pause(speech: Speech, seconds: float, spec: AudioSpec) -> Speech:
    """Add silence of about so many seconds, in whole frames."""
    frames = round(seconds * spec.sample_rate / spec.hop_length)
    samples = np.pad(speech.samples, (0, frames * spec.hop_length))
    floor = np.float32(np.log(spec.floor))
    mel = np.pad(speech.mel, ((0, frames), (0, 0)), constant_values=floor)
    *before, last = speech.spoken
    last = replace(last, pause_frames=last.pause_frames + frames)
    return replace(
        speech,
        samples=samples,
        mel=mel,
        pause_frames=speech.pause_frames + frames,
        spoken=(*before, last),
    )


def at_volume(speech: Speech, gain_db: float) -> Speech:
    """Make speech louder or softer, as far as full scale allows."""
    if not gain_db:
        return speech
    gain = 10.0 ** (gain_db / 20.0)
    peak = float(np.abs(speech.samples).max(initial=0.0))
    if gain * peak > PEAK_LIMIT:
        gain = PEAK_LIMIT / peak
    return replace(speech, samples=speech.samples * np.float32(gain))


def set_level(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Scale speech to -23 LUFS, or as near as a peak of -1 dBFS allows; silence stays as it is."""
    measured = loudness(samples, sample_rate)
    if measured == -np.inf:
        logger.warning("a sentence came out silent (below -70 LUFS)")
        return samples
    gain = min(10.0 ** ((LOUDNESS_LUFS - measured) / 20.0), PEAK_LIMIT / np.abs(samples).max())
    return samples * np.float32(gain)


def fade_ends(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Fade in and out within some milliseconds, as a step between speech and silence clicks."""
    count = min(round(_FADE_SECONDS * sample_rate), len(samples) // 2)
    ramp = np.arange(count, dtype=np.float32) / max(count, 1)
    faded = samples.copy()
    faded[:count] *= ramp
    faded[len(faded) - count :] *= ramp[::-1]
    return faded
