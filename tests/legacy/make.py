"""Makes the corpus, cache, run and voice that later versions must open, resume and speak.

    python -m tests.legacy.make tests/legacy/v0_1.tar.xz

It runs the version that is checked out, so it is run before a change of the files' formats or of
the code that reads them, and its output is kept.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import soundfile

from myxtts.checkpoints import load_state, saved_states
from myxtts.cli.main import main
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import SMALL

SAVED, RESUMED = 2, 4
TEXT = "Amber bridge."
SETTINGS = {**SMALL, "save_interval": 1, "validation_interval": 1, "keep_checkpoints": 1}
# So few steps run eagerly: tracing them takes longer.
SETTINGS |= {"enable_eager_debug": True, "enable_evaluation": False, "text_units": "characters"}


def make(archive: Path) -> None:
    """Pack corpus/ with its cache, run/ after some steps, and expected/ after some more."""
    archive = archive.resolve()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write(Path("legacy"))
        with tarfile.open(archive, "w:xz") as packed:
            for path in sorted(Path("legacy").rglob("*")):
                packed.add(path, path.relative_to("legacy"), recursive=False, filter=_anonymous)


def write(folder: Path) -> None:
    make_corpus(folder / "corpus", count=6, seconds=(0.3, 0.5), speakers=2)
    train(folder, SAVED)
    expected = folder / "expected"
    expected.mkdir()
    speak(folder)
    later = shutil.copytree(folder, folder.with_name(f"{folder.name}-resumed"))
    (expected / "resumed.json").write_text(json.dumps(resume(later), indent=1) + "\n")
    samples, rate = soundfile.read(folder / "said.wav", dtype="int16")
    soundfile.write(expected / "said.flac", samples, rate)
    (folder / "said.wav").unlink()
    for name in ("performance.html", "performance.json"):
        (folder / "run" / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "run" / "tensorboard", ignore_errors=True)
    for path in folder.rglob(".lock"):
        path.unlink()
    shutil.rmtree(later)


def train(folder: Path, steps: int) -> None:
    words = ["--data-path", str(folder / "corpus"), "--checkpoint-dir", str(folder / "run")]
    values = {**SETTINGS, "max_steps": steps}
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in values.items()]
    (folder / "settings.yaml").write_text("".join(lines))
    call("train", "--config", str(folder / "settings.yaml"), *words)


def speak(folder: Path) -> None:
    output = str(folder / "said.wav")
    call("synthesize", "--voice", str(folder / "run"), "--text", TEXT, "-o", output)


def resume(folder: Path) -> dict[str, list]:
    """Each variable after some more steps: its sha256, and its norm for other processors."""
    train(folder, RESUMED)
    arrays = load_state(saved_states(folder / "run" / "checkpoints")[-1]).arrays
    return {
        name: [hashlib.sha256(value.tobytes()).hexdigest(), float((value.astype("f8") ** 2).sum())]
        for name, value in sorted(arrays.items())
    }


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def call(*words: str) -> None:
    if code := main(list(words)):
        sys.exit(f"myxtts {' '.join(words)} ended with {code}")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
