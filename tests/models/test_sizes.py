"""The number of weights computed from the settings is about that of the built model."""

import pytest

from myxtts.config.config import AudioSpec, ModelConfig
from myxtts.config.sizes import num_weights
from myxtts.models.xtts import build_xtts
from tests.helpers.tiny_model import TINY


@pytest.mark.parametrize(
    "settings",
    [
        {"use_gst": True},
        {"text_encoder_dim": 64, "decoder_dim": 96, "decoder_layers": 5, "use_gst": True},
        {"decoder_strategy": "autoregressive", "text_encoder_layers": 3, "audio_encoder_dim": 64},
    ],
)
def test_the_count_is_within_a_fifth(settings):
    config = ModelConfig(**{**TINY, "text_encoder_dim": 48, "decoder_dim": 64, **settings})
    model = build_xtts(config, AudioSpec(n_mels=8), 300, 4, 1)
    assert num_weights(config, 300, 4) == pytest.approx(model.count_params(), rel=0.2)
