"""The settings of the model: its size, its parts and its vocoder."""

from dataclasses import dataclass

from myxtts.config.fields import Section, option, section
from myxtts.config.sizes import check_size
from myxtts.config.vocoders import VOCODERS

# Far above any real use: a file with more is broken, or is meant to exhaust the machine.
_WIDEST, _DEEPEST = 8192, 128

# How a refiner is used unless the caller says otherwise: steps of the midpoint rule, each of which
# runs it twice, and the scale of the noise that it starts from.
USUAL_REFINE_STEPS, USUAL_TEMPERATURE = 4, 0.7


@section("model")
@dataclass
class ModelConfig(Section):
    """How large the model is and of which parts."""

    model_size: str = option(
        "small",
        "preset that sets what is not set",
        choices=("tiny", "small", "normal", "big"),
        affects="origin",
    )
    text_encoder_dim: int = option(256, "width of the text encoder", low=8, high=_WIDEST)
    text_encoder_conv_layers: int = option(
        3, "convolutions of the text encoder, before the attention", low=0, high=_DEEPEST
    )
    text_encoder_layers: int = option(
        4, "self-attention layers of the text encoder", low=0, high=_DEEPEST
    )
    text_encoder_heads: int = option(
        4, "heads of each self-attention layer of the text encoder", low=1, high=256
    )
    token_states: int = option(
        2,
        "states of each token, from its beginning to its end, each with its own length and sound",
        low=1,
        high=5,
        before=1,
    )
    pitch_contour: str = option(
        "frame",
        "frame: predict a pitch for every frame, and whether it is voiced; token: one per token",
        choices=("frame", "token"),
        before="token",
    )
    text_voice: str = option(
        "own",
        "voice under which the text is encoded. own: that of the speaker; shared: one for all, so "
        "that what is said cannot depend on who says it (several languages in one model)",
        choices=("own", "shared"),
        before="own",
    )
    decoder_strategy: str = option(
        "parallel",
        "parallel: all frames at once; autoregressive: some frames at a time",
        choices=("parallel", "autoregressive"),
        old_words={"non_autoregressive": "parallel"},
    )
    decoder_dim: int = option(256, "width of the decoder", low=8, high=_WIDEST)
    decoder_layers: int = option(6, "convolution blocks of the decoder", low=1, high=_DEEPEST)
    decoder_reduction: int = option(2, "frames that the decoder makes at a time", low=1, high=16)
    audio_encoder_dim: int = option(192, "width of the reference encoder", low=8, high=_WIDEST)
    audio_encoder_layers: int = option(4, "convolutions of the reference encoder", low=1, high=16)
    speaker_embedding_dim: int = option(192, "width of the speaker embedding", low=2, high=_WIDEST)
    use_pretrained_speaker_encoder: bool | None = option(
        None,
        "take speaker embeddings from a published encoder (null: if speaker_encoder_path is set)",
        affects="origin",
    )
    speaker_encoder_type: str = option(
        "ecapa_tdnn",
        "published speaker encoder",
        choices=("ecapa_tdnn", "resemblyzer", "coqui"),
        affects="origin",
    )
    speaker_encoder_path: str = option(
        "",
        "weights of the speaker encoder (empty: where `myxtts weights get` puts them)",
        affects="path",
    )
    freeze_speaker_encoder: bool = option(
        True, "keep the published speaker encoder as it is, and embed each recording only once"
    )
    use_gst: bool = option(
        True, "use global style tokens (GST) in addition to the speaker embedding"
    )
    gst_num_style_tokens: int = option(10, "style tokens", low=1, high=4096)
    gst_style_token_dim: int = option(256, "width of a style token", low=1, high=_WIDEST)
    gst_style_embedding_dim: int = option(256, "width of the style embedding", low=1, high=_WIDEST)
    gst_num_heads: int = option(4, "heads of the attention over the style tokens", low=1, high=256)
    refiner_layers: int = option(
        0,
        "convolution blocks of the refiner, which adds detail to the decoder's mel (0: none)",
        low=0,
        high=_DEEPEST,
    )
    dropout: float = option(0.1, "share of activations dropped in training", low=0.0, high=0.9)

    # The vocoder
    vocoder_type: str = option(
        "hifigan",
        "vocoder of the second stage",
        choices=VOCODERS,
        affects="vocoder",
    )
    hifigan_version: str = option(
        "v1", "published size of HiFi-GAN", choices=("v1", "v2", "v3"), affects="vocoder"
    )
    istft_dim: int = option(
        128, "width of the istft vocoder", low=8, high=_WIDEST, affects="vocoder"
    )
    istft_blocks: int = option(
        2, "residual blocks of the istft vocoder", low=1, high=_DEEPEST, affects="vocoder"
    )
    istft_projections: int = option(
        4,
        "how often the istft vocoder corrects its spectrum towards the mel (0: fastest)",
        low=0,
        high=100,
        affects="vocoder",
    )

    @property
    def speaker_encoder(self) -> str:
        """The published speaker encoder; empty where the model learns its own."""
        wanted = self.use_pretrained_speaker_encoder
        wanted = bool(self.speaker_encoder_path) if wanted is None else wanted
        return self.speaker_encoder_type if wanted else ""

    @property
    def is_encoder_frozen(self) -> bool:
        """Whether speaker embeddings are computed once, before training."""
        return bool(self.speaker_encoder) and self.freeze_speaker_encoder

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""
        self.require(
            self.text_encoder_dim % self.text_encoder_heads == 0,
            "{text_encoder_dim} is not a multiple of {text_encoder_heads}",
        )
        self.require(
            self.gst_style_embedding_dim % self.gst_num_heads == 0,
            "{gst_style_embedding_dim} is not a multiple of {gst_num_heads}",
        )
        check_size(self)
