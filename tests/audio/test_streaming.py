"""Speech encoded part by part: what comes out is one file, and comes out early."""

import io
import threading

import numpy as np
import pytest
import soundfile

from myxtts.audio.streaming import PCM, StreamEncoder

RATE = 22050
TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(3 * RATE) / RATE)).astype(np.float32)


def parts(name: str, samples: np.ndarray = TONE, size: int = RATE // 2) -> list[bytes]:
    encoder = StreamEncoder(name, RATE)
    found = [encoder.encode(samples[at : at + size]) for at in range(0, len(samples), size)]
    return [*found, encoder.encode(samples[:0], is_last=True)]


class Forward(soundfile.SoundFile):
    """Reads on without seeking, as players do: a FLAC that was streamed has no known length."""

    def seekable(self) -> bool:
        return False


def read(parts: list[bytes], kind: str = "float32") -> tuple[np.ndarray, int]:
    with Forward(io.BytesIO(b"".join(parts))) as file:
        rate = file.samplerate
        return file.read(min(file.frames, 10 * rate), dtype=kind), rate


def pitch(samples: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))


@pytest.mark.parametrize(
    "name, rate", [("wav", 22050), ("flac", 22050), ("mp3", 22050), ("opus", 24000)]
)
def test_the_parts_are_a_file_of_the_format(name, rate):
    found = parts(name)
    samples, its_rate = read(found)
    assert its_rate == rate
    assert len(samples) / rate == pytest.approx(3.0, abs=0.1)
    assert pitch(samples, rate) == pytest.approx(440, abs=1)
    # A second and a half of six parts is enough for some of it to be heard.
    assert sum(map(len, found[:3])) > 500


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_formats_without_loss_keep_every_sample(name):
    samples, _ = read(parts(name), "int16")
    np.testing.assert_array_equal(samples, np.round(TONE * 32768.0))


def test_pcm_is_24_khz_whatever_the_voice_has_and_has_no_seams():
    found = [np.frombuffer(part, "<i2") for part in parts(PCM, size=1000)]
    whole = np.frombuffer(b"".join(parts(PCM, size=len(TONE))), "<i2")
    samples = np.concatenate(found)
    assert len(samples) == pytest.approx(3 * 24000, abs=2)
    np.testing.assert_allclose(samples, whole, atol=1)
    assert pitch(samples, 24000) == pytest.approx(440, abs=1)


def test_samples_beyond_full_scale_are_limited_and_not_wrapped():
    (loud, _) = parts("wav", np.full(100, 1.5, np.float32), 100)
    assert np.frombuffer(loud[44:], "<i2").tolist() == [32767] * 100


def test_an_encoder_may_be_left_in_the_middle():
    encoder = StreamEncoder("mp3", RATE)
    assert encoder.encode(TONE)
    encoder.close()
    assert encoder.close() is None  # a second time changes nothing


@pytest.mark.parametrize("name", ["mp3", "opus", "flac", "wav"])
def test_an_encoder_that_is_closed_while_it_encodes_ends_quietly(name):
    noise = np.random.default_rng(0).normal(0, 0.1, 5 * RATE).astype(np.float32)
    for _ in range(5):
        encoder = StreamEncoder(name, RATE)
        threads = [threading.Thread(target=encoder.encode, args=(noise,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        encoder.close()
        for thread in threads:
            thread.join()
        assert encoder.encode(noise, True) == b""
