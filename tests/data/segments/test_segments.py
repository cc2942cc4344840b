"""Segments of recordings: which are planned, what is cut, and that the graph cuts the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from myxtts.config.audio_spec import AudioSpec
from myxtts.data.batches.graph_reader import ReaderOptions
from myxtts.data.batches.parts import Share, part_numbers
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.features import FeatureSettings, features_of, load_samples
from myxtts.data.segments.reader import segment_batches
from myxtts.data.segments.segments import SegmentPlan, SegmentSource, plan_middles, plan_segments
from myxtts.data.store.mmap import aligned_empty
from myxtts.errors import UserError
from tests.helpers.compare_batches import arrays_of, assert_same_batches

LENGTHS = np.array([40, 3, 12, 11, 100, 12, 57, 1, 33, 20])
FRAMES, HOP, MELS = 12, 4, 5
SPEC = AudioSpec(n_fft=8, hop_length=HOP, win_length=8, n_mels=MELS)


def plan(epoch: int = 0, seed: int = 7, batch_size: int = 4, lengths=LENGTHS) -> SegmentPlan:
    return plan_segments(lengths, FRAMES, batch_size, seed, epoch)


def segments_of(plan: SegmentPlan) -> list[list[tuple[int, int]]]:
    """(utterance, first frame) of each segment, batch by batch."""
    return [
        list(zip(plan[number].tolist(), plan.starts(number).tolist(), strict=True))
        for number in range(len(plan))
    ]


# Plans.


def test_a_plan_derives_from_seed_and_epoch_alone():
    first = segments_of(plan())
    assert segments_of(plan()) == first
    assert segments_of(plan(epoch=1)) != first
    assert segments_of(plan(seed=8)) != first


def test_every_utterance_has_one_segment_in_an_epoch():
    found = [at for batch in segments_of(plan(batch_size=5)) for at, _ in batch]
    assert sorted(found) == list(range(10))


def test_what_is_left_over_waits_for_another_epoch():
    seen = set()
    for epoch in range(12):
        batches = segments_of(plan(epoch))
        assert [len(batch) for batch in batches] == [4, 4]
        positions = [at for batch in batches for at, _ in batch]
        assert len(set(positions)) == 8
        seen |= set(positions)
    assert seen == set(range(10))


def test_fewer_utterances_than_a_batch_holds_are_one_batch():
    (batch,) = segments_of(plan(batch_size=16))
    assert sorted(at for at, _ in batch) == list(range(10))


def test_segments_lie_inside_their_recordings_and_reach_both_ends():
    found = {at: set() for at in range(10)}
    for epoch in range(300):
        for at, first in segments_of(plan(epoch, batch_size=10))[0]:
            found[at].add(first)
    for at, length in enumerate(LENGTHS.tolist()):
        last = max(0, length - FRAMES)
        assert min(found[at]) == 0 and max(found[at]) <= last
        if last < 40:
            assert max(found[at]) == last
    assert len(found[4]) > 80  # of 89 places in the longest


def test_what_is_skipped_is_exactly_what_came_before():
    whole = plan(batch_size=2)
    for count in range(6):
        assert len(whole.skip(count)) == 5 - count
        assert segments_of(whole.skip(count)) == segments_of(whole)[count:]
    assert segments_of(whole.skip(1).skip(2)) == segments_of(whole)[3:]


def test_for_validation_it_is_the_middle_of_each_in_order():
    middles = plan_middles(LENGTHS, FRAMES, 4)
    found = segments_of(middles)
    assert [len(batch) for batch in found] == [4, 4, 2]
    flat = [segment for batch in found for segment in batch]
    expected = [14, 0, 0, 0, 44, 0, 22, 0, 10, 4]
    assert flat == list(enumerate(expected))


# Plans that replicas share.


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("batch_size", [4, 5, 16])
def test_the_replicas_together_have_the_planned_segments_in_order(replicas, batch_size):
    whole = plan(batch_size=batch_size, epoch=3)
    together = [whole.shared(Share(8, rank, replicas)) for rank in range(replicas)]
    numbers = part_numbers(len(whole[0]), 8).tolist()
    for rank, (own, part) in enumerate(together):
        assert len(own) == len(whole)
        assert all(len(own[batch]) == len(part) > 0 for batch in range(len(own)))
        first, count = 8 // replicas * rank, len(part)
        assert (part + first).tolist() == numbers[:count]
        numbers = numbers[count:]
    assert numbers == []
    found = [segments_of(own) for own, _ in together]
    for number, batch in enumerate(segments_of(whole)):
        assert [segment for one in found for segment in one[number]] == batch


def test_a_shared_plan_is_resumed_like_a_whole_one():
    own, _ = plan(batch_size=4).shared(Share(4, 1, 2))
    assert segments_of(own.skip(1)) == segments_of(own)[1:]


def test_a_batch_of_fewer_segments_than_workers_is_rejected():
    with pytest.raises(UserError) as raised:
        plan(batch_size=3).shared(Share(4, 0, 4))
    assert str(raised.value) == (
        "a batch of 3 segments cannot be shared by 4 workers: raise --stage2-batch-size"
    )


# Stored columns.


def aligned(array: np.ndarray) -> np.ndarray:
    """The array as the graph takes it without a copy, and as those of a cache are."""
    out = aligned_empty(array.shape, array.dtype)
    out[:] = array
    return out


def make_source() -> SegmentSource:
    """Columns of known content; the mels lie with gaps between, the waveforms backwards."""
    random = np.random.default_rng(0)
    rows = int(LENGTHS.sum()) + 20 * 16
    columns = {
        "mel": random.normal(-5, 2, (rows, MELS)).astype(np.float16),
        "pitch": random.uniform(80, 300, rows).astype(np.float32),
        "wave": random.integers(-32768, 32767, (rows, HOP), dtype=np.int16),
    }
    gaps = np.cumsum([0, *LENGTHS[:-1]]) + 16 * np.arange(10)
    backwards = np.cumsum([0, *LENGTHS[:0:-1]])[::-1]
    starts = {"mel": gaps, "pitch": gaps + 3, "wave": backwards + 5}
    columns = {name: aligned(column) for name, column in columns.items()}
    ids = [f"utt-{number}" for number in range(10)]
    return SegmentSource(ids, LENGTHS, FeatureSettings(SPEC), columns, starts)


@pytest.fixture(scope="module")
def source() -> SegmentSource:
    return make_source()


READERS = {
    "native": ReaderOptions(),
    "native without overlap": ReaderOptions(overlap=False),
    "host": ReaderOptions(native=False),
    "host without overlap": ReaderOptions(native=False, overlap=False),
}


def test_a_segment_is_cut_out_of_every_column(source):
    batches = list(source.batches(plan(3), 1, 0))
    assert len(batches) == 2
    for batch, segments in zip(batches, segments_of(plan(3)), strict=True):
        assert batch["index"].tolist() == [at for at, _ in segments]
        assert batch["first_frame"] == segments[0][1] and batch["first_frame"].dtype == np.int32
        assert batch["waveform"].shape == (4, FRAMES * HOP)
        for row, (at, first) in enumerate(segments):
            count = min(FRAMES, LENGTHS[at] - first)
            for name in ("mel", "pitch", "wave"):
                start = source.starts[name][at] + first
                expected = source.columns[name][start : start + count]
                found = batch["waveform" if name == "wave" else name][row]
                found = found.reshape(-1, HOP) if name == "wave" else found
                np.testing.assert_array_equal(found[:count], expected)
                assert found.dtype == expected.dtype


def test_behind_a_short_recording_there_is_silence(source):
    short = plan_middles(LENGTHS, FRAMES, 10)
    (batch,) = source.batches(short, 1, 0)
    for row, length in enumerate(LENGTHS.tolist()):
        behind = batch["mel"][row, length:]
        assert len(behind) == max(0, FRAMES - length)
        np.testing.assert_array_equal(behind, np.full_like(behind, np.log(1e-5)))
        assert not batch["pitch"][row, length:].any()
        assert not batch["waveform"][row, length * HOP :].any()


@pytest.mark.parametrize("reader", list(READERS)[1:])
@pytest.mark.parametrize("skipped", [0, 1])
def test_every_reader_cuts_the_same_bits(source, reader, skipped):
    for chosen in (plan(5), plan_middles(LENGTHS, FRAMES, 4)):
        chosen = chosen.skip(skipped)
        expected = arrays_of(source.batches(chosen, 1, 0))
        batches = segment_batches(source, chosen, READERS[reader])
        assert len(batches) == len(expected) > 0
        assert_same_batches(arrays_of(batches), expected)
        assert_same_batches(arrays_of(batches), expected)  # once more from the beginning
    native = segment_batches(source, chosen, READERS["native"])
    assert_same_batches(arrays_of(native), expected)


def test_segments_of_several_lengths_come_of_one_source(source):
    for frames in (1, FRAMES, 64):
        chosen = plan_segments(LENGTHS, frames, 4, 0, 0)
        expected = arrays_of(source.batches(chosen, 1, 0))
        assert_same_batches(arrays_of(segment_batches(source, chosen, ReaderOptions())), expected)
        assert expected[0]["mel"].shape == (4, frames, MELS)


def test_a_whole_utterance_can_be_had(source):
    found = source.utterance(6)
    for name, array in found.items():
        start = source.starts[name][6]
        np.testing.assert_array_equal(array, source.columns[name][start : start + 57])
    assert found.keys() == {"mel", "pitch", "wave"}


# Recordings that are read.


@pytest.fixture
def recorded(tmp_path) -> SegmentSource:
    """Three recordings of which nothing is stored."""
    random = np.random.default_rng(1)
    utterances, lengths = [], np.array([30, 12, 22])
    for number, length in enumerate(lengths.tolist()):
        path = tmp_path / f"{number}.wav"
        samples = 0.1 * random.normal(size=length * 256 + 100)
        soundfile.write(path, samples, 22050, subtype="PCM_16")
        utterances.append(Utterance(str(number), path, "text", "speaker", "en"))
    settings = FeatureSettings(AudioSpec(), with_pitch=False)
    return SegmentSource(["0", "1", "2"], lengths, settings, recordings=utterances)


def test_recordings_are_read_as_they_are_wanted(recorded):
    settings = replace(recorded.settings, with_pitch=True)  # a vocoder learns from it
    chosen = plan_segments(recorded.lengths, 16, 3, 0, 0)
    (batch,) = segment_batches(recorded, chosen, ReaderOptions(workers=2))
    for row, at in enumerate(chosen[0].tolist()):
        samples = load_samples(recorded.recordings[at].audio, settings)
        features = features_of(samples, settings)
        first = int(chosen.starts(0)[row])
        count = min(16, len(features["mel"]) - first)
        for name in ("mel", "pitch"):
            np.testing.assert_array_equal(
                batch[name][row][:count], features[name][first : first + count]
            )
        inside = samples[first * 256 : (first + count) * 256]
        np.testing.assert_array_equal(batch["waveform"][row][: count * 256], inside * 32768)
    assert batch["mel"].shape == (3, 16, 80) and int(batch["first_frame"]) == chosen.starts(0)[0]


def test_a_recording_that_is_gone_leaves_its_batch_one_smaller(recorded, caplog):
    recorded.recordings[1].audio.unlink()
    chosen = plan_segments(recorded.lengths, 16, 3, 0, 0)
    (batch,) = segment_batches(recorded, chosen, ReaderOptions())
    assert batch["mel"].shape[0] == batch["waveform"].shape[0] == 2
    assert batch["index"].numpy().tolist() == [at for at in chosen[0].tolist() if at != 1]
    assert "dropped from its batch" in caplog.text and "1.wav" in caplog.text
    with pytest.raises(UserError, match="the recording of 1 cannot be read any more"):
        recorded.utterance(1)
    assert len(recorded.utterance(2)["wave"]) == 22


def test_a_batch_of_which_nothing_is_left_keeps_its_place_and_is_skipped(recorded):
    recorded.recordings[1].audio.unlink()
    chosen = plan_middles(recorded.lengths, 16, 1)
    found = [batch["index"].tolist() for batch in recorded.batches(chosen, 1, 0)]
    assert found == [[0], [], [2]]
    batches = segment_batches(recorded, chosen, ReaderOptions(native=False, overlap=False))
    assert [(n, one["index"].numpy().tolist()) for n, one in batches.numbered()] == [
        (0, [0]),
        (2, [2]),
    ]
