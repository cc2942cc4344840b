"""One evaluation through all metrics: each reacts to what it measures, or gives a reason."""

import math
from dataclasses import replace

import numpy as np
import pytest

from myxtts.audio.io import SILENT, AudioError
from myxtts.config.audio_spec import AudioSpec
from myxtts.data.corpus.utterance import Utterance
from myxtts.errors import UserError
from myxtts.evaluation.alignment import Alignment
from myxtts.evaluation.evaluator import choose_utterances, evaluate
from myxtts.evaluation.metrics.quality import QualityScore
from myxtts.evaluation.metrics.robustness import Attempt, HardSpeech, usual_durations
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.speaker import median_pitch
from myxtts.evaluation.metrics.table import (
    ASR,
    ENCODER,
    HARD_TEXTS,
    METRICS,
    OPINION,
    RATER,
    RECORDED,
    RECORDINGS,
    RESYNTHESIS,
    SPEECH,
    metrics_that_need,
)
from tests.audio.test_threads import blas_threads

pytest.importorskip("jiwer")
pytest.importorskip("pystoi")

SPEC = AudioSpec()
RATE = SPEC.sample_rate
WORDS = ("amber", "bridge", "candle", "distant", "early", "forest", "garden", "hollow")
PITCH = {"anna": 200.0, "ben": 120.0}


def voiced(text: str, speaker: str = "anna") -> np.ndarray:
    """Every word is half a second of its own formants, under a pitch that rises and falls."""
    time = np.arange(RATE // 2) / RATE
    hertz = PITCH[speaker] * (1 + 0.15 * np.sin(2 * np.pi * 2 * time))
    phase = 2 * np.pi * np.cumsum(hertz) / RATE
    words = []
    for word in text.split():
        formants = [300 + 90 * WORDS.index(word), 1000 + 250 * WORDS.index(word)]
        wave = np.zeros(len(time))
        for number in range(1, 30):
            middle = number * PITCH[speaker]
            gain = sum(math.exp(-(((middle - one) / 150) ** 2)) for one in formants) + 0.01
            wave += gain * np.sin(number * phase)
        words.append(wave)
    samples = np.concatenate(words)
    return (0.5 * samples / np.abs(samples).max()).astype(np.float32)


class Ear:
    """Recognises the words whose samples it knows, half a second at a time."""

    name = "a fake ear"

    def __init__(self):
        self.known = {(word, who): voiced(word, who) for word in WORDS for who in PITCH}

    def transcribe_many(self, recordings, progress=None):
        if progress:
            progress(len(recordings), len(recordings))
        return [self.hear(samples) for samples, _ in recordings]

    def hear(self, samples) -> str:
        words = []
        for start in range(0, len(samples) - RATE // 2 + 1, RATE // 2):
            segment = samples[start : start + RATE // 2]
            for (word, _), own in self.known.items():
                length = np.linalg.norm(segment) * np.linalg.norm(own)
                if length and np.dot(segment, own) / length > 0.97:
                    words.append(word)
        return " ".join(words)


class Rater:
    """Rates how far a spectrum is from flat."""

    name = "a fake rater"

    def score_many(self, recordings, progress=None):
        return [self.score(samples) for samples, _ in recordings]

    def score(self, samples) -> QualityScore:
        power = np.abs(np.fft.rfft(samples)) ** 2 + 1e-9
        peaks = 1 - math.exp(np.log(power).mean()) / power.mean()
        return QualityScore(peaks, peaks, 1 + 4 * peaks)


class Opinion:
    """Has the same opinion on everything."""

    name, identity = "a fake opinion", "a fake opinion"

    def score_many(self, recordings, progress=None):
        return [3.5 for _ in recordings]


def embed(recordings, sample_rate):
    """An angle for the pitch: anna's and ben's are a right one apart, and noise has none."""
    found = []
    for samples in recordings:
        hertz = median_pitch([samples], SPEC)
        turn = math.log(max(hertz, 1) / PITCH["ben"]) / math.log(PITCH["anna"] / PITCH["ben"])
        angle = math.pi / 2 * turn
        is_silent = np.abs(samples).max() < 1e-3
        vector = [0, 0, 1] if math.isnan(hertz) else [math.cos(angle), math.sin(angle), 0]
        silent = AudioError("nowhere", SILENT, "nobody is heard")
        found.append(silent if is_silent else np.array(vector, np.float32))
    return found


JUDGES = Judges(Ear(), Rater(), embed, "a fake encoder", Opinion())
TOKENS, DURATIONS = np.array([5, 6] * 5), np.array([9, 8, 7, 6, 5] * 2)
TEXTS = (
    "amber bridge candle",
    "distant early forest",
    "garden hollow amber",
    "candle early hollow",
)


def subject(speak=lambda text, number: voiced(text), **changed) -> Subject:
    """Four texts as spoken by `speak`, and their recordings."""
    sentences = [
        Sentence(
            f"s{n}", text, speak(text, n), "anna", *[voiced(text)] * 2, DURATIONS, tokens=TOKENS
        )
        for n, text in enumerate(TEXTS)
    ]
    aligned = Alignment(TOKENS, np.repeat(np.arange(10), DURATIONS), DURATIONS)
    others = ("early garden", "hollow bridge", "forest candle")
    known = {who: [voiced(text, who) for text in others] for who in PITCH}
    hard = HardSpeech(
        [Attempt("plain", "amber", np.array([5, 6]), np.array([20, 23]), 43)],
        [voiced("amber")],
        usual_durations([np.array([5, 6] * 5)], [np.array([20, 23] * 5)]),
    )
    given = {"vocoder": "none", "known": known, "hard": hard, "alignments": [aligned] * 4}
    return Subject("test", "en", SPEC, sentences, **{**given, **changed})


@pytest.fixture(scope="module")
def perfect():
    return evaluate(subject(), JUDGES)


def speech(found) -> dict[str, float]:
    return {name: one.intervals[SPEECH].value for name, one in found.measures.items()}


def test_speech_equal_to_its_recording_has_perfect_figures(perfect):
    scores = perfect.scores()
    assert scores["wer"] == scores["cer"] == 0.0
    assert scores["mcd"] == pytest.approx(0.0, abs=1e-6)
    assert scores["f0_correlation"] == pytest.approx(1.0)
    assert scores["length_ratio"] == 1.0 and scores["warped_estoi"] > 0.99
    assert scores["similarity"] > 0.9 and scores["right_speaker"] == 1.0
    assert scores["skipped"] == scores["endless"] == scores["faulty_texts"] == 0.0
    assert perfect.not_measured == {}
    assert [one.faulty for one in perfect.fault_counts] == [0, 0]
    assert perfect.judges[ASR] == "a fake ear"


def test_every_figure_has_an_interval_and_its_ceilings(perfect):
    for name in ("wer", "mos", "similarity", "loudness"):
        assert set(perfect.measures[name].intervals) == {SPEECH, RECORDED, RESYNTHESIS}
    for name in ("mcd", "f0_rmse", "warped_estoi", "mel_variance", "f0_spread"):
        assert set(perfect.measures[name].intervals) == {SPEECH, RESYNTHESIS}
    found = perfect.measures["loudness"].intervals[SPEECH]
    assert found.sentences == 4 and found.low <= found.value <= found.high


def test_speech_equal_to_its_recording_is_exactly_as_lively(perfect):
    ratios = {name for name, one in METRICS.items() if one.target == 1.0}
    assert {"length_ratio", "mel_variance", "f0_dynamics", "duration_variety"} <= ratios
    for name in ratios - {"pause_length"}:
        assert perfect.scores()[name] == 1.0, name
        for found in perfect.measures[name].intervals.values():
            assert found.low == found.high == 1.0
    # These words follow each other without a pause.
    assert math.isnan(perfect.measures["pause_length"].intervals[SPEECH].value)
    assert math.isnan(perfect.measures["missed_pauses"].intervals[SPEECH].value)


def monotone(text, number):
    """The same sounds, at one pitch."""
    time = np.arange(RATE // 2) / RATE
    words = []
    for word in text.split():
        formants = [300 + 90 * WORDS.index(word), 1000 + 250 * WORDS.index(word)]
        gains = [
            sum(math.exp(-(((200 * n - one) / 150) ** 2)) for one in formants) + 0.01
            for n in range(1, 30)
        ]
        words.append(sum(g * np.sin(2 * np.pi * 200 * n * time) for n, g in enumerate(gains, 1)))
    samples = np.concatenate(words)
    return (0.5 * samples / np.abs(samples).max()).astype(np.float32)


def test_products_of_metrics_do_not_fight_over_the_cores():
    seen = []

    class Watching(Rater):
        def score_many(self, recordings, progress=None):
            seen.append(blas_threads())
            return super().score_many(recordings, progress)

    evaluate(subject(), replace(JUDGES, rater=Watching()), metrics=metrics_that_need(RATER))
    assert seen == [{1}]


def test_speech_at_one_pitch_has_no_melody():
    found = evaluate(subject(monotone), Judges(), metrics=["f0_spread", "f0_dynamics"]).scores()
    assert found["f0_spread"] < 0.05 and found["f0_dynamics"] < 0.1


def noise(text, number):
    return np.random.default_rng(number).normal(0, 0.1, len(voiced(text))).astype(np.float32)


def silence(text, number):
    return np.zeros(len(voiced(text)), np.float32)


def drone(text, number):
    return (0.3 * np.sin(2 * np.pi * 150 * np.arange(len(voiced(text))) / RATE)).astype(np.float32)


def shuffled(text, number):
    return voiced(" ".join(reversed(text.split())))


def stranger(text, number):
    return voiced(text, "ben")


@pytest.mark.parametrize("speak", [noise, silence, drone])
def test_sounds_other_than_speech_are_not_understood(perfect, speak):
    found = evaluate(subject(speak), JUDGES)
    assert found.scores()["wer"] == 1.0
    assert found.measures["wer"].intervals[RECORDED].value == 0.0  # the ceiling does not move


@pytest.mark.parametrize("speak", [noise, drone])
def test_noise_and_drones_are_far_from_recordings(perfect, speak):
    found = speech(evaluate(subject(speak), JUDGES))
    assert found["mcd"] > 3.0
    assert found["warped_estoi"] < 0.7
    assert not found["f0_correlation"] > 0.5
    assert found["similarity"] < perfect.scores()["similarity"] - 0.1


def test_silence_has_no_figures_but_the_share_of_silence(perfect):
    found = speech(evaluate(subject(silence), JUDGES))
    for name in ("mcd", "f0_rmse", "warped_estoi", "similarity", "loudness", "mel_variance"):
        assert math.isnan(found[name])
    assert found["silent"] == 1.0


def test_noise_is_rated_below_speech(perfect):
    assert speech(evaluate(subject(noise), JUDGES))["mos"] < perfect.scores()["mos"] - 1.0


def test_shuffled_words_raise_the_error_rate_and_keep_the_speaker(perfect):
    found = evaluate(subject(shuffled), JUDGES).scores()
    assert found["wer"] >= 0.5
    assert found["mcd"] > 1.0
    assert found["similarity"] == pytest.approx(perfect.scores()["similarity"], abs=0.05)


def test_another_speaker_keeps_the_words_and_loses_the_similarity(perfect):
    found = evaluate(subject(stranger), JUDGES)
    assert found.scores()["wer"] == 0.0
    assert found.scores()["right_speaker"] == 0.0
    assert found.scores()["f0_rmse"] > 600  # 884 cents between 120 and 200 Hz
    assert found.scores()["similarity"] < perfect.scores()["similarity"] - 0.3
    assert (perfect.speakers.place.accepted, found.speakers.place.accepted) == (1.0, 0.0)
    assert found.speakers.place.among_same == 0.0
    assert len(found.speakers.among.same) == 6 and len(found.speakers.among.different) == 9


def test_a_silent_sentence_ranks_last():
    speak = lambda text, number: silence(text, 0) if number == 1 else voiced(text)  # noqa: E731
    assert evaluate(subject(speak), JUDGES).ranked() == [0, 2, 3, 1]


def test_a_metric_that_cannot_run_gives_a_reason_and_the_others_run():
    judges = Judges(None, None, None, absent={RATER: "its weights are not here"})
    found = evaluate(subject(hard=None, absent={RECORDINGS: "other speakers"}), judges)
    assert found.not_measured == {
        ASR: "there is no ASR for 'en'",
        RATER: "its weights are not here",
        OPINION: "there is no predictor of opinions",
        RECORDINGS: "other speakers",
        ENCODER: "there is no speaker encoder",
        HARD_TEXTS: "only a voice can speak hard texts",
    }
    assert "wer" not in found.measures and "loudness" in found.measures
    assert found.fault_counts == [] and found.ranked() == [0, 1, 2, 3]


def test_the_message_of_a_user_error_is_the_reason():
    class Deaf(Ear):
        def transcribe_many(self, recordings, progress=None):
            raise UserError("the model is gone")

    found = evaluate(subject(), Judges(Deaf(), Rater(), embed, opinion=Opinion()))
    assert found.not_measured == {ASR: "the model is gone"}
    assert found.fault_counts[0].repeated is None  # without an ASR


def test_without_ceilings_recordings_are_only_compared_with():
    found = evaluate(subject(has_ceilings=False), JUDGES)
    assert set(found.measures["wer"].intervals) == {SPEECH}
    assert found.scores()["mcd"] == pytest.approx(0.0, abs=1e-6)


def test_a_recording_is_not_compared_with_itself():
    only = voiced(TEXTS[0])
    sentence = Sentence("a", TEXTS[0], only, "anna", only)
    found = evaluate(Subject("t", "en", SPEC, [sentence], known={"anna": [only]}), JUDGES)
    assert math.isnan(found.measures["similarity"].intervals[RECORDED].value)
    place = found.speakers.place
    assert place.sentences == 0 and math.isnan(place.similarity)


def test_repeated_words_are_found_in_hard_texts():
    said = HardSpeech(
        [Attempt("plain", "amber bridge", np.array([5, 6]), np.array([20, 23]), 43)],
        [voiced("amber bridge amber bridge")],
        usual_durations([np.array([5, 6] * 5)], [np.array([20, 23] * 5)]),
    )
    found = evaluate(subject(hard=said), JUDGES)
    assert found.faults[0].repeated == "amber bridge" and found.fault_counts[-1].repeated == 1


def test_sentences_below_half_or_above_twice_their_length_are_skipped_or_endless():
    shares = (0.5, 0.49, 2.0, 2.1)  # half and twice the length are still accepted

    def speak(text, number):
        recorded = voiced(text)
        return np.resize(recorded, round(shares[number] * len(recorded)))

    found = evaluate(subject(speak), Judges(), metrics=["skipped", "endless"])
    assert found.measures["skipped"].values[SPEECH].tolist() == [0, 1, 0, 0]
    assert found.measures["endless"].values[SPEECH].tolist() == [0, 0, 0, 1]


def test_lost_words_mean_skipped_and_long_sounds_mean_endless_sentences():
    speak = lambda text, number: noise(text, 0) if number == 1 else voiced(text)  # noqa: E731
    given = subject(speak)
    frames = [np.array([90 if number == 2 else 9]) for number in range(4)]  # 90 frames are 1.04 s
    sentences = [
        replace(one, durations=own) for one, own in zip(given.sentences, frames, strict=True)
    ]
    found = evaluate(replace(given, sentences=sentences), JUDGES, metrics=["skipped", "endless"])
    assert found.measures["skipped"].values[SPEECH].tolist() == [0, 1, 0, 0]
    assert found.measures["endless"].values[SPEECH].tolist() == [0, 0, 1, 0]
    assert set(found.measures) == {"skipped", "endless"} and found.heard == {}
    # Without an ASR only the lengths count.
    found = evaluate(given, Judges(), metrics=["skipped"])
    assert found.scores() == {"skipped": 0.0}


def test_the_choice_of_sentences_depends_on_their_ids_alone():
    utterances = [Utterance(f"u{n}", None, "text", "anna", "en") for n in range(30)]
    chosen = choose_utterances(utterances, 8)
    assert len(chosen) == 8 and chosen == sorted(chosen, key=utterances.index)
    # Others do not move it, unless they are chosen themselves; nor does the order.
    assert set(choose_utterances(utterances[::-1], 8)) == set(chosen)
    fewer = choose_utterances([one for one in utterances if one not in chosen[:2]], 8)
    assert set(chosen[2:]) <= set(fewer)
    assert choose_utterances(utterances[:3], 8) == utterances[:3]
