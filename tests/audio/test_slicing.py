"""Pauses in signals whose pauses are known."""

import tracemalloc

import numpy as np
import pytest
import soundfile

from myxtts.audio.bounds import LONGEST_SECONDS, AudioInfo
from myxtts.audio.io import SILENT, TOO_SHORT, AudioError, open_blocks, read_audio
from myxtts.audio.slice_options import SliceOptions
from myxtts.audio.slicing import (
    CLIPPED,
    NO_PAUSE,
    Slice,
    cut,
    find_slices,
    find_threshold,
    measure_levels,
)
from myxtts.errors import UserError

RATE = 16000
NOISE = 0.0005  # -66 dBFS


def sound(*parts: float, amplitude: float = 0.3, noise: float = NOISE) -> np.ndarray:
    """Tones of so many seconds, and pauses of so many where the number is negative."""
    rng = np.random.default_rng(0)
    pieces = []
    for seconds in parts:
        time = np.arange(round(abs(seconds) * RATE)) / RATE
        pieces.append(np.sin(2 * np.pi * 220 * time) * (amplitude if seconds > 0 else 0.0))
    samples = np.concatenate(pieces)
    return (samples + noise * rng.standard_normal(len(samples))).astype(np.float32)


def levels_of(samples: np.ndarray, part: int = 5000):
    columns = samples if samples.ndim == 2 else samples[:, None]
    blocks = (columns[at : at + part] for at in range(0, len(columns), part))
    return measure_levels(AudioInfo(RATE, columns.shape[1], len(columns)), blocks)


def slices_of(samples: np.ndarray, **options) -> list[Slice]:
    return find_slices(levels_of(samples), SliceOptions(**options))


def spans(found: list[Slice]) -> list[tuple[float, float]]:
    return [(round(one.start / RATE, 2), round(one.end / RATE, 2)) for one in found]


def test_levels_are_the_same_whatever_parts_the_samples_come_in():
    samples = sound(1.0, -0.5, 0.333)
    whole, parts = levels_of(samples, len(samples)), levels_of(samples, 777)
    np.testing.assert_array_equal(whole.power, parts.power)
    assert whole.frames == len(samples)
    assert len(whole.power) == 184  # 1.833 s: the last block is not whole
    # A sine of amplitude 0.3 has a power of 0.045; 10 ms hold 2.2 of its periods.
    assert whole.power[:100].mean() == pytest.approx(0.045, rel=0.02)


def test_a_recording_is_cut_in_its_pauses_and_some_silence_is_kept():
    found = slices_of(sound(-1.0, 2.0, -0.8, 3.0, -0.6, 1.5, -1.0))
    assert spans(found) == [(0.85, 3.15), (3.65, 6.95), (7.25, 9.05)]
    assert [one.dropped for one in found] == ["", "", ""]
    assert found[0].level == pytest.approx(10 * np.log10(0.045), abs=0.1)


def test_clips_share_a_pause_that_is_shorter_than_what_they_keep():
    found = slices_of(sound(2.0, -0.4, 2.0), keep=0.5)
    assert spans(found) == [(0.0, 2.2), (2.2, 4.4)]


def test_a_dip_is_no_pause():
    assert spans(slices_of(sound(2.0, -0.2, 2.0))) == [(0.0, 4.2)]


def test_what_is_too_long_is_cut_at_its_longest_dips():
    samples = sound(2.0, -0.15, 2.0, -0.3, 2.0, -0.2, 2.0)
    assert spans(slices_of(samples, longest=5.0)) == [(0.0, 4.3), (4.3, 8.65)]
    assert len(slices_of(samples, longest=4.0)) == 4


def test_what_is_too_long_and_has_no_dip_is_dropped():
    found = slices_of(sound(2.0, -0.6, 7.0, -0.6, 2.0), longest=5.0)
    assert [one.dropped for one in found] == ["", NO_PAUSE, ""]


def test_a_short_phrase_joins_its_nearer_neighbour():
    found = slices_of(sound(2.0, -0.9, 0.3, -0.5, 2.0, -1.0))
    assert spans(found) == [(0.0, 2.15), (2.75, 5.85)]


def test_a_short_phrase_far_from_all_others_is_dropped():
    found = slices_of(sound(2.0, -1.5, 0.4, -1.5, 2.0))
    assert [one.dropped for one in found] == ["", TOO_SHORT, ""]


def test_a_short_phrase_joins_nothing_that_gets_too_long():
    found = slices_of(sound(4.5, -0.6, 0.4, -1.5, 2.0), longest=5.0)
    assert [one.dropped for one in found] == ["", TOO_SHORT, ""]


def test_a_lone_click_is_no_sound():
    samples = sound(2.0, -3.0, 2.0)
    samples[round(3.5 * RATE) :][:160] = 0.5 * np.sign(np.sin(np.arange(160)))
    assert spans(slices_of(samples)) == [(0.0, 2.15), (4.85, 7.0)]


def test_a_clipped_phrase_is_dropped_and_a_loud_one_is_not():
    loud = np.clip(sound(2.0, amplitude=1.5), -1.0, 1.0)
    full = sound(2.0, amplitude=0.999, noise=0.0)
    pause = sound(-1.0)
    found = slices_of(np.concatenate([full, pause, loud, pause]))
    assert [one.dropped for one in found] == ["", CLIPPED]
    assert found[0].clipped == 0
    # A sine of 1.5 is above 1 for 54 % of the time; two of each run of 19 are not counted.
    assert found[1].clipped / (2 * RATE) == pytest.approx(0.48, abs=0.03)
    kept = slices_of(np.concatenate([pause, loud, pause]), most_clipped=1.0)
    assert [one.dropped for one in kept] == [""]


def test_one_clipped_channel_is_enough():
    quiet = sound(2.0, -1.0)
    loud = np.clip(sound(2.0, -1.0, amplitude=1.5), -1.0, 1.0)
    assert slices_of(np.stack([quiet, loud], axis=1))[0].dropped == CLIPPED


@pytest.mark.parametrize("samples", [np.zeros(RATE, np.float32), sound(-3.0), sound(-0.004)])
def test_silence_is_one_part_that_is_dropped(samples):
    (found,) = slices_of(samples)
    assert (found.start, found.end, found.dropped) == (0, len(samples), SILENT)


def test_an_offset_is_no_sound():
    assert slices_of(sound(-3.0) + np.float32(0.2))[0].dropped == SILENT
    samples = sound(2.0, -1.0, 2.0) + np.float32(0.2)
    assert spans(slices_of(samples)) == [(0.0, 2.15), (2.85, 5.0)]


@pytest.mark.parametrize("noise", [0.0, 0.0001, 0.003, 0.02])
def test_pauses_are_found_in_any_noise(noise):
    samples = sound(-1.0, 2.0, -0.8, 3.0, -0.6, noise=noise)
    assert spans(slices_of(samples)) == [(0.85, 3.15), (3.65, 6.95)]


def test_noise_alone_has_no_pauses():
    noise = (0.1 * np.random.default_rng(1).standard_normal(20 * RATE)).astype(np.float32)
    (found,) = slices_of(noise)
    assert found.dropped == NO_PAUSE
    assert find_threshold(levels_of(noise)) == -60.0


def test_a_little_speech_in_much_silence_is_found():
    assert spans(slices_of(sound(-60.0, 1.5, -60.0))) == [(59.85, 61.65)]


def test_a_threshold_of_ones_own():
    samples = np.concatenate([sound(2.0), sound(1.0, amplitude=0.02), sound(2.0)])
    assert spans(slices_of(samples, threshold=-50.0)) == [(0.0, 5.0)]
    assert spans(slices_of(samples, threshold=-30.0)) == [(0.0, 2.15), (2.85, 5.0)]


def test_slices_are_cut_out_of_blocks_exactly():
    samples = np.arange(1000, dtype=np.float32)
    blocks = [samples[at : at + 64, None] for at in range(0, 1000, 64)]
    wanted = [
        Slice(start, end, 0.0, 0) for start, end in ((0, 10), (10, 64), (70, 500), (900, 1000))
    ]
    found = list(cut(blocks, wanted))
    assert [one for one, _ in found] == wanted
    for one, inside in found:
        np.testing.assert_array_equal(inside, samples[one.start : one.end])


def test_channels_are_averaged():
    block = np.array([[0.2, 0.4], [0.0, 1.0]], np.float32)
    ((_, samples),) = cut([block], [Slice(0, 2, 0.0, 0)])
    np.testing.assert_allclose(samples, [0.3, 0.5])


def test_cutting_reads_no_further_than_the_last_slice():
    def blocks():
        yield np.zeros((100, 1), np.float32)
        raise AssertionError("it was read")

    assert len(list(cut(blocks(), [Slice(10, 90, 0.0, 0)]))) == 1


def test_a_recording_too_long_to_be_read_at_once_is_read_in_blocks(tmp_path):
    path = tmp_path / "long.wav"
    minute = (0.3 * np.sin(np.arange(60 * 4000) / 2) * 32767).astype(np.int16)
    minute[120_000:124_000] = 0
    minutes = LONGEST_SECONDS // 60 + 1
    soundfile.write(path, np.tile(minute, minutes), 4000)
    with pytest.raises(AudioError, match="myxtts data slice"):
        read_audio(path, 4000)
    tracemalloc.start()
    with open_blocks(path) as (info, blocks):
        levels = measure_levels(info, blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert levels.frames == minutes * 240_000
    assert len(find_slices(levels, SliceOptions(longest=100.0))) == minutes + 1
    assert peak < info.frames * 4 / 2  # half of what all samples would take


@pytest.mark.parametrize(
    "options",
    [
        {"shortest": 0.0},
        {"shortest": float("nan")},
        {"pause": -1.0},
        {"keep": -0.1},
        {"longest": 1.2},
        {"longest": float("inf")},
        {"threshold": 3.0},
        {"threshold": -90.0},
        {"most_clipped": 1.5},
    ],
)
def test_nonsense_is_rejected_by_name(options):
    with pytest.raises(UserError, match=next(iter(options))):
        SliceOptions(**options)
