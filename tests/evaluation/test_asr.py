import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from myxtts.audio.io import read_audio
from myxtts.data.corpus.corpus import read_corpus
from myxtts.errors import UserError
from myxtts.evaluation import asr
from myxtts.evaluation.asr import (
    BEAM_SIZE,
    Moonshine,
    Whisper,
    asr_for,
    time_first,
)
from myxtts.evaluation.metrics.confidence import interval, ratio_of_sums
from myxtts.evaluation.metrics.intelligibility import error_rates, plain_words
from myxtts.monitoring.cores import available_cores
from tests.helpers.shared_data import shared

pytest.importorskip("jiwer")


def test_errors_are_counted_by_kind_and_by_sentence():
    # The first lacks one of four words, the second has one wrong and one too many of three.
    rates = error_rates(["The cat sat down.", "We saw it."], ["the cat down", "we was it all"])
    assert (rates.words, rates.substitutions, rates.deletions, rates.insertions) == (7, 1, 1, 1)
    assert rates.wer == pytest.approx(3 / 7)
    assert [one.errors for one in rates.sentences] == [1, 2]
    assert rates.sentences[0].said == "the cat sat down"
    assert rates.sentences[1].heard == "we was it all"


def test_characters_are_counted_with_the_spaces_between_words():
    # "ab cd" has five characters; "ab ce" has one of them wrong.
    assert error_rates(["Ab cd!"], ["ab ce"]).cer == pytest.approx(1 / 5)


def test_both_rates_are_sums_over_sentences():
    rates = error_rates(["Ab cd!", "efg", "h"], ["ab ce x", "efg", ""])
    # One word wrong and one too many of two; "d" for "e" and " x" too many of five characters.
    words = [(one.errors, one.words) for one in rates.sentences]
    characters = [(one.character_errors, one.characters) for one in rates.sentences]
    assert words == [(2, 2), (0, 1), (1, 1)]
    assert characters == [(3, 5), (0, 3), (1, 1)]
    assert interval(words, ratio_of_sums).value == pytest.approx(rates.wer)
    assert interval(characters, ratio_of_sums).value == pytest.approx(rates.cer)


def test_an_empty_transcript_deletes_every_word():
    rates = error_rates(["one two three", "four"], ["", "four"])
    assert (rates.wer, rates.deletions) == (3 / 4, 3)
    assert [one.deletions for one in rates.sentences] == [3, 0]


def test_insertions_can_raise_the_error_rate_above_one():
    assert error_rates(["stop"], ["stop it right now"]).wer == 3.0


@pytest.mark.parametrize(
    "said, heard",
    [
        ("two dogs", "2 dogs."),
        ("It cost five dollars.", "it cost $5"),
        ("twenty-one", "21"),
        ("the boy's hat", "The boy’s hat!"),
        ("Mr. Smith", "Mister Smith"),
    ],
)
def test_spelled_out_and_written_forms_are_equal(said, heard):
    assert error_rates([said], [heard]).wer == 0.0


def test_spellings_are_not_normalised():
    assert error_rates(["a grey colour"], ["a gray color"]).substitutions == 2


def test_persian_words_keep_their_marks_and_lose_their_joiners():
    assert plain_words("لطفاً می‌روم، ۲ بار!", "fa") == "لطفاً میروم دو بار"


def test_references_need_words():
    with pytest.raises(UserError, match="'...!' has none"):
        error_rates(["yes", "...!"], ["yes", ""])
    with pytest.raises(UserError, match="there is no reference"):
        error_rates([], [])
    with pytest.raises(ValueError, match="1 references, but 2"):
        error_rates(["yes"], ["yes", "no"])


def test_a_language_without_an_asr_returns_none(monkeypatch):
    monkeypatch.delenv("MYXTTS_WHISPER_DIR", raising=False)
    assert asr_for("fa") is None


class WhisperModel:
    """Stands in for that of faster-whisper 1.2.1, with its arguments."""

    supported_languages = ("en", "fa", "zh")
    opened = None

    def __init__(
        self,
        model_size_or_path,
        device="auto",
        device_index=0,
        compute_type="default",
        cpu_threads=0,
        num_workers=1,
        download_root=None,
        local_files_only=False,
        files=None,
        revision=None,
        use_auth_token=None,
    ):
        with open(f"{model_size_or_path}/model.bin") as file:
            if file.read() == "broken":
                raise RuntimeError("File model.bin is incomplete")
        assert local_files_only
        assert (cpu_threads, num_workers) == (available_cores(), 1)
        self.asked = []
        WhisperModel.opened = self

    def transcribe(
        self,
        audio,
        language=None,
        task="transcribe",
        log_progress=False,
        beam_size=5,
        temperature=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        condition_on_previous_text=True,
        without_timestamps=False,
    ):
        assert (audio.dtype, temperature) == (np.float32, 0.0)
        assert not condition_on_previous_text
        assert (beam_size, without_timestamps) == (BEAM_SIZE, True)
        self.asked.append((len(audio), language))
        segments = (SimpleNamespace(text=text) for text in (" One two,", " three."))
        return segments, SimpleNamespace(language=language)


class BatchedInferencePipeline:
    """Stands in for that of faster-whisper 1.2.1: a segment for each clip, in batches."""

    def __init__(self, model):
        self.model = model

    def transcribe(
        self,
        audio,
        language=None,
        task="transcribe",
        log_progress=False,
        beam_size=5,
        temperature=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        condition_on_previous_text=True,
        without_timestamps=True,
        vad_filter=True,
        clip_timestamps=None,
        batch_size=8,
    ):
        assert (audio.dtype, temperature, vad_filter) == (np.float32, 0.0, False)
        assert not condition_on_previous_text
        assert (beam_size, without_timestamps) == (BEAM_SIZE, True)
        bounds = [(int(c["start"] * 16000), int(c["end"] * 16000)) for c in clip_timestamps]
        self.model.asked += [(end - start, language) for start, end in bounds]
        levels = [np.abs(audio[start:end]).mean() for start, end in bounds]
        assert all(level > 0 for level in levels) and len(audio) >= bounds[-1][1]
        segments = (
            SimpleNamespace(seek=int(start / 16000 * 100), text=f" {round(10 * level)} words.")
            for (start, _), level in zip(bounds, levels, strict=True)
        )
        return segments, SimpleNamespace(language=language)


@pytest.fixture
def whisper_folder(tmp_path, monkeypatch):
    module = ModuleType("faster_whisper")
    module.WhisperModel = WhisperModel
    module.BatchedInferencePipeline = BatchedInferencePipeline
    monkeypatch.setitem(sys.modules, "faster_whisper", module)
    monkeypatch.delenv("MYXTTS_WHISPER_DIR", raising=False)
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"):
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize("language, asked", [("fa", "fa"), ("en", "en"), ("zh-cn", "zh")])
def test_a_whisper_model_transcribes_any_language_at_its_own_rate(whisper_folder, language, asked):
    whisper = asr_for(language, whisper_folder)
    assert whisper.name == "whisper base"
    done, speech = [], (np.full(11025, 0.5), 22050)
    heard = whisper.transcribe_many([speech, (np.zeros(9), 8000)], lambda *n: done.append(n))
    assert heard == ["5 words.", ""]
    assert done == [(1, 1)]
    assert WhisperModel.opened.asked == [(8000, asked)]  # silence is not asked about


def test_whisper_hears_recordings_together_and_long_ones_alone(whisper_folder):
    whisper = asr_for("fa", whisper_folder)
    waves = [np.full(n, level, np.float32) for n, level in ((20000, 0.2), (16000, 0.9), (9, 0.4))]
    long = np.full(31 * 16000, 0.5, np.float32)
    heard = whisper.transcribe_many([(one, 16000) for one in (waves[0], long, *waves[1:])])
    assert heard == ["2 words.", "One two, three.", "9 words.", "4 words."]
    sizes = [size for size, _ in WhisperModel.opened.asked]
    assert sizes == [31 * 16000, 20000, 16000, 9]


def test_the_environment_can_name_the_model_and_an_argument_overrides_it(
    whisper_folder, monkeypatch, tmp_path
):
    monkeypatch.setenv("MYXTTS_WHISPER_DIR", str(tmp_path / "nowhere"))
    assert isinstance(asr_for("en", whisper_folder), Whisper)
    with pytest.raises(UserError, match="nowhere"):
        asr_for("en")
    monkeypatch.setenv("MYXTTS_WHISPER_DIR", str(whisper_folder))
    assert isinstance(asr_for("en"), Whisper)
    monkeypatch.setenv("MYXTTS_WHISPER_DIR", "")
    assert asr_for("fa") is None


@pytest.mark.parametrize("name", ["model.bin", "config.json", "tokenizer.json", "vocabulary.txt"])
def test_an_incomplete_model_folder_is_rejected(whisper_folder, name):
    (whisper_folder / name).unlink()
    absent = name.replace("txt", r"\*")
    with pytest.raises(UserError, match=f"base is no folder with a Whisper model.* no {absent}"):
        Whisper(whisper_folder, "en")


def test_a_broken_model_or_an_unknown_language_is_rejected(whisper_folder):
    with pytest.raises(UserError, match="does not know the language 'de', only en, fa, zh"):
        Whisper(whisper_folder, "de")
    (whisper_folder / "model.bin").write_text("broken")
    with pytest.raises(UserError, match="cannot be opened: File model.bin is incomplete"):
        Whisper(whisper_folder, "en")


def test_missing_faster_whisper_is_named(whisper_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "faster_whisper", None)  # importing it now fails
    with pytest.raises(UserError, match=r"pip install .myxtts\[whisper\]"):
        Whisper(whisper_folder, "en")


@pytest.mark.parametrize("package", ["moonshine_voice", "jiwer"])
def test_a_missing_package_names_its_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)  # importing it now fails
    with pytest.raises(UserError, match=r"myxtts\[eval\]"):
        Moonshine()
        error_rates(["yes"], ["yes"])


@pytest.fixture(scope="module")
def moonshine():
    pytest.importorskip("moonshine_voice")
    return asr_for("en")


def test_silence_has_an_empty_transcript(moonshine):
    assert moonshine.transcribe(np.zeros(22050, np.float32), 22050) == ""
    assert moonshine.transcribe(np.zeros(0, np.float32), 22050) == ""
    assert moonshine.transcribe_many([]) == []


def test_a_transcript_does_not_depend_on_earlier_recordings(moonshine):
    utterances = read_corpus(shared("kathleen_en")).utterances[8:12]
    recordings = [(read_audio(one.audio, 22050), 22050) for one in utterances]
    done = []
    heard = moonshine.transcribe_many(recordings, lambda *counts: done.append(counts))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert error_rates([one.text for one in utterances], heard).wer < 0.15
    assert [moonshine.transcribe(*one) for one in reversed(recordings)] == heard[::-1]


def test_an_asr_understands_neither_noise_nor_a_drone_nor_shuffled_words(moonshine):
    (utterance,) = read_corpus(shared("kathleen_en")).utterances[9:10]
    natural = read_audio(utterance.audio, 22050)
    parts = np.array_split(natural, 6)
    phase = 2 * np.pi * 150 * np.arange(len(natural)) / 22050
    heard = moonshine.transcribe_many(
        [
            (one, 22050)
            for one in (
                natural,
                np.concatenate([parts[number] for number in (3, 0, 5, 1, 4, 2)]),
                0.1 * np.random.default_rng(0).standard_normal(len(natural)),
                0.1 * sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 20)),
            )
        ]
    )
    rates = [error_rates([utterance.text], [text]) for text in heard]
    assert rates[0].wer < 0.2
    assert min(one.wer for one in rates[1:]) > 0.7
    assert rates[0].cer < 0.1 and min(one.cer for one in rates[1:]) > 0.4


def test_another_model_language_or_version_is_another_judge(whisper_folder, monkeypatch):
    versions = {"faster-whisper": "1.2.1"}
    monkeypatch.setattr(asr, "version", versions.get)
    identities = [Whisper(whisper_folder, language).identity for language in ("en", "en", "fa")]
    versions["faster-whisper"] = "1.3"
    identities.append(Whisper(whisper_folder, "en").identity)
    (whisper_folder / "model.bin").write_text("other weights")
    identities.append(Whisper(whisper_folder, "en").identity)
    assert identities[0] == identities[1] and len(set(identities)) == 4


class Ear:
    """Transcribes one recording in ten seconds of a clock."""

    name = "an ear"

    def __init__(self, at_once: int):
        self.in_parallel, self.seconds = at_once, 0.0

    def transcribe_many(self, recordings, progress=None):
        self.seconds += 10.0 * len(recordings)
        return ["word"] * len(recordings)


@pytest.mark.parametrize(("at_once", "left"), [(1, "19 min"), (4, "5 min"), (30, "39 s")])
def test_the_first_recording_gives_an_estimate_for_all(at_once, left):
    ear = Ear(at_once)
    heard, said = time_first(ear, [(np.zeros(9), 8000)] * 117, lambda: ear.seconds)
    assert heard == ["word"]
    assert said == f"listening to 117 recordings with an ear: about {left} (the first took 10.0 s)"
