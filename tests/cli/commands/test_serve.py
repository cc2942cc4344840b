"""`myxtts serve`: what it refuses, and a server of an exported voice without TensorFlow."""

import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from myxtts.cli.main import main
from tests.cli.conftest import ROOT
from tests.helpers.small_voice import small_run

pytest.importorskip("fastapi", reason="FastAPI is not installed: the extra `serve`")
pytest.importorskip("tf2onnx", reason="tf2onnx is not installed: the extra `export`")

SECONDS = 60
SERVE = """
import sys
for name in ("tensorflow", "keras"):
    sys.modules[name] = None  # an import of it is an error from here on
from myxtts.cli.main import main
sys.exit(main(["serve", *sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    from myxtts.workflows.export import export
    from myxtts.workflows.exports.settings import ExportSettings

    folder = tmp_path_factory.mktemp("voices")
    run, target = small_run(folder / "small", languages=("en",)), folder / "exported"
    export("onnx", ExportSettings(str(run), target, licence="CC0"), lambda line: None)
    return target


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_exported_voice_is_served_without_tensorflow(exported, tmp_path, number):
    words = ["--voice", str(exported), "--port", "0", "--clones", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MYXTTS_API_KEY": "a secret key"},
    )
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), process.stderr.read()
        headers = {"Authorization": "Bearer a secret key"}
        with httpx.Client(base_url=url, headers=headers, timeout=SECONDS) as client:
            (voice, *_) = client.get("/v1/audio/voices").json()["voices"]
            assert (voice["id"], voice["languages"]) == ("exported", ["en"])
            asked = {"model": "tts-1", "voice": "exported", "input": "Hello.", "seed": 1}
            answer = client.post("/v1/audio/speech", json={**asked, "response_format": "wav"})
            assert answer.status_code == 200 and len(answer.content) > 1000
        process.send_signal(number)
        _, said = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGTERM)
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words, said",
    [
        (["--voice", "nowhere"], "nowhere"),
        (["--host", "0.0.0.0"], "--api-key"),
        (["--host", "0.0.0.0", "--api-key", "short"], "at least 8"),
        (["--port", "99999"], "0 to 65,535"),
        (["--wyoming", "0.0.0.0:10200"], "Wyoming knows no keys"),
        (["--max-batch", "0"], "--max-batch must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(capsys, words, said, monkeypatch):
    monkeypatch.delenv("MYXTTS_API_KEY", raising=False)
    assert main(["serve", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_port_that_is_taken_is_said(exported, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--voice", str(exported), "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["x", "70000", "1:x"])
def test_a_port_is_a_number(port, capsys):
    with pytest.raises(SystemExit):
        main(["serve", "--wyoming", port])
    assert "neither a port nor HOST:PORT" in capsys.readouterr().err
