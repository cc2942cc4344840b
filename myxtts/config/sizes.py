"""How large a model is, computed from its settings before anything is built."""

from typing import TYPE_CHECKING

from myxtts.config.fields import ConfigError

if TYPE_CHECKING:
    from myxtts.config.model import ModelConfig

MOST_WEIGHTS = 4_000_000_000


def check_size(config: "ModelConfig") -> None:
    """Reject a model that no machine could hold."""
    terms = _weights(config)
    total = sum(terms.values())
    if total > MOST_WEIGHTS:
        raise ConfigError(
            f"the model would have about {total:,} weights, and {MOST_WEIGHTS:,} are the most: "
            f"lower {max(terms, key=terms.__getitem__)}"
        )


def num_weights(config: "ModelConfig", vocab_size: int, num_languages: int) -> int:
    """About how many weights the model has, without those of a published speaker encoder."""
    tables = (vocab_size + num_languages) * config.text_encoder_dim
    return sum(_weights(config).values()) + tables


def num_layers(config: "ModelConfig") -> int:
    """How many layers the settings ask for, each with weights of its own."""
    reference = 0 if config.speaker_encoder else config.audio_encoder_layers
    text = config.text_encoder_conv_layers + config.text_encoder_layers
    return text + config.decoder_layers + config.refiner_layers + reference


def _weights(config: "ModelConfig") -> dict[str, int]:
    """The large terms of the number of weights, by the setting that drives each."""
    text, decoder = config.text_encoder_dim, config.decoder_dim
    voice, audio = config.speaker_embedding_dim, config.audio_encoder_dim
    token, style = config.gst_style_token_dim, config.gst_style_embedding_dim

    def block(dim: int, kernel: int) -> int:
        return kernel * dim * dim + 2 * dim * voice

    # Four projections, and a convolution over three tokens.
    attention = block(text, 4) + block(text, 3)
    terms = {
        "model.text_encoder_conv_layers": config.text_encoder_conv_layers * block(text, 5),
        "model.text_encoder_layers": config.text_encoder_layers * attention,
        "model.text_encoder_dim": 2 * block(text, 3),
        "model.token_states": config.token_states * text * text if config.token_states > 1 else 0,
        "model.pitch_contour": 2 * block(text, 5) if config.pitch_contour == "frame" else 0,
        "model.decoder_layers": config.decoder_layers * block(decoder, 5),
        "model.refiner_layers": config.refiner_layers * block(decoder, 5),
        "model.decoder_dim": config.decoder_reduction * text * decoder,
    }
    if not config.speaker_encoder:
        convolutions = (config.audio_encoder_layers - 1) * 5 * audio * audio
        terms["model.audio_encoder_dim"] = convolutions + 2 * audio * voice
    if config.use_gst:
        terms["model.gst_style_embedding_dim"] = 2 * style * (token + voice)
        terms["model.gst_style_token_dim"] = config.gst_num_style_tokens * token
    return terms
