"""The table, the figures and the page of a given evaluation."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.evaluator import Evaluation, Measure
from myxtts.evaluation.metrics.confidence import Interval, interval
from myxtts.evaluation.metrics.robustness import Attempt, Faults
from myxtts.evaluation.metrics.session import Sentence, Subject
from myxtts.evaluation.metrics.speaker import SpeakerFindings, VoiceCosines, VoicePlace
from myxtts.evaluation.report.figures import figures_of
from myxtts.evaluation.report.page import write_evaluation
from myxtts.evaluation.report.rows import (
    absences,
    fault_rows,
    measure_rows,
    speaker_facts,
    speaker_rows,
)
from myxtts.evaluation.report.tables import aligned
from tests.helpers.browser import Browser

NAN = float("nan")
WAVE = np.sin(np.arange(4000) / 9).astype(np.float32) / 2


def measure(name: str, **values) -> Measure:
    arrays = {source: np.array(some) for source, some in values.items()}
    return Measure(name, arrays, {source: interval(some) for source, some in arrays.items()})


def speakers(among: VoiceCosines, place: VoicePlace) -> SpeakerFindings:
    return SpeakerFindings(("anna",), {}, {}, np.zeros(4, int), among, place)


@pytest.fixture
def evaluation() -> Evaluation:
    said = ["one <two>", "three four", "سلام دنیا", "five six"]
    sentences = [Sentence(f"s{n}", text, WAVE, "anna", WAVE, WAVE) for n, text in enumerate(said)]
    cer = {"speech": [0.0, 0.5, 0.1, 1.0], "recordings": [0.0, 0.0, 0.0, 0.2]}
    measures = {
        "cer": measure("cer", **cer),
        "mcd": measure("mcd", speech=[2.0, 3.0, 4.0, NAN], copies=[1.0, 1.0, 1.0, 1.0]),
        "similarity": measure("similarity", speech=[0.7, 0.8, 0.6, 0.9]),
        "peak": measure("peak", speech=[0.5, 0.5, 0.5, 0.5]),
    }
    tokens = np.array([1, 2])
    return Evaluation(
        Subject("A voice & more", "en", AudioSpec(), sentences, "istft"),
        measures,
        {"speech": ["one", "three", "سلام", ""], "recordings": ["one two", "x", "سلام", "y"]},
        [
            Attempt("numbers", "1 <2>", tokens, tokens, 3, "one one two"),
            Attempt("names", "Ann", tokens, tokens, 3, "ann"),
        ],
        [Faults("numbers", False, True, "one"), Faults("names", False, False, "")],
        speakers(
            VoiceCosines(np.array([0.7, 0.8]), np.array([0.1, 0.2]), 0.45, 0.0),
            VoicePlace(4, 0.75, 50.0, 100.0, 1.0),
        ),
        {"listening": "an ear"},
        {"rating": "its weights are not here"},
        {"listening": 1.5, "levels": 0.1},
    )


def test_the_table_shows_each_figure_with_its_interval(evaluation):
    exact = Interval(0.25, 0.5, 0.75, 4)
    named = replace(evaluation.measures["cer"], intervals={"speech": exact, "recordings": exact})
    rows = measure_rows(replace(evaluation, measures={**evaluation.measures, "cer": named}))
    assert rows[0] == ("metric", "speech", "recordings", "resynthesis by istft")
    assert rows[1] == ("CER", "0.500 [0.250, 0.750]", "0.500 [0.250, 0.750]", "")
    assert rows[2][0] == "MCD, dB" and rows[2][1].startswith("3.00 [") and rows[2][2] == ""


def test_a_single_sentence_has_no_bounds(evaluation):
    one = Measure("cer", {"speech": np.array([0.5])}, {"speech": interval([0.5])})
    none = Measure("mcd", {"speech": np.array([NAN])}, {"speech": interval([NAN])})
    rows = measure_rows(replace(evaluation, measures={"cer": one, "mcd": none}))
    assert rows == [("metric", "speech"), ("CER", "0.500"), ("MCD, dB", "")]


def test_missing_metrics_are_listed_with_their_reason(evaluation):
    assert absences(evaluation) == [
        "not measured: DNSMOS overall, DNSMOS signal, DNSMOS background: its weights are not here"
    ]
    alone = {"peak": evaluation.measures["peak"]}
    assert absences(replace(evaluation, measures=alone))[1].startswith("not measured: ceilings")


def test_speakers_and_faults_have_their_own_tables(evaluation):
    assert speaker_rows(evaluation)[1][0] == "of one speaker"
    assert speaker_rows(evaluation)[2][2] == "0.150"  # the median of .1 and .2
    assert "percentile 50" in speaker_facts(evaluation)[0]
    assert fault_rows(evaluation) == [
        ("hard texts", "texts", "skipped", "repeated", "endless", "faulty"),
        ("numbers", "1", "0", "1", "1", "1"),
        ("names", "1", "0", "0", "0", "0"),
        ("all", "2", "0", "1", "1", "1"),
    ]
    none = replace(evaluation, speakers=None, faults=())
    assert speaker_rows(none) == speaker_facts(none) == fault_rows(none) == []


def test_a_single_speaker_has_no_row_of_different_speakers(evaluation):
    alone = VoiceCosines(np.array([0.7, 0.8]), np.zeros(0), NAN, NAN)
    place = VoicePlace(4, 0.75, 40.0, NAN, NAN)
    found = replace(evaluation, speakers=speakers(alone, place))
    assert [row[0] for row in speaker_rows(found)] == ["cosines of recordings", "of one speaker"]
    assert len(speaker_facts(found)) == 1


def test_programs_can_read_the_figures(evaluation, tmp_path):
    write_evaluation(tmp_path, evaluation)
    found = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert found == figures_of(evaluation)
    assert found["measures"]["cer"]["speech"]["value"] == pytest.approx(0.4)
    assert found["sentences"][3]["mcd"] is None  # JSON has no word for NaN
    assert found["sentences"][1]["heard"] == {"speech": "three", "recordings": "x"}
    assert found["hard_texts"][0]["repeated"] == 1
    assert found["attempts"][0]["heard"] == "one one two"
    assert found["not_measured"] == {"rating": "its weights are not here"}


def test_the_page_plays_the_best_and_the_worst_and_is_self_contained(evaluation, tmp_path):
    page = write_evaluation(tmp_path, evaluation).read_text(encoding="utf-8")
    # Four sentences, each once, with its recording.
    assert page.count('src="data:audio/wav;base64,') == 8 and page.count("src=") == 8
    assert "http" not in page and "href" not in page
    order = [page.index(f"<b>{text}") for text in ("one &lt;two", "سلام", "three", "five")]
    assert order == sorted(order)  # by CER: 0, .1, .5, 1
    assert "A voice &amp; more" in page and "<two>" not in page and "1 <2>" not in page
    assert 'heard: <i dir="auto">(nothing)</i>' in page
    assert page.count("<svg") == 3  # CER, MCD and the cosines


def test_equal_values_can_be_drawn(evaluation, tmp_path):
    same = {"cer": measure("cer", speech=[0.5] * 4)}
    page = write_evaluation(tmp_path, replace(evaluation, measures=same, speakers=None))
    points = re.findall(r'points="([^"]*)"', page.read_text(encoding="utf-8"))
    assert len(points) == 1 and "nan" not in points[0]


def test_columns_are_aligned():
    assert aligned([("a", "one"), ("bcd", "2")]) == "a    one\nbcd    2"


@pytest.mark.parametrize("width, dark", [(360, False), (1200, True)])
def test_a_browser_shows_the_page_without_horizontal_scrolling(evaluation, tmp_path, width, dark):
    page = write_evaluation(tmp_path, evaluation)
    with Browser() as browser:
        tab = browser.open(page, width, dark)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.problems == []
        assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
        heights = tab.evaluate("[...document.querySelectorAll('svg')].map(x => x.clientHeight)")
        assert len(heights) == 3 and min(heights) > 50


def test_a_distribution_of_ratios_shows_where_they_are_natural(evaluation, tmp_path):
    ratios = measure("mel_variance", speech=[0.25, 0.5, 0.75, 0.5], copies=[1.5, 1.0, 1.0, 1.25])
    given = replace(evaluation, measures={**evaluation.measures, "mel_variance": ratios})
    assert measure_rows(given)[-1][0] == "mel variance (natural: 1)"
    page = write_evaluation(tmp_path, given).read_text(encoding="utf-8")
    # From .25 to 1.5 in 320 units, 1 is at 192; the others have no target.
    assert re.findall(r'class="target" d="M([\d.]+) ', page) == ["192.0"]
