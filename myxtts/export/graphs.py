"""The parts of a voice as ONNX graphs: what is said, who says it, and how it sounds."""

import inspect
from typing import Any

import tensorflow as tf

from myxtts.errors import UserError
from myxtts.export.conversion import convert
from myxtts.export.istft import RealISTFT
from myxtts.export.random_normal import in_tracing
from myxtts.models.onnx.model import SPOKEN
from myxtts.models.vocoders.istft import ISTFTVocoder
from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.models.vocoders.onnx import CLOCK, CLOCKED, MEL, WAVEFORM


def acoustic_graph(model: Any) -> Any:
    """Tokens to mels, refined or varied where the model can do that; sentences may be batched."""
    method = speaking_method(model)
    inputs = named_inputs(method, voice=[None, model.speaker_embedding_dim])

    def say(*values: tf.Tensor) -> list[tf.Tensor]:
        said = traced_anew(method, *values)
        return [said[name] for name in SPOKEN]

    return convert(say, inputs, SPOKEN)


def reference_graph(model: Any) -> Any:
    """Mels of a reference, or the embedding of a published encoder, to a speaker embedding."""
    if model.wants_embeddings:
        size = [None, model.published_voice.dim]
        inputs = [tf.TensorSpec(size, tf.float32, name="embedding")]
        return convert(lambda embedding: [model.encode_embedding(embedding)], inputs, ["voice"])
    inputs = named_inputs(model.encode_voice, mel=[None, None, model.n_mels])
    return convert(lambda mel, lengths: [model.encode_voice(mel, lengths)], inputs, ["voice"])


def style_graph(model: Any) -> Any:
    """Voices [batch, dim] to voices with their own style, and with one that weights mix."""
    tokens = model.config.gst_num_style_tokens
    inputs = [
        tf.TensorSpec([None, model.speaker_embedding_dim], tf.float32, name="voice"),
        tf.TensorSpec([None, tokens], tf.float32, name="weights"),
    ]

    def style(voice: tf.Tensor, weights: tf.Tensor) -> list[tf.Tensor]:
        return [model.styled(voice), model.styled(voice, weights)]

    return convert(style, inputs, ["styled", "mixed"])


def speaker_encoder_graph(published: Any) -> Any:
    """Features [windows, frames, bands] of a published encoder to its embeddings."""
    shape = [None, None, published.speaker_encoder.bands]
    inputs = [tf.TensorSpec(shape, tf.float32, name="features")]
    return convert(lambda features: [published.encoder(features)], inputs, ["embedding"])


def vocoder_graph(model: NeuralVocoder) -> Any:
    """Mels [1, frames, mels] to waveforms; what is carried over between chunks goes in and out.

    The vocoder is in its prepared form.
    """
    mel = tf.TensorSpec([1, None, model.n_mels], tf.float32, name=MEL)
    if not isinstance(model, ISTFTVocoder):
        return convert(lambda mel: [model.waveform(mel)], [mel], [WAVEFORM])
    twin = RealISTFT(model)
    kinds = ([], tf.int32), ([1], tf.float32), ([], tf.int32)
    clocked = [tf.TensorSpec(*kind, name=name) for kind, name in zip(kinds, CLOCKED, strict=True)]

    def run(*inputs: tf.Tensor) -> list[tf.Tensor]:
        out = twin(*inputs)
        return [out["waveform"], out["clock"]]

    return convert(run, [mel, *clocked], [WAVEFORM, CLOCK])


def traced_anew(method: Any, *values: tf.Tensor) -> Any:
    """Call a compiled method as if it had not been compiled, with noise that ONNX can draw."""
    with in_tracing():
        return method.python_function(*values)


def speaking_method(model: Any) -> Any:
    """The compiled method that says tokens, with all the inputs that the model has a use for."""
    if model.refiner:
        return model.synthesize_refined
    return model.synthesize_varied if model.can_vary else model.synthesize


def named_inputs(method: Any, **shapes: list[int | None]) -> list[tf.TensorSpec]:
    """The inputs of a compiled method under its arguments' names, some with another shape."""
    names = argument_names(method)
    specs = method.input_signature
    if len(names) != len(specs):
        raise UserError(f"{method} cannot be exported: it takes {names}, but has {specs}")
    return [
        tf.TensorSpec(shapes.get(name, spec.shape), spec.dtype, name=name)
        for name, spec in zip(names, specs, strict=True)
    ]


def argument_names(method: Any) -> list[str]:
    """The arguments of a compiled method, without itself."""
    return [name for name in inspect.signature(method.python_function).parameters if name != "self"]
