"""What version 0.1 wrote is opened, resumed and spoken by this one, to the same bits.

`make.py` has made the archive. Another processor may round differently: where no digest of the
resumed run agrees, its norms do within a millionth.
"""

import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.helpers.new_process import in_new_process
from tests.legacy import make

ARCHIVE = Path(__file__).with_name("v0_1.tar.xz")


@pytest.fixture
def legacy(tmp_path) -> Path:
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def test_its_cache_is_reused_to_the_byte_and_its_run_is_resumed(legacy):
    cached = contents(legacy / "corpus" / "cached_features")
    lines = (legacy / "run" / "history.jsonl").read_bytes()
    found = in_new_process(make.resume, legacy)
    assert (legacy / "run" / "history.jsonl").read_bytes().startswith(lines)
    assert contents(legacy / "corpus" / "cached_features") == cached
    expected = json.loads((legacy / "expected" / "resumed.json").read_text())
    assert found.keys() == expected.keys()
    if any(found[name][0] != expected[name][0] for name in expected):
        # Another processor rounds in another way, and so does Adam in one operation.
        norms = {name: value[1] for name, value in found.items()}
        assert norms == pytest.approx({name: x[1] for name, x in expected.items()}, rel=2e-6)


def test_its_voice_speaks_the_same(legacy):
    in_new_process(make.speak, legacy)
    found, rate = soundfile.read(legacy / "said.wav", dtype="int16")
    expected, expected_rate = soundfile.read(legacy / "expected" / "said.flac", dtype="int16")
    assert rate == expected_rate and found.shape == expected.shape
    # One step of 16 bits, or two, is how another processor rounds.
    assert np.abs(found.astype(int) - expected).max() <= 2


def test_its_features_and_tokens_are_read_as_they_were_computed(legacy):
    from myxtts.cli.main import main

    cache = [str(legacy / "corpus"), "--pitch-method", "yin"]
    assert main(["cache", "verify", *cache]) == 0
