"""A real model, untrained and tiny: saved, loaded and speaking."""

import numpy as np
import pytest

from myxtts.checkpoints import Voice, load_voice, save_voice
from myxtts.config.config import XTTSConfig
from myxtts.inference.synthesizer import Synthesizer
from myxtts.inference.times import find_times
from myxtts.text.tokenizer import Tokenizer

CONFIG = XTTSConfig(
    text_encoder_dim=16,
    text_encoder_layers=1,
    text_encoder_heads=2,
    decoder_dim=16,
    decoder_layers=1,
    audio_encoder_dim=8,
    audio_encoder_layers=1,
    speaker_embedding_dim=8,
)
VECTORS = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def voice(tmp_path_factory) -> Voice:
    import keras

    from myxtts.models.xtts import build_xtts

    keras.utils.set_random_seed(0)
    tokenizer = Tokenizer.build(["en"])
    model = build_xtts(CONFIG.model, CONFIG.data.audio_spec, tokenizer.vocab_size, 1, 2)
    folder = tmp_path_factory.mktemp("run") / "voice"
    save_voice(folder, model, CONFIG, tokenizer, ["anna", "ben"], ["en"], VECTORS)
    return Voice(folder, CONFIG, tokenizer, model, ("anna", "ben"), ("en",), VECTORS)


def test_a_saved_voice_speaks_the_same_samples_after_loading(voice):
    before = Synthesizer(voice).speak("Hello there. Good bye.", speaker="ben")
    loaded = Synthesizer(load_voice(voice.folder))
    loaded.warm_up()
    after = loaded.speak("Hello there. Good bye.", speaker="ben")
    assert after.seconds > 0.3
    np.testing.assert_array_equal(before.mel, after.mel)
    np.testing.assert_array_equal(before.samples, after.samples)


def test_the_times_of_words_add_up_to_the_speech(voice):
    synthesizer = Synthesizer(voice)
    speech = synthesizer.speak("Hello there, 21 of you. Good bye.", speaking_rate=1.3)
    frames = sum(one.num_frames + one.pause_frames for one in speech.spoken)
    assert frames == len(speech.mel)
    words = [word for one in find_times(speech.spoken, synthesizer.spec) for word in one.words]
    assert [word.text for word in words] == "Hello there, 21 of you. Good bye.".split()
    assert all(a.end <= b.start for a, b in zip(words, words[1:], strict=False))
    assert 0.0 <= words[0].start and words[-1].end <= speech.seconds


def test_a_batch_says_what_single_sentences_say(voice):
    texts = ["Hi.", "A somewhat longer sentence, with a comma.", "One. Two."]
    synthesizer = Synthesizer(voice)
    for text, speech in zip(texts, synthesizer.speak_many(texts), strict=True):
        np.testing.assert_allclose(speech.mel, synthesizer.speak(text).mel, atol=1e-4)
