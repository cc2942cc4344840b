"""Recordings that are traps: refused by name and reason, before they cost time or memory."""

import os
import socket
import struct

import numpy as np
import pytest
import soundfile

from myxtts.audio import bounds, io
from myxtts.audio.io import AudioError, AudioInfo, examine_audio, read_audio, read_info
from myxtts.files import open_regular
from tests.helpers.hostile_audio import FORMATS, mutations, with_ogg_checksum

pytestmark = pytest.mark.timeout(20)  # a trap that works would wait for ever

RATE = 22050


def reason_of(function, *arguments) -> str:
    with pytest.raises(AudioError) as caught:
        function(*arguments)
    return caught.value.reason


def tone(samples: int = 4000) -> np.ndarray:
    return 0.3 * np.sin(np.arange(samples) / 9)


def wav(rate: int = RATE, channels: int = 1, samples: int = 4000) -> bytes:
    """A 16-bit WAV whose header has the given values."""
    data = bytes(2 * samples)
    form = struct.pack("<HHIIHH", 1, channels, rate, 2 * rate, 2, 16)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


# Things that are no files


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


SPECIAL = {
    "a named pipe": make_fifo,
    "a socket": make_socket,
    "a directory": os.mkdir,
    "a character device": lambda path: os.symlink("/dev/zero", path),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_only_regular_files_are_recordings(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    SPECIAL[kind]("a.wav")
    for read in (read_info, examine_audio, lambda path: read_audio(path, RATE)):
        with pytest.raises(AudioError, match=f"a.wav: not a regular file: it is {kind}"):
            read("a.wav")


def test_a_symbolic_link_to_a_recording_is_followed(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(), RATE)
    (tmp_path / "b.wav").symlink_to("a.wav")
    assert read_info(tmp_path / "b.wav").frames == 4000


def test_a_pipe_that_replaces_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.wav")
    (tmp_path / "b.wav").touch()
    monkeypatch.setattr(os, "stat", lambda path: os.lstat(tmp_path / "b.wav"))
    with pytest.raises(OSError, match="named pipe"):
        open_regular(tmp_path / "a.wav")


# Headers that lie


@pytest.mark.parametrize("rate", [1, 999, 384_001, 2**31 - 1])
def test_a_sample_rate_that_no_recording_has_is_rejectd(tmp_path, rate):
    (tmp_path / "a.wav").write_bytes(wav(rate))
    assert reason_of(read_audio, tmp_path / "a.wav", RATE) == io.IMPLAUSIBLE
    assert reason_of(read_info, tmp_path / "a.wav") == io.IMPLAUSIBLE


@pytest.mark.parametrize("rate", [1_000, 384_000])
def test_the_extreme_sample_rates_are_read(tmp_path, rate):
    (tmp_path / "a.wav").write_bytes(wav(rate))
    assert len(read_audio(tmp_path / "a.wav", RATE)) == round(4000 * RATE / rate)


@pytest.mark.parametrize(
    ("channels", "reason"), [(0, io.UNREADABLE), (33, io.IMPLAUSIBLE), (65535, io.UNREADABLE)]
)
def test_a_number_of_channels_that_no_recording_has_is_rejectd(tmp_path, channels, reason):
    (tmp_path / "a.wav").write_bytes(wav(channels=channels))
    assert reason_of(read_audio, tmp_path / "a.wav", RATE) == reason


def test_a_flac_that_claims_hours_is_rejectd(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, tone(), RATE)
    content = bytearray(path.read_bytes())
    # STREAMINFO: the lower 36 of the 64 bits that begin 18 bytes into the file.
    content[21] |= 0x0F
    content[22:26] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    with pytest.raises(AudioError, match="claims 68,719,476,735 samples"):
        read_info(path)


def test_an_opus_that_claims_hours_is_rejectd(tmp_path):
    path = tmp_path / "a.opus"
    soundfile.write(path, tone(48000), 48000, "OPUS", format="OGG")
    claim_hours(path)
    assert reason_of(read_info, path) == io.IMPLAUSIBLE


def test_a_vorbis_that_claims_hours_has_the_length_of_its_samples(tmp_path):
    path = tmp_path / "a.ogg"
    soundfile.write(path, tone(48000), 48000, "VORBIS")
    claim_hours(path)
    assert len(read_audio(path, 48000)) == read_info(path).frames < 50_000


def claim_hours(path):
    content = bytearray(path.read_bytes())
    at = content.rfind(b"OggS")
    content[at + 6 : at + 14] = (2**40).to_bytes(8, "little")  # the position at the page's end
    path.write_bytes(content[:at] + with_ogg_checksum(content[at:]))


def test_an_mp3_that_claims_hours_is_rejectd(tmp_path):
    path = tmp_path / "a.mp3"
    soundfile.write(path, tone(44100), RATE)
    content = bytearray(path.read_bytes())
    at = max(content.find(b"Xing"), content.find(b"Info"))
    content[at + 8 : at + 12] = (2_000_000).to_bytes(4, "big")  # frames, of 576 samples each
    path.write_bytes(content)
    assert reason_of(read_info, path) == io.IMPLAUSIBLE


def test_what_a_file_can_hold_follows_from_its_coding():
    assert bounds.most_frames(2, "PCM_24", 600) == 100
    assert bounds.most_frames(2, "MPEG_LAYER_III", 600) == 19_200
    assert bounds.most_frames(2, "FLAC", 600) == bounds.most_frames(1, "VORBIS", 600) == 307_200
    assert bounds.implausibility(AudioInfo(RATE, 2, 100), "PCM_24", 600) == ""
    assert "101 samples" in bounds.implausibility(AudioInfo(RATE, 2, 101), "PCM_24", 600)


def test_silence_compresses_less_than_is_allowed(tmp_path):
    for extension in ("flac", "ogg"):
        path = tmp_path / f"a.{extension}"
        soundfile.write(path, np.zeros(480_000), 48000)
        assert read_info(path).frames == 480_000


def test_a_recording_of_more_than_half_an_hour_is_to_be_cut(tmp_path, monkeypatch):
    assert bounds.excess(AudioInfo(48000, 1, 1800 * 48000)) == ""
    assert "1,801 s" in bounds.excess(AudioInfo(48000, 1, 1801 * 48000))
    assert "134,217,729 samples" in bounds.excess(AudioInfo(384_000, 1, 2**27 + 1))
    monkeypatch.setattr(bounds, "LONGEST_SECONDS", 1)
    soundfile.write(tmp_path / "a.wav", tone(RATE + 1000), RATE)
    with pytest.raises(AudioError, match="too long to be read: .*; cut it into sentences"):
        read_info(tmp_path / "a.wav")


def test_chunks_without_end_are_not_walked_through(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(b"RIFF\xff\xff\xff\x7fWAVE" + b"junk\0\0\0\0" * 1_000_000)
    assert reason_of(read_info, path) in (io.UNREADABLE, io.EMPTY)


# Samples that are none


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (1e38, io.TOO_LOUD),
        (-1.1e4, io.TOO_LOUD),
        (np.nan, io.NOT_A_NUMBER),
        (-np.inf, io.NOT_A_NUMBER),
    ],
)
def test_float_samples_that_are_no_audio_are_rejectd(tmp_path, value, reason):
    path = tmp_path / "a.wav"
    samples = tone(300_000)
    samples[299_999] = value  # in the second block
    soundfile.write(path, samples, RATE, "FLOAT")
    assert reason_of(read_audio, path, RATE) == reason
    assert reason_of(examine_audio, path) == reason
    assert read_info(path).frames == 300_000


def test_float_samples_above_full_scale_are_read(tmp_path):
    soundfile.write(tmp_path / "a.wav", 20 * tone(), RATE, "FLOAT")
    assert read_audio(tmp_path / "a.wav", RATE).max() == pytest.approx(6, abs=0.01)


# Decoding in blocks


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("extension", ["wav", "flac", "ogg", "mp3"])
def test_blocks_have_the_samples_of_the_whole(tmp_path, extension, channels, monkeypatch):
    if extension == "mp3" and channels > 2:
        pytest.skip("MP3 has two channels at most")
    path = tmp_path / f"a.{extension}"
    noise = np.random.default_rng(0).normal(0, 0.1, (30_000, channels))
    soundfile.write(path, noise, 48000)
    whole = soundfile.read(path, dtype="float32", always_2d=True)[0]
    expected = whole.mean(axis=1) if channels > 1 else whole[:, 0]
    monkeypatch.setattr(io, "_BLOCK_VALUES", 1000)
    np.testing.assert_array_equal(read_audio(path, 48000), expected)


def test_a_file_that_cannot_be_sought_in_is_read(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(1600), 8000, "GSM610")
    assert len(read_audio(tmp_path / "a.wav", 8000)) == read_info(tmp_path / "a.wav").frames > 1600


# Mutations


def test_changed_recordings_are_read_or_rejectd_by_reason(tmp_path):
    results = {"read": 0, "refused": 0}
    for name, content in mutations(seed=1, count=10 * len(FORMATS)):
        path = tmp_path / name
        path.write_bytes(content)
        try:
            assert np.isfinite(read_audio(path, RATE)).all(), name
            results["read"] += 1
        except AudioError as error:
            assert error.path == path and error.reason and error.detail
            results["refused"] += 1
    assert min(results.values()) > 10


def test_mutations_follow_from_their_seed():
    first, same = (list(mutations(3, 20)) for _ in range(2))
    assert first == same != list(mutations(4, 20))
