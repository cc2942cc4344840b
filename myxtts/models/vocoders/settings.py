"""What a vocoder's settings may be, checked before anything is built of them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import SETTINGS, ConfigError, audio_spec_of
from myxtts.config.documents import shown
from myxtts.config.fields import coerce

_MOST_BANDS, _MOST_CHANNELS, _LARGEST_KERNEL = 4096, 8192, 256
_MOST_STAGES, _MOST_KINDS = 8, 6  # of upsampling, and of kernels or dilations in each


class Size(NamedTuple):
    """About how many weights a vocoder has, and in how many layers."""

    weights: int
    layers: int


def check_settings(kind: str, settings: Mapping[str, Any], spec: AudioSpec) -> Size:
    """How large a vocoder of these settings is; a ConfigError names what cannot be."""
    return _CHECKS[kind](settings, spec)


def _check_istft(settings: Mapping[str, Any], spec: AudioSpec) -> Size:
    _check_names(settings, ("spec",), ("dim", "blocks", "bands", "projections"))
    if not isinstance(settings["spec"], dict) or audio_spec_of(settings["spec"]) != spec:
        raise ConfigError("the mels of its settings are not those that it was made for")
    sizes = {"dim": 0, "blocks": 0, "bands": 0, **settings}
    for name in ("dim", "blocks", "projections"):
        if name in settings:
            _check_whole(name, settings[name])
            coerce(name, SETTINGS[f"model.istft_{name}"], settings[name])
    if "bands" in settings:
        _check_whole("bands", settings["bands"], 2, _MOST_BANDS)
    dim, blocks, bands = (sizes[name] for name in ("dim", "blocks", "bands"))
    outputs = 3 * bands + spec.n_fft // 2 + 1
    return Size(dim * (5 * spec.n_mels + outputs) + blocks * 8 * dim * dim, blocks)


def _check_hifigan(settings: Mapping[str, Any], spec: AudioSpec) -> Size:
    lists = {
        "rates": (_MOST_STAGES, spec.hop_length),
        "rate_kernels": (_MOST_STAGES, _LARGEST_KERNEL),
        "kernels": (_MOST_KINDS, _LARGEST_KERNEL),
    }
    _check_names(settings, ("channels", "block", "dilations", "n_mels", *lists), ())
    _check_whole("channels", settings["channels"], 2, _MOST_CHANNELS)
    _check_whole("block", settings["block"], 1, 2)
    for name, (most, high) in lists.items():
        _check_wholes(name, settings[name], most, high)
    dilations = settings["dilations"]
    if not isinstance(dilations, list) or not 1 <= len(dilations) <= _MOST_KINDS:
        raise ConfigError(f"dilations must be a list for each kernel, got {shown(dilations)}")
    for each in dilations:
        _check_wholes("dilations", each, _MOST_KINDS, _LARGEST_KERNEL)
    made = (settings["n_mels"], math.prod(settings["rates"]))
    if made != (spec.n_mels, spec.hop_length):
        raise ConfigError(
            f"it reads {shown(made[0])} mel bands and makes {made[1]} samples of a frame, and was "
            f"made for {spec.n_mels} and {spec.hop_length}"
        )
    return _hifigan_size(settings)


def _hifigan_size(settings: Mapping[str, Any]) -> Size:
    channels, per_step = settings["channels"], 2 if settings["block"] == 1 else 1
    widths = [channels >> stage for stage in range(1, 1 + len(settings["rates"]))]
    pairs = list(zip(settings["kernels"], settings["dilations"], strict=False))
    steps = per_step * sum(len(dilations) for _, dilations in pairs)
    taps = per_step * sum(kernel * len(dilations) for kernel, dilations in pairs)
    weights = 7 * settings["n_mels"] * channels + sum(
        width * width * (2 * kernel + taps)
        for width, kernel in zip(widths, settings["rate_kernels"], strict=False)
    )
    return Size(weights, len(widths) * (1 + steps))


_CHECKS = {"istft": _check_istft, "hifigan": _check_hifigan}


def _check_names(
    settings: Mapping[str, Any], needed: tuple[str, ...], others: tuple[str, ...]
) -> None:
    missing = [name for name in needed if name not in settings]
    surplus = [name for name in settings if name not in (*needed, *others)]
    if missing:
        raise ConfigError(f"{', '.join(missing)} must be among its settings")
    if surplus:
        raise ConfigError(f"{shown(surplus[0])} is no setting of such a vocoder")


def _check_whole(name: str, value: Any, low: int = 0, high: int = 10**9) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high}, got {shown(value)}")


def _check_wholes(name: str, values: Any, most: int, high: int) -> None:
    if not isinstance(values, list) or not 1 <= len(values) <= most:
        raise ConfigError(f"{name} must be a list of 1 to {most} numbers, got {shown(values)}")
    for value in values:
        _check_whole(name, value, 1, high)
