"""Every command looks for public weights in one folder, which the environment may name."""

from pathlib import Path

import pytest

from myxtts.checkpoints.speaker_encoders import encoder_path
from myxtts.checkpoints.vocoders import named_vocoder, public_vocoder
from myxtts.cli.main import main
from myxtts.config.config import ModelConfig
from myxtts.errors import UserError
from myxtts.weights import default_folder
from myxtts.workflows.demo import DemoSettings, fetch
from myxtts.workflows.judges import find_judges

TRAINED = ModelConfig(use_pretrained_speaker_encoder=True, speaker_encoder_type="resemblyzer")


def complaint(find) -> str:
    with pytest.raises(UserError) as caught:
        find()
    return str(caught.value)


def fetched(name: str) -> str:
    lines = []
    fetch(DemoSettings(Path("demo")), name, lines.append)
    return "\n".join(lines)


VERBS = {
    "train": lambda capsys: complaint(lambda: encoder_path(TRAINED)),
    "train-vocoder": lambda capsys: complaint(lambda: named_vocoder("hifigan_universal")),
    "synthesize": lambda capsys: complaint(lambda: public_vocoder("hifigan_ljspeech")),
    "evaluate": lambda capsys: str(find_judges("fa", None, default_folder()).absent),
    "weights": lambda capsys: (main(["weights", "get", "resemblyzer"]), capsys.readouterr())[1].err,
    "demo": lambda capsys: fetched("resemblyzer"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_environment_names_the_folder_of(verb, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(folder))
    if verb in ("weights", "demo"):  # which would fetch what is missing
        (folder / "resemblyzer.pt").write_text("another file")
    assert str(folder) in VERBS[verb](capsys)
