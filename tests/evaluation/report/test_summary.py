import json
from dataclasses import replace

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.evaluator import Evaluation, evaluate
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.report.summary import Report, compared_rows, write_report

pytest.importorskip("matplotlib")
pytest.importorskip("jiwer")

TEXTS = ("one <two>", "three four")
# Of each recording, by its length.
HEARD = {4000: "one too", 4001: "three", 4002: "one two", 4003: "three for"}


class Ear:
    name = "an ear"

    def transcribe_many(self, recordings, progress=None):
        return [HEARD[len(samples)] for samples, _ in recordings]


def wave(length: int) -> np.ndarray:
    return (np.sin(np.arange(length) / 9) / 2).astype(np.float32)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Two of four words are wrong, and one of four in the recordings."""
    sentences = [
        Sentence(f"{n}", text, wave(4000 + n), "anna", wave(4002 + n))
        for n, text in enumerate(TEXTS)
    ]
    subject = Subject("speech", "en", AudioSpec(), sentences)
    return evaluate(subject, Judges(Ear()), metrics=["wer", "cer", "peak"])


@pytest.fixture
def report(history, example, evaluation, tmp_path):
    return Report(
        title="A voice & its figures",
        summary="It learned for 40 steps.",
        history=history,
        example=example,
        evaluations={"main voice": evaluation},
        audio={"main voice": tmp_path / "audio"},
        verdicts=["WER: met"],
        facts={"length ratio": 0.98765, "skipped sentences": 0},
        folders={"All recordings": tmp_path / "audio"},
        not_measured={"How natural it sounds": "No measure of it is installed."},
    )


def test_the_table_shows_how_far_the_model_is_above_the_recordings(evaluation):
    head, model, ceiling = compared_rows({"main voice": evaluation})
    assert (head[2], head[4]) == ("WER", "WER above")
    assert (*model[:2], model[4]) == ("model, main voice", "2", "+0.250")
    # Half of either sentence is wrong, so it is half of any draw of them; of the recordings it is
    # none of one and half of the other.
    assert model[2] == "0.500 [0.500, 0.500]"
    assert (ceiling[2], *ceiling[4:]) == ("0.250 [0.000, 0.500]", "", "")


def test_recordings_that_two_evaluations_share_are_shown_once(evaluation):
    rows = compared_rows({"istft": evaluation, "Griffin-Lim": evaluation})
    assert [row[0] for row in rows[1:]] == [
        "model, istft",
        "recordings, istft",
        "model, Griffin-Lim",
    ]


def test_the_page_is_self_contained_and_escapes_texts(tmp_path, report):
    page = write_report(tmp_path / "report", report).read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 3
    assert page.count('src="data:audio/wav;base64,') == 2
    assert page.count("src=") == 5 and "href=" not in page
    assert "A voice &amp; its figures" in page
    assert "one &lt;two&gt;" in page and "<two>" not in page
    assert "WER: met" in page and '<th scope="row" dir="auto">peak</th>' in page
    assert (tmp_path / "report" / "summary.png").stat().st_size > 5000


def test_the_summary_has_the_figures_and_what_was_not_measured(tmp_path, report):
    write_report(tmp_path / "report", report)
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "| recordings, main voice | 2 | 0.250 [0.000, 0.500] |" in text
    assert "| length ratio | 0.988 |\n| skipped sentences | 0 |" in text
    assert "Not measured: How natural it sounds. No measure of it is installed." in text
    assert "(../audio/0001.wav): one <two>; heard: one too" in text
    # The sentence understood worst is the first: half of both, in their order.
    assert "| one two | one too | 1 |\n| three four | three | 1 |" in text
    for name in ("curve.png", "alignment.png", "mels.png"):
        assert f"]({name})" in text and (tmp_path / "report" / name).is_file()


def test_programs_can_read_the_figures(tmp_path, report):
    write_report(tmp_path / "report", report)
    found = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (found["steps"], found["mel_loss"], found["val_mel_loss"]) == (40, 1.0, 1.5)
    assert found["waiting_share"] == 0.02
    assert found["scores"][0]["wer"] == 0.5 and found["scores"][0]["deletions"] == 1
    assert found["scores"][1]["wer_interval"] == [0.0, 0.5]
    assert found["measures"] == {"length ratio": 0.98765, "skipped sentences": 0}
    assert found["clips"][0] == {"what": "main voice", "text": "one <two>", "heard": "one too"}


def test_without_an_asr_there_is_no_table_of_errors(tmp_path, report, evaluation):
    silent = replace(evaluation, measures={"peak": evaluation.measures["peak"]}, heard={})
    page = write_report(
        tmp_path / "report", replace(report, evaluations={"v": silent}, verdicts=())
    )
    assert "WER" not in page.read_text(encoding="utf-8")
