"""What a studio reads of a run, and of a comparison, without training or speaking anything."""

import json
import shutil
from functools import partial

import pytest

from myxtts import atomic
from myxtts.audio.io import read_audio, write_wav
from myxtts.audio.streaming import wav_header
from myxtts.checkpoints.vocoders import find_vocoder
from myxtts.cli.main import build_parser
from myxtts.errors import UserError
from myxtts.monitoring.history import encode_line
from myxtts.resources import default_voice
from myxtts.serving.studio.comparisons import Comparisons, Side, _steps, check_sentences
from myxtts.serving.studio.corpora import Corpora
from myxtts.serving.studio.event_files import EventFiles
from myxtts.serving.studio.jobs import Jobs
from myxtts.serving.studio.places import COMPARISONS, RUNS, Places, read_card, write_card
from myxtts.serving.studio.progress import read_progress
from myxtts.serving.studio.runs import Runs, _copy_whole, _merged, _settings
from myxtts.serving.studio.voices import _stamp

TIMES = {"data_ms": 10.0, "compute_ms": 90.0, "device_ms": 80.0, "stall_ms": 20.0}


def write_history(folder, steps=100):
    lines = []
    for step in range(1, steps + 1):
        losses = {"loss": 10.0 / step, "mel_loss": 1.0, "grad/norm": 3.0}
        lines.append({"step": step, "epoch": 0, **losses, **TIMES, "compile_ms": 0.0})
        if step % 10 == 0:
            lines.append({"step": step, "val/loss": 1.0 - step / 200})
    lines.append({"step": steps, "val/wer": 0.25})
    (folder / "history.jsonl").write_bytes(b"".join(encode_line(one).text for one in lines))


def test_progress_is_read_from_the_history(tmp_path):
    write_history(tmp_path)
    found = read_progress(tmp_path, 300)
    assert found["step"] == 100
    assert found["curves"]["loss"][0] == (1, 10.0) and set(found["curves"]) == {"loss", "mel_loss"}
    assert found["scores"]["wer"] == [(100, 0.25)]
    assert found["trend"]["kind"] == "improves"
    assert found["seconds_left"] == 20  # 200 steps of 10 + 90 ms
    assert found["utilisation"] == pytest.approx(0.8)
    assert "waiting for data" in found["verdict"]


def test_long_curves_are_thinned(tmp_path):
    write_history(tmp_path, 1000)
    curve = read_progress(tmp_path, 0)["curves"]["mel_loss"]
    assert len(curve) <= 300 and curve[-1] == (1000, 1.0)


def test_a_run_that_has_written_nothing_has_no_curves(tmp_path):
    assert read_progress(tmp_path, 10) == {"step": 0, "curves": {}, "scores": {}}


def test_samples_are_read_without_tensorflow(tmp_path):
    pb = pytest.importorskip("tensorboard.compat.proto.event_pb2", reason="the extra tensorboard")
    import struct

    wav = wav_header(22050) + bytes(100)
    parts = []
    for step in (10, 20):
        event = pb.Event(step=step)
        value = event.summary.value.add(tag="sample/audio")
        value.tensor.string_val.extend([wav + bytes([step]), b"label"])
        content = event.SerializeToString()
        parts.append(struct.pack("<QI", len(content), 0) + content + bytes(4))
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(parts[0] + parts[1][:20])  # the second is being written
    files = EventFiles(tmp_path)
    assert list(files.samples()) == [("sample/audio", 10)]
    path.write_bytes(b"".join(parts))
    found = files.samples()
    assert found["sample/audio", 20].wav("sample/audio", 20) == wav + bytes([20])


def test_own_settings_go_before_the_usual_ones_but_not_before_what_was_chosen(tmp_path):
    card = {"steps": 100, "language": "fa", "size": "tiny", "evaluate": False}
    usual = _settings(tmp_path, card, tmp_path / "corpus")
    assert usual["training"]["validation_interval"] == 5
    assert usual["training"]["warmup_steps"] == 10
    own = {"training": {"save_interval": 7, "max_steps": 9}, "model": {"use_gst": False}}
    found = _merged(own, usual)
    assert found["training"]["save_interval"] == 7 and found["training"]["max_steps"] == 100
    assert found["model"] == {"use_gst": False}


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The runs of a studio with one corpus, whose jobs end as soon as they are prepared."""
    places = Places(tmp_path)
    jobs = Jobs(places)
    corpora = Corpora(places, jobs)
    name = corpora.create("Ada", "en")["id"]
    metadata = places.of("corpora") / name / "metadata.csv"
    metadata.write_text("a|One.|One.\nb|Two.|Two.\n")
    monkeypatch.setattr(jobs, "start", lambda *words: words[-1]())
    return Runs(places, jobs, corpora)


def test_a_run_is_resumed_with_the_settings_that_it_was_begun_with(runs, tmp_path):
    name = runs.create("Ada", "ada", "tiny", 100, None, False)["id"]
    path = tmp_path / RUNS / name / "settings.yaml"
    before = path.read_text()
    (tmp_path / "settings.yaml").write_text("model:\n  use_gst: false\n")
    runs.resume(name, None, None)
    assert path.read_text() == before
    assert runs.resume(name, 200, None)["steps"] == 200
    assert path.read_text() == before.replace("max_steps: 100\n", "max_steps: 200\n")


def test_a_training_that_does_not_start_changes_nothing(runs, tmp_path, monkeypatch):
    name = runs.create("Ada", "ada", "tiny", 100, None, False)["id"]

    def refuse(*words):
        raise UserError("too many")

    monkeypatch.setattr(runs._jobs, "start", refuse)
    with pytest.raises(UserError):
        runs.resume(name, 200, None)
    with pytest.raises(UserError):
        runs.create("Ada", "ada", "tiny", 100, None, False)
    assert [one.name for one in (tmp_path / RUNS).iterdir()] == [name]
    assert read_card(tmp_path / RUNS / name)["steps"] == 100
    assert "max_steps: 100\n" in (tmp_path / RUNS / name / "settings.yaml").read_text()


def test_a_voice_is_copied_as_one_save_has_written_it(tmp_path, monkeypatch):
    def save(number):
        with atomic.new_folder(tmp_path / "voice") as draft:
            for name in ("voice.json", "weights"):
                (draft / name).write_text(str(number))

    copied = []

    def copy(source, target):
        copied.append(shutil.copyfile(source, target))
        if len(copied) == 1:
            save(2)  # between the first file and the second one

    copytree = partial(shutil.copytree, copy_function=copy)
    monkeypatch.setattr(shutil, "copytree", copytree)
    save(1)
    target = tmp_path / "kept"
    _copy_whole(tmp_path / "voice", target)
    assert {one.read_text() for one in target.iterdir()} == {"2"}
    monkeypatch.setattr(shutil, "copytree", lambda *words, **options: save(3))
    with pytest.raises(UserError, match="just now"):
        _copy_whole(tmp_path / "voice", tmp_path / "other")


def test_a_vocoder_is_trained_with_the_settings_of_the_run(runs, tmp_path, monkeypatch):
    name = runs.create("Ada", "ada", "tiny", 100, None, False)["id"]
    asked = []
    monkeypatch.setattr(runs._jobs, "start", lambda *words, uses: asked.append((*words, *uses)))
    with pytest.raises(UserError, match="steps"):
        runs.train_vocoder(name, 0)
    assert not runs.train_vocoder(name, 50)["has_vocoder"]
    ((kind, subject, _, (words,), corpus),) = asked
    assert (kind, subject, corpus) == ("vocoder", f"runs/{name}", "corpora/ada")
    build_parser(words).parse_args(words)  # the command knows all of them
    run = tmp_path / RUNS / name
    assert {str(run / "settings.yaml"), str(run / "stage2"), "istft", "50"} < set(words)


def test_a_copy_of_a_voice_keeps_its_vocoder(runs, tmp_path):
    name = runs.create("Ada", "ada", "tiny", 100, None, False)["id"]
    run = tmp_path / RUNS / name
    shutil.copytree(default_voice(), run / "voice")
    (run / "voice" / "voice.json").write_text("{}")
    plain = tmp_path / "voices" / runs.keep(name, "Plain")
    before = _stamp(run / "voice")
    (run / "stage2" / "vocoder").mkdir(parents=True)
    (run / "stage2" / "vocoder" / "vocoder.json").write_text("{}")
    assert _stamp(run / "voice") != before  # so that the server loads the voice anew
    kept = tmp_path / "voices" / runs.keep(name, "Kept")
    assert find_vocoder(kept) and not find_vocoder(plain)
    assert (kept / "voice" / "voice.json").is_file()


def test_an_unfinished_copy_of_a_voice_leaves_no_folder(runs, tmp_path):
    name = runs.create("Ada", "ada", "tiny", 100, None, False)["id"]
    with pytest.raises(UserError, match="not written a voice"):
        runs.keep(name, "Kept")
    assert list((tmp_path / "voices").iterdir()) == []


def test_a_history_of_an_earlier_version_has_no_times(tmp_path):
    lines = [{"step": step, "loss": 1.0, "data_ms": 1.0} for step in (1, 2)]
    (tmp_path / "history.jsonl").write_bytes(b"".join(encode_line(one).text for one in lines))
    found = read_progress(tmp_path, 10)
    assert found["step"] == 2 and "seconds_left" not in found


# Comparisons


@pytest.fixture
def comparison(tmp_path):
    """A comparison of four sentences that are spoken; the second voice is quieter."""
    places = Places(tmp_path)
    folder = places.make(COMPARISONS, "a b")
    sentences = {f"{n:04d}": f"Sentence {n}." for n in range(1, 5)}
    sides = [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]
    write_card(folder, {"title": "A · B", "sides": sides, "sentences": sentences, "created": 1})
    import numpy as np

    wave = np.sin(np.arange(22050) * 0.05).astype(np.float32)
    for side, gain in (("a", 0.5), ("b", 0.05)):
        for id in sentences:
            write_wav(folder / side / f"{id}.wav", gain * wave, 22050)
        (folder / side / "metadata.csv").write_text("")
    jobs = Jobs(places)
    return Comparisons(places, jobs, Corpora(places, jobs)), folder


def test_both_voices_are_equally_loud(comparison):
    comparisons, folder = comparison
    peaks = [abs(read_audio(comparisons.clip(folder.name, s, 0), 22050)).max() for s in "ab"]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.01)


def test_blind_answers_are_tallied_when_all_are_given(comparison):
    comparisons, folder = comparison
    first = folder / "level" / "a"
    for number in range(4):
        assert comparisons.look(folder.name)["tally"] is None
        is_first = comparisons.trial_clip(folder.name, number, 0).parent == first
        place = 0 if is_first else 1
        comparisons.answer(folder.name, number, None if number == 3 else place)
    tally = comparisons.look(folder.name)["tally"]
    assert (tally["first"], tally["second"], tally["neither"]) == (3, 0, 1)
    assert tally["p"] == pytest.approx(0.25)  # two-sided sign test of 3 of 3
    assert tally["share"]["low"] == pytest.approx(0.025 ** (1 / 3))  # Clopper-Pearson
    comparisons.forget(folder.name)
    assert comparisons.look(folder.name)["answered"] == []


def test_each_voice_is_first_as_often(comparison):
    comparisons, folder = comparison
    firsts = [comparisons.trial_clip(folder.name, n, 0).parent.name for n in range(4)]
    assert sorted(firsts) == ["a", "a", "b", "b"]


def test_figures_stand_side_by_side_with_their_intervals(comparison):
    comparisons, folder = comparison
    for side, value in (("a", 0.1), ("b", 0.2)):
        target = folder / f"evaluation-{side}"
        target.mkdir()
        interval = {"low": value / 2, "value": value, "high": 2 * value, "sentences": 4}
        unknown = {"speech": {"low": None, "value": None, "high": None, "sentences": 0}}
        measures = {"wer": {"speech": interval, "recordings": None}, "right_speaker": unknown}
        (target / "evaluation.json").write_text(json.dumps({"measures": measures}))
    rows = comparisons.look(folder.name)["figures"]
    assert [(one["title"], one["better"]) for one in rows] == [("WER", "lower")]
    assert (rows[0]["a"]["value"], rows[0]["b"]["high"]) == (0.1, 0.4)


@pytest.mark.parametrize("corpus, said", [("ada", "the weights are absent"), (None, None)])
def test_why_there_is_no_likeness_is_said_where_it_was_asked_for(comparison, corpus, said):
    comparisons, folder = comparison
    write_card(folder, {**read_card(folder), "corpus": corpus})
    for side in "ab":
        (folder / f"evaluation-{side}").mkdir()
        found = {"measures": {}, "not_measured": {"voices": "the weights are absent"}}
        (folder / f"evaluation-{side}" / "evaluation.json").write_text(json.dumps(found))
    assert comparisons.look(folder.name)["no_likeness"] == said


def test_a_clone_is_compared_by_its_recording(tmp_path):
    sides = [Side("a", "A", tmp_path / "a", "anna"), Side("b", "B", tmp_path, None, tmp_path / "w")]
    steps = _steps(tmp_path, sides, "fa", True)
    assert [one[0] for one in steps] == ["synthesize", "synthesize", "evaluate", "evaluate"]
    assert steps[0][3:5] == ["--speaker", "anna"] and "--references" in steps[2]
    assert steps[1][3:5] == ["--reference", str(tmp_path / "w")]


def test_sentences_fit_lines():
    assert check_sentences(["a|b", "", " a b ", "c\nd"]) == ["a b", "c d"]
    for wrong in ([], [""], ["x" * 501], ["\x00"], [str(n) for n in range(51)]):
        with pytest.raises(UserError):
            check_sentences(wrong)
