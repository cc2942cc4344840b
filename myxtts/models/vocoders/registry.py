"""The vocoders that are trained: which there are, and how a configuration names them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import keras

from myxtts.config.config import AudioSpec, ModelConfig
from myxtts.errors import UserError

ISTFT, HIFIGAN = "istft", "hifigan"
TRAINED = (ISTFT, HIFIGAN)


def build_vocoder(config: ModelConfig, spec: AudioSpec) -> keras.Model:
    """The vocoder of a configuration, with all of its weights, not trained yet."""
    if config.vocoder_type == ISTFT:
        settings = {
            "dim": config.istft_dim,
            "blocks": config.istft_blocks,
            "projections": config.istft_projections,
        }
        return vocoder_of(ISTFT, {"spec": asdict(spec), **settings})
    if config.vocoder_type == HIFIGAN:
        from myxtts.models.vocoders.hifigan import HIFIGAN_VERSIONS

        settings = asdict(HIFIGAN_VERSIONS[config.hifigan_version])
        return vocoder_of(HIFIGAN, {**settings, "n_mels": spec.n_mels})
    raise UserError(
        f"{config.vocoder_type} has nothing to train: choose --vocoder {' or '.join(TRAINED)}"
    )


def vocoder_of(kind: str, settings: dict) -> keras.Model:
    """A vocoder from its settings, as `settings_of` tells them or JSON has kept them."""
    with in_float32():
        if kind == ISTFT:
            from myxtts.models.vocoders.istft import ISTFTVocoder

            model = ISTFTVocoder(**settings, name=kind)
        else:
            from myxtts.models.vocoders.hifigan import HiFiGAN

            model = HiFiGAN.from_config({"settings": settings, "name": kind})
        model.build((None, None, None))
    return model


def settings_of(model: keras.Model) -> dict:
    """What a vocoder can be built from again."""
    return model.settings if kind_of(model) == ISTFT else asdict(model.settings)


@contextmanager
def in_float32() -> Iterator[None]:
    """Layers take the policy that is in force when they are made: waveforms want all of theirs."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def kind_of(model: keras.Model) -> str:
    from myxtts.models.vocoders.istft import ISTFTVocoder

    return ISTFT if isinstance(model, ISTFTVocoder) else HIFIGAN


def check_frames(model: keras.Model, spec: AudioSpec) -> None:
    """Refuse mels whose frames are not those that a vocoder makes samples of."""
    if model.hop != spec.hop_length:
        raise UserError(
            f"the vocoder makes {model.hop} samples of a frame, and a frame of this data has "
            f"{spec.hop_length}: set data.hop_length, or choose --vocoder istft"
        )
