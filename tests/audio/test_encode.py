"""Speech in files of common formats."""

from io import BytesIO

import numpy as np
import pytest
import soundfile

from myxtts.audio.encode import FORMATS, encode_audio

TAGS = {"title": "فصل Ä", "artist": "A. Writer", "album": "The Book", "tracknumber": "3"}
TONE = (0.3 * np.sin(np.arange(3 * 22050) / 20)).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_length_level_and_tags(name):
    with soundfile.SoundFile(BytesIO(encode_audio(TONE, 22050, name, TAGS))) as sound:
        samples = sound.read()
        assert {tag: getattr(sound, tag) for tag in TAGS} == TAGS
        assert sound.channels == 1
        assert len(samples) / sound.samplerate == pytest.approx(3.0, abs=0.01)
    middle = samples[len(samples) // 3 : -len(samples) // 3]
    assert np.sqrt((middle**2).mean()) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_formats_without_loss_have_the_very_samples(name):
    samples, rate = soundfile.read(BytesIO(encode_audio(TONE, 22050, name)), dtype="float32")
    assert rate == 22050
    np.testing.assert_allclose(samples, TONE, atol=1 / 32768)


def test_a_format_that_lacks_the_rate_gets_the_next_higher_one():
    content = encode_audio(TONE, 22050, "opus")
    assert soundfile.info(BytesIO(content)).samplerate == 24000


def test_what_is_too_loud_is_clipped_and_not_wrapped_around():
    samples, _ = soundfile.read(BytesIO(encode_audio(np.full(99, 2.0), 22050, "wav")))
    assert samples.min() > 0.99
