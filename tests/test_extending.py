"""What one row of a table is enough for: each new thing shows up everywhere by itself."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from myxtts.cli.main import main
from myxtts.config.audio_spec import AudioSpec
from myxtts.data.corpus.corpus import read_corpus
from myxtts.data.corpus.dialects import DIALECTS
from myxtts.data.corpus.listing import Listing, Source
from myxtts.data.corpus.table_columns import MetadataRow
from myxtts.evaluation.evaluator import evaluate
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.table import HIGHER, METRICS, NEAR_ONE, Metric
from myxtts.evaluation.report.figures import figures_of
from myxtts.evaluation.report.page import write_evaluation
from myxtts.evaluation.report.plots import Example
from myxtts.evaluation.report.rows import measure_rows
from myxtts.evaluation.report.summary import Report, write_report
from tests.helpers.make_corpus import make_corpus

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


def test_training_keeps_the_voice_nearest_to_a_target(monkeypatch):
    from myxtts.workflows.evaluate_training import VoiceEvaluator, metric_choices

    row = Metric("sign changes", "", 1, NEAR_ONE, (), lambda session: session.each(crossings))
    monkeypatch.setitem(METRICS, "toy", row)
    assert "toy_distance" in metric_choices() and "toy" not in metric_choices()
    assert "toy_distance" not in VoiceEvaluator(Judges(), 1, "en").higher_is_better


# A corpus layout: `PROMPTS` in the corpus folder, a line `( id "text" )` for each recording.


def read_prompts(source: Source) -> Listing | None:
    path = source.path or source.locator.home + "PROMPTS"
    if not path.endswith("PROMPTS") or not os.path.exists(path):
        return None
    found = re.findall(r'^\( (\S+) "(.*)" \)$', Path(path).read_text(), re.MULTILINE)
    rows = [MetadataRow(line, name, text) for line, (name, text) in enumerate(found, 1)]
    return Listing("PROMPTS", "PROMPTS: ids and quoted texts", source.locator, rows)


@pytest.fixture
def prompts(monkeypatch, tmp_path) -> Path:
    monkeypatch.setitem(DIALECTS, "prompts", read_prompts)
    corpus = make_corpus(tmp_path / "corpus", 4, seconds=(0.6, 0.7))
    names = sorted(path.stem for path in (corpus / "wavs").iterdir())
    lines = [f'( {name} "Sentence {letter}." )' for name, letter in zip(names, "ABCD", strict=True)]
    (corpus / "metadata.csv").unlink()
    (corpus / "PROMPTS").write_text("\n".join(lines) + "\n")
    return corpus


def test_a_new_corpus_layout_is_recognised_and_read(prompts, capsys):
    corpus = read_corpus(prompts)
    texts = [utterance.text for utterance in corpus.utterances]
    assert texts == ["Sentence A.", "Sentence B.", "Sentence C.", "Sentence D."]
    assert main(["data", "check", str(prompts)]) == 0
    assert "PROMPTS: ids and quoted texts" in capsys.readouterr().out


def test_a_new_corpus_layout_reads_its_file_where_it_is_named(prompts):
    (prompts / "metadata.csv").write_text("utt-0000|Another text.\n")
    assert read_corpus(prompts, metadata_train="PROMPTS").dialect.startswith("PROMPTS")


def test_what_is_not_in_a_new_corpus_layout_is_read_as_before(prompts):
    (prompts / "PROMPTS").rename(prompts / "metadata.csv")
    (prompts / "metadata.csv").write_text("utt-0000|The usual table.\nutt-0001|Two lines of it.\n")
    assert read_corpus(prompts).dialect.startswith("metadata.csv: a table with |")
