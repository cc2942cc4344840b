"""The table of vocoders: one row each, for the settings, `--help`, training and synthesis."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VocoderRow:
    """A vocoder's title, its class as "module:name", and its public weights, the default first.

    The class is imported when it is used: this table costs no TensorFlow. A kind's own settings are
    fields `<kind>_...` of `ModelConfig` with affects="vocoder"; `<kind>_version` names a
    published size.
    """

    title: str
    path: str
    public: tuple[str, ...] = ()


VOCODERS: dict[str, VocoderRow] = {
    "griffin_lim": VocoderRow("Griffin-Lim", "myxtts.models.vocoders.griffin_lim:GriffinLim"),
    "istft": VocoderRow("istft", "myxtts.models.vocoders.istft:ISTFTVocoder"),
    "hifigan": VocoderRow(
        "HiFi-GAN",
        "myxtts.models.vocoders.hifigan:HiFiGAN",
        ("hifigan_universal", "hifigan_ljspeech"),
    ),
}
