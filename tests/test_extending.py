"""What one row of a table is enough for: each new thing shows up everywhere by itself."""

import numpy as np
import pytest

from myxtts.cli.main import main
from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.evaluator import evaluate
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.table import HIGHER, METRICS, Metric
from myxtts.evaluation.report.figures import figures_of
from myxtts.evaluation.report.page import write_evaluation
from myxtts.evaluation.report.plots import Example
from myxtts.evaluation.report.rows import measure_rows
from myxtts.evaluation.report.summary import Report, write_report

# A metric: how often samples change their sign.


def crossings(samples: np.ndarray, rate: int) -> float:
    return float(np.mean(np.diff(np.sign(samples)) != 0) * rate)


@pytest.fixture
def toy(monkeypatch) -> str:
    row = Metric("sign changes", "Hz", 1, HIGHER, (), lambda session: session.each(crossings))
    monkeypatch.setitem(METRICS, "toy", row)
    return row.label


@pytest.fixture
def evaluation(toy):
    wave = np.sin(np.arange(4000) / 9).astype(np.float32)
    sentences = [Sentence(f"s{n}", f"text {n}", wave, "anna", wave) for n in range(2)]
    subject = Subject("speech", "en", AudioSpec(), sentences)
    return evaluate(subject, Judges(), metrics=["peak", "toy"])


def test_a_new_metric_is_in_the_table_the_figures_and_the_page(toy, evaluation, tmp_path):
    assert [row[0] for row in measure_rows(evaluation)] == ["metric", "peak", "sign changes, Hz"]
    figures = figures_of(evaluation)
    assert figures["measures"]["toy"]["recordings"]["sentences"] == 2
    assert figures["sentences"][0]["toy"] > 0
    assert toy in write_evaluation(tmp_path, evaluation).read_text(encoding="utf-8")


def test_a_new_metric_is_on_the_page_of_a_run(toy, evaluation, tmp_path):
    pytest.importorskip("matplotlib")
    history = tmp_path / "history.jsonl"
    history.write_text('{"step": 1, "mel_loss": 1.0}\n')
    mel = np.zeros((2, 8))
    example = Example("text", ("a", "b"), np.array([0, 1]), mel, mel, 0.01)
    report = Report("A run", "", history, example, {"main voice": evaluation})
    assert toy in write_report(tmp_path, report).read_text(encoding="utf-8")


def test_a_new_metric_can_keep_the_best_voice_of_a_training(toy, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    choices = capsys.readouterr().out.partition("--evaluation-metric {")[2].partition("}")[0]
    names = choices.replace("\n", "").replace(" ", "").split(",")
    assert {"wer", "mcd", "toy", "loss"} <= set(names) and "loudness" not in names


def test_training_keeps_the_voice_with_more_of_what_is_better_higher(toy):
    from myxtts.workflows.evaluate_training import VoiceEvaluator

    assert {"toy", "mos"} <= VoiceEvaluator(Judges(), 1, "en").higher_is_better
