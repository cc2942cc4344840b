"""Times of words: where the frames of their tokens really are."""

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.inference.speech import Sentence
from myxtts.inference.synthesizer import Synthesizer
from myxtts.inference.times import find_times
from myxtts.text.reading import Reader
from myxtts.text.tokenizer import Tokenizer
from tests.helpers.fake_voice import FRAMES_PER_TOKEN, fake_voice

SPEC = AudioSpec(sample_rate=1000, hop_length=10)  # a frame is .01 s
FRAME = 256 / 22050  # of the voice


def sentence(
    text: str, durations: list[int], pause_frames: int = 0, num_frames: int | None = None
) -> Sentence:
    reading = Reader(Tokenizer.build(["en"]), "en").read(text)
    total = sum(durations) if num_frames is None else num_frames
    return Sentence(reading, np.array(durations), total, pause_frames)


def spans(sentences: list[Sentence]) -> list[tuple]:
    return [
        (word.text, round(word.start, 6), round(word.end, 6))
        for one in find_times(sentences, SPEC)
        for word in one.words
    ]


def test_a_word_lasts_from_its_first_unit_to_its_last():
    # BOS, h, i, comma, space, y, o, u, dot, EOS
    one = sentence("Hi, you.", [5, 1, 2, 10, 3, 4, 1, 1, 20, 30])
    assert spans([one]) == [("Hi,", 0.05, 0.08), ("you.", 0.21, 0.27)]
    (timed,) = find_times([one], SPEC)
    assert (timed.text, round(timed.start, 6), round(timed.end, 6)) == ("Hi, you.", 0.05, 0.27)
    assert [(unit.symbol, round(unit.end, 6)) for unit in timed.words[0].units] == [
        ("h", 0.06),
        ("i", 0.08),
    ]


def test_later_sentences_begin_after_the_pauses_before_them():
    first = sentence("Hi", [1, 2, 3, 4], pause_frames=25)
    assert spans([first, first]) == [("Hi", 0.01, 0.06), ("Hi", 0.36, 0.41)]


def test_a_sentence_that_is_cut_short_or_goes_on_moves_what_follows_it():
    cut = sentence("Hi", [1, 2, 3, 4], num_frames=5)
    longer = sentence("Hi", [1, 2, 3, 4], num_frames=12)
    assert spans([cut, longer, cut]) == [("Hi", 0.01, 0.05), ("Hi", 0.06, 0.11), ("Hi", 0.18, 0.22)]


def test_a_pause_without_words_takes_its_time():
    silence = Sentence(Reader(Tokenizer.build(["en"]), "en").read(""), np.zeros(0, int), 0, 50)
    assert spans([silence, sentence("Hi", [1, 2, 3, 4])]) == [("Hi", 0.51, 0.56)]


def test_marks_without_a_sound_go_with_the_word_before_them():
    assert [word for word, _, _ in spans([sentence("* a — b", [1] * 7)])] == ["* a —", "b"]


def test_a_letter_of_several_tokens_has_the_time_of_all():
    tokenizer = Tokenizer.build(["zh-cn"])
    reading = Reader(tokenizer, "zh-cn").read("鿕")  # beyond the alphabet: three bytes
    assert [unit.num_tokens for unit in reading.units] == [3]
    one = Sentence(reading, np.array([1, 2, 3, 4, 5]), 15)
    assert spans([one]) == [("鿕", 0.01, 0.1)]


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_times_are_where_the_voice_says_the_words(rate):
    voice = fake_voice()
    speech = Synthesizer(voice).speak("Dr. Who said: hi there. Bye.\n\nSo.", speaking_rate=rate)
    frames = [
        (unit.symbol, round(unit.start / FRAME), round(unit.end / FRAME))
        for one in find_times(speech.spoken, voice.config.data.audio_spec)
        for word in one.words
        for unit in word.units
    ]
    assert "".join(symbol for symbol, _, _ in frames) == "doctorwhosaidhitherebyeso"
    for symbol, start, end in frames:
        token = voice.tokenizer.look_up(symbol)[0][0]
        chord = voice.model._chord(token, voice.voices[0])
        assert end - start == round(FRAMES_PER_TOKEN / rate)
        np.testing.assert_array_equal(speech.mel[start:end], np.tile(chord, (end - start, 1)))
    total = sum(one.num_frames + one.pause_frames for one in speech.spoken)
    assert total == len(speech.mel)


def test_many_texts_have_their_own_times():
    synthesizer = Synthesizer(fake_voice())
    for text, speech in zip(
        ("One. Two.", "Three."), synthesizer.speak_many(["One. Two.", "Three."]), strict=True
    ):
        alone = synthesizer.speak(text)
        times = list(find_times(speech.spoken, synthesizer.spec))
        assert times == list(find_times(alone.spoken, synthesizer.spec))
