"""Folders of voices and vocoders that were damaged or made to harm: refused by name, at no cost.

Nothing here builds a model: all of it is decided by the files alone.
"""

import json
import os
import random
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from myxtts.checkpoints.files import DamagedError, describe, sealed, write_json, write_tensors
from myxtts.checkpoints.tensors import parse_tensors
from myxtts.checkpoints.vocoders import read_vocoder
from myxtts.checkpoints.voices import read_voice
from myxtts.config.audio_spec import AudioSpec
from myxtts.config.config import XTTSConfig
from myxtts.config.documents import DocumentError
from myxtts.config.io import save_config
from myxtts.errors import UserError
from myxtts.text.tokenizer import Tokenizer

SPEC = AudioSpec(8000, n_fft=64, hop_length=32, win_length=64, n_mels=4, fmax=3600.0)
ISTFT = {"spec": asdict(SPEC), "dim": 8, "blocks": 1, "bands": 4, "projections": 0}
HIFIGAN = {
    "channels": 8,
    "rates": [8, 4],
    "rate_kernels": [16, 8],
    "block": 2,
    "kernels": [3],
    "dilations": [[1, 2]],
    "n_mels": 4,
}
MODEL, CARD = "model.safetensors", "vocoder.json"


def make_vocoder(folder: Path, kind: str = "istft", *, version: int = 2, **changed) -> Path:
    """A vocoder's folder, sealed again after `changed` took the place of parts of its card."""
    folder.mkdir(exist_ok=True)
    if not (folder / MODEL).exists():
        write_tensors(folder / MODEL, {"weights": np.arange(6, dtype=np.float32)})
    card = {
        "format": version,
        "myxtts": "0",
        "kind": kind,
        "settings": ISTFT if kind == "istft" else HIFIGAN,
        "spec": asdict(SPEC),
        "files": {MODEL: describe(folder / MODEL)},
        **changed,
    }
    write_json(folder / CARD, sealed(card) if version > 1 else card)
    return folder


def make_voice(folder: Path, *, version: int = 2, **settings) -> Path:
    """A voice's folder with weights that fit no model, which nobody looks at here."""
    folder.mkdir(exist_ok=True)
    save_config(XTTSConfig(speaker_embedding_dim=2, **settings), folder / "config.yaml")
    Tokenizer.build(("en",)).save(folder / "tokenizer.json")
    write_tensors(folder / MODEL, {"weights": np.ones((2, 3), np.float32)})
    write_tensors(folder / "speakers.safetensors", {"voices": np.ones((1, 2), np.float32)})
    return seal_voice(folder, version=version)


def seal_voice(folder: Path, *, version: int = 2, **changed) -> Path:
    """Write the card of a voice anew: whatever its files hold now, their checksums fit."""
    names = ["config.yaml", "tokenizer.json", MODEL, "speakers.safetensors"]
    described = names if version > 1 else names[1:]
    card = {
        "format": version,
        "myxtts": "0",
        "speakers": ["ann"],
        "languages": ["en"],
        "files": {name: describe(folder / name) for name in described},
        **changed,
    }
    text = json.dumps(sealed(card) if version > 1 else card, indent=1)
    (folder / "voice.json").write_text(text)
    return folder


def content_of_vocoder(folder: Path) -> tuple:
    found = read_vocoder(folder)
    arrays = {name: array.tobytes() for name, array in found.arrays.items()}
    return found.kind, found.settings, found.spec, arrays


def content_of_voice(folder: Path) -> tuple:
    found = read_voice(folder)
    arrays = {name: array.tobytes() for name, array in found.arrays.items()}
    voices, table = found.voices.tobytes(), found.tokenizer.to_json()
    return found.config, table, found.speakers, found.languages, voices, arrays


MAKERS = {"voice": (make_voice, content_of_voice), "vocoder": (make_vocoder, content_of_vocoder)}


# Damage.


@pytest.mark.parametrize("kind", MAKERS)
def test_every_flipped_bit_of_a_card_is_refused_or_changes_nothing(tmp_path, kind):
    make, content = MAKERS[kind]
    card = make(tmp_path / kind) / f"{kind}.json"
    original, expected = card.read_bytes(), content(card.parent)
    refused = 0
    for at in range(len(original)):
        for bit in range(8):
            changed = bytearray(original)
            changed[at] ^= 1 << bit
            card.write_bytes(changed)
            try:
                assert content(card.parent) == expected, f"byte {at}, bit {bit}"
            except UserError as error:
                refused += 1
                assert str(card.parent) in str(error)
    assert refused > 0.95 * 8 * len(original)


@pytest.mark.parametrize("name", ["sample_rate", "hop_length", "n_fft", "win_length"])
def test_a_changed_digit_of_a_vocoders_settings_is_refused_by_name(tmp_path, name):
    card = make_vocoder(tmp_path / "vocoder") / CARD
    text = card.read_text()
    value = getattr(SPEC, name)
    card.write_text(text.replace(f'"{name}": {value}', f'"{name}": {value + 1}'))
    assert card.read_text() != text
    with pytest.raises(DamagedError, match="vocoder.json is damaged: .*copy the folder again"):
        read_vocoder(card.parent)


@pytest.mark.parametrize("name", ["config.yaml", "tokenizer.json", MODEL, "speakers.safetensors"])
def test_a_changed_file_of_a_voice_is_refused_by_name(tmp_path, name):
    path = make_voice(tmp_path / "voice") / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=f"{name} is damaged.*copy the voice anew"):
        read_voice(path.parent)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_folder_of_the_format_before_still_opens(tmp_path, kind):
    make, content = MAKERS[kind]
    assert content(make(tmp_path / "old", version=1)) == content(make(tmp_path / "new"))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_card_whose_checksum_was_removed_is_damaged(tmp_path, kind):
    make, content = MAKERS[kind]
    card = make(tmp_path / kind) / f"{kind}.json"
    record = json.loads(card.read_text())
    del record["check"]
    card.write_text(json.dumps(record))
    with pytest.raises(DamagedError, match=f"{kind}.json is damaged: its checksum is missing"):
        content(card.parent)


@pytest.mark.parametrize("kind", MAKERS)
def test_mutated_files_are_refused_or_hold_the_same(tmp_path, kind):
    make, content = MAKERS[kind]
    folder = make(tmp_path / kind)
    expected, chosen = content(folder), random.Random(15)
    paths = sorted(folder.iterdir())
    for number in range(300):
        path = chosen.choice(paths)
        original = path.read_bytes()
        path.write_bytes(mutated(original, chosen))
        try:
            assert content(folder) == expected, f"mutation {number} of {path.name}"
        except UserError as error:
            assert str(folder) in str(error), error
        path.write_bytes(original)


def test_mutated_files_whose_checksums_were_made_to_fit_end_in_no_other_error(tmp_path):
    folder, chosen, refused = make_voice(tmp_path / "voice"), random.Random(16), 0
    paths = [path for path in sorted(folder.iterdir()) if path.name != "voice.json"]
    for _ in range(300):
        path = chosen.choice(paths)
        original = path.read_bytes()
        path.write_bytes(mutated(original, chosen))
        seal_voice(folder)
        try:
            read_voice(folder)
        except UserError as error:
            refused += 1
            assert str(folder) in str(error), error
        path.write_bytes(original)
    assert refused > 150


@pytest.mark.parametrize("kind", ["istft", "hifigan"])
def test_cards_of_random_values_whose_checksums_fit_end_in_no_other_error(tmp_path, kind):
    folder, chosen, refused = make_vocoder(tmp_path / "vocoder", kind), random.Random(17), 0
    card = json.loads((folder / CARD).read_text())
    values = (None, -1, 0, 1, 3, 64, 10**4, 10**30, 0.5, float("nan"), float("inf"), True, "x")
    values += ([], {}, [1, 2], [[1]], [[]], ["x"], [10**9], [[None]])
    for _ in range(300):
        changed = json.loads(json.dumps(card))
        del changed["check"]
        part = chosen.choice([changed, changed["settings"], changed["spec"], changed["files"]])
        part[chosen.choice([*part, "other"])] = chosen.choice(values)
        write_json(folder / CARD, sealed(changed))
        try:
            read_vocoder(folder)
        except UserError as error:
            refused += 1
            assert str(folder) in str(error), error
    assert refused > 150


def mutated(content: bytes, chosen: random.Random) -> bytes:
    """Bytes with a bit, a piece or a token of them changed."""
    at, other = sorted(chosen.choices(range(len(content) + 1), k=2))
    tokens = (b"null", b"-1", b"1e999", b"[[", b"{}", b"NaN", b'"\\ud800"', b"0x" + b"f" * 9000)
    tokens += (b"*a", b"&a", b"!!int ''", b"2001-13-45", b"\xff", b"999999999999999999999")
    kind = chosen.randrange(4)
    if kind == 0 and at < len(content):
        return content[:at] + bytes([content[at] ^ (1 << chosen.randrange(8))]) + content[at + 1 :]
    if kind == 1:
        return content[:at] + content[other:]
    if kind == 2:
        return content[:at] + content[at:other] * 2 + content[other:]
    return content[:at] + chosen.choice(tokens) + content[at:]


# Harm: all checksums fit.


@pytest.mark.parametrize("setting", ["text_encoder_layers", "decoder_layers", "decoder_dim"])
@pytest.mark.parametrize("value", [10**4, 10**6, 10**9])
def test_sizes_beyond_reason_are_refused_before_anything_is_built(tmp_path, setting, value):
    folder = make_voice(tmp_path / "voice")
    path = folder / "config.yaml"
    text, count = re.subn(f"  {setting}: [0-9]+", f"  {setting}: {value}", path.read_text())
    assert count == 1
    path.write_text(text)
    seal_voice(folder)
    with pytest.raises(UserError, match=f"config.yaml: model.{setting} must be at most"):
        read_voice(folder)


def test_settings_of_more_weights_or_layers_than_the_file_has_are_refused(tmp_path):
    make_voice(tmp_path / "wide", text_encoder_dim=2048, text_encoder_heads=8)
    with pytest.raises(UserError, match="config.yaml describes: that has about .* weights, and"):
        read_voice(tmp_path / "wide")
    narrow = {"text_encoder_dim": 8, "decoder_dim": 8, "text_encoder_heads": 1}
    make_voice(tmp_path / "deep", **narrow, text_encoder_layers=120)
    with pytest.raises(UserError, match="that has 133 layers, and the file has 1 tensors"):
        read_voice(tmp_path / "deep")
    folder = make_voice(tmp_path / "many")
    seal_voice(folder, languages=["en"] * 200_000)
    with pytest.raises(UserError, match="that has about .* weights, and"):
        read_voice(folder)


@pytest.mark.parametrize(
    ("kind", "changed", "reason"),
    [
        ("istft", {"dim": 10**6}, "dim must be at most"),
        ("istft", {"blocks": 10**9}, "blocks must be at most"),
        ("istft", {"blocks": True}, "blocks must be a whole number"),
        ("istft", {"dim": 8192}, "these are of about .* weights"),
        ("istft", {"bands": 1}, "bands must be a whole number from 2"),
        ("istft", {"projections": "4"}, "projections must be a whole number"),
        ("istft", {"width": 3}, "'width' is no setting"),
        ("istft", {"spec": {}}, "the mels are not described"),
        ("istft", {"spec": asdict(AudioSpec())}, "not those that it was made for"),
        ("hifigan", {"channels": 10**9}, "channels must be a whole number"),
        ("hifigan", {"channels": 8192}, "these are of about .* weights"),
        ("hifigan", {"kernels": [3] * 7}, "kernels must be a list of 1 to 6 numbers"),
        ("hifigan", {"kernels": "333"}, "kernels must be a list"),
        ("hifigan", {"rates": [8, 8]}, "makes 64 samples of a frame, and was made for 4 and 32"),
        ("hifigan", {"n_mels": 5}, "reads 5 mel bands"),
        ("hifigan", {"dilations": [[0]]}, "dilations must be a whole number from 1"),
        ("hifigan", {"dilations": [1]}, "dilations must be a list"),
    ],
)
def test_settings_that_no_vocoder_has_are_refused(tmp_path, kind, changed, reason):
    own = ISTFT if kind == "istft" else HIFIGAN
    folder = make_vocoder(tmp_path / "vocoder", kind)
    assert read_vocoder(folder).kind == kind
    make_vocoder(folder, kind, settings={**own, **changed})
    with pytest.raises(UserError, match=reason):
        read_vocoder(folder)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"win_length": 65}, r"data.win_length \(65\) is more than data.n_fft \(64\)"),
        ({"hop_length": 65}, "data.hop_length"),
        ({"fmax": 4001.0}, r"above half of data.sample_rate \(8000\)"),
        ({"fmin": 3599.0}, "no frequency that data.n_fft"),
        ({"n_fft": 10**9, "win_length": 64}, "data.n_fft must be at most"),
        ({"n_mels": 0}, "data.n_mels must be at least 1"),
        ({"sample_rate": "8k"}, "data.sample_rate must be a whole number"),
        ({"floor": float("nan")}, "data.mel_floor must be a finite number"),
        ({"mels": 4}, "the mels are not described by"),
    ],
)
def test_mels_that_cannot_be_are_refused(tmp_path, changed, reason):
    spec = {**asdict(SPEC), **changed}
    make_vocoder(tmp_path / "vocoder", spec=spec, settings={**ISTFT, "spec": spec})
    with pytest.raises(UserError, match=reason):
        read_vocoder(tmp_path / "vocoder")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(tmp_path, value):
    arrays = {"good": np.ones(2, np.float32), "bad": np.float32([1, value])}
    folder = make_vocoder(tmp_path / "vocoder")
    write_tensors(folder / MODEL, arrays)
    make_vocoder(folder)
    with pytest.raises(DamagedError, match="safetensors holds values that are no finite.*'bad'"):
        read_vocoder(folder)
    folder = make_voice(tmp_path / "voice")
    for name in (MODEL, "speakers.safetensors"):
        original = (folder / name).read_bytes()
        write_tensors(folder / name, arrays)
        seal_voice(folder)
        with pytest.raises(DamagedError, match=f"{name} holds values .*'bad'"):
            read_voice(folder)
        (folder / name).write_bytes(original)


def header(size: int | None = None, data: bytes = b"", **entries) -> bytearray:
    text = json.dumps(entries).encode()
    return bytearray((len(text) if size is None else size).to_bytes(8, "little") + text + data)


def entry(dtype: object = "F32", shape: object = (1,), span: object = (0, 4)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": span}


@pytest.mark.parametrize(
    "content",
    [
        bytearray(),
        bytearray(b"\x01"),
        header(size=2**64 - 1),
        header(size=2**40, a=entry()),
        header(size=3, a=entry()),
        bytearray((2).to_bytes(8, "little") + b"[]"),
        bytearray((20_000).to_bytes(8, "little") + b"[" * 20_000),
        header(a=5),
        header(a={}),
        header(data=bytes(4), a=entry(dtype="F8_E4M3")),
        header(data=bytes(4), a=entry(dtype=["F32"])),
        header(data=bytes(4), a=entry(shape=[-1])),
        header(data=bytes(4), a=entry(shape=[1.0])),
        header(data=bytes(4), a=entry(shape=[True])),
        header(data=bytes(4), a=entry(shape=1)),
        header(data=bytes(4), a=entry(shape=[1] * 33)),
        header(data=bytes(4), a=entry(shape=[2**62, 2**62])),
        header(data=b"", a=entry(shape=[0, 2**62], span=[0, 0])),
        header(data=bytes(4), a=entry(span=[0])),
        header(data=bytes(4), a=entry(span=[4, 0])),
        header(data=bytes(4), a=entry(span=[4, 8])),
        header(data=bytes(8), a=entry()),
        header(data=bytes(4), a=entry(), b=entry()),
        header(data=bytes(8), a=entry(), b=entry(span=[2, 6])),
        header(data=bytes(4), a=entry(span=[-4, 0])),
        header(data=bytes(4), a=entry(span=[0, 2**80])),
    ],
)
def test_a_header_that_lies_is_refused(content):
    with pytest.raises(DocumentError):
        parse_tensors(content)


def test_arrays_come_back_as_they_were_written(tmp_path):
    arrays = {
        "a": np.arange(6, dtype=np.float16).reshape(2, 3),
        "b": np.array([True, False]),
        "empty": np.zeros(0, np.int32),
        "one": np.float64(2.5),
    }
    write_tensors(tmp_path / "x", arrays)
    found = parse_tensors(bytearray((tmp_path / "x").read_bytes()))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)


@pytest.mark.parametrize("name", ["voice.json", "tokenizer.json", "config.yaml"])
@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"", b"5", b'"a"', b"[1]", bytes(100)],
    ids=["deep list", "deep dict", "no text", "empty", "number", "word", "list", "zeros"],
)
def test_a_document_of_something_else_is_refused_by_name(tmp_path, name, content):
    folder = make_voice(tmp_path / "voice")
    (folder / name).write_bytes(content)
    if name != "voice.json":
        seal_voice(folder)
    if (name, content) == ("config.yaml", b""):  # all defaults, which the vectors do not fit
        name = "speakers.safetensors"
    with pytest.raises(UserError, match=name):
        read_voice(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"symbols": 5},
        {"symbols": "abc"},
        {"symbols": {"a": 1}},
        {"symbols": [1, 2]},
        {"symbols": [["a"]]},
        {"symbols": []},
        {"symbols": ["a"] * 100_001},
        {"languages": "en"},
        {"languages": [["en"]]},
        {"languages": ["xx"]},
        {"units": ["characters"]},
        {"units": None},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_a_tokenizer_of_other_types_is_refused_by_name(tmp_path, changed):
    folder = make_voice(tmp_path / "voice")
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    seal_voice(folder)
    with pytest.raises(UserError, match="tokenizer.json"):
        read_voice(folder)


@pytest.mark.parametrize("speakers", [[], "ann", [1], ["a\x1b[2J"], ["\ud800"], {"ann": 1}])
def test_speakers_that_are_no_names_are_refused(tmp_path, speakers):
    seal_voice(make_voice(tmp_path / "voice"), speakers=speakers)
    with pytest.raises(UserError, match="voice.json does not describe a voice"):
        read_voice(tmp_path / "voice")


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path):
    folder = make_vocoder(tmp_path / "vocoder")
    files = {MODEL: {"size": 0, "sha256": ""}}
    (folder / MODEL).unlink()
    os.mkfifo(folder / MODEL)
    write_json(folder / CARD, sealed({**json.loads((folder / CARD).read_text()), "files": files}))
    with pytest.raises(DamagedError):
        read_vocoder(folder)
