"""An exported voice: a folder of ONNX graphs with all that speaking needs, without TensorFlow.

It has export.json, which names the speakers and languages in the order of their numbers, describes
the graphs and knows all files, itself included, by their checksums; config.yaml, tokenizer.json and
speakers.safetensors as a voice has them; acoustic.onnx and reference.onnx; and, where the voice has
them, style.onnx, speaker_encoder.onnx and vocoder.onnx.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import myxtts
from myxtts import atomic
from myxtts.checkpoints.files import (
    CheckpointError,
    DamagedError,
    check_file,
    is_description,
    read_checked,
    read_json,
    read_tensors,
    unsealed,
)
from myxtts.checkpoints.voices import (
    GAINS,
    ONNX,
    Voice,
    are_names,
    gain_problem,
    vector_problem,
)
from myxtts.config.config import XTTSConfig
from myxtts.config.documents import shown
from myxtts.config.io import load_config
from myxtts.config.vocoders import VOCODERS
from myxtts.text.tokenizer import Tokenizer

FORMAT_VERSION = 1
CARD, CONFIG, TOKENIZER, SPEAKERS = (
    *("export.json", "config.yaml", "tokenizer.json", "speakers.safetensors"),
)
ACOUSTIC, REFERENCE, STYLE, SPEAKER_ENCODER, VOCODER = (
    *("acoustic.onnx", "reference.onnx", "style.onnx", "speaker_encoder.onnx", "vocoder.onnx"),
)
_NEEDED = (CONFIG, TOKENIZER, SPEAKERS, ACOUSTIC, REFERENCE)
_OPTIONAL = (STYLE, SPEAKER_ENCODER, VOCODER)
_REMEDY = "copy the exported voice anew, or export it again"


def holds_export(path: str | Path) -> bool:
    """Whether a folder is an exported voice's."""
    return (atomic.present(Path(path).absolute()) / CARD).is_file()


def load_export(path: str | Path) -> Voice:
    """Load an exported voice; only onnxruntime is needed for that."""
    from myxtts.models.onnx.graph import Graph
    from myxtts.models.onnx.model import OnnxModel, OnnxSpeakerEncoder

    folder = atomic.present(Path(path).absolute())
    card = read_card(folder)
    files = card["files"]
    with _remedied():
        for name in (CONFIG, TOKENIZER):
            check_file(folder / name, files[name])
        vectors = read_tensors(folder / SPEAKERS, files[SPEAKERS], finite=True)
        graphs = {
            name: Graph(bytes(read_checked(folder / name, files[name])), folder / name)
            for name in (ACOUSTIC, REFERENCE, *_OPTIONAL)
            if name in files
        }
    config = load_config(folder / CONFIG)
    voices, gains = np.asarray(vectors.get("voices", np.empty(0)), np.float32), vectors.get(GAINS)
    problem = vector_problem(voices, card["speakers"], config) or gain_problem(gains, config)
    if problem:
        raise CheckpointError(f"{folder / SPEAKERS} does not fit the voice: {problem}; {_REMEDY}")
    encoder = None
    if SPEAKER_ENCODER in graphs:
        encoder = OnnxSpeakerEncoder(config.model.speaker_encoder, graphs[SPEAKER_ENCODER])
    model = OnnxModel(graphs[ACOUSTIC], graphs[REFERENCE], graphs.get(STYLE), encoder)
    return Voice(
        folder,
        config,
        Tokenizer.load(folder / TOKENIZER),
        model,
        tuple(card["speakers"]),
        tuple(card["languages"]),
        voices,
        gains,
        ONNX,
        _vocoder(graphs.get(VOCODER), card.get("vocoder"), config),
    )


def read_card(folder: Path) -> dict[str, Any]:
    """Read export.json; its own fields are there afterwards, and so are its files."""
    with _remedied():
        record = read_json(folder / CARD)
        version = record.get("format")
        card = unsealed(folder / CARD, record, required=version == FORMAT_VERSION)
    if type(version) is int and version > FORMAT_VERSION:
        raise CheckpointError(
            f"{folder} is an export of format {shown(version)}, made by myxtts "
            f"{card.get('myxtts', '?')!s:.40}, and this is myxtts {myxtts.__version__}, which "
            f"reads up to format {FORMAT_VERSION}: install a later one"
        )
    if not _is_card(card):
        raise CheckpointError(f"{folder / CARD} does not describe an exported voice: {_REMEDY}")
    missing = [name for name in card["files"] if not (folder / name).is_file()]
    if missing:
        raise DamagedError(f"the exported voice {folder} lacks {', '.join(missing)}: {_REMEDY}")
    return card


def _is_card(card: Mapping[str, Any]) -> bool:
    files = card.get("files")
    if card.get("format") != FORMAT_VERSION or not isinstance(files, dict):
        return False
    # No other name is opened, so none can lead out of the folder.
    are_known = set(_NEEDED) <= set(files) <= {*_NEEDED, *_OPTIONAL}
    return (
        are_known
        and all(map(is_description, files.values()))
        and all(are_names(card.get(key)) for key in ("speakers", "languages"))
        and (VOCODER not in files or _describes_vocoder(card.get("vocoder")))
    )


def _describes_vocoder(record: Any) -> bool:
    return (
        isinstance(record, dict)
        and record.get("kind") in list(VOCODERS)
        and all(type(record.get(key)) is int for key in ("hop", "n_mels", "context_frames"))
    )


def _vocoder(graph: Any, record: Any, config: XTTSConfig) -> Any:
    """The vocoder of the graph that a card describes."""
    if graph is None:
        return None
    from myxtts.models.vocoders.onnx import OnnxVocoder

    spec = config.data.audio_spec
    sizes = record["hop"], record["n_mels"]
    if sizes != (spec.hop_length, spec.n_mels):
        raise CheckpointError(
            f"{graph.path} is a vocoder for other mels than the voice's: {_REMEDY}"
        )
    return OnnxVocoder(graph, record["kind"], *sizes, record["context_frames"])


@contextlib.contextmanager
def _remedied() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{error}: {_REMEDY}") from error
