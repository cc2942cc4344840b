"""SSML spoken by a voice: breaks, rates, volumes, speakers and languages."""

import logging

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.inference.script import stream_ssml
from myxtts.inference.speech import PEAK_LIMIT, Speech, join_speech
from myxtts.inference.synthesizer import Synthesizer
from myxtts.inference.times import find_times
from tests.helpers.fake_voice import FakeModel, fake_voice

HOP, RATE = 256, 22050


def synthesizer(**settings) -> Synthesizer:
    return Synthesizer(fake_voice(**settings))


def say(body: str, voice: Synthesizer | None = None, **options) -> Speech:
    parts = stream_ssml(voice or synthesizer(), f"<speak>{body}</speak>", **options)
    return join_speech(list(parts))


def test_a_plain_document_sounds_like_its_text():
    text = "Hello there. How are you?"
    plain, marked = synthesizer().speak(text), say(text)
    np.testing.assert_array_equal(marked.samples, plain.samples)
    assert marked.sentences == plain.sentences


def test_a_break_is_as_long_as_it_says_whatever_the_rate():
    one, two = synthesizer().speak("One"), synthesizer().speak("two.")
    for rate in (1.0, 2.0):
        spoken = say('One <break time="500ms"/> two.', speaking_rate=rate)
        frames = (len(one.mel) + len(two.mel)) / rate + round(0.5 * RATE / HOP)
        assert len(spoken.mel) == frames


def test_breaks_may_stand_at_both_ends_and_count_in_the_times():
    voice = synthesizer()
    spoken = say('<break time="1s"/>One.<break time="2s"/>', voice)
    silence, alone = round(RATE / HOP), voice.speak("One.")
    assert len(spoken.mel) == silence + len(alone.mel) + round(2 * RATE / HOP)
    (timed,) = find_times(spoken.spoken, voice.spec)
    (before,) = find_times(alone.spoken, voice.spec)
    assert timed.start == pytest.approx(before.start + silence * HOP / RATE)


def test_prosody_changes_rate_and_volume_of_its_words_alone():
    voice = synthesizer()
    spoken = say('One. <prosody rate="200%" volume="-6dB">Two.</prosody>', voice)
    first, second = voice.speak("One."), voice.speak("Two.", speaking_rate=2.0)
    pause = round(0.25 * RATE / HOP) * HOP
    np.testing.assert_array_equal(spoken.samples[: len(first.samples)], first.samples)
    softer = second.samples * np.float32(10 ** (-6 / 20))
    np.testing.assert_allclose(spoken.samples[len(first.samples) + pause :], softer, atol=1e-6)


def test_volume_does_not_clip_and_silence_is_silent():
    assert np.abs(say('<prosody volume="+40dB">One.</prosody>').samples).max() == pytest.approx(
        PEAK_LIMIT, abs=1e-4
    )
    assert np.abs(say('<prosody volume="silent">One.</prosody>').samples).max() < 1e-8


def test_voice_and_lang_choose_speaker_and_language():
    model = FakeModel()
    voice = synthesizer(model=model)
    spoken = say('<voice name="ben">One.</voice> <lang xml:lang="fa">سلام</lang>', voice)
    assert model.languages == [0, 1]
    ben = voice.speak("One.", speaker="ben")
    np.testing.assert_array_equal(spoken.samples[: len(ben.samples)], ben.samples)


def test_marks_between_elements_are_no_error():
    spoken = say('<voice name="ben">One</voice>, <voice name="anna">two</voice>.')
    assert spoken.sentences == ("One", "two")


def test_words_are_shown_as_they_are_written():
    voice = synthesizer()
    spoken = say('The <sub alias="world wide web">WWW</sub> of it.', voice)
    assert spoken.sentences == ("The WWW of it.",)
    assert voice.voice.tokenizer.decode(spoken.tokens) == "the world wide web of it."
    (timed,) = find_times(spoken.spoken, voice.spec)
    assert [word.text for word in timed.words] == ["The", "WWW", "of", "it."]


def test_what_has_no_effect_is_warned_of(caplog):
    with caplog.at_level(logging.WARNING):
        say("<emphasis>One.</emphasis>")
    assert "<emphasis> is not known" in caplog.text


@pytest.mark.parametrize(
    "body, complaint",
    [
        ("", "nothing to say in the SSML"),
        ("<break/>, ...", "nothing to say in the SSML"),
        ('One. <voice name="eve">Two.</voice>', "choose one of anna, ben"),
        ('One. <lang xml:lang="de">Zwei.</lang>', "choose one of en, fa"),
        ('One. <prosody rate="900%">Two.</prosody>', "the speaking rate 9 is not between"),
        ('<phoneme ph="wɪn">Nguyen</phoneme>', "reads characters and cannot say the IPA 'wɪn'"),
    ],
)
def test_what_the_voice_cannot_do_is_an_error_before_the_first_sound(body, complaint):
    model = FakeModel()
    with pytest.raises(UserError, match=complaint):
        say(body, synthesizer(model=model))
    assert model.batches == []
