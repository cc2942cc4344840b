"""Recordings that lack the highest bands are counted and named once, with what to do."""

import shutil

import pytest

from myxtts.config.config import AudioSpec
from myxtts.config.presets import create_default_config
from myxtts.data.corpus import bandwidth
from myxtts.data.corpus.bandwidth import check_bandwidth, warn_narrow
from myxtts.data.corpus.corpus import read_corpus
from tests.helpers.make_corpus import make_corpus

WIDE = create_default_config(audio="24k").data.audio_spec


@pytest.fixture
def said(caplog):
    return lambda: [record.getMessage() for record in caplog.records]


def test_too_narrow_recordings_are_counted_by_their_rates(said):
    warn_narrow({48000: 5, 22050: 1200, 16000: 3}, WIDE)
    assert said() == [
        "1,203 of 1,208 recordings have too few samples a second (16,000 Hz: 3, 22,050 Hz: 1,200): "
        "above half of that they hold nothing, and the mels go up to 12,000 Hz. Upsampling adds "
        "nothing: use recordings of at least 24,000 Hz, or --audio 22k"
    ]


def test_what_fills_every_band_is_not_warned_of(said):
    warn_narrow({24000: 1, 44100: 2}, WIDE)
    warn_narrow({16000: 1, 22050: 2}, AudioSpec())  # 8 kHz is all that these mels show
    warn_narrow({}, WIDE)
    assert not said()


def test_where_no_preset_fits_the_highest_frequency_is_named(said):
    warn_narrow({11025: 2}, AudioSpec())
    (message,) = said()
    assert message.endswith("use recordings of at least 16,000 Hz, or lower data.fmax to 5,512")


def test_all_corpora_are_looked_at_and_warned_of_once(tmp_path, said, monkeypatch):
    names = ("one", "two")
    roots = [make_corpus(tmp_path / name, 5, seconds=(0.1, 0.2)) for name in names]
    corpora = [read_corpus(root) for root in roots]
    check_bandwidth(corpora, AudioSpec())
    assert not said()
    check_bandwidth(corpora, WIDE)
    monkeypatch.setattr(bandwidth, "_LOOKED_AT", 4)
    check_bandwidth(corpora, WIDE)
    whole, some = said()
    assert whole.startswith("10 of 10 recordings have too few samples a second (22,050 Hz: 10)")
    assert some.startswith("4 of 4 recordings that were looked at have too few")
    shutil.rmtree(roots[0] / "wavs")
    check_bandwidth(corpora[:1], WIDE)  # what cannot be read is reported by others
    assert len(said()) == 2
