"""The server that most tests share: nothing that they do changes it for the others."""

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: the extra `serve`")

from tests.helpers.speech_server import running  # noqa: E402


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("clones")) as found:
        yield found
