"""An encoder of a few hundred weights in ECAPA-TDNN's place: the real one takes seconds a step."""

from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.speaker_features import ECAPA_BANDS, ecapa_features
from myxtts.models.speaker_encoders import registry
from tests.helpers.make_torch_file import ordered, tensor, write_zip

KIND = "ecapa_tdnn"
DIM, HIDDEN = 32, 8
SHAPES = {
    "hidden.weight": (HIDDEN, ECAPA_BANDS),
    "hidden.bias": (HIDDEN,),
    "out.weight": (DIM, HIDDEN),
    "out.bias": (DIM,),
}


class StandIn(keras.layers.Layer):
    """Features [batch, frames, 80] -> embedding [batch, 32]: a mean over time of hidden units."""

    def __init__(self, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.hidden = keras.layers.Dense(HIDDEN, "tanh", dtype="float32", name="hidden")
        self.out = keras.layers.Dense(DIM, dtype="float32", name="out")

    def build(self, shape):
        self.hidden.build((None, None, ECAPA_BANDS))
        self.out.build((None, HIDDEN))

    def call(self, features):
        return self.out(tf.reduce_mean(self.hidden(features), axis=1))


def embedding(arrays: dict[str, np.ndarray], features: np.ndarray) -> np.ndarray:
    """The same in NumPy, of features [frames, 80] by the tensors as a file has them."""
    hidden = np.tanh(features @ arrays["hidden.weight"].T + arrays["hidden.bias"])
    return arrays["out.weight"] @ hidden.mean(axis=0) + arrays["out.bias"]


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kind `ecapa_tdnn` be the stand-in."""
    module = SimpleNamespace(
        BANDS=ECAPA_BANDS,
        DIM=DIM,
        IGNORED=(),
        published_shapes=lambda: SHAPES,
        weights_from_torch=lambda arrays: {
            f"{layer}/{ours}": np.array(arrays[f"{layer}.{theirs}"]).T
            for layer in ("hidden", "out")
            for ours, theirs in (("kernel", "weight"), ("bias", "bias"))
        },
    )
    recipe = registry._Recipe(
        module=module,
        network=StandIn,
        weights_key=None,
        features=lambda samples: ecapa_features(samples)[None],
        combine=lambda embeddings: embeddings[0],
    )
    monkeypatch.setitem(registry._RECIPES, KIND, recipe)


def make_arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """Weights that let the decibels of a recording neither vanish nor saturate."""
    random = np.random.default_rng(seed)
    sizes = {"hidden.weight": 0.02, "hidden.bias": 0.3, "out.weight": 1.0, "out.bias": 0.1}
    return {
        name: random.normal(0.0, sizes[name], shape).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def write_weights(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Save tensors as torch saves a state dict."""
    tensors, storages = {}, {}
    for number, (name, array) in enumerate(arrays.items()):
        strides = tuple(size // array.itemsize for size in array.strides)
        tensors[name] = tensor("Float", str(number), array.size, 0, array.shape, strides)
        storages[str(number)] = array.tobytes()
    return write_zip(path, ordered(**tensors), storages)
