"""The wheel: it holds the whole package, and its commands run where no checkout is near."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "myxtts")


def run(*argv, cwd: Path) -> str:
    """The output of a command that sees neither this checkout nor the user's settings."""
    hidden = ("MYXTTS_", "PYTHON", "COV_", "COVERAGE_")
    environment = {name: x for name, x in os.environ.items() if not name.startswith(hidden)}
    words = [str(word) for word in argv]
    ended = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, f"{' '.join(words)}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools would pack what an earlier build left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", cwd=folder)
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The scripts of a new environment with the wheel and the dependencies of this one.

    A path in a .pth file brings the dependencies but does not run the .pth files that lie there,
    so an editable install of this checkout stays out of sight.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    scripts = folder / "bin"
    options = ("--python", scripts / "python", "install", "--quiet", "--no-deps", "--no-index")
    run(sys.executable, "-m", "pip", *options, wheel, cwd=folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def test_the_wheel_holds_every_file_of_the_package(wheel):
    package = [path for path in (ROOT / "myxtts").rglob("*") if path.is_file()]
    expected = {str(path.relative_to(ROOT)) for path in package if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == expected
    assert "myxtts/monitoring/page.html" in packed


def test_the_installed_commands_run_without_the_checkout(installed, tmp_path):
    where = run(installed / "python", "-c", "import myxtts; print(myxtts.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    myxtts = installed / "myxtts"
    assert "usage: myxtts demo" in run(myxtts, "demo", "--help", cwd=tmp_path)
    run(myxtts, "data", "demo", "corpus", "--speakers", 1, "--clauses", 3, cwd=tmp_path)
    assert "3 made, 0 reused, 0 dropped" in run(myxtts, "prepare", "corpus", cwd=tmp_path)
