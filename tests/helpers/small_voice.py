"""A whole voice with a vocoder, untrained and tiny, in the folder of a run: to be exported."""

from pathlib import Path

import keras
import numpy as np

from myxtts.audio.postfilter import BINS
from myxtts.checkpoints import save_voice
from myxtts.checkpoints.vocoders import save_vocoder
from myxtts.config.config import XTTSConfig
from myxtts.models.xtts import build_xtts
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.tiny_vocoder import tiny_vocoder

SIZES = {
    "text_encoder_dim": 16,
    "text_encoder_conv_layers": 1,
    "text_encoder_layers": 1,
    "text_encoder_heads": 2,
    "decoder_dim": 16,
    "decoder_layers": 1,
    "audio_encoder_dim": 8,
    "audio_encoder_layers": 1,
    "speaker_embedding_dim": 8,
}


def small_run(
    run: Path,
    units: str = "characters",
    languages: tuple[str, ...] = ("en", "fa"),
    speakers: tuple[str, ...] = ("anna", "ben"),
    **settings,
) -> Path:
    """Write a voice with a post-filter, and an istft vocoder, as a run would."""
    keras.utils.set_random_seed(3)
    config = XTTSConfig(**{**SIZES, "text_units": units, **settings})
    tokenizer = Tokenizer.build(languages, units)
    spec = config.data.audio_spec
    sizes = tokenizer.vocab_size, len(languages), len(speakers)
    model = build_xtts(config.model, spec, *sizes)
    random = np.random.default_rng(3)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.02 * random.normal(size=weight.shape))
    # Some frames a token: untrained, a word would last a hundredth of a second.
    longer = 1.5 * np.eye(len(model.prosody.quantities), dtype=np.float32)[0]
    model.prosody.out.bias.assign(model.prosody.out.bias + longer)
    if model.contour:
        model.calibration.pitch_range.assign(1.2)
        model.calibration.length.assign(1.1)
    vectors = random.normal(size=(len(speakers), 8)).astype(np.float32)
    gains = random.uniform(1.0, 1.5, (BINS, spec.n_mels)).astype(np.float32)
    save_voice(run / "voice", model, config, tokenizer, speakers, languages, vectors, gains=gains)
    save_vocoder(run / "vocoder", tiny_vocoder(spec, noise=0.01), spec)
    return run
