"""Voices and vocoders from strangers, who know how to write their checksums."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.drills.cases import WRONG
from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bad, Bounds, Input

KIND = "voices and vocoders"
COUNT, PER_CASE = 300, 12
# Building and tracing the smallest model takes some seconds.
BOUNDS = Bounds(cpu_seconds=15.0, megabytes=600.0, patience=4.0)

_SIZES = (0, -1, 1, 3, 10**4, 10**6, 10**9, 2**31, 2**63, 10**30)
_CONFIG = {
    "use_gst": False,
    "text_encoder_dim": 16,
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 0,
    "text_encoder_heads": 2,
    "decoder_dim": 16,
    "decoder_layers": 1,
    "audio_encoder_dim": 8,
    "audio_encoder_layers": 1,
    "speaker_embedding_dim": 4,
}


def set_up(folder: Path, seed: int) -> None:
    """A voice that speaks, and a vocoder of each kind, all untrained."""
    save_small_voice(folder / "voice", seed)
    from myxtts.checkpoints.vocoders import save_vocoder
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.models.vocoders.registry import vocoder_of
    from tests.helpers.tiny_vocoder import tiny_vocoder

    spec = AudioSpec()
    save_vocoder(folder / "istft", tiny_vocoder(spec), spec)
    settings = {
        "channels": 32,
        "rates": (8, 8, 2, 2),
        "rate_kernels": (16, 16, 4, 4),
        "block": 2,
        "kernels": (3,),
        "dilations": ((1,),),
        "n_mels": spec.n_mels,
    }
    save_vocoder(folder / "hifigan", vocoder_of("hifigan", settings), spec)


def save_small_voice(folder: Path, seed: int = 0) -> Path:
    """The smallest voice that speaks English."""
    import keras

    from myxtts.checkpoints import save_voice
    from myxtts.config.config import XTTSConfig
    from myxtts.models.xtts import build_xtts
    from myxtts.text.tokenizer import Tokenizer

    keras.utils.set_random_seed(seed)
    config, tokenizer = XTTSConfig(**_CONFIG), Tokenizer.build(("en",))
    model = build_xtts(config.model, config.data.audio_spec, tokenizer.vocab_size, 1, 2)
    voices = np.random.default_rng(seed).normal(size=(2, 4)).astype(np.float32)
    return save_voice(folder, model, config, tokenizer, ["anna", "ben"], ["en"], voices)


def warm_up() -> None:
    """Start TensorFlow."""
    import tensorflow as tf

    tf.zeros(1)


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"voices {seed}")
    for _ in range(count):
        kind = random.choice(("voice", "voice", "istft", "hifigan"))
        attacks = _VOICE if kind == "voice" else _VOCODER
        name, attack = random.choice(attacks)
        secret = random.randrange(2**32)
        size = sum(path.stat().st_size for path in (folder / kind).iterdir())
        yield Input(f"{kind}-{name}", size, _use(folder / kind, kind, attack, secret))


def _use(base: Path, kind: str, attack, secret: int):
    def run(own: Path) -> None:
        target = own / kind
        shutil.copytree(base, target)
        attack(Random(secret), target)
        if kind == "voice":
            _speak(target)
        else:
            _vocode(target)

    return run


def _speak(folder: Path) -> None:
    from myxtts.checkpoints import load_voice
    from myxtts.inference.synthesizer import Synthesizer

    _check_samples(Synthesizer(load_voice(folder)).speak("Hi.").samples)


def _vocode(folder: Path) -> None:
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.inference.vocoders import choose_vocoder

    spec = AudioSpec()
    mel = np.full((8, spec.n_mels), -4.0, np.float32)
    samples = choose_vocoder(str(folder), folder.parent, spec)(mel, spec, 0)
    if len(samples) != 8 * spec.hop_length:
        raise Bad(WRONG, "a vocoder of another hop is used")
    _check_samples(samples)


def _check_samples(samples: np.ndarray) -> None:
    if not np.isfinite(samples).all():
        raise Bad(WRONG, "samples that are not finite are spoken")


def reseal(folder: Path) -> None:
    """Have the card describe the files as they are, as a stranger would."""
    from myxtts.checkpoints.files import describe

    path = _card_of(folder)
    try:
        card = json.loads(path.read_bytes())
        names = [name for name in card["files"] if (folder / name).is_file()]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return  # no card any more: that is the attack
    for name in names:
        card["files"][name] = describe(folder / name)
    _write_card(path, card)


def _write_card(path: Path, card: dict) -> None:
    """Write a card with the checksum of its content."""
    from myxtts.checkpoints.files import sealed

    content = {name: value for name, value in card.items() if name != "check"}
    path.write_text(json.dumps(sealed(content)), encoding="utf-8")


def _card_of(folder: Path) -> Path:
    return folder / ("vocoder.json" if (folder / "vocoder.json").exists() else "voice.json")


def _number(random: Random) -> int:
    """Half of the time a size that a computer can count to and no model has."""
    return round(10 ** random.uniform(6, 9)) if random.random() < 0.5 else random.choice(_SIZES)


def _setting(random: Random, folder: Path) -> None:
    """Another number for a setting of the voice."""
    from myxtts.config.config import SETTINGS

    names = [path for path in SETTINGS if path.startswith(("model.", "data."))]
    section, name = random.choice(names).split(".")
    text = (folder / "config.yaml").read_text(encoding="utf-8").splitlines()
    odd = random.choice(("null", "true", "text", "[1]", ".nan", "1e9"))
    value = odd if random.random() < 0.2 else _number(random)
    lines = [f"  {name}: {value}" if line.startswith(f"  {name}: ") else line for line in text]
    (folder / "config.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reseal(folder)


def _width(random: Random, folder: Path) -> None:
    """One of the numbers that decide how large the model is."""
    names = [name for name in _CONFIG if name != "use_gst"]
    names += ["gst_num_style_tokens", "n_mels", "n_fft", "max_mel_frames", "hop_length"]
    name, value = random.choice(names), round(10 ** random.uniform(5, 9))
    text = (folder / "config.yaml").read_text(encoding="utf-8").splitlines()
    lines = [f"  {name}: {value}" if line.startswith(f"  {name}: ") else line for line in text]
    (folder / "config.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reseal(folder)


def _laughs(random: Random, folder: Path) -> None:
    from benchmarks.drills.inputs.settings import _laughs, _merges

    text = random.choice((_laughs, _merges))(random)
    with open(folder / "config.yaml", "a", encoding="utf-8") as file:
        file.write(text)
    reseal(folder)


def _weights(random: Random, folder: Path) -> None:
    """Weights of other values, types, shapes or names."""
    from safetensors.numpy import load_file, save_file

    names = [name for name in ("model", "speakers") if (folder / f"{name}.safetensors").exists()]
    path = folder / f"{random.choice(names)}.safetensors"
    arrays = load_file(path)
    name = random.choice(list(arrays))
    array = arrays[name]
    how = random.choice(
        ("nan", "inf", "huge", "all-huge", "type", "shape", "empty", "other", "gone")
    )
    if how in ("nan", "inf", "huge"):
        value = {"nan": np.nan, "inf": np.inf, "huge": 1e38}[how]
        arrays[name] = np.full_like(array, value) if array.dtype.kind == "f" else array
    elif how == "all-huge":
        value = random.choice((1e38, -1e38, np.nan, 1e10))
        arrays = {
            n: np.full_like(a, value) if a.dtype.kind == "f" else a for n, a in arrays.items()
        }
    elif how == "type":
        arrays[name] = array.astype(random.choice((np.float64, np.float16, np.int32, np.bool_)))
    elif how == "shape":
        arrays[name] = np.zeros((*array.shape, 2), np.float32)
    elif how == "empty":
        arrays = {}
    elif how == "other":
        arrays["../../canary/precious"] = array
    else:
        del arrays[name]
    path.unlink()
    save_file(arrays, path)
    reseal(folder)


def _card(random: Random, folder: Path) -> None:
    """A field of the card of another type or size."""
    path = _card_of(folder)
    card = json.loads(path.read_bytes())
    values = (None, 0, -1, 1.5, "x", [], {}, [None], ["a"] * 3, True, 10**9, 10**30, float("nan"))
    values += ({"a": {"a": 1}}, ["x" * 10**5], [["a"]], "\x1b[2J", "../../canary/precious")
    place, key = card, random.choice(list(card))
    while isinstance(place[key], dict) and place[key] and random.random() < 0.8:
        place, key = place[key], random.choice(list(place[key]))
    if random.random() < 0.15:
        del place[key]
    else:
        place[key] = random.choice(values)
    if random.random() < 0.1:
        path.write_text(json.dumps(card), encoding="utf-8")  # with a checksum of something else
    else:
        _write_card(path, card)


def _deep(random: Random, folder: Path) -> None:
    path = folder / random.choice([path.name for path in folder.glob("*.json")])
    start, end = random.choice((("[", "]"), ('{"a":', "}")))
    depth = random.choice((100, 2000, 200_000))
    path.write_text(start * depth + "1" + end * depth, encoding="utf-8")
    reseal(folder)


def _tokenizer(random: Random, folder: Path) -> None:
    """A table of symbols that is none."""
    path = folder / "tokenizer.json"
    table = json.loads(path.read_bytes())
    key = random.choice(list(table))
    values = (None, 5, "x", [], {}, [1, 2], ["a", "a"], [["a"]], [None], "en", ["xx"], ["en"] * 9)
    if key == "symbols" and random.random() < 0.7:
        change = random.choice((7, None, ["a"], {"a": 1}, "", "a", "\ud800", "x" * 10**5))
        table["symbols"][random.randrange(len(table["symbols"]))] = change
    else:
        table[key] = random.choice(values)
    if random.random() < 0.1:
        table["symbols"] = [*table["symbols"], *map(str, range(50_000))]
    path.write_text(json.dumps(table), encoding="utf-8")
    reseal(folder)


def _damage(random: Random, folder: Path) -> None:
    path = random.choice(sorted(folder.iterdir()))
    _, data = mutated(random, path.read_bytes())
    path.write_bytes(data)
    reseal(folder)


def _missing(random: Random, folder: Path) -> None:
    """A file that is not there, or is something else."""
    path = random.choice(sorted(folder.iterdir()))
    path.unlink()
    how = random.choice(("nothing", "pipe", "folder", "loop", "zeros", "parent"))
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how in ("loop", "zeros", "parent"):
        path.symlink_to({"loop": path.name, "zeros": "/dev/zero", "parent": ".."}[how])


def _vocoder_setting(random: Random, folder: Path) -> None:
    """Another number in the settings or mels of a vocoder."""
    path = folder / "vocoder.json"
    card = json.loads(path.read_bytes())
    place = card[random.choice(("settings", "spec"))]
    key = random.choice(list(place))
    if isinstance(place[key], dict):
        place, key = place[key], random.choice(list(place[key]))
    odd = random.choice((1.5, None, "x", [], [_number(random)], [[_number(random)]], [0], True))
    place[key] = odd if random.random() < 0.4 else _number(random)
    _write_card(path, card)


_BOTH = (
    ("weights", _weights),
    ("card", _card),
    ("deep", _deep),
    ("damage", _damage),
    ("missing", _missing),
)
_VOICE = (
    *_BOTH,
    ("setting", _setting),
    ("setting", _setting),
    ("width", _width),
    ("width", _width),
    ("aliases", _laughs),
    ("tokenizer", _tokenizer),
)
_VOCODER = (*_BOTH, ("setting", _vocoder_setting), ("setting", _vocoder_setting))
