"""Mels to samples: which vocoder speaks, and that chunks sound like the whole."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.checkpoints import CheckpointError
from myxtts.checkpoints.vocoders import load_vocoder, save_vocoder
from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.inference import vocoders
from myxtts.inference.vocoders import Vocoder, check_name, choose_vocoder
from myxtts.models.vocoders.griffin_lim import GriffinLim
from tests.helpers.tiny_vocoder import SMALL, tiny_vocoder, voiced_mel

FRAMES = 120


@pytest.fixture(scope="module", params=[0, 2], ids=["no projections", "projections"])
def vocoder(request) -> Vocoder:
    """Of random weights; it predicts another pitch in every frame."""
    return Vocoder(tiny_vocoder(SMALL, projections=request.param))


@pytest.fixture(scope="module")
def mel() -> np.ndarray:
    return voiced_mel(FRAMES, SMALL)[0]


def cut(mel: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Chunks of these sizes in turn, up to the end."""
    chunks, at, number = [], 0, 0
    while at < len(mel):
        size = sizes[number % len(sizes)]
        chunks.append(mel[at : at + size])
        at, number = at + size, number + 1
    return chunks


# Whole and in chunks.


@pytest.mark.parametrize(
    "sizes", [[7], [40], [1, 33, 5, 64, 2], [FRAMES]], ids=["7", "40", "any", "whole"]
)
def test_chunks_sound_like_the_whole(vocoder, mel, sizes):
    whole = vocoder(mel, SMALL, 0)
    assert np.ptp(vocoder.model(mel[None])["pitch"]) > 10  # the clock has something to keep
    found = list(vocoder.stream(cut(mel, sizes)))
    samples = np.concatenate(found)
    assert samples.shape == whole.shape == (FRAMES * SMALL.hop_length,)
    np.testing.assert_allclose(samples, whole, atol=1e-4)
    # What the last frames decide about lags behind: the rest is there before the end.
    assert len(found) > 1 or sizes == [FRAMES]
    assert len(found[-1]) <= (vocoder.model.context_frames + max(sizes)) * SMALL.hop_length


def test_what_can_be_said_is_said_at_once(vocoder, mel):
    given, context = 0, vocoder.model.context_frames

    def chunks():
        nonlocal given
        for chunk in cut(mel, [16]):
            given += len(chunk)
            yield chunk

    said = 0
    for samples in vocoder.stream(chunks()):
        said += len(samples) // SMALL.hop_length
        assert said == FRAMES or said == given - context
    assert said == FRAMES


def test_a_seed_is_another_noise_and_streams_alike(vocoder, mel):
    first, other = (vocoder(mel, SMALL, seed) for seed in (0, 5))
    assert np.abs(first - other).max() > 1e-3
    np.testing.assert_array_equal(vocoder(mel, SMALL, 5), other)
    found = np.concatenate(list(vocoder.stream(cut(mel, [20]), seed=5)))
    np.testing.assert_allclose(found, other, atol=1e-4)


@pytest.mark.parametrize("seed", [-3, 2**31, 2**63 + 7])
def test_any_whole_number_is_a_seed(vocoder, mel, seed):
    samples = vocoder(mel[:20], SMALL, seed)
    assert np.isfinite(samples).all()
    assert np.ptp(samples) > 1e-3
    np.testing.assert_array_equal(vocoder(mel[:20], SMALL, seed % 2**20), samples)


def test_mels_of_any_length_become_samples(vocoder, mel):
    for frames in (0, 1, 2, 3, vocoder.model.context_frames):
        samples = vocoder(mel[:frames], SMALL, 0)
        assert samples.dtype == np.float32 and len(samples) == frames * SMALL.hop_length
        assert np.isfinite(samples).all()
        said = [np.zeros(0, np.float32), *vocoder.stream(cut(mel[:frames], [2]))]
        np.testing.assert_allclose(np.concatenate(said), samples, atol=1e-4)


def test_one_graph_serves_all_lengths(vocoder, mel):
    for frames in (10, 33, 60):
        vocoder(mel[:frames], SMALL, 0)
    assert vocoder.model.inference_function.experimental_get_tracing_count() == 1


def test_griffin_lim_needs_nobody_to_train_it(mel):
    vocoder, expected = Vocoder(GriffinLim(SMALL)), griffin_lim(mel[:8], SMALL, 3)
    np.testing.assert_array_equal(vocoder(mel[:8], SMALL, 3), expected)
    (streamed,) = vocoder.stream(cut(mel[:8], [3]), 3)  # only the whole mel decides
    np.testing.assert_array_equal(streamed, expected)


# Which vocoder.


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A vocoder's folder; nothing may be written to it."""
    folder = tmp_path_factory.mktemp("saved") / "vocoder"
    return save_vocoder(folder, tiny_vocoder(SMALL), SMALL)


@pytest.fixture
def run(tmp_path) -> Path:
    """The folder of a run that has no vocoder."""
    folder = tmp_path / "run"
    (folder / "voice").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", ["auto", "griffin_lim"])
def test_without_a_vocoder_of_its_own_a_run_speaks_by_griffin_lim(run, name):
    assert choose_vocoder(name, run, SMALL).name == "griffin_lim"


@pytest.mark.parametrize(("name", "place"), [("auto", "stage2/vocoder"), ("istft", "vocoder")])
def test_the_vocoder_that_a_run_has_trained_is_found_in_it(run, saved, mel, name, place):
    shutil.copytree(saved, run / place)
    found = choose_vocoder(name, run, SMALL)
    assert found.name == "istft"
    expected = load_vocoder(saved).model(mel[None, :20], first_frame=3)["waveform"][0]
    np.testing.assert_allclose(found(mel[:20], SMALL, 3), expected, atol=1e-5)
    assert choose_vocoder("griffin_lim", run, SMALL).name == "griffin_lim"


def test_a_path_names_a_vocoder_or_the_run_that_made_it(run, saved, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(saved, other / "vocoder")
    for path in (saved, other):
        assert choose_vocoder(str(path), run, SMALL).name == "istft"


def test_a_run_without_one_says_how_to_train_it(run):
    with pytest.raises(UserError, match="run has no istft vocoder.*train-vocoder --vocoder istft"):
        choose_vocoder("istft", run, SMALL)


def test_a_folder_without_a_vocoder_is_named_with_all_that_was_looked_for(run):
    with pytest.raises(CheckpointError, match="no vocoder in .*run/stage2/vocoder"):
        choose_vocoder(str(run), run, SMALL)


def test_a_run_with_an_istft_is_not_searched_for_a_hifigan(run, saved, monkeypatch, tmp_path):
    shutil.copytree(saved, run / "vocoder")
    monkeypatch.chdir(tmp_path)  # where there are no public weights
    with pytest.raises(CheckpointError, match="`myxtts weights get hifigan_universal`"):
        choose_vocoder("hifigan", run, AudioSpec())


@pytest.mark.parametrize("name", ["auto", "istft"])
def test_other_mels_than_the_vocoder_knows_are_rejectd(run, saved, name):
    shutil.copytree(saved, run / "vocoder")
    with pytest.raises(CheckpointError, match="other mels.*n_mels 20 here 80"):
        choose_vocoder(name, run, AudioSpec())


def test_a_name_that_nobody_has_is_rejectd_with_those_there_are(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no vocoder 'hifigna' here.*auto, griffin_lim, istft"):
        check_name("hifigna")
    with pytest.raises(UserError, match="no vocoder 'hifigna' here: choose one of auto"):
        choose_vocoder("hifigna", tmp_path, SMALL)


def test_names_and_paths_that_are_there_are_not_rejectd(tmp_path):
    for name in (*vocoders.names(), "hifigan_universal", str(tmp_path)):
        check_name(name)
    assert vocoders.names() == ("auto", "griffin_lim", "istft", "hifigan")
