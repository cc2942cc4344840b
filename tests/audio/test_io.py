"""Reading and writing recordings: formats, lengths, and every way that a file can be bad."""

import errno
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.audio import io
from myxtts.audio.io import (
    AudioError,
    AudioInfo,
    check_audible,
    read_audio,
    read_info,
    resampled_length,
    write_wav,
)
from myxtts.errors import UserError


def tone(samples: int, sample_rate: int = 22050, hz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(samples) / sample_rate)).astype(np.float32)


def cut(source, fraction: float):
    """Copy the beginning of a file, as an interrupted download does."""
    target = source.with_name("cut" + source.suffix)
    content = source.read_bytes()
    target.write_bytes(content[: int(len(content) * fraction)])
    return target


def reason_of(function, *arguments) -> str:
    with pytest.raises(AudioError) as caught:
        function(*arguments)
    assert isinstance(caught.value, UserError)
    assert str(caught.value).startswith(f"{caught.value.path}: {caught.value.reason}: ")
    return caught.value.reason


# 5e-5 is less than two steps of 16 bits; Vorbis and MP3 are lossy.
@pytest.mark.parametrize(
    ("extension", "tolerance"), [("wav", 5e-5), ("flac", 5e-5), ("ogg", 0.05), ("mp3", 0.05)]
)
def test_reads_each_format_with_its_length(tmp_path, extension, tolerance):
    path = tmp_path / f"a.{extension}"
    expected = tone(22050)
    soundfile.write(path, expected, 22050)
    samples = read_audio(path, 22050)
    assert read_info(path) == AudioInfo(22050, 1, 22050)
    assert samples.dtype == np.float32 and samples.shape == (22050,)
    assert np.abs(samples - expected)[500:-500].max() < tolerance


def test_stereo_is_averaged(tmp_path):
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([np.full(100, 0.5), np.full(100, -0.25)], 1), 22050, "FLOAT")
    assert read_info(path) == AudioInfo(22050, 2, 100)
    np.testing.assert_array_equal(read_audio(path, 22050), np.full(100, 0.125, np.float32))


def test_seconds():
    assert AudioInfo(22050, 1, 33075).seconds == 1.5


@pytest.mark.parametrize(
    ("frames", "from_rate", "to_rate", "expected"),
    [
        (44100, 44100, 22050, 22050),
        (3, 44100, 22050, 2),  # 1.5 rounds up
        (1, 44100, 22050, 1),
        (1, 48000, 22050, 0),  # 0.459
        (16000, 16000, 22050, 22050),
        (7, 22050, 22050, 7),
        (10**12, 48000, 22050, 459375000000),
    ],
)
def test_resampled_length_by_hand(frames, from_rate, to_rate, expected):
    assert resampled_length(frames, from_rate, to_rate) == expected


@pytest.mark.parametrize("from_rate", [8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000])
def test_resampled_length_is_what_is_read(tmp_path, from_rate):
    path = tmp_path / "a.wav"
    lengths = [3, 5, 17, 255, 256, 1023, 4410, 4411, 9999, 22051, 30011]
    for frames in lengths:
        soundfile.write(path, np.zeros(frames), from_rate)
        assert len(read_audio(path, 22050)) == resampled_length(frames, from_rate, 22050)


@settings(max_examples=200, deadline=None)
@given(
    frames=st.integers(3, 3000),
    from_rate=st.sampled_from([8000, 11025, 16000, 22050, 24000, 44100, 48000]),
    to_rate=st.sampled_from([16000, 22050, 24000, 44100]),
)
def test_resampled_length_holds_for_any_length(frames, from_rate, to_rate):
    resampled = io.resample(np.ones(frames, np.float32), from_rate, to_rate)
    assert len(resampled) == resampled_length(frames, from_rate, to_rate)


@pytest.mark.parametrize("from_rate", [16000, 44100, 48000])
def test_resampling_keeps_a_tone(tmp_path, from_rate):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(from_rate, from_rate), from_rate, "FLOAT")
    difference = read_audio(path, 22050) - tone(22050)
    assert np.abs(difference[500:-500]).max() < 1e-4


def test_missing_file(tmp_path):
    assert reason_of(read_info, tmp_path / "none.wav") == io.MISSING
    assert reason_of(read_audio, tmp_path / "none.wav", 22050) == io.MISSING


def test_a_directory_is_not_a_recording(tmp_path):
    assert reason_of(read_info, tmp_path) == io.NOT_REGULAR


@pytest.mark.parametrize("name", ["noise.wav", "noise.mp3", "noise.raw"])
def test_random_bytes_are_unreadable(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"\x01" + np.random.default_rng(0).bytes(5000))
    assert reason_of(read_info, path) == io.UNREADABLE


def test_a_file_without_bytes_is_empty(tmp_path):
    (tmp_path / "a.wav").touch()
    assert reason_of(read_info, tmp_path / "a.wav") == io.EMPTY


def test_a_header_without_samples_is_empty(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(0), 22050)
    assert reason_of(read_info, path) == io.EMPTY
    assert reason_of(read_audio, path, 22050) == io.EMPTY


@pytest.mark.parametrize("fraction", [0.999, 0.5, 0.05])
def test_truncated_wav(tmp_path, fraction):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(22050), 22050)
    assert reason_of(read_info, cut(path, fraction)) == io.TRUNCATED
    assert reason_of(read_audio, cut(path, fraction), 22050) == io.TRUNCATED


def test_wav_with_chunks_before_its_samples(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1000), 22050)
    content = path.read_bytes()
    junk = b"JUNK" + (3).to_bytes(4, "little") + b"abc\0"  # odd size: one byte of padding
    size = (len(content) + len(junk) - 8).to_bytes(4, "little")
    path.write_bytes(b"RIFF" + size + content[8:12] + junk + content[12:])
    assert len(read_audio(path, 22050)) == 1000
    assert reason_of(read_audio, cut(path, 0.9), 22050) == io.TRUNCATED


def test_wav_from_a_pipe_promises_nothing(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1000), 22050)
    content = bytearray(path.read_bytes())
    content[4:8] = content[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert len(read_audio(path, 22050)) == 1000


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
@pytest.mark.parametrize("fraction", [0.995, 0.7, 0.5])
def test_truncated_ogg(tmp_path, subtype, fraction):
    path = tmp_path / "a.ogg"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, 96000), 48000, subtype)
    assert read_info(path).frames == 96000
    assert reason_of(read_info, cut(path, fraction)) == io.TRUNCATED


def test_truncated_mp3(tmp_path):
    path = tmp_path / "a.mp3"
    soundfile.write(path, tone(44100), 22050)
    assert reason_of(read_audio, cut(path, 0.5), 22050) == io.TRUNCATED


def test_truncated_flac_is_rejectd(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, 44100), 22050)
    assert reason_of(read_audio, cut(path, 0.5), 22050) in (io.TRUNCATED, io.UNREADABLE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_a_number(tmp_path, value):
    path = tmp_path / "a.wav"
    samples = tone(1000)
    samples[500] = value
    soundfile.write(path, samples, 22050, "FLOAT")
    assert reason_of(read_audio, path, 22050) == io.NOT_A_NUMBER
    assert reason_of(read_audio, path, 16000) == io.NOT_A_NUMBER


def test_nothing_left_after_resampling(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.ones(1), 48000)
    assert reason_of(read_audio, path, 22050) == io.TOO_SHORT


def test_check_audible():
    check_audible(tone(1024), "a.wav")
    check_audible(np.full(1024, -0.0011, np.float32), "a.wav")
    assert reason_of(check_audible, tone(1023), "a.wav") == io.TOO_SHORT
    assert reason_of(check_audible, tone(1023), "a.wav", 1024) == io.TOO_SHORT
    assert reason_of(check_audible, np.full(1024, 0.0009, np.float32), "a.wav") == io.SILENT


def test_error_survives_pickling():
    error = pickle.loads(pickle.dumps(AudioError("a.wav", io.EMPTY, "copy it again")))
    assert (str(error.path), error.reason) == ("a.wav", io.EMPTY)
    assert str(error) == "a.wav: empty recording: copy it again"


def test_written_pcm_comes_back_exactly(tmp_path):
    samples = np.array([-1.0, -0.5, 0.0, 1 / 32768, 32767 / 32768], np.float32)
    write_wav(tmp_path / "new" / "a.wav", samples, 24000)
    assert read_info(tmp_path / "new" / "a.wav") == AudioInfo(24000, 1, 5)
    assert soundfile.info(tmp_path / "new" / "a.wav").subtype == "PCM_16"
    np.testing.assert_array_equal(read_audio(tmp_path / "new" / "a.wav", 24000), samples)


def test_writing_clips_instead_of_wrapping_and_says_so(tmp_path, caplog):
    write_wav(tmp_path / "a.wav", np.array([2.0, -2.0, 1.0, 0.0]), 22050)
    np.testing.assert_array_equal(
        soundfile.read(tmp_path / "a.wav", dtype="int16")[0], [32767, -32768, 32767, 0]
    )
    assert "2 of 4 samples were clipped" in caplog.text


def test_failed_writing_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    write_wav(tmp_path / "a.wav", np.zeros(10), 22050)
    full = OSError(errno.ENOSPC, "No space left on device")
    for step in ("fsync", "replace"):
        monkeypatch.setattr(os, step, lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(UserError, match=r"no space left while writing .*a\.wav .* free some"):
            write_wav(tmp_path / "a.wav", np.zeros(20), 22050)
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]
    assert read_info(tmp_path / "a.wav").frames == 10


def test_rejects_to_write_nan(tmp_path):
    assert reason_of(write_wav, tmp_path / "a.wav", np.array([np.nan]), 22050) == io.NOT_A_NUMBER
    assert not (tmp_path / "a.wav").exists()


def test_audio_imports_without_tensorflow_or_librosa():
    code = (
        "import sys, myxtts.audio.io, myxtts.audio.mel, myxtts.audio.pitch, myxtts.audio.cleanup;"
        "print(sorted({'tensorflow', 'keras', 'librosa'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
