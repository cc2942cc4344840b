"""What every test can rely on."""

import logging
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.make_corpus import make_corpus

# Some virtual machines show matrix instructions that they cannot do: bfloat16 would end the tests.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# As TensorFlow chooses, whether or not it runs already when a test trains: sums are rounded by it.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "0")

# The tests of `make test-fast`. They need no TensorFlow and little time; every other one is `slow`.
FAST = (
    *("audio/test_bounds.py", "audio/test_cleanup.py", "audio/test_griffin_lim.py"),
    *("audio/test_encode.py", "audio/test_io.py", "audio/test_speaker_features.py"),
    *("audio/test_slicing.py", "workflows/test_slices.py"),
    "cli/commands/test_config.py",
    *("bench/cluster/test_forecast.py", "bench/cluster/test_verdict.py"),
    *("cluster/test_presence.py", "cluster/test_rendezvous.py", "config"),
    *("data/batches/test_parts.py", "data/batches/test_plan.py", "data/corpus", "data/store"),
    *("evaluation/metrics", "workflows/test_gang.py"),
    *(
        "inference/test_sentences.py",
        "inference/test_subtitles.py",
        "monitoring",
        "test_layers.py",
        "test_project_files.py",
    ),
    *("test_reference.py", "text", "weights"),
)
SLOW_FIXTURES = {"browser", "ray_cluster"}
_TESTS = Path(__file__).parent
_FAST_PATHS = [_TESTS / name for name in FAST]


def pytest_configure(config):
    if _is_fast_run(config):
        sys.modules.setdefault("tensorflow", None)  # an import of it is an error from here on


def pytest_ignore_collect(collection_path, config):
    """Do not even import slow modules in a fast run: TensorFlow takes longer than all its tests."""
    is_slow = collection_path.suffix == ".py" and not _is_fast(collection_path)
    return True if is_slow and _is_fast_run(config) else None


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if not _is_fast(item.path) or SLOW_FIXTURES & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)


def _is_fast_run(config) -> bool:
    return config.option.markexpr == "not slow"


def _is_fast(path: Path) -> bool:
    return any(path.is_relative_to(fast) for fast in _FAST_PATHS)


@pytest.fixture(autouse=True)
def own_weights_folder(monkeypatch):
    """No test finds public weights by accident: `shared_weights` looks before this is unset."""
    monkeypatch.delenv("MYXTTS_WEIGHTS_DIR", raising=False)


@pytest.fixture(autouse=True)
def untouched_logger():
    """Commands set up the package's logger; the next test finds it as it was."""
    logger = logging.getLogger("myxtts")
    logger.handlers.clear()  # what a fixture of the module has set up is not for its tests
    logger.setLevel(logging.NOTSET)
    yield
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def usual_corpus() -> dict:
    """The settings of `make_corpus` for modules without `CORPUS`; a folder may have its own."""
    return {}


@pytest.fixture(scope="session")
def ray_cluster():
    """The node of a Ray cluster, with two cores; tests may add others, and remove them."""
    pytest.importorskip("ray", reason="Ray is not installed: the extra `cluster`")
    from tests.helpers.ray_cluster import start_cluster

    cluster = start_cluster()
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def shared_corpus(request, usual_corpus, tmp_path_factory) -> Path:
    """Recordings that the tests of a module share, and a cache if one of them makes it."""
    settings = getattr(request.module, "CORPUS", usual_corpus)
    return make_corpus(tmp_path_factory.mktemp("speech") / "corpus", **settings)


@pytest.fixture
def corpus(shared_corpus, tmp_path) -> Path:
    """A copy of these recordings to do anything with."""
    return Path(shutil.copytree(shared_corpus, tmp_path / "corpus"))
