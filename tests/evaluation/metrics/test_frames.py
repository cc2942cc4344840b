"""Frames of sentences: what is loud, what is cut off, and pairs with recordings."""

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.evaluation.metrics.frames import RANGE_DB, analyse, frames, next_to_recordings, runs
from myxtts.evaluation.metrics.session import Judges, Sentence, Session, Subject
from myxtts.evaluation.metrics.table import RESYNTHESIS, SPEECH

SPEC = AudioSpec()
RATE = SPEC.sample_rate


def tone(seconds: float, decibels: float = 0.0, hertz: float = 200.0) -> np.ndarray:
    time = np.arange(round(seconds * RATE)) / RATE
    wave = sum(np.sin(2 * np.pi * hertz * number * time) / number for number in range(1, 11))
    return (0.2 * 10 ** (decibels / 20) * wave).astype(np.float32)


def test_levels_are_below_the_loudest_frame_and_loud_ones_within_30_db():
    # 22050 samples are 86 frames, 256 each. Those whose window holds an edge are left out.
    found = analyse(np.concatenate([tone(1), tone(1, -20), tone(1, -35), tone(1)]), SPEC)
    middles = [43, 129, 215, 301]
    assert found.level[middles] == pytest.approx([0, -20, -35, 0], abs=0.2)
    assert found.is_loud[middles].tolist() == [True, True, False, True]
    assert found.f0[middles] == pytest.approx([200] * 4, rel=0.01)
    assert found.rate == RATE / 256


def test_neither_gain_nor_silence_at_the_ends_changes_anything():
    sound, silence = tone(0.5), np.zeros(RATE, np.float32)
    plain, quiet = analyse(sound, SPEC), analyse(0.1 * sound, SPEC)
    np.testing.assert_allclose(quiet.level, plain.level, atol=1e-3)
    np.testing.assert_allclose(quiet.mel - quiet.mel.max(), plain.mel - plain.mel.max(), atol=0.02)
    padded = analyse(np.concatenate([silence, sound, silence]), SPEC)
    assert len(padded.mel) - len(plain.mel) <= 10  # 50 ms are kept at both ends


def test_bands_are_at_most_60_db_below_the_loudest():
    found = analyse(tone(0.5), SPEC)
    assert np.ptp(found.mel) == pytest.approx(RANGE_DB / 20 * np.log(10))


@pytest.mark.parametrize("samples", [np.zeros(RATE), np.zeros(0), np.full(RATE, 1e-5)])
def test_silence_has_no_frames(samples):
    found = analyse(samples.astype(np.float32), SPEC)
    assert found.mel.shape == (0, 80) and not len(found.level) and not len(found.f0)


def test_runs_have_a_begin_an_end_and_a_least_length():
    flags = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], bool)
    assert runs(flags).tolist() == [[0, 2], [3, 4], [6, 9]]
    assert runs(flags, 2).tolist() == [[0, 2], [6, 9]]
    assert runs(np.zeros(3, bool)).shape == runs(np.zeros(0, bool)).shape == (0, 2)


def test_figures_are_paired_with_those_of_the_recording_and_frames_are_shared():
    sentences = [
        Sentence(f"{n}", "text", tone(0.5 * n), "anna", tone(1.0), tone(0.5)) for n in (1, 2)
    ]
    session = Session(Subject("test", "en", SPEC, sentences), Judges())
    count = lambda one: float(len(one.level))  # noqa: E731
    found = next_to_recordings(session, count)
    half, whole = count(analyse(tone(0.5), SPEC)), count(analyse(tone(1), SPEC))
    assert found[SPEECH].tolist() == [[half, whole], [whole, whole]]
    assert found[RESYNTHESIS].tolist() == [[half, whole]] * 2
    assert session.shared(frames) is session.shared(frames)
