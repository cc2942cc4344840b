"""A voice as a folder of ONNX graphs, which `myxtts synthesize` speaks with."""

from pathlib import Path
from typing import Any

import numpy as np

import myxtts
from myxtts.checkpoints import Voice, exported, weights_of
from myxtts.checkpoints.files import describe, sealed, write_json, write_tensors
from myxtts.checkpoints.voices import GAINS
from myxtts.config.io import save_config
from myxtts.export import graphs
from myxtts.export.istft import RealISTFT
from myxtts.export.trainable import Place, locate_weights
from myxtts.export.weights import FLOAT16, FLOAT32, INT8, pack_weights
from myxtts.models.vocoders.istft import ISTFTVocoder


def fill_folder(folder: Path, voice: Voice, vocoder: Any, weights: str = FLOAT32) -> None:
    """Write the graphs of a voice and all that they need into a new folder.

    The vocoder is a prepared one, or one without weights, which needs no graph.
    """
    save_config(voice.config, folder / exported.CONFIG)
    voice.tokenizer.save(folder / exported.TOKENIZER)
    tensors = {"voices": np.asarray(voice.voices, np.float32)}
    if voice.gains is not None:
        tensors[GAINS] = voice.gains
    write_tensors(folder / exported.SPEAKERS, tensors)
    found = _graphs(voice, vocoder)
    places = {} if weights == INT8 else _store_weights(folder, voice, found, weights)
    for name, graph in found.items():
        (folder / name).write_bytes(
            pack_weights(graph, weights, tables_of(voice, vocoder)).SerializeToString()
        )
    card = {
        "format": exported.FORMAT_VERSION,
        "myxtts": myxtts.__version__,
        "speakers": list(voice.speakers),
        "languages": list(voice.languages),
        "weights": weights,
        "vocoder": _describe_vocoder(vocoder),
        "places": places,
        "files": {path.name: describe(path) for path in sorted(folder.iterdir())},
    }
    write_json(folder / exported.CARD, sealed(card))


def tables_of(voice: Voice, vocoder: Any) -> list[np.ndarray]:
    """What the graphs of a voice and a vocoder contain besides weights."""
    own = RealISTFT(vocoder).tables if isinstance(vocoder, ISTFTVocoder) else []
    return [voice.model.harmonics.table, *own]


def _store_weights(
    folder: Path, voice: Voice, graphs: dict[str, Any], kind: str
) -> dict[str, Place]:
    """Store what fine-tuning needs and no graph has; return where the other weights are."""
    own = {name: np.asarray(value) for name, value in weights_of(voice.model).items()}
    places, rest = locate_weights(own, graphs)
    kept = {FLOAT16: np.float16}.get(kind, np.float32)
    write_tensors(folder / exported.REST, {name: one.astype(kept) for name, one in rest.items()})
    return places


def _graphs(voice: Voice, vocoder: Any) -> dict[str, Any]:
    model = voice.model
    found = {
        exported.ACOUSTIC: graphs.acoustic_graph(model),
        exported.REFERENCE: graphs.reference_graph(model),
    }
    if model.style:
        found[exported.STYLE] = graphs.style_graph(model)
    if model.wants_embeddings:
        found[exported.SPEAKER_ENCODER] = graphs.speaker_encoder_graph(model.published_voice)
    if vocoder.has_weights:
        found[exported.VOCODER] = graphs.vocoder_graph(vocoder)
    return found


def _describe_vocoder(vocoder: Any) -> dict[str, Any] | None:
    if not vocoder.has_weights:
        return None
    return {
        "kind": vocoder.kind,
        "hop": vocoder.hop,
        "n_mels": vocoder.n_mels,
        "context_frames": int(vocoder.context_frames),
    }
