"""`myxtts evaluate` around a voice that needs no training, and the judges that training asks."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from myxtts import evaluate
from myxtts.config.config import XTTSConfig
from myxtts.config.io import save_config
from myxtts.data.corpus.corpus import read_corpus
from myxtts.errors import UserError
from myxtts.evaluation import asr
from myxtts.evaluation.metrics.session import Judges
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows import evaluate_voice
from myxtts.workflows.evaluate_training import (
    VoiceEvaluator,
    check_metric,
    path_of,
    training_evaluator,
)
from tests.helpers.fake_voice import FRAMES_PER_TOKEN, fake_voice
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config

pytest.importorskip("jiwer")
pytest.importorskip("pystoi")

HEARD = "amber bridge"


class Ear:
    """Hears the same in everything, and keeps how much it was given."""

    name, identity, in_parallel = "a fake ear", "a fake ear, version 1", 1
    total = 0

    def __init__(self):
        self.asked = []

    def transcribe_many(self, recordings, progress=None):
        self.asked.append(len(recordings))
        Ear.total += len(recordings)
        return [HEARD for _ in recordings]


CORPUS = {"count": 20, "speakers": 2, "seconds": (0.7, 1.0)}


def make_voice(**settings):
    voice = fake_voice(val_fraction=0.4, **settings)
    voice.speakers = ("speaker0", "speaker1")
    return voice


@pytest.fixture(autouse=True)
def voice(monkeypatch):
    """Whatever folder is named holds the same voice."""
    found = make_voice()
    load = lambda voice, vocoder="auto": Synthesizer(found, "griffin_lim")  # noqa: E731
    monkeypatch.setattr(evaluate_voice, "load_synthesizer", load)
    monkeypatch.setitem(asr.ASRS, "en", Ear)
    return found


def figures(folder: Path) -> dict:
    return json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))


def held_out(shared_corpus: Path) -> list:
    return list(read_corpus(shared_corpus, val_fraction=0.4).val)


def test_a_voice_is_judged_on_what_it_was_not_trained_on(myxtts, shared_corpus, tmp_path, voice):
    argv = ("--voice", "run", "--corpus", shared_corpus, "--sentences", 3, "-o", "out")
    code, out, err = myxtts("evaluate", *argv)
    assert (code, err) == (0, "")
    found = figures(tmp_path / "out")
    ids = [one["id"] for one in found["sentences"]]
    assert len(ids) == 3 and set(ids) <= {one.id for one in held_out(shared_corpus)}
    for source in ("speech", "recordings", "copies"):
        assert found["measures"]["wer"][source]["sentences"] == 3
    assert found["sentences"][0]["heard"]["copies"] == HEARD
    assert found["measures"]["mcd"]["speech"]["value"] > found["measures"]["mcd"]["copies"]["value"]
    assert found["hard_texts"][-1]["texts"] >= 30
    # Neither are public weights here, nor fetched.
    assert "DNSMOS background: the weights of dnsmos are not in checkpoints" in out
    assert (
        "speaker similarity, nearest to the right speaker: the weights of ecapa_tdnn are not in"
        in out
    )
    assert "resynthesis by griffin_lim" in out and "of the ASR\n" in out
    assert {path.stem for path in (tmp_path / "out" / "wavs").glob("*.wav")} == set(ids)
    assert (tmp_path / "out" / "evaluation.html").stat().st_size > 10_000
    # The same sentences, and so the same figures, each time; pystoi adds a little chance.
    again = evaluate(voice, shared_corpus, sentences=3)
    assert again.subject.what == "run/voice: 3 sentences that it was not trained on"
    for name in ("wer", "mcd", "f0_rmse", "loudness"):
        intervals = {part: asdict(one) for part, one in again.measures[name].intervals.items()}
        assert intervals == found["measures"][name]


def test_a_language_without_a_recogniser_has_all_other_measures(
    myxtts, shared_corpus, tmp_path, voice
):
    shutil.copytree(shared_corpus, tmp_path / "fa")
    voice.config.data.language = "fa"
    argv = ("--voice", "run", "--corpus", "fa", "--language", "fa", "--sentences", 2, "-o", "out")
    code, out, _ = myxtts("evaluate", *argv)
    assert code == 0
    assert "not measured: WER, CER: there is no ASR for 'fa': name the" in out
    found = figures(tmp_path / "out")
    assert "wer" not in found["measures"] and "mcd" in found["measures"]
    assert found["hard_texts"][0]["repeated"] is None


def test_one_speaker_or_a_clone_can_be_judged(myxtts, shared_corpus, tmp_path):
    argv = ("evaluate", "--voice", "run", "--corpus", shared_corpus, "--sentences", 4)
    assert myxtts(*argv, "--speaker", "speaker1", "-o", "one")[0] == 0
    assert {one["speaker"] for one in figures(tmp_path / "one")["sentences"]} == {"speaker1"}
    reference = next(iter((shared_corpus / "wavs").iterdir()))
    code, out, _ = myxtts(*argv, "--reference", reference, "-o", "clone")
    assert code == 0
    assert "endless sentences: the recordings are of other speakers than the refer" in out
    found = figures(tmp_path / "clone")
    assert {one["speaker"] for one in found["sentences"]} == {"the reference"}
    assert "mcd" not in found["measures"] and "recordings" in found["measures"]["wer"]


@pytest.mark.parametrize(
    "argv, complaint",
    [
        ((), "name what is to be judged"),
        (("--voice", "run", "--wavs", "."), "name what is to be judged"),
        (("--voice", "run"), "with --corpus"),
        (("--wavs", "."), "with --texts"),
        (("--voice", "run", "--corpus", "nowhere"), "there is no folder nowhere"),
        (("--voice", "run", "--corpus", ".", "--sentences", "0"), "must be at least 1, not 0"),
    ],
)
def test_half_a_command_is_rejectd(myxtts, argv, complaint):
    code, _, err = myxtts("evaluate", *argv)
    assert code == 2 and complaint in err


def test_a_corpus_without_the_voices_speakers_is_rejectd(myxtts, shared_corpus, voice):
    voice.speakers = ("anna", "ben")
    code, _, err = myxtts("evaluate", "--voice", "run", "--corpus", shared_corpus)
    assert code == 2 and "holds out no sentence in 'en' by a speaker of the voice" in err


@pytest.fixture
def wavs(shared_corpus, tmp_path) -> Path:
    """Three recordings of the corpus in a folder, with what they say."""
    folder = tmp_path / "said"
    folder.mkdir()
    lines = (shared_corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()[:3]
    for line in lines:
        name = line.partition("|")[0]
        shutil.copy(shared_corpus / "wavs" / f"{name}.wav", folder)
    texts = "\n".join("|".join(line.split("|")[:2]) for line in lines)
    (folder / "metadata.csv").write_text(texts + "\n", encoding="utf-8")
    return folder


def test_recordings_are_judged_by_their_texts(myxtts, wavs, tmp_path):
    code, out, err = myxtts("evaluate", "--wavs", wavs, "--texts", wavs / "metadata.csv")
    assert (code, err) == (0, "")
    found = figures(tmp_path / "said-evaluation")
    assert list(found["measures"]["wer"]) == ["speech"]
    assert "not measured: ceilings" in out
    assert "not measured: faulty hard texts: only a voice can speak hard texts" in out
    # Not inside: the next evaluation would take its wavs for others to be judged.
    assert myxtts("evaluate", "--wavs", wavs, "--texts", wavs / "metadata.csv")[0] == 0


def test_references_of_the_same_ids_are_the_ceiling(myxtts, wavs, tmp_path):
    references = Path(shutil.copytree(wavs, tmp_path / "references"))
    argv = ("evaluate", "--wavs", wavs, "--texts", wavs / "metadata.csv")
    assert myxtts(*argv, "--references", references, "-o", "out")[0] == 0
    found = figures(tmp_path / "out")["measures"]
    assert set(found["cer"]) == {"speech", "recordings", "copies"}
    assert found["mcd"]["speech"]["value"] == pytest.approx(0.0, abs=1e-6)


def test_references_of_other_ids_are_of_the_same_speaker(myxtts, wavs, shared_corpus, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(shared_corpus / "wavs" / "utt-0009.wav", other / "someone.wav")
    argv = ("evaluate", "--wavs", wavs, "--texts", wavs / "metadata.csv", "--references", other)
    code, out, _ = myxtts(*argv, "-o", "out")
    assert code == 0 and "endless sentences: no recordings of the same ids" in out
    assert list(figures(tmp_path / "out")["measures"]["cer"]) == ["speech"]


def test_what_is_missing_or_too_much_is_named(myxtts, wavs, tmp_path):
    argv = ("evaluate", "--wavs", wavs, "--texts", wavs / "metadata.csv")
    references = Path(shutil.copytree(wavs, tmp_path / "references"))
    (references / "utt-0001.wav").rename(references / "stray.wav")
    code, _, err = myxtts(*argv, "--references", references)
    assert code == 2 and "1 of the recordings have no reference of the same name" in err
    assert "utt-0001" in err
    shutil.copy(references / "stray.wav", references / "utt-0001.wav")
    code, _, err = myxtts(*argv, "--references", references)
    assert code == 2 and "are of no recording: stray" in err
    soundfile.write(wavs / "surplus.wav", np.zeros(4000), 22050)
    code, _, err = myxtts(*argv)
    assert code == 2 and "have no text in" in err and "surplus" in err
    (wavs / "surplus.wav").unlink()
    (wavs / "utt-0002.wav").unlink()
    code, _, err = myxtts(*argv)
    assert code == 2 and "have no recording in" in err and "utt-0002" in err


def test_recordings_and_copies_are_transcribed_once_per_corpus_and_speech_each_time(
    myxtts, shared_corpus, monkeypatch
):
    argv = ("evaluate", "--voice", "run", "--corpus", shared_corpus, "--sentences", 3, "-o", "out")
    heard = []

    def evaluate(*more) -> str:
        monkeypatch.setattr(Ear, "total", 0)
        code, out, _ = myxtts(*argv, *more)
        assert code == 0
        heard.append(Ear.total)
        return out

    out = evaluate()
    count = heard[0]
    assert f"listening to {count} recordings with a fake ear: about " in out
    assert f"listening to {count - 6} recordings" in evaluate()
    evaluate("--fresh-ceilings")
    monkeypatch.setattr(Ear, "identity", "a fake ear, version 2")
    evaluate()
    assert heard == [count, count - 6, count, count]


# What `myxtts train --enable-evaluation` passes to the trainer.


def test_training_hears_the_same_sentences_each_time_and_the_ceiling_once(shared_corpus):
    ear = Ear()
    evaluator = VoiceEvaluator(Judges(ear), 3, "en")
    first = evaluator(make_voice(), held_out(shared_corpus))()
    second = evaluator(make_voice(), held_out(shared_corpus))()
    assert ear.asked == [6, 3]
    assert first.scores["recorded_wer"] > 0 and "recorded_wer" not in second.scores
    assert {"wer", "cer", "mcd"} <= second.scores.keys()
    assert second.scores["mcd"] == first.scores["mcd"]
    assert not {"loudness", "similarity", "mos"} & second.scores.keys()
    np.testing.assert_array_equal(first.samples, second.samples)
    assert first.path.sum(axis=1).tolist() == [FRAMES_PER_TOKEN] * len(first.path)


def test_it_speaks_before_it_returns_and_scores_only_when_called(shared_corpus):
    ear, voice = Ear(), make_voice()
    score = VoiceEvaluator(Judges(ear), 2, "en")(voice, held_out(shared_corpus))
    assert voice.model.batches and ear.asked == []
    voice.model = None  # whose weights have changed by then
    assert score().scores["wer"] > 0


def test_sentences_of_strangers_or_other_languages_are_no_use(shared_corpus):
    voice = make_voice()
    voice.speakers = ("anna",)
    with pytest.raises(UserError, match="no held-out sentence is in 'en'"):
        VoiceEvaluator(Judges(), 2, "en")(voice, held_out(shared_corpus))


def test_a_metric_that_nobody_can_measure_is_rejectd_before_training():
    assert training_evaluator(XTTSConfig()) is None
    config = XTTSConfig(enable_evaluation=True, evaluation_metric="wer", language="fa")
    with pytest.raises(UserError, match="cannot be kept by wer .* no ASR for 'fa'"):
        training_evaluator(config)
    config.training.evaluation_metric = "mos"
    with pytest.raises(UserError, match="kept by mos .* `myxtts weights get dnsmos`"):
        training_evaluator(config)
    for metric in ("mcd", "loss"):
        config.training.evaluation_metric = metric
        assert training_evaluator(config).language == "fa"
    check_metric("cer", Judges(Ear()))
    with pytest.raises(UserError, match="must be one of wer, cer, .*, loss; got 'loudness'"):
        check_metric("loudness", Judges())


def test_what_an_evaluation_lacks_is_said_before_training(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("MYXTTS_WEIGHTS_DIR", str(tmp_path))
    training_evaluator(XTTSConfig(enable_evaluation=True, evaluation_metric="loss", language="fa"))
    listening, rating = (record.getMessage() for record in caplog.records)
    assert listening.startswith("WER, CER will not be measured: there is no ASR for 'fa'")
    assert rating.startswith(
        "DNSMOS overall, DNSMOS signal, DNSMOS background will not be measured: the weights"
    )
    assert "`myxtts weights get dnsmos`" in rating


def test_the_path_shows_which_token_each_frame_says():
    speech = Synthesizer(fake_voice()).speak("One. Two.")
    path = path_of(speech)
    assert path.shape == (len(speech.tokens), speech.spoken_frames)
    assert path.sum(axis=0).tolist() == [1.0] * path.shape[1]


def test_train_with_evaluation_keeps_the_voice_that_is_judged_best(myxtts, tmp_path):
    corpus = make_corpus(tmp_path / "corpus", 8, seconds=(0.7, 0.9))
    run, config = tmp_path / "run", tmp_path / "config.yaml"
    plan = {"epochs": 2, "enable_eager_debug": True, "evaluation_metric": "mcd"}
    save_config(run_config(corpus, run, **plan), config)
    argv = ("--enable-evaluation", "--evaluation-interval", 1, "--evaluation-sentences", 1)
    try:
        code, _, err = myxtts("train", "--config", config, *argv)
    finally:
        tf.config.run_functions_eagerly(False)
    assert code == 0, err
    best = json.loads((run / "checkpoints" / "best.json").read_text())
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    scored = {line["step"]: line["val/mcd"] for line in lines if "val/mcd" in line}
    assert len(scored) == 2 and best["metric"] == "mcd"
    assert scored[best["step"]] == min(scored.values())
    assert (run / "voice-best" / "voice.json").is_file()
