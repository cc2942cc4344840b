"""A voice as a SavedModel: for TensorFlow Serving, and for programs that have TensorFlow."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.checkpoints import Voice
from myxtts.export.graphs import named_inputs, speaking_method
from myxtts.models.onnx.model import REFINED, SAID, VARIED
from myxtts.models.vocoders.base import Vocoder, Window
from myxtts.models.vocoders.istft import ISTFTVocoder

SPEAK, REFERENCE, VOCODE = "speak", "reference", "vocode"


def write_saved_model(folder: Path, voice: Voice, vocoder: Any) -> None:
    """Write the signatures `speak`, `reference` and, of a vocoder with weights, `vocode`."""
    model = voice.model
    module = tf.Module()
    # Not the model itself: all of its compiled methods would be saved, used or not.
    module.weights = [variable.value for variable in model.variables]
    method = speaking_method(model)
    signatures = {SPEAK: _signature(method, voice=[None, model.speaker_embedding_dim])}
    if not model.wants_embeddings:
        signatures[REFERENCE] = _signature(model.encode_voice, mel=[None, None, model.n_mels])
    if vocoder.has_weights:
        module.weights += [variable.value for variable in vocoder.variables]
        signatures[VOCODE] = _vocoding(vocoder)
    tf.saved_model.save(module, str(folder), signatures=signatures)


class SavedModel:
    """A SavedModel that speaks in place of the model that it was made from."""

    def __init__(self, folder: Path, model: Any):
        self._loaded, self._model = tf.saved_model.load(str(folder)), model
        self.signatures = tuple(self._loaded.signatures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def synthesize(self, *said: Any) -> Any:
        """What the signature `speak` says."""
        calm = dict.fromkeys((*REFINED, *VARIED), 0)
        return self._say(**calm, **dict(zip(SAID, said, strict=True)))

    def synthesize_varied(self, *said: Any) -> Any:
        """The same with a seed and a variation."""
        return self._say(**dict(zip((*SAID, *VARIED), said, strict=True)))

    def synthesize_refined(self, *said: Any) -> Any:
        """The same with a seed, a temperature and steps."""
        return self._say(**dict(zip((*SAID, *REFINED), said, strict=True)))

    def vocode(self, mel: np.ndarray) -> np.ndarray:
        """The waveform [1, samples] of a mel [1, frames, mels]."""
        return self._loaded.signatures[VOCODE](mel=tf.constant(mel))["waveform"].numpy()

    def _say(self, **given: Any) -> Any:
        function = self._loaded.signatures[SPEAK]
        specs = function.structured_input_signature[1]
        return function(**{name: tf.constant(given[name], specs[name].dtype) for name in specs})


class SavedVocoder(Vocoder):
    """The vocoder of a SavedModel."""

    def __init__(self, saved: SavedModel, like: Vocoder):
        self.kind, self.hop, self.n_mels = like.kind, like.hop, like.n_mels
        self._saved = saved

    def generate(
        self, mel: np.ndarray, state: Any = None, seed: int = 0, window: Window | None = None
    ) -> tuple[np.ndarray, Any]:
        start, stop, _ = window or Window(0, len(mel))
        return self._saved.vocode(mel[None])[0, start * self.hop : stop * self.hop], state


def _signature(method: Any, **shapes: list[int | None]) -> Any:
    inputs = named_inputs(method, **shapes)

    def run(*values: tf.Tensor) -> Any:
        found = method(*values)
        return found if isinstance(found, dict) else {"voice": found}

    return tf.function(run, input_signature=inputs)


def _vocoding(vocoder: Any) -> Any:
    def run(mel: tf.Tensor) -> dict[str, tf.Tensor]:
        if isinstance(vocoder, ISTFTVocoder):
            zero = tf.constant(0)
            found = vocoder(mel, anchor=zero, phase=tf.zeros([1]), first_frame=zero)
            return {"waveform": found["waveform"]}
        return {"waveform": vocoder.waveform(mel)}

    mel = tf.TensorSpec([None, None, vocoder.n_mels], tf.float32, name="mel")
    return tf.function(run, input_signature=[mel])
