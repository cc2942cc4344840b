"""An exported voice: a folder of ONNX graphs with all that speaking needs, without TensorFlow.

It has export.json, which names the speakers and languages in the order of their numbers, describes
the graphs and knows all files, itself included, by their checksums; config.yaml, tokenizer.json and
speakers.safetensors as a voice has them; acoustic.onnx and reference.onnx; and, where the voice has
them, style.onnx, speaker_encoder.onnx and vocoder.onnx. It can be fine-tuned unless its weights
have only 8 bits: export.json says where each weight is in the graphs, and weights.safetensors has
those that are in none.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
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
from myxtts.checkpoints.tensors import not_finite
from myxtts.checkpoints.voices import (
    GAINS,
    ONNX,
    Voice,
    VoiceFiles,
    are_names,
    check_size,
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
REST = "weights.safetensors"
_NEEDED = (CONFIG, TOKENIZER, SPEAKERS, ACOUSTIC, REFERENCE)
_GRAPHS = (ACOUSTIC, REFERENCE, STYLE, SPEAKER_ENCODER, VOCODER)
_OPTIONAL = (STYLE, SPEAKER_ENCODER, VOCODER, REST)
_REMEDY = "copy the exported voice anew, or export it again"


def holds_export(path: str | Path) -> bool:
    """Whether a folder is an exported voice's."""
    return (atomic.present(Path(path).absolute()) / CARD).is_file()


def load_export(path: str | Path) -> Voice:
    """Load an exported voice; only onnxruntime is needed for that."""
    from myxtts.models.onnx.model import OnnxModel, OnnxSpeakerEncoder

    folder = atomic.present(Path(path).absolute())
    card = read_card(folder)
    files = card["files"]
    with _remedied():
        for name in (CONFIG, TOKENIZER):
            check_file(folder / name, files[name])
        vectors = read_tensors(folder / SPEAKERS, files[SPEAKERS], finite=True)
        graphs = {name: _graph(folder / name, files[name]) for name in _GRAPHS if name in files}
    config = load_config(folder / CONFIG)
    voices, gains = _checked(folder, vectors, card["speakers"], config)
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


def read_trainable(path: str | Path) -> VoiceFiles:
    """Read an exported voice as if it had not been exported, for a model that can be trained."""
    folder = atomic.present(Path(path).absolute())
    card = read_card(folder)
    files, places = card["files"], card.get("places")
    if REST not in files or not _are_places(places):
        raise CheckpointError(
            f"{folder} was exported with weights of 8 bits, which cannot be fine-tuned: name the "
            "voice that it was made of, or an export of float32 or float16"
        )
    with _remedied():
        for name in (CONFIG, TOKENIZER):
            check_file(folder / name, files[name])
        vectors = read_tensors(folder / SPEAKERS, files[SPEAKERS], finite=True)
        arrays = read_tensors(folder / REST, files[REST], finite=True)
        names = {place["graph"] for place in places.values()} & files.keys()
        found = {name: _tensors(_graph(folder / name, files[name])) for name in names}
        taken = {name: _taken(found, place, folder) for name, place in places.items()}
        if names := not_finite(taken):
            raise DamagedError(f"{folder} holds weights that are no finite numbers: {names[0]}")
    config = load_config(folder / CONFIG)
    voices, gains = _checked(folder, vectors, card["speakers"], config)
    read = VoiceFiles(
        folder,
        config,
        Tokenizer.load(folder / TOKENIZER),
        tuple(card["speakers"]),
        tuple(card["languages"]),
        voices,
        {name: np.asarray(values, np.float32) for name, values in (arrays | taken).items()},
        gains,
        ACOUSTIC,
    )
    check_size(read)
    return read


def _checked(
    folder: Path, vectors: Mapping[str, np.ndarray], speakers: Sequence[str], config: XTTSConfig
) -> tuple[np.ndarray, np.ndarray | None]:
    """The speakers' vectors and the gains, as the settings of the voice want them."""
    voices, gains = np.asarray(vectors.get("voices", np.empty(0)), np.float32), vectors.get(GAINS)
    problem = vector_problem(voices, speakers, config) or gain_problem(gains, config)
    if problem:
        raise CheckpointError(f"{folder / SPEAKERS} does not fit the voice: {problem}; {_REMEDY}")
    return voices, gains


def _graph(path: Path, record: Mapping[str, Any]) -> Any:
    """A graph whose file is the one that its record describes."""
    from myxtts.models.onnx.graph import Graph

    return Graph(bytes(read_checked(path, record)), path)


def _tensors(graph: Any) -> dict[str, np.ndarray]:
    """The tensors of a graph by name."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise CheckpointError(
            f"fine-tuning an exported voice needs onnx ({error}): install it with pip install "
            "'myxtts[export]'"
        ) from error
    try:
        tensors = onnx.load_model_from_string(graph.content).graph.initializer
        return {one.name: onnx.numpy_helper.to_array(one) for one in tensors}
    except (DecodeError, TypeError, ValueError) as error:
        raise DamagedError(f"{graph.path} is no graph of ONNX ({error})") from error


def _taken(
    graphs: Mapping[str, Mapping[str, np.ndarray]], place: Mapping[str, Any], folder: Path
) -> np.ndarray:
    """A weight from its place, with its axes in their own order."""
    tensors, name = graphs.get(place["graph"], {}), place["tensor"]
    axes, shape = place["axes"], place["shape"]
    found = np.squeeze(tensors.get(name, tensors.get(f"{name}:float16", np.empty(0))))
    if sorted(axes) != list(range(found.ndim)) or found.size != math.prod(shape):
        raise DamagedError(f"{folder / place['graph']} has no weight {name!r} of shape {shape}")
    return found.transpose(np.argsort(axes).tolist()).reshape(shape)


def _are_places(places: Any) -> bool:
    return isinstance(places, dict) and all(
        isinstance(one, dict)
        and one.get("graph") in _GRAPHS
        and isinstance(one.get("tensor"), str)
        and all(_are_counts(one.get(key)) for key in ("axes", "shape"))
        for one in places.values()
    )


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


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
