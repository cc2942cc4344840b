"""HiFi-GAN's generator (Kong et al., 2020) as published, so that its public weights fit."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import ConfigError, ModelConfig
from myxtts.config.documents import shown
from myxtts.models.layers import serialisable
from myxtts.models.torch_names import Shapes
from myxtts.models.vocoders.base import Size
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.models.vocoders.settings import check_names, check_whole, check_wholes
from myxtts.models.weight_norm import WeightNormConv1D, WeightNormConv1DTranspose
from myxtts.weights import check_fit, read_checkpoint, tensors_inside

_SLOPE, _LAST_SLOPE = 0.1, 0.01
_OUTER_KERNEL = 7  # of the first and the last convolution
_STDDEV = 0.01  # of new weights, all but those of the first convolution
_MOST_CHANNELS, _LARGEST_KERNEL = 8192, 256
_MOST_STAGES, _MOST_KINDS = 8, 6  # of upsampling, and of kernels or dilations in each


@dataclass(frozen=True)
class HiFiGANSettings:
    """Stages of upsampling by `rates`, each halving the channels, each with a block per kernel.

    A block has a residual step per dilation, of two convolutions (`block` 1) or one (2).
    """

    channels: int
    rates: tuple[int, ...]
    rate_kernels: tuple[int, ...]
    block: int
    kernels: tuple[int, ...]
    dilations: tuple[tuple[int, ...], ...]
    n_mels: int = 80

    def __post_init__(self):
        if len(self.rates) != len(self.rate_kernels) or len(self.kernels) != len(self.dilations):
            raise ValueError(f"a kernel for each rate, and dilations for each kernel: {self}")
        for rate, kernel in zip(self.rates, self.rate_kernels, strict=True):
            if kernel < rate or (kernel - rate) % 2:
                raise ValueError(f"upsampling by {rate} with a kernel of {kernel} is lopsided")
        if self.channels % 2 ** len(self.rates):
            raise ValueError(f"{self.channels} channels cannot be halved {len(self.rates)} times")
        if self.block not in (1, 2):
            raise ValueError(f"a block is of the type 1 or 2, not {self.block}")

    @property
    def hop(self) -> int:
        """Samples per frame."""
        return math.prod(self.rates)

    @property
    def context_frames(self) -> int:
        """How many frames on each side of its own decide about a sample."""
        outer = (_OUTER_KERNEL - 1) // 2
        # From all samples of frame 0 back to the frames in their receptive field.
        first, last = -outer, self.hop - 1 + outer
        reach = max(self._reach(*block) for block in zip(self.kernels, self.dilations, strict=True))
        for rate, kernel in zip(self.rates[::-1], self.rate_kernels[::-1], strict=True):
            cropped = (kernel - rate) // 2
            first = -((kernel - 1 - cropped - first + reach) // rate)
            last = (last + reach + cropped) // rate
        return max(outer - first, last + outer)

    @property
    def widths(self) -> tuple[int, ...]:
        """The channels of each stage."""
        return tuple(self.channels >> stage for stage in range(1, 1 + len(self.rates)))

    @property
    def blocks(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """The channels, the kernel and the dilations of each block."""
        kinds = list(zip(self.kernels, self.dilations, strict=True))
        return [(width, *kind) for width in self.widths for kind in kinds]

    def _reach(self, kernel: int, dilations: tuple[int, ...]) -> int:
        per_step = [dilation + (self.block == 1) for dilation in dilations]
        return (kernel - 1) // 2 * sum(per_step)


_V1 = HiFiGANSettings(
    channels=512,
    rates=(8, 8, 2, 2),
    rate_kernels=(16, 16, 4, 4),
    block=1,
    kernels=(3, 7, 11),
    dilations=((1, 3, 5), (1, 3, 5), (1, 3, 5)),
)
_V3 = HiFiGANSettings(
    channels=256,
    rates=(8, 8, 4),
    rate_kernels=(16, 16, 8),
    block=2,
    kernels=(3, 5, 7),
    dilations=((1, 2), (2, 6), (3, 12)),
)
HIFIGAN_VERSIONS = {"v1": _V1, "v2": replace(_V1, channels=128), "v3": _V3}


def build_hifigan(version: str = "v1", weight_norm: bool = True) -> "HiFiGAN":
    """Build a published version, with new weights."""
    if version not in HIFIGAN_VERSIONS:
        known = ", ".join(HIFIGAN_VERSIONS)
        raise ValueError(f"unknown version of HiFi-GAN {version!r}; known are: {known}")
    return _built(HIFIGAN_VERSIONS[version], weight_norm)


def load_hifigan(path: str | os.PathLike, fold: bool = False) -> "HiFiGAN":
    """Read a checkpoint of torch, whose shapes give the version; raise where one does not fit.

    The model can be trained on, unless weight normalisation is to be folded away.
    """
    checkpoint = read_checkpoint(path)
    inside = ("generator",) if "generator" in checkpoint else ()
    arrays = tensors_inside(checkpoint, *inside, source=path)
    has_norms = any(name.endswith(".weight_g") for name in arrays)
    settings = _settings_of(arrays, has_norms)
    check_fit(arrays, published_shapes(settings, has_norms), path)
    model = _built(settings)
    for name, layer in zip(_weight_shapes(settings), model.convolutions, strict=True):
        v = arrays[f"{name}.weight_v" if has_norms else f"{name}.weight"]
        g = arrays[f"{name}.weight_g"] if has_norms else np.linalg.norm(v, axis=(1, 2))
        layer.v.assign(np.transpose(v))
        layer.g.assign(np.reshape(g, -1))
        layer.bias.assign(arrays[f"{name}.bias"])
    return folded(model) if fold else model


def folded(model: "HiFiGAN") -> "HiFiGAN":
    """Return a model of the same outputs whose kernels are plain: faster, and not to be trained."""
    plain = _built(model.settings, weight_norm=False)
    for layer, own in zip(model.convolutions, plain.convolutions, strict=True):
        own.kernel.assign(layer.effective_kernel())
        own.bias.assign(layer.bias)
    return plain


@serialisable
class HiFiGAN(NeuralVocoder):
    """Log-mel [batch, frames, mels] -> waveform [batch, frames * hop], float32 within -1 .. 1."""

    kind = "hifigan"
    is_adversarial = True

    def __init__(self, settings: HiFiGANSettings, weight_norm: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.settings, self.weight_norm = settings, weight_norm
        self.conv_pre = WeightNormConv1D(
            settings.channels, _OUTER_KERNEL, weight_norm=weight_norm, name="conv_pre"
        )
        stages = zip(settings.widths, settings.rate_kernels, settings.rates, strict=True)
        self.ups = [
            WeightNormConv1DTranspose(*stage, weight_norm, _STDDEV, name=f"ups_{i}")
            for i, stage in enumerate(stages)
        ]
        self.resblocks = [
            ResBlock(*block, settings.block, weight_norm, name=f"resblocks_{i}")
            for i, block in enumerate(settings.blocks)
        ]
        self.conv_post = WeightNormConv1D(
            1,
            _OUTER_KERNEL,
            weight_norm=weight_norm,
            stddev=_STDDEV,
            dtype="float32",
            name="conv_post",
        )

    @classmethod
    def settings_from(cls, config: ModelConfig, spec: AudioSpec) -> dict[str, Any]:
        return asdict(HIFIGAN_VERSIONS[config.hifigan_version]) | {"n_mels": spec.n_mels}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any], spec: AudioSpec) -> Size:
        return _check_settings(settings, spec)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "HiFiGAN":
        return cls.from_config({"settings": settings, "name": cls.kind})

    @classmethod
    def load_published(cls, path: str | os.PathLike) -> "HiFiGAN":
        return load_hifigan(path)

    def to_settings(self) -> dict[str, Any]:
        return asdict(self.settings)

    def prepared(self) -> NeuralVocoder:
        return super(HiFiGAN, folded(self)).prepared()

    @property
    def hop(self) -> int:
        return self.settings.hop

    @property
    def n_mels(self) -> int:
        return self.settings.n_mels

    @property
    def context_frames(self) -> int:
        return self.settings.context_frames

    @property
    def convolutions(self) -> list[keras.layers.Layer]:
        """All of them, in the order in which their authors name them."""
        inner = [conv for block in self.resblocks for conv in block.convolutions]
        return [self.conv_pre, *self.ups, *inner, self.conv_post]

    def build(self, mel_shape):
        self.conv_pre.build((None, None, self.settings.n_mels))
        for up, width in zip(self.ups, self.settings.widths, strict=True):
            up.build((None, None, 2 * width))
        for block, (width, *_) in zip(self.resblocks, self.settings.blocks, strict=True):
            block.build((None, None, width))
        self.conv_post.build((None, None, self.settings.widths[-1]))

    def call(self, mel):
        x = self.conv_pre(mel)
        num_blocks = len(self.settings.kernels)
        for i, up in enumerate(self.ups):
            x = up(tf.nn.leaky_relu(x, _SLOPE))
            blocks = self.resblocks[i * num_blocks : (i + 1) * num_blocks]
            x = tf.add_n([block(x) for block in blocks]) / num_blocks
        return tf.tanh(self.conv_post(tf.nn.leaky_relu(x, _LAST_SLOPE)))[:, :, 0]

    def get_config(self):
        own = {"settings": asdict(self.settings), "weight_norm": self.weight_norm}
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config):
        settings = {name: _frozen(value) for name, value in config["settings"].items()}
        return cls(**config | {"settings": HiFiGANSettings(**settings)})


@serialisable
class ResBlock(keras.layers.Layer):
    """Residual steps of growing dilation: [batch, time, channels] -> the same."""

    def __init__(
        self,
        channels: int,
        kernel: int,
        dilations: tuple[int, ...],
        block: int = 1,
        weight_norm: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {"channels": channels, "kernel": kernel, "dilations": tuple(dilations)}
        self.settings |= {"block": block, "weight_norm": weight_norm}

        def conv(name: str, dilation: int) -> WeightNormConv1D:
            fixed = {"weight_norm": weight_norm, "stddev": _STDDEV, "name": name}
            return WeightNormConv1D(channels, kernel, dilation=dilation, **fixed)

        self.convs1 = [conv(f"convs1_{i}", dilation) for i, dilation in enumerate(dilations)]
        self.convs2 = [conv(f"convs2_{i}", 1) for i in range(len(self.convs1)) if block == 1]

    @property
    def convolutions(self) -> list[WeightNormConv1D]:
        return [*self.convs1, *self.convs2]

    def build(self, x_shape):
        for conv in self.convolutions:
            conv.build(x_shape)

    def call(self, x):
        for i, conv in enumerate(self.convs1):
            h = conv(tf.nn.leaky_relu(x, _SLOPE))
            if self.convs2:
                h = self.convs2[i](tf.nn.leaky_relu(h, _SLOPE))
            x = x + h
        return x

    def get_config(self):
        return {**super().get_config(), **self.settings}


def published_shapes(settings: HiFiGANSettings, has_norms: bool = True) -> Shapes:
    """Name all tensors of a generator as its authors do, with weight normalisation or folded."""
    shapes: Shapes = {}
    for name, shape in _weight_shapes(settings).items():
        outputs = shape[1] if name.startswith("ups.") else shape[0]
        shapes[f"{name}.bias"] = (outputs,)
        if has_norms:
            shapes |= {f"{name}.weight_g": (shape[0], 1, 1), f"{name}.weight_v": shape}
        else:
            shapes[f"{name}.weight"] = shape
    return shapes


def _weight_shapes(settings: HiFiGANSettings) -> Shapes:
    """Name the weights [out, in, kernel], of `ups` [in, out, kernel], in the model's order."""
    shapes = {"conv_pre": (settings.channels, settings.n_mels, _OUTER_KERNEL)}
    for i, (width, kernel) in enumerate(zip(settings.widths, settings.rate_kernels, strict=True)):
        shapes[f"ups.{i}"] = (2 * width, width, kernel)
    parts = ("convs1", "convs2") if settings.block == 1 else ("convs",)
    for i, (width, kernel, dilations) in enumerate(settings.blocks):
        for part in parts:
            for j in range(len(dilations)):
                shapes[f"resblocks.{i}.{part}.{j}"] = (width, width, kernel)
    return shapes | {"conv_post": (1, settings.widths[-1], _OUTER_KERNEL)}


def _settings_of(arrays: Mapping[str, np.ndarray], has_norms: bool) -> HiFiGANSettings:
    """Return the settings of the version of which most tensors are there."""

    def num_there(settings: HiFiGANSettings) -> int:
        shapes = published_shapes(settings, has_norms)
        return sum(np.shape(arrays.get(name)) == shape for name, shape in shapes.items())

    return max(HIFIGAN_VERSIONS.values(), key=num_there)


def _check_settings(settings: Mapping[str, Any], spec: AudioSpec) -> Size:
    lists = {
        "rates": (_MOST_STAGES, spec.hop_length),
        "rate_kernels": (_MOST_STAGES, _LARGEST_KERNEL),
        "kernels": (_MOST_KINDS, _LARGEST_KERNEL),
    }
    check_names(settings, ("channels", "block", "dilations", "n_mels", *lists), ())
    check_whole("channels", settings["channels"], 2, _MOST_CHANNELS)
    check_whole("block", settings["block"], 1, 2)
    for name, (most, high) in lists.items():
        check_wholes(name, settings[name], most, high)
    dilations = settings["dilations"]
    if not isinstance(dilations, list) or not 1 <= len(dilations) <= _MOST_KINDS:
        raise ConfigError(f"dilations must be a list for each kernel, got {shown(dilations)}")
    for each in dilations:
        check_wholes("dilations", each, _MOST_KINDS, _LARGEST_KERNEL)
    made = (settings["n_mels"], math.prod(settings["rates"]))
    if made != (spec.n_mels, spec.hop_length):
        raise ConfigError(
            f"it reads {shown(made[0])} mel bands and makes {made[1]} samples of a frame, and was "
            f"made for {spec.n_mels} and {spec.hop_length}"
        )
    return _size_of(settings)


def _size_of(settings: Mapping[str, Any]) -> Size:
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


def _built(settings: HiFiGANSettings, weight_norm: bool = True) -> "HiFiGAN":
    model = HiFiGAN(settings, weight_norm, name="hifigan")
    model.build((None, None, settings.n_mels))
    return model


def _frozen(value):
    """Undo what JSON makes of tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value
