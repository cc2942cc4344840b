import base64
import json
from dataclasses import replace

import pytest

from myxtts.evaluation.asr import error_rates
from myxtts.evaluation.report.report import Clip, ReportFacts, Score, score_rows, write_report

pytest.importorskip("matplotlib")
pytest.importorskip("jiwer")


@pytest.fixture
def scores():
    # Two of four words are wrong, and one of four in the ceiling.
    said = ["one two", "three four"]
    ceiling = error_rates(said, ["one two", "three for"])
    return (
        Score("model", error_rates(said, ["one too", "three"]), ceiling),
        Score("recordings", ceiling),
    )


@pytest.fixture
def facts(history, example, clip, scores):
    return ReportFacts(
        title="A voice & its figures",
        summary="It learned for 40 steps.",
        history=history,
        example=example,
        scores=scores,
        measures={"length ratio": 0.98765, "skipped sentences": 0},
        clips=(Clip("main voice", "one <two>", clip, "one too"),),
        folders={"All recordings": clip.parent},
        not_measured={"How natural it sounds": "No measure of it is installed."},
    )


def test_the_table_says_how_far_the_model_is_above_its_ceiling(scores):
    head, model, ceiling = score_rows(scores)
    assert (head[2], head[4]) == ("WER", "WER above")
    assert (*model[:2], model[4]) == ("model", "2", "+0.250")
    # Half of either sentence is wrong, so it is half of any draw of them; of the recordings it is
    # none of one and half of the other.
    assert model[2] == "0.500 [0.500, 0.500]"
    assert (ceiling[2], *ceiling[4:]) == ("0.250 [0.000, 0.500]", "", "")


def test_the_page_needs_no_other_file(tmp_path, facts, clip):
    page = write_report(tmp_path / "report", facts).read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 3
    recording = base64.b64encode(clip.read_bytes()).decode()
    assert f'src="data:audio/wav;base64,{recording}"' in page
    assert page.count("src=") == 4 and "href=" not in page


def test_the_page_escapes_what_was_said(tmp_path, facts):
    page = write_report(tmp_path / "report", facts).read_text(encoding="utf-8")
    assert "A voice &amp; its figures" in page
    assert "one &lt;two&gt;" in page and "<two>" not in page


def test_the_summary_tells_figures_and_what_was_not_measured(tmp_path, facts):
    write_report(tmp_path / "report", facts)
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "| recordings | 2 | 0.250 [0.000, 0.500] |" in text
    assert "| length ratio | 0.988 |\n| skipped sentences | 0 |" in text
    assert "Not measured: How natural it sounds. No measure of it is installed." in text
    assert "(../audio/one.wav): one <two>; heard: one too" in text
    # The sentence understood worst is the first: half of both, in their order.
    assert "| one two | one too | 1 |\n| three four | three | 1 |" in text
    for name in ("curve.png", "alignment.png", "mels.png"):
        assert f"]({name})" in text and (tmp_path / "report" / name).is_file()


def test_programs_can_read_the_figures(tmp_path, facts):
    write_report(tmp_path / "report", facts)
    found = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (found["steps"], found["mel_loss"], found["val_mel_loss"]) == (40, 1.0, 1.5)
    assert found["waiting_share"] == 0.02
    assert found["scores"][0]["wer"] == 0.5 and found["scores"][0]["deletions"] == 1
    assert found["scores"][1]["wer_interval"] == [0.0, 0.5]
    assert found["measures"] == {"length ratio": 0.98765, "skipped sentences": 0}


def test_without_a_recogniser_there_is_no_table_of_errors(tmp_path, facts):
    page = write_report(tmp_path / "report", replace(facts, scores=()))
    assert "WER" not in page.read_text(encoding="utf-8")
