"""How a voice is to speak: language, speaker or reference, rate, seed; looked up in the voice."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from myxtts.audio.io import read_audio
from myxtts.config.model import USUAL_REFINE_STEPS, USUAL_TEMPERATURE
from myxtts.inference.errors import SynthesisError, check_known
from myxtts.text.lexicon import Lexicon

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.data.features.features import FeatureSettings

logger = logging.getLogger(__name__)

SLOWEST, FASTEST = 0.25, 4.0
MOST_REFINE_STEPS, MOST_TEMPERATURE = 64, 2.0
_SHORT_REFERENCE_SECONDS, _LONG_REFERENCE_SECONDS = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class SpeakingOptions:
    """What a caller chooses; by default the voice's first language and its first speaker.

    One or several reference recordings, which win over `speaker`, are the voice to be cloned; who
    has embedded them before, by `embed_reference`, gives the `embedding` instead of either.
    Style weights, one for each style token, replace the voice's own style. With a temperature the
    melody and the tempo vary with the seed: another seed is another reading. A voice with a refiner
    adds detail to its mels in `refine_steps` instead, from noise that follows from the seed and is
    scaled by the temperature (the usual one, if None); without steps there is none. Mels that are
    not refined are sharpened by the voice's post-filter, if it has one. A lexicon says how words
    are pronounced.
    """

    language: str | None = None
    speaker: str | None = None
    reference: str | os.PathLike | Sequence[str | os.PathLike] | None = None
    speaking_rate: float = 1.0
    style_weights: Sequence[float] | None = None
    seed: int = 0
    refine_steps: int | None = None
    temperature: float | None = None
    postfilter: bool = True
    lexicon: Lexicon | None = None
    embedding: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """Speaking options as the model takes them; `voice` is the speaker embedding."""

    language: str
    language_index: int
    voice: np.ndarray
    speaking_rate: float
    seed: int
    refine_steps: int = 0
    temperature: float = 0.0
    variation: float = 0.0  # the temperature of melody and tempo
    gains: np.ndarray | None = None  # of the post-filter
    lexicon: Lexicon | None = None


def look_up(options: SpeakingOptions, voice: "Voice") -> Delivery:
    """Look the options up in a voice; a SynthesisError lists what there is instead."""
    rate = float(options.speaking_rate)
    if not SLOWEST <= rate <= FASTEST:
        raise SynthesisError(
            f"the speaking rate {rate:g} is not between {SLOWEST:g} (slow) and {FASTEST:g}: "
            "1 is as fast as the recordings",
            "speaking_rate",
        )
    language = find_language(options.language, voice)
    index = voice.languages.index(language)
    embedding = _embedding(options, voice)
    styled = voice.model.styled(embedding[None], _style_weights(options.style_weights, voice))
    steps = _refine_steps(options.refine_steps, voice)
    temperature, variation = _temperatures(options.temperature, steps, voice)
    vector = np.asarray(styled)[0]
    gains = voice.gains if options.postfilter and not steps else None
    how = options.seed, steps, temperature, variation, gains, options.lexicon
    return Delivery(language, index, vector, rate, *how)


def embed_reference(
    reference: str | os.PathLike | Sequence[str | os.PathLike], voice: "Voice"
) -> np.ndarray:
    """The embedding [dim] that the voice has of recordings of one speaker."""
    return _clone(_as_paths(reference), voice)


def find_language(language: str | None, voice: "Voice") -> str:
    """Return a language that the voice speaks, by default its first."""
    return check_known(language or voice.languages[0], voice.languages, "language")


def _refine_steps(steps: int | None, voice: "Voice") -> int:
    """Return the steps that are asked for, or the usual ones where the voice has a refiner."""
    if not voice.config.model.refiner_layers:
        if steps:
            raise SynthesisError(
                "this voice has no refiner, and so no use for refine steps: train one with "
                "--refiner-layers, or remove them"
            )
        return 0
    if steps is None:
        return USUAL_REFINE_STEPS
    if not 0 <= steps <= MOST_REFINE_STEPS:
        raise SynthesisError(f"refine steps must be between 0 and {MOST_REFINE_STEPS}, not {steps}")
    return steps


def _temperatures(asked: float | None, steps: int, voice: "Voice") -> tuple[float, float]:
    """Return the temperature of the refiner, and that of melody and tempo."""
    temperature = float(USUAL_TEMPERATURE if asked is None else asked)
    if not 0.0 <= temperature <= MOST_TEMPERATURE:
        raise SynthesisError(
            f"the temperature {temperature:g} is not between 0 (the likeliest reading) and "
            f"{MOST_TEMPERATURE:g}"
        )
    if not asked or steps:
        return temperature, 0.0
    if not voice.model.can_vary:
        raise SynthesisError(
            "this voice has one reading of every text, and so no use for a temperature: leave it "
            "out, or take a voice with a pitch per frame (and export that again, if it is an "
            "export)"
        )
    return 0.0, temperature


def _embedding(options: SpeakingOptions, voice: "Voice") -> np.ndarray:
    """Return the embedding [dim] of the references, or of the speaker of that name."""
    if options.embedding is not None:
        return options.embedding
    if options.reference is not None:
        return embed_reference(options.reference, voice)
    name = check_known(options.speaker or voice.speakers[0], voice.speakers, "speaker")
    return np.asarray(voice.voices[voice.speakers.index(name)], np.float32)


def _style_weights(weights: Sequence[float] | None, voice: "Voice") -> np.ndarray | None:
    """Return weights [1, tokens] for a voice that has style tokens."""
    if weights is None:
        return None
    model = voice.config.model
    if not model.use_gst:
        raise SynthesisError(
            "this voice has no style tokens, and so no use for style weights: train one with "
            "--enable-gst, or remove them",
            "style_weights",
        )
    if len(weights) != model.gst_num_style_tokens:
        raise SynthesisError(
            f"{len(weights)} style weights were given and the voice has "
            f"{model.gst_num_style_tokens} style tokens: give a number for each",
            "style_weights",
        )
    if not np.isfinite(weights).all():
        message = f"style weights must be finite numbers, not {list(weights)}"
        raise SynthesisError(message, "style_weights")
    return np.array([weights], np.float32)


def _clone(paths: Sequence[Path], voice: "Voice") -> np.ndarray:
    """Let the model embed recordings, treated as those it was trained on."""
    if voice.model.wants_embeddings:
        return _clone_by_encoder(paths, voice)
    # Only cloning needs them, and they take a while to import.
    from myxtts.audio.mel import log_mel
    from myxtts.data.features.features import FeatureSettings

    settings = FeatureSettings.from_config(voice.config.data)
    samples = np.concatenate([_read(path, settings) for path in paths])
    _warn_if_short(len(samples) / settings.spec.sample_rate)
    most = round(_LONG_REFERENCE_SECONDS * settings.spec.sample_rate)
    mel = log_mel(samples[:most], settings.spec)
    vectors = voice.model.encode_voice(mel[None], np.array([len(mel)], np.int32))
    return np.asarray(vectors)[0]


def _clone_by_encoder(paths: Sequence[Path], voice: "Voice") -> np.ndarray:
    """Let the published encoder in the voice embed recordings, each whole."""
    encoder = voice.model.published_voice.speaker_encoder
    rate = encoder.sample_rate
    samples = np.concatenate([read_audio(_existing(path), rate) for path in paths])
    _warn_if_short(len(samples) / rate)
    embedding = encoder.embed(samples[: round(_LONG_REFERENCE_SECONDS * rate)], rate)
    return np.asarray(voice.model.encode_embedding(embedding[None]))[0]


def _read(path: Path, settings: "FeatureSettings") -> np.ndarray:
    from myxtts.data.features.features import load_samples

    return load_samples(_existing(path), settings)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise SynthesisError(f"there is no reference recording {path}: name a file of speech")
    return path


def _warn_if_short(seconds: float) -> None:
    if seconds < _SHORT_REFERENCE_SECONDS:
        logger.warning("a reference of %.1f s says little about a voice: use more", seconds)


def _as_paths(reference: str | os.PathLike | Sequence[str | os.PathLike]) -> list[Path]:
    given = [reference] if isinstance(reference, str | os.PathLike) else reference
    paths = [Path(path) for path in given]
    if not paths:
        raise SynthesisError("an empty list of references: name a recording, or remove the list")
    return paths
