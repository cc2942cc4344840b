"""The built-in corpus: its sentences, its bytes, and how it is published."""

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.demo_corpus import corpus as demo
from myxtts.demo_corpus.corpus import (
    choose_voices,
    make_demo,
    make_small_dataset,
    plan_jobs,
    speak_jobs,
    unseen_voices,
)
from myxtts.demo_corpus.sentences import corpus_sentences, held_out_sentences
from myxtts.demo_corpus.voices import DemoVoice
from myxtts.errors import UserError
from myxtts.text.espeak import Espeak
from tests.helpers.make_corpus import make_corpus

CONSONANTS = "p b t d k ɡ tʃ dʒ f v θ ð s z ʃ ʒ h m n ŋ l ɹ j w".split()
VOWELS = "iː ɪ ɛ æ ɑː ɔː ʊ uː ʌ ɜː ə eɪ aɪ ɔɪ oʊ aʊ".split()
ALPHABET = {
    "en": set("abcdefghijklmnopqrstuvwxyz '.,?"),
    "fa": set("ءآابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیئ\u064b\u200c .،؟") - {"ء"},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Eight voices, each cut into two jobs, made by one worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "CHUNK", 2)
        return make_demo(tmp_path_factory.mktemp("demo") / "en", speakers=8, clauses=3, workers=1)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.mark.parametrize("language", ["en", "fa"])
def test_sentences_are_distinct_and_plain(language):
    sentences = corpus_sentences(language, 5000)
    assert len(set(sentences)) == 5000
    assert all(3 <= len(sentence.split()) <= 14 for sentence in sentences)
    assert set("".join(sentences).lower()) == ALPHABET[language]
    assert not any(re.search(r"  |^ | [.,؟،]|\{|;", sentence) for sentence in sentences)


def test_sentences_agree_with_their_subjects():
    sentences = corpus_sentences("en", 5000) + corpus_sentences("fa", 5000)
    wrong = r"^I (is|are|were|has) |^(She|He) (are|am|were|have) |^(They|We|You) (is|am|was|has) "
    wrong += r"|^من (?!و ).*(شد|رفت|شنید|بود|کرد)\.|^(تو|شما|ما|آن‌ها) .*(شد|رفت|شنید|بود|کرد)\."
    other = " خواه| که "  # the future's main verb does not change; a second clause has its own
    assert [s for s in sentences if re.search(wrong, s) and not re.search(other, s)] == []


def test_a_persian_verb_takes_the_ending_of_its_person():
    sentences = corpus_sentences("fa", 10000)
    for subject, ending in {"من": "م", "تو": "ی", "ما": "یم", "شما": "ید", "بچه‌ها": "ند"}.items():
        heard = [s for s in sentences if s.startswith(f"{subject} صدای")]
        assert heard
        assert all(s.endswith(f"شنید{ending}.") for s in heard)


def test_sentences_depend_on_the_seed_alone():
    assert corpus_sentences("en", 50) == corpus_sentences("en", 80)[:50]
    assert corpus_sentences("en", 50, seed=1) != corpus_sentences("en", 50)


@pytest.mark.parametrize("language", ["en", "fa"])
def test_held_out_sentences_are_in_no_corpus(language):
    held_out = set(held_out_sentences(language, 100))
    assert len(held_out) == 100
    for seed in range(3):
        assert held_out.isdisjoint(corpus_sentences(language, 3000, seed))


def test_more_sentences_than_the_grammar_has_is_an_error(monkeypatch):
    tiny = ("sentence: {subject} {verb}.\nverb: waits; sings", ["subject: she"])
    monkeypatch.setattr("myxtts.demo_corpus.sentences.GRAMMARS", {"en": tiny})
    with pytest.raises(UserError, match="2 distinct|1 distinct|0 distinct"):
        corpus_sentences("en", 3)


def test_english_sentences_contain_every_phoneme_often():
    counts = Counter()
    for words in phonemes(corpus_sentences("en", 400)):
        counts.update(re.findall("|".join(sorted(CONSONANTS + VOWELS, key=len)[::-1]), words))
    assert {symbol: counts[symbol] for symbol in CONSONANTS + VOWELS if counts[symbol] < 10} == {}


def phonemes(sentences: list[str]) -> list[str]:
    espeakng_loader = pytest.importorskip("espeakng_loader")
    library, data = espeakng_loader.get_library_path(), espeakng_loader.get_data_path()
    espeak = Espeak(library, data, "en-us")
    marks = str.maketrans("", "", "\u02c8\u02cc\u0361")  # of stress, and ties
    return [espeak.ipa(sentence).translate(marks) for sentence in sentences]


def test_corpus_has_the_layout_of_ljspeech(corpus):
    rows = [line.split("|") for line in (corpus / "metadata.csv").read_text("utf-8").splitlines()]
    sentences = corpus_sentences("en", 24)
    assert [row[1] for row in rows] == sentences == [row[2] for row in rows]
    assert [row[0] for row in rows[:4]] == [
        "rob-0001",
        "rob-0002",
        "rob-0003",
        "f3-0001",
    ]
    rows = [line.split("|") for line in (corpus / "speakers.csv").read_text().splitlines()]
    speakers = {name: speaker for name, speaker, _ in rows}
    assert {language for _, _, language in rows} == {"en"}
    assert speakers == {row[0]: row[0].split("-")[0] for row in rows}
    assert {p.stem for p in (corpus / "wavs").iterdir()} == {row[0] for row in rows}
    assert "synthetic" in (corpus / "README.txt").read_text("utf-8")


def test_recordings_are_levelled_and_trimmed(corpus):
    for path in (corpus / "wavs").iterdir():
        info = soundfile.info(path)
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, "PCM_16")
        assert 1.0 < info.duration < 5.0
        samples, _ = soundfile.read(path, dtype="int16")
        assert abs(np.abs(samples.astype(int)).max() - 0.7 * 32768) <= 1
        loud = np.flatnonzero(samples)
        assert abs(loud[0] - 2205) <= 1 and abs(len(samples) - 1 - loud[-1] - 2205) <= 1


def test_speakers_differ_in_the_same_sentence(tmp_path):
    voices = [DemoVoice("rob", 150), DemoVoice("f3", 150)]
    speak_jobs(plan_jobs("en", voices, ["The river is wide."] * 2), tmp_path)
    first, second = ((tmp_path / f"{v.name}-0001.wav").read_bytes() for v in voices)
    assert first != second


@pytest.mark.parametrize(
    ("language", "rates"),
    [("en", [150, 150, 145, 150, 155, 145, 145, 145]), ("fa", [175] * 8)],
)
def test_the_first_voices_never_change(language, rates):
    variants = ["rob", "f3", "m3", "Annie", "victor", "steph", "Hugo", "m8"]
    first = tuple(DemoVoice(v, rate, 50) for v, rate in zip(variants, rates, strict=True))
    assert choose_voices(language, 8) == first
    assert [voice.name for voice in first] == variants
    # Of the further voices: a change here changes the corpora of more than eight speakers.
    described = " ".join(f"{v.name}:{v.rate}" for v in choose_voices(language, 48))
    digest = {"en": "e1d2d9db9029", "fa": "b5ec883b936b"}
    assert hashlib.sha256(described.encode()).hexdigest()[:12] == digest[language]


@pytest.mark.parametrize("language", ["en", "fa"])
def test_fewer_voices_are_the_first_of_more(language):
    voices = choose_voices(language, 48)
    assert all(choose_voices(language, n) == voices[:n] for n in range(1, 49))
    # No four in a row have a variant twice: what few speakers there are, differ.
    for start in range(45):
        assert len({voice.variant for voice in voices[start : start + 4]}) == 4


@pytest.mark.parametrize("language", ["en", "fa"])
def test_names_of_voices_are_unique_even_where_case_is_ignored(language):
    voices = choose_voices(language, 48) + unseen_voices(language)
    assert len({voice.name.lower() for voice in voices}) == 58


@pytest.mark.parametrize("language", ["en", "fa"])
def test_voices_of_one_variant_differ_clearly_in_pitch(language):
    voices = choose_voices(language, 48)
    for number, voice in enumerate(voices):
        others = [v.pitch for v in voices[:number] if v.variant == voice.variant]
        assert all(abs(voice.pitch - other) >= 14 for other in others), voice


@pytest.mark.parametrize("language", ["en", "fa"])
def test_unseen_voices_have_variants_that_no_corpus_has(language):
    unseen = {voice.variant for voice in unseen_voices(language)}
    assert len(unseen) == len(unseen_voices(language)) == 10
    assert unseen.isdisjoint(voice.variant for voice in choose_voices(language, 48))
    with pytest.raises(UserError, match="no built-in corpus for language 'xx'"):
        unseen_voices("xx")


@pytest.mark.parametrize("language", ["en", "fa"])
def test_espeak_has_the_variant_of_every_voice(language):
    pytest.importorskip("espeakng_loader")
    voices = choose_voices(language, 48) + unseen_voices(language)
    wanted = {job["voice"] for job in plan_jobs(language, voices, ["Yes."] * 58)}
    assert demo._check_espeak(wanted) is None
    with pytest.raises(UserError, match="no variant"):
        demo._check_espeak({*wanted, "en-us+nobody"})


def test_a_voice_of_another_pitch_is_another_speaker(tmp_path, monkeypatch):
    voices = (DemoVoice("m3", 145), DemoVoice("m3", 145, 72))
    monkeypatch.setitem(demo.VOICES, "en", voices)
    made = make_demo(tmp_path / "x", speakers=2, clauses=1)
    rows = (made / "speakers.csv").read_text().splitlines()
    assert rows == ["m3-0001|m3|en", "m3-p72-0001|m3-p72|en"]
    assert json.loads((made / "demo.json").read_text())["speakers"] == ["m3", "m3-p72"]
    readme = (made / "README.txt").read_text("utf-8")
    assert "  en-us+m3 at 145 words a minute\n" in readme
    assert "  en-us+m3 at 145 words a minute, pitch 72\n" in readme


def test_bytes_do_not_depend_on_workers_or_run(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "CHUNK", 2)
    heard = []
    again = make_demo(
        tmp_path / "x", speakers=8, clauses=3, workers=3, progress=lambda *n: heard.append(n)
    )
    assert digests(again) == digests(corpus)
    assert heard[:4] == [(2, 24), (3, 24), (5, 24), (6, 24)]


def test_persian_is_spoken(tmp_path):
    corpus = make_demo(tmp_path / "fa", "fa", speakers=1, clauses=3)
    text = (corpus / "metadata.csv").read_text("utf-8")
    assert [line.split("|")[1] for line in text.splitlines()] == corpus_sentences("fa", 3)
    assert len(list((corpus / "wavs").iterdir())) == 3


def test_an_existing_corpus_is_reused(corpus, monkeypatch):
    monkeypatch.setattr(demo, "CHUNK", 2)
    monkeypatch.setattr(demo, "speak_jobs", lambda *_: pytest.fail("it spoke again"))
    before = (corpus / "demo.json").stat().st_mtime_ns
    assert make_demo(corpus, speakers=8, clauses=3) == corpus
    assert (corpus / "demo.json").stat().st_mtime_ns == before


def test_another_or_a_damaged_corpus_is_not_overwritten(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "CHUNK", 2)
    with pytest.raises(UserError, match="another built-in corpus"):
        make_demo(corpus, speakers=1, clauses=3)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is not a built-in corpus"):
        make_demo(tmp_path)
    damaged = tmp_path / "damaged"
    (damaged / "wavs").mkdir(parents=True)
    (damaged / "demo.json").write_bytes((corpus / "demo.json").read_bytes())
    with pytest.raises(UserError, match="missing or changed"):
        make_demo(damaged, speakers=8, clauses=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"language": "xx"}, "no built-in corpus for language 'xx'"),
        ({"speakers": 49}, "has 48 speakers for 'en'; 49 were asked for"),
        ({"language": "fa", "speakers": 49}, "has 48 speakers for 'fa'; 49 were asked for"),
        ({"speakers": 0}, "speakers must be at least 1"),
        ({"clauses": -3}, "clauses must be at least 1"),
    ],
)
def test_bad_arguments_are_rejected(arguments, message, tmp_path):
    with pytest.raises(UserError, match=message):
        make_demo(tmp_path / "x", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_variant_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setitem(demo.VOICES, "en", (DemoVoice("nobody", 150),))
    with pytest.raises(UserError, match="no variant for the voice 'en-us\\+nobody'"):
        make_demo(tmp_path / "x", speakers=1, clauses=2)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_espeak_process_is_reported_and_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_check_espeak", lambda voices: None)
    monkeypatch.setitem(demo.ESPEAK_LANGUAGE, "en", "no-such-language")
    with pytest.raises(UserError, match="espeak-ng has no voice 'no-such-language"):
        make_demo(tmp_path / "x", speakers=1, clauses=2)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_target_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Could not write the built-in corpus"):
        make_demo(tmp_path / "file" / "x", speakers=1, clauses=2)


def test_a_disk_that_becomes_read_only_is_reported(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(demo, "speak_jobs", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UserError, match="Could not write the built-in corpus .*Read-only"):
        make_demo(tmp_path / "x", speakers=1, clauses=2)


@pytest.mark.parametrize("clauses", [2, 3])
def test_a_corpus_that_another_process_made_meanwhile_is_reused(tmp_path, monkeypatch, clauses):
    """The other process makes as many clauses as this one, or more."""

    def speak(jobs, folder, *_):
        for name, _ in jobs[0]["lines"]:
            (folder / f"{name}.wav").write_bytes(b"hum")

    def speak_slowly(jobs, folder, *_):
        monkeypatch.setattr(demo, "speak_jobs", speak)
        make_demo(tmp_path / "x", speakers=1, clauses=clauses)
        speak(jobs, folder)

    monkeypatch.setattr(demo, "speak_jobs", speak_slowly)
    # Two processes have two numbers, and so two folders.
    monkeypatch.setattr(os, "getpid", iter(range(10**8, 10**8 + 9)).__next__)
    monkeypatch.setattr(demo, "_remove_abandoned", lambda target: None)
    if clauses == 2:
        assert make_demo(tmp_path / "x", speakers=1, clauses=2) == tmp_path / "x"
    else:
        with pytest.raises(UserError, match="holds another built-in corpus"):
            make_demo(tmp_path / "x", speakers=1, clauses=2)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_ctrl_c_leaves_no_files(tmp_path):
    process = start_making(tmp_path / "x")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=20)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    process = start_making(tmp_path / "x")
    process.kill()
    process.wait()
    assert [path.name for path in tmp_path.iterdir()] == [f".x.partial-{process.pid}"]
    made = make_demo(tmp_path / "x", speakers=1, clauses=2)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert sorted(p.name for p in (made / "wavs").iterdir()) == ["rob-0001.wav", "rob-0002.wav"]


def start_making(target: Path) -> subprocess.Popen:
    """Start a long make in another process and return once it has written a recording."""
    code = (
        f"from myxtts.demo_corpus.corpus import make_demo; make_demo({str(target)!r}, speakers=8)"
    )
    root = str(Path(demo.__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": root},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 20
    while not list(target.parent.glob(".x.partial-*/wavs/*.wav")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    return process


def test_the_small_dataset_separates_training_and_validation(tmp_path):
    made = make_small_dataset(tmp_path / "small_dataset_test")
    texts = {}
    for part, count in {"dataset_train_small": 48, "dataset_val_small": 12}.items():
        lines = (made / part / "metadata.csv").read_text("utf-8").splitlines()
        texts[part] = {line.split("|")[1] for line in lines}
        assert len(texts[part]) == len(list((made / part / "wavs").iterdir())) == count
        assert json.loads((made / part / "demo.json").read_text())["speakers"] == ["rob", "f3"]
    assert texts["dataset_train_small"].isdisjoint(texts["dataset_val_small"])


def test_the_tests_own_corpus_is_deterministic(tmp_path):
    first = make_corpus(tmp_path / "a", count=4, speakers=2, rate=16000, seconds=(0.3, 0.5))
    second = make_corpus(tmp_path / "b", count=4, speakers=2, rate=16000, seconds=(0.3, 0.5))
    assert digests(first) == digests(second)
    assert len(digests(first)) == 6
    info = soundfile.info(first / "wavs" / "utt-0003.wav")
    assert info.samplerate == 16000 and 0.3 <= info.duration <= 0.5


def test_persian_is_pronounced_by_its_front_end():
    text = "کتاب قدیمی را خریدم."
    (job,) = plan_jobs("fa", choose_voices("fa", 1), [text])
    assert job["lines"] == [["rob-0001", text]]
    pronounced = demo._pronounced(job)
    assert pronounced["lines"] == [["rob-0001", "[[ket'Abe q1adi:m'i: RA xaRi:d'am]]."]]
    (english,) = plan_jobs("en", choose_voices("en", 1), ["Yes."])
    assert demo._pronounced(english) is english and "reader" not in english
