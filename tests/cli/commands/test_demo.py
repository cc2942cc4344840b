import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from myxtts.cli.commands import demo
from myxtts.cli.main import main
from myxtts.config.audio_spec import AudioSpec
from myxtts.data.features.corpora import read_corpora
from myxtts.demo_corpus.corpus import choose_voices
from myxtts.evaluation import alignment, asr
from myxtts.evaluation.metrics import spectral
from myxtts.evaluation.metrics.session import Sentence, Subject
from myxtts.evaluation.report.summary import CLIPS
from myxtts.text.tokenizer import Tokenizer
from myxtts.training.ending import Ending
from myxtts.workflows import demo as workflow
from myxtts.workflows import judges
from myxtts.workflows.speaking import write_all

pytest.importorskip("matplotlib")
pytest.importorskip("jiwer")

MEL = np.zeros((20, 80))


@pytest.fixture
def run(tmp_path, capsys):
    """Run the demo; return its exit code, its output and its complaints."""

    def start(*words) -> tuple[int, str, str]:
        code = main(["demo", str(tmp_path / "demo"), *map(str, words)])
        return code, *capsys.readouterr()

    return start


class Ear:
    """Transcribes every sentence of the demo correctly but `b`."""

    name, identity = "an ear", "an ear, version 1"

    def transcribe_many(self, recordings, progress=None):
        return [demo_sentences(16)[int(round(100 * float(one[0])))] for one, _ in recordings]


def demo_sentences(count: int) -> list[str]:
    return [f"sentence {letter}" for letter in "abcdefghijklmnop"[:count]]


@pytest.fixture
def stages(monkeypatch):
    """Replace what takes long by what is known; return the stages in the order they ran."""
    done = []

    def stage(name, result):
        monkeypatch.setattr(workflow, name, lambda *args: done.append(name) or result(*args))

    def speak(settings, config, announce):
        sentences = demo_sentences(settings.sentences)
        main = make_spoken(settings, "main voice", sentences, "istft")
        recorded = [one.recorded for one in main.sentences]
        other = "main voice, Griffin-Lim"
        return voice(settings.language), {
            "main voice": main,
            other: make_spoken(settings, other, sentences, "Griffin-Lim", recorded),
            "second voice": make_spoken(
                settings, "second voice", sentences[: workflow.CLONED], "", None
            ),
        }

    monkeypatch.setattr(demo, "import_tensorflow", lambda: None)
    stage("make_corpus", lambda settings: None)
    stage("prepare_corpus", lambda config, announce: None)
    stage("train", lambda config: write_history(config) or Ending.FINISHED)
    stage("train_vocoder", lambda config: Ending.FINISHED)
    stage("speak", speak)
    monkeypatch.setattr(workflow, "fetch", lambda *args: None)
    monkeypatch.setattr(alignment, "align", aligned)
    monkeypatch.setitem(asr.ASRS, "en", Ear)
    pitch = spectral.PitchLikeness(1.0, 0.0, 0.0)
    same = spectral.SpeechLikeness(0.0, pitch, 1.0, 1.0)
    monkeypatch.setattr(spectral, "compare_speech", lambda spoken, recorded, spec: same)
    return done


def voice(language: str) -> SimpleNamespace:
    return SimpleNamespace(tokenizer=Tokenizer.build((language,), "characters"), engine="keras")


def wave(number: int) -> np.ndarray:
    """The first sample is the number of the sentence; that of `b` is of the letter `p`."""
    samples = np.sin(np.arange(5120) / 9).astype(np.float32) / 2
    samples[0] = 0.15 if number == 1 else number / 100
    return samples


def make_spoken(settings, title: str, texts, vocoder: str, recorded=None) -> Subject:
    waves = [wave(number) for number in range(len(texts))]
    recorded = recorded or [one.copy() for one in waves]
    resynthesised = recorded if vocoder else [None] * len(texts)
    sentences = [
        Sentence(f"{n}", text, waves[n], "rob", recorded[n], resynthesised[n], None, MEL)
        for n, text in enumerate(texts)
    ]
    write_all(workflow.audio_folder(settings, title), waves, 22050)
    return Subject(title, settings.language, AudioSpec(), sentences, vocoder, most_rated=5)


def aligned(voice, mels, texts, language) -> list[alignment.Alignment]:
    frames = np.minimum(np.arange(20) // 4, 3)
    return [alignment.Alignment(np.arange(4), frames, np.array([4.0, 5, 5, 8])) for _ in texts]


def write_history(config) -> None:
    folder = Path(config.training.checkpoint_dir)
    folder.mkdir(parents=True)
    entry = {"step": 20, "mel_loss": 1.5, "data_ms": 1.0, "compute_ms": 3.0}
    (folder / "history.jsonl").write_text(json.dumps(entry) + "\n")


def test_the_demo_ends_with_its_figures_and_where_they_are(run, stages, tmp_path):
    code, out, err = run("--sentences", 12, "--steps", 20)
    assert (code, err) == (0, "")
    assert stages == ["make_corpus", "prepare_corpus", "train", "train_vocoder", "speak"]
    # Twelve sentences of two words, of which one is misheard in the second; 1 of 20 of ten.
    assert "model, main voice                      12  0.042" in out
    assert "model, second voice                    10  0.050" in out
    assert "model, main voice, Griffin-Lim         12  0.042" in out
    assert "recordings through istft" in out and "recordings through Griffin-Lim" in out
    assert "DNSMOS" not in out.partition("metric")[0]  # which nobody could fetch
    assert "WER +0.000 above the recordings', target 0.1: met" in out
    assert "skipped sentences: 0\nendless sentences: 0\n" in out
    assert f"report  {tmp_path / 'demo' / 'report' / 'report.html'}" in out
    assert "in all" in out.splitlines()[-1]


def test_the_report_has_it_all_in_a_page_figures_and_a_picture(run, stages, tmp_path):
    run("--sentences", 12, "--steps", 20)
    folder = tmp_path / "demo" / "report"
    figures = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert [score["sentences"] for score in figures["scores"]] == [12] * 5 + [10] * 2
    assert len(figures["clips"]) == 3 * CLIPS
    assert figures["clips"][0]["heard"] == "sentence a"
    assert {"train, seconds", "speak, seconds", "judge, seconds"} <= figures["measures"].keys()
    assert figures["measures"]["share of training that waited for data"] == 0.25
    assert (folder / "summary.png").stat().st_size > 5000
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:audio/wav;base64,') == 3 * CLIPS


def settings(folder, **changed) -> workflow.DemoSettings:
    return workflow.DemoSettings(folder / "demo", **changed)


def test_a_shorter_run_leaves_no_older_recordings(tmp_path):
    write_all(tmp_path, [np.zeros(10)] * 3, 22050)
    write_all(tmp_path, [np.zeros(10)], 22050)
    assert [path.name for path in tmp_path.iterdir()] == ["0001.wav"]


def test_a_language_without_an_asr_says_so(run, stages, tmp_path):
    code, out, _ = run("--language", "fa", "--sentences", 12)
    assert code == 0
    assert "WER +" not in out
    assert "not measured: What is understood (WER, CER). There is no ASR for 'fa'" in out
    assert "length ratio, spoken / recorded: 1\n" in out
    assert "alignments monotonic and complete: 12 of 12" in out


def test_a_training_that_was_interrupted_ends_the_demo(run, stages, monkeypatch):
    monkeypatch.setattr(workflow, "train", lambda config: Ending.SIGTERM)
    code, out, _ = run()
    assert code == 130
    assert "stopped by SIGTERM; run the same command to resume" in out
    assert "speak" not in stages


def test_a_vocoder_that_was_interrupted_ends_it_too(run, stages, monkeypatch):
    monkeypatch.setattr(workflow, "train_vocoder", lambda config: Ending.SIGINT)
    code, out, _ = run()
    assert code == 130 and "stopped by SIGINT" in out
    assert "speak" not in stages


def test_speech_is_rated_in_recordings_that_are_long_enough(run, stages, monkeypatch, tmp_path):
    from myxtts.evaluation.metrics import quality

    rated = []

    class Judge:
        name, identity = "a rater", "a rater, version 1"

        def score_many(self, recordings, progress=None):
            rated.append([len(samples) / rate for samples, rate in recordings])
            return [quality.QualityScore(4.0, 4.0, 3.25) for _ in recordings]

    monkeypatch.setattr(judges, "_present", lambda name, weights: tmp_path / name)
    monkeypatch.setattr(quality.Dnsmos, "open", lambda path: Judge())
    _, out, _ = run("--sentences", 12)
    assert out.partition("\nmetric")[0].count(" 3.25\n") == 7  # each row of the first table
    assert "DNSMOS, which rates telephony, gives a hint" in out


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("--speakers", 1), "--speakers must be at least 2, not 1"),
        (("--steps", 0), "--steps must be at least 1, not 0"),
        (("--vocoder-steps", 0), "--vocoder-steps must be at least 1, not 0"),
        (("--sentences", -3), "--sentences must be at least 1, not -3"),
    ],
)
def test_nonsense_is_rejectd(run, stages, words, complaint):
    code, _, err = run(*words)
    assert code == 2
    assert complaint in err
    assert stages == []


def test_the_model_is_tiny_and_speaks_phonemes(tmp_path):
    config = workflow.demo_config(settings(tmp_path, steps=70, language="fa"))
    assert (config.model.model_size, config.model.decoder_dim) == ("tiny", 192)
    assert (config.data.text_units, config.data.language) == ("phonemes", "fa")
    assert config.training.max_steps == 70
    assert config.data.dataset_path == str(tmp_path / "demo" / "corpus")


def test_the_reference_is_a_recording_that_was_not_trained_on(tmp_path):
    pytest.importorskip("espeakng_loader")
    given = settings(tmp_path, clauses=40)
    workflow.make_corpus(given)
    config = workflow.demo_config(given)
    config.data.val_fraction = 0.2
    held_out = [one.audio for one in read_corpora(config.data)[0].val if one.speaker == "f3"]
    longest = max(held_out, key=lambda path: path.stat().st_size)
    assert workflow.find_reference(config, "f3") == longest


def test_recordings_follow_the_order_of_the_sentences(tmp_path):
    pytest.importorskip("espeakng_loader")
    (first,) = choose_voices("en", 1)
    sentences = ["Yes.", "This is a much longer sentence, is it not?"]
    short, long = workflow.record(settings(tmp_path), first, sentences, 22050).values()
    assert 2 * len(short) < len(long)
    # Each begins and ends with .1 s of silence, as the corpus does.
    assert not short[:2205].any() and short[2205:2300].any()


def test_the_report_of_persian_counts_the_ezafes_that_are_heard():
    tokenizer = SimpleNamespace(added_sounds=lambda text, language: [1, 3])
    sentence = SimpleNamespace(text="one", durations=np.array([9, 1, 9, 5]))
    aligned_sentence = SimpleNamespace(aligned_durations=np.array([9, 3, 9, 5]))
    subject = SimpleNamespace(sentences=[sentence], alignments=[aligned_sentence], language="fa")
    counted = workflow.ezafes(
        SimpleNamespace(tokenizer=tokenizer), SimpleNamespace(subject=subject)
    )
    assert counted == {
        "ezafes longer than 2 frames in the recordings": "2 of 2",
        "ezafes longer than 2 frames in the speech": "1 of 2",
    }
    tokenizer.added_sounds = lambda text, language: []
    assert not workflow.ezafes(
        SimpleNamespace(tokenizer=tokenizer), SimpleNamespace(subject=subject)
    )
