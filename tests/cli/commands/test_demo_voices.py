"""The demonstration of many voices: its stages in order, and what it says of what they found."""

import json
from pathlib import Path

import pytest

from myxtts.cli.commands import demo
from myxtts.cli.main import main
from myxtts.training.ending import Ending
from myxtts.workflows import demo_voices
from myxtts.workflows.demo import DemoSettings
from myxtts.workflows.demo_voices import VoiceScore


def score(name: str, right: float, similarity: float = 0.5, pitch: float = 1.05) -> VoiceScore:
    return VoiceScore(name, right, 1.0, similarity, 0.75, 0.8, 0.2, pitch)


@pytest.fixture
def stages(monkeypatch) -> list[str]:
    """Stand-ins for the long stages, which note that they were called."""
    called = []

    def note(name: str, answer=None):
        return lambda *args, **kwargs: (called.append(name), answer)[1]

    monkeypatch.setattr(demo, "import_tensorflow", lambda: None)
    monkeypatch.setattr("myxtts.weights.get_weights", lambda name, folder: Path(folder) / name)
    monkeypatch.setattr(demo_voices, "make_corpus", note("corpus"))
    monkeypatch.setattr(demo_voices, "prepare_corpus", note("prepare"))
    monkeypatch.setattr(demo_voices, "train_vocoder", note("vocoder", Ending.FINISHED))
    monkeypatch.setattr(demo_voices, "train", note("train", Ending.FINISHED))
    seen = [score("rob", 1.0), score("m8", 1.0, pitch=float("nan"))]
    found = {"seen": seen, "unseen": [score("f4", 0.5, 0.4), score("iven4", 1.0)]}
    monkeypatch.setattr(demo_voices, "judge_voices", note("judge", found))
    return called


def test_both_models_are_trained_and_judged_and_all_figures_kept(stages, tmp_path, capsys):
    assert main(["demo-voices", str(tmp_path)]) == 0
    assert stages == ["corpus", "prepare", "vocoder", *["prepare", "train", "judge"] * 2]
    said = capsys.readouterr().out
    assert "plain, f4" in said and "style tokens, mean of 2 unseen" in said
    assert "plain, seen voices: right, as a share of the resynthesis': 1.000, target 0.95" in said
    # (.4 + .5) / 2 of .8
    assert (
        "plain, unseen voices: share of the natural similarity: 0.562, target 0.8: NOT met" in said
    )
    assert "plain, unseen voices: right: 0.750, target 0.6: met" in said
    off = "plain, seen voices: pitch off by 5.0%, target 10 %: met"
    assert f"{off}, but only 1 of 2 have a pitch" in said
    kept = json.loads((tmp_path / "voices.json").read_text())
    assert [one["name"] for one in kept["style tokens"]["unseen"]] == ["f4", "iven4"]
    assert [one["pitch_ratio"] for one in kept["plain"]["seen"]] == [1.05, None]


def test_an_interrupted_training_ends_it_and_says_how_to_resume(
    stages, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(demo_voices, "train", lambda config: Ending.SIGINT)
    assert main(["demo-voices", str(tmp_path)]) == 130
    assert "run the same command to resume" in capsys.readouterr().out
    assert "judge" not in stages


def test_an_interrupted_vocoder_ends_it_before_any_model_is_trained(
    stages, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(demo_voices, "train_vocoder", lambda config: Ending.SIGTERM)
    assert main(["demo-voices", str(tmp_path)]) == 130
    assert "stopped by SIGTERM; run the same command to resume" in capsys.readouterr().out
    assert stages == ["corpus", "prepare"]


def test_too_few_voices_are_rejectd(capsys):
    assert main(["demo-voices", "--speakers", "3"]) == 2
    assert "--speakers must be at least 16, not 3" in capsys.readouterr().err


def test_the_models_differ_in_their_style_tokens_alone(tmp_path):
    settings = DemoSettings(tmp_path, steps=10)
    styled, plain = (
        demo_voices.voices_config(settings, name, tmp_path / "weights.pt", use_gst)
        for name, use_gst in demo_voices.VARIANTS.items()
    )
    assert plain.model.speaker_encoder == demo_voices.ENCODER and plain.model.is_encoder_frozen
    assert (plain.model.use_gst, styled.model.use_gst) == (False, True)
    assert styled.model.use_gst == type(styled.model).use_gst  # the default comes first
    assert plain.data == styled.data
    assert plain.training.checkpoint_dir != styled.training.checkpoint_dir
