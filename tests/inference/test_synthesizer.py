"""The synthesizer around a model: what it asks of it, and what it makes of the answer."""

import os
from itertools import chain, repeat

import numpy as np
import pytest
import soundfile

from myxtts.audio.cleanup import loudness
from myxtts.audio.io import write_wav
from myxtts.audio.mel import log_mel
from myxtts.audio.postfilter import BINS
from myxtts.errors import UserError
from myxtts.inference.speaking_options import embed_reference
from myxtts.inference.speech import PEAK_LIMIT, set_level
from myxtts.inference.synthesizer import Synthesizer
from tests.helpers.fake_voice import DIM, FRAMES_PER_TOKEN, FakeModel, fake_voice

HOP, RATE = 256, 22050
PAUSE_FRAMES = round(0.25 * RATE / HOP)
FLOOR = np.float32(np.log(1e-5))


def synthesizer(**settings) -> Synthesizer:
    return Synthesizer(fake_voice(**settings))


def noise(seconds: float, level: float = 0.1) -> np.ndarray:
    samples = np.random.default_rng(3).normal(0, level, round(seconds * RATE))
    return samples.astype(np.float32)


def test_every_token_is_spoken_and_every_frame_has_its_samples():
    speech = synthesizer().speak("Hello world.")
    tokens = len("hello world.") + 2  # BOS and EOS
    assert speech.sentences == ("Hello world.",)
    assert speech.mel.shape == (tokens * FRAMES_PER_TOKEN, 80)
    assert speech.samples.dtype == np.float32
    assert len(speech.samples) == len(speech.mel) * HOP
    assert speech.seconds == pytest.approx(len(speech.samples) / RATE)


def test_speech_has_the_durations_of_tokens_and_of_pauses():
    voice = synthesizer()
    both, (short, long) = voice.speak("Hi. Hello."), voice.speak_many(["Hi.", "Hello."])
    assert short.durations.tolist() == [FRAMES_PER_TOKEN] * (len("hi.") + 2)
    np.testing.assert_array_equal(both.tokens, [*short.tokens, *long.tokens])
    np.testing.assert_array_equal(both.durations, [*short.durations, *long.durations])
    assert (both.pause_frames, short.pause_frames) == (PAUSE_FRAMES, 0)
    assert both.spoken_frames == both.durations.sum() == len(both.mel) - PAUSE_FRAMES


def test_a_loaded_voice_has_run_once_before_it_speaks():
    model = FakeModel()
    synthesizer = Synthesizer.load(fake_voice(model=model), "griffin_lim", may_be_endless=True)
    assert len(model.batches) == 1 and synthesizer.may_be_endless
    with pytest.raises(UserError, match="wavenet"):
        Synthesizer.load(fake_voice(), "wavenet")


def test_a_sentence_sounds_the_same_whatever_stands_around_it():
    voice = synthesizer()
    alone = voice.speak("Good morning.").samples
    amid = voice.speak("So it was. Good morning. Then he left.")
    start = len(voice.speak("So it was.").samples) + PAUSE_FRAMES * HOP
    np.testing.assert_array_equal(amid.samples[start : start + len(alone)], alone)


def test_pauses_are_silent_and_longer_between_paragraphs():
    voice = synthesizer()
    first, second = voice.speak("One."), voice.speak("Two.")
    frames = len(first.mel) + len(second.mel)
    near, far = voice.speak("One. Two."), voice.speak("One.\n\nTwo.")
    assert len(near.mel) == frames + PAUSE_FRAMES
    assert len(far.mel) == frames + round(0.6 * RATE / HOP)
    pause = slice(len(first.mel), len(first.mel) + PAUSE_FRAMES)
    assert (near.mel[pause] == FLOOR).all()
    assert not near.samples[pause.start * HOP : pause.stop * HOP].any()


def test_the_stream_put_together_is_the_speech():
    voice = synthesizer()
    text = "One. Two two. Three three three."
    parts = list(voice.stream(text))
    whole = voice.speak(text)
    assert [part.sentences for part in parts] == [("One.",), ("Two two.",), ("Three three three.",)]
    np.testing.assert_array_equal(np.concatenate([p.samples for p in parts]), whole.samples)
    np.testing.assert_array_equal(np.concatenate([p.mel for p in parts]), whole.mel)


def test_the_stream_speaks_only_on_demand():
    voice = synthesizer()
    stream = voice.stream("One. Two. Three.")
    next(stream)
    assert len(voice.voice.model.batches) == 1


def test_many_texts_are_said_as_each_of_them_alone():
    voice = synthesizer()
    texts = ["One. A longer sentence.", "Two.", "So long and thanks for all the fish."]
    many = voice.speak_many(texts)
    for text, speech in zip(texts, many, strict=True):
        alone = voice.speak(text)
        assert speech.sentences == alone.sentences
        np.testing.assert_array_equal(speech.mel, alone.mel)
        np.testing.assert_array_equal(speech.samples, alone.samples)


def test_batches_are_of_about_one_length():
    voice, reported = synthesizer(), []
    texts = ["a" * (1 + index % 7) for index in range(40)]
    voice.speak_many(texts, progress=lambda done, total: reported.append((done, total)))
    batches = voice.voice.model.batches
    assert [len(batch) for batch in batches] == [16, 16, 8]
    lengths = [length for batch in batches for length in batch]
    assert lengths == sorted(lengths)
    assert reported == [(16, 40), (32, 40), (40, 40)]


def test_no_text_gives_no_speech():
    assert synthesizer().speak_many([]) == []


def test_long_text_is_cut_to_what_the_model_was_trained_for():
    voice = synthesizer(max_text_length=20)
    speech = voice.speak("word " * 15)
    assert " ".join(speech.sentences).split() == ["word"] * 15
    assert max(batch[0] for batch in voice.voice.model.batches) <= 20


def test_long_text_is_cut_to_the_length_of_the_recordings():
    voice = synthesizer(max_mel_frames=123)  # 1.43 s, or 20 letters
    speech = voice.speak("letters " * 9)
    assert max(map(len, speech.sentences)) <= 20
    assert " ".join(speech.sentences).split() == ["letters"] * 9


def test_wide_letters_take_longer_to_say():
    voice = synthesizer(languages=("zh-cn",), max_mel_frames=123)
    speech = voice.speak("今天" * 10)
    assert "".join(speech.sentences) == "今天" * 10
    assert max(map(len, speech.sentences)) <= 20 // 3


@pytest.mark.parametrize("text", ["", "...", " \n ", "!?", "好"])
def test_text_with_nothing_to_say_is_an_error(text):
    for say in (synthesizer().speak, synthesizer().stream):
        with pytest.raises(UserError, match="nothing to say"):
            say(text)


def test_what_has_no_sound_is_skipped():
    assert synthesizer().speak("One. ... \n\n — Two.").sentences == ("One.", "— Two.")


def test_silent_texts_are_found_before_anything_is_said():
    assert synthesizer().nothing_to_say(["One.", "...", "", "Two."]) == [1, 2]


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_the_speaking_rate_scales_speech_and_pauses(rate):
    voice = synthesizer()
    normal, changed = (voice.speak("One. Two.", speaking_rate=r) for r in (1.0, rate))
    assert len(changed.mel) == pytest.approx(len(normal.mel) / rate, abs=1)


@pytest.mark.parametrize("rate", [0.0, -1.0, 0.2, 4.1, float("nan"), float("inf")])
def test_a_speaking_rate_out_of_bounds_is_an_error(rate):
    with pytest.raises(UserError, match=r"speaking rate .* not between 0.25 \(slow\) and 4"):
        synthesizer().speak("One.", speaking_rate=rate)


def test_the_seed_changes_samples_and_not_the_mel():
    voice = synthesizer()
    first, again, other = (voice.speak("One.", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.samples, again.samples)
    np.testing.assert_array_equal(first.mel, other.mel)
    assert np.abs(first.samples - other.samples).max() > 0.01


def test_the_first_speaker_is_the_default_and_the_others_have_names():
    voice = synthesizer()
    by_default, anna, ben = (voice.speak("One.", speaker=s).mel for s in (None, "anna", "ben"))
    np.testing.assert_array_equal(by_default, anna)
    np.testing.assert_array_equal(ben[0, 40 : 40 + DIM], [-4, -3, -2, -1])


def test_an_unknown_speaker_or_language_is_an_error_that_names_the_known():
    with pytest.raises(UserError, match="no speaker 'eve' here: choose one of anna, ben"):
        synthesizer().speak("One.", speaker="eve")
    with pytest.raises(UserError, match="no language 'de' here: choose one of en, fa"):
        synthesizer().speak("One.", language="de")


def test_the_language_reaches_the_model_as_its_number():
    voice = synthesizer()
    voice.speak("One.")
    voice.speak("سلام.", language="fa")
    assert voice.voice.model.languages == [0, 1]


def test_a_reference_is_the_voice(tmp_path):
    write_wav(tmp_path / "ref.wav", noise(3.0), RATE)
    speech = synthesizer().speak("One.", reference=tmp_path / "ref.wav", speaker="ben")
    expected = log_mel(noise(3.0), synthesizer().spec)[:, :DIM].mean(axis=0)
    np.testing.assert_allclose(speech.mel[0, 40 : 40 + DIM], expected, atol=0.01)


def test_references_are_taken_together_and_resampled(tmp_path):
    write_wav(tmp_path / "a.wav", noise(2.0), RATE)
    write_wav(tmp_path / "b.wav", noise(2.0, level=0.01), RATE)
    quiet, both = (
        synthesizer().speak("One.", reference=reference).mel[0, 40]
        for reference in ([tmp_path / "b.wav"], [tmp_path / "a.wav", tmp_path / "b.wav"])
    )
    # Ten times louder is ln 10 more in one half of the frames.
    assert both - quiet == pytest.approx(np.log(10) / 2, abs=0.1)


def test_a_missing_or_silent_reference_is_an_error(tmp_path):
    write_wav(tmp_path / "silent.wav", np.zeros(RATE, np.float32), RATE)
    with pytest.raises(UserError, match="no reference recording"):
        synthesizer().speak("One.", reference=tmp_path / "absent.wav")
    with pytest.raises(UserError, match="silent recording"):
        synthesizer().speak("One.", reference=tmp_path / "silent.wav")
    with pytest.raises(UserError, match="empty list of references"):
        synthesizer().speak("One.", reference=[])


@pytest.mark.timeout(60)
def test_a_reference_that_is_a_trap_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(UserError, match="pipe.wav: not a regular file: it is a named pipe"):
        synthesizer().speak("One.", reference=tmp_path / "pipe.wav")
    soundfile.write(tmp_path / "huge.wav", np.full(RATE, 1e38), RATE, "FLOAT")
    with pytest.raises(UserError, match="huge.wav: samples far beyond full scale"):
        synthesizer().speak("One.", reference=tmp_path / "huge.wav")


def test_a_short_reference_is_warned_of(tmp_path, caplog):
    write_wav(tmp_path / "short.wav", noise(1.0), RATE)
    synthesizer().speak("One.", reference=tmp_path / "short.wav")
    assert "a reference of 1.0 s says little about a voice" in caplog.text


@pytest.mark.parametrize("gain", [1e-2, 1.0, 50.0])
def test_loud_and_quiet_speech_come_to_one_level(gain):
    samples = set_level(noise(2.0, 0.1) * gain, RATE)
    assert loudness(samples, RATE) == pytest.approx(-23.0, abs=0.1)


def test_peaks_are_never_clipped():
    clicks = np.zeros(RATE, np.float32)
    clicks[::4000] = 0.5
    levelled = set_level(clicks, RATE)
    assert np.abs(levelled).max() == pytest.approx(PEAK_LIMIT, abs=1e-6)
    assert loudness(levelled, RATE) < -23.0


def test_speech_is_at_a_sane_level_and_begins_and_ends_in_silence():
    samples = synthesizer().speak("Hello there, world.").samples
    assert loudness(samples, RATE) == pytest.approx(-23.0, abs=0.5)
    assert np.abs(samples).max() <= PEAK_LIMIT + 1e-6
    assert samples[0] == samples[-1] == 0.0


def test_endless_empty_and_broken_speech_are_errors_that_name_the_sentence():
    class NaNModel(FakeModel):
        def _chord(self, token, voice):
            return np.full(self.n_mels, np.nan, np.float32)

    class LoudModel(FakeModel):
        def _chord(self, token, voice):
            return np.full(self.n_mels, 1e30, np.float32)

    for model, complaint in (
        (LoudModel(), r"no numbers \(NaN\) for 'Hello.'"),
        (FakeModel(frames_per_token=100), "takes 9.3 s for 'Hello.'"),
        (FakeModel(frames_per_token=0.1), "says nothing for 'Hello.'"),
        (NaNModel(), r"no numbers \(NaN\) for 'Hello.'"),
    ):
        with pytest.raises(UserError, match=complaint):
            synthesizer(model=model).speak("Hello.")


def test_a_vocoder_that_gives_no_numbers_is_an_error_that_names_it():
    class Broken:
        name = "broken"

        def __call__(self, mel, spec, seed):
            return np.full(len(mel) * spec.hop_length, np.inf, np.float32)

    with pytest.raises(UserError, match=r"vocoder broken gives no numbers .*choose another one"):
        Synthesizer(fake_voice(), Broken()).speak("Hello.")


def test_endless_speech_is_no_error_for_whoever_wants_to_hear_it():
    voice = fake_voice(model=FakeModel(frames_per_token=100))
    speech = Synthesizer(voice, may_be_endless=True).speak("Hello.")
    assert len(speech.mel) == 100 * 8


def test_slow_speech_is_not_taken_for_endless():
    voice = synthesizer(model=FakeModel(frames_per_token=20))
    assert voice.speak("Hello.", speaking_rate=0.25).seconds == pytest.approx(8 * 80 * HOP / RATE)


def test_an_unknown_vocoder_is_an_error_that_names_the_known():
    assert Synthesizer(fake_voice()).vocoder.name == "griffin_lim"
    with pytest.raises(UserError, match="no vocoder 'wavenet' here: choose one of .*griffin_lim"):
        Synthesizer(fake_voice(), vocoder="wavenet")


def test_an_unknown_option_is_a_mistake_of_the_caller():
    with pytest.raises(TypeError, match="pitch"):
        synthesizer().speak("One.", pitch=2)


def test_the_first_sentence_of_a_book_is_spoken_before_the_rest_is_read():
    counts = []
    for sentences in (2_000, 4_000):
        read = []
        book = (read.append(1) or "So it was. ... " for _ in range(sentences))
        first = next(synthesizer().stream(book))
        assert first.sentences == ("So it was.",) and first.pause_frames == PAUSE_FRAMES
        counts.append(len(read))
    assert counts[0] == counts[1] < 1_000


def test_a_text_in_parts_is_said_as_the_whole():
    voice = synthesizer()
    whole = voice.speak("One. Two two.")
    np.testing.assert_array_equal(voice.speak(["On", "e. Tw", "o two."]).samples, whole.samples)


def test_endless_silence_after_a_sentence_does_not_hold_it_back():
    first = next(synthesizer().stream(chain(["One. "], repeat("... "))))
    assert first.sentences == ("One.",)


def test_latin_words_in_a_persian_text_cause_one_warning(caplog):
    voice = synthesizer(languages=("fa",))
    voice.speak("درگاه USB و Google است.")
    voice.speak("درگاه HDMI است.")
    (record,) = caplog.records
    assert "'USB', 'Google'" in record.getMessage() and "letter by letter" in record.getMessage()


# The post-filter


def test_a_voice_with_gains_sharpens_its_mels_unless_asked_not_to():
    voice = fake_voice()
    plain = Synthesizer(voice).speak("hello there").mel
    voice.gains = np.full((BINS, voice.config.data.n_mels), 1.5, np.float32)
    sharp = Synthesizer(voice).speak("hello there").mel
    again = Synthesizer(voice).speak("hello there", postfilter=False).mel
    np.testing.assert_array_equal(again, plain)
    mean = plain.mean(axis=0)
    np.testing.assert_allclose(sharp, mean + 1.5 * (plain - mean), atol=1e-3)


# Lines of several texts


def test_lines_of_several_texts_in_one_batch_sound_as_they_do_alone():
    model = FakeModel()
    voice = Synthesizer(fake_voice(model=model))
    lines = [
        *voice.plan("Good morning.", speaker="ben", speaking_rate=2.0),
        *voice.plan("سلام.", language="fa"),
        *voice.plan("Hello.", seed=3),
    ]
    first, second, third = voice.say(lines)
    assert len(model.batches) == 1 and len(model.batches[0]) == 3
    alone = (
        voice.speak("Good morning.", speaker="ben", speaking_rate=2.0),
        voice.speak("سلام.", language="fa"),
        voice.speak("Hello.", seed=3),
    )
    for said, expected in zip((first, second, third), alone, strict=True):
        np.testing.assert_array_equal(said.samples, expected.samples)


def test_a_plan_with_an_opening_begins_with_a_short_line():
    text = "After all that time, the man whom nobody knew came home. Then he left."
    whole = [line.text for line in synthesizer().plan(text)]
    short = [line.text for line in synthesizer().plan(text, opening=24)]
    assert whole == ["After all that time, the man whom nobody knew came home.", "Then he left."]
    assert short == ["After all that time,", "the man whom nobody knew came home.", "Then he left."]


def test_an_embedding_stands_in_for_the_reference_that_it_was_made_of(tmp_path):
    write_wav(tmp_path / "one.wav", noise(3.0), RATE)
    voice = synthesizer()
    vector = embed_reference(tmp_path / "one.wav", voice.voice)
    cloned = voice.speak("Hello.", reference=tmp_path / "one.wav")
    np.testing.assert_array_equal(voice.speak("Hello.", embedding=vector).mel, cloned.mel)
