"""Where a cache lies: other mels are another cache, and the old ones stay where they were."""

from pathlib import Path

import pytest

from myxtts.config.config import DataConfig
from myxtts.config.presets import create_default_config
from myxtts.data.features.location import CacheLocation, locate_cache
from myxtts.data.features.waves import WaveWork
from myxtts.text.tokenizer import Tokenizer

# As the versions before named the stores: a cache of theirs is to be found again.
CLEANED = {"trim_silence": True, "loudness_lufs": -23.0, "cache_dtype": "float32"}
YIN = {"pitch_method": "yin"}  # which was the only one
BEFORE = (
    (YIN, "features-f17cecce19542912", "waves-656cd0285fd7fb8c"),
    (YIN | CLEANED, "features-3950623f5cceaba7", "waves-2b29830c1ec000df"),
    ({"with_pitch": False}, "features-0cb763e9008e00f7", "waves-656cd0285fd7fb8c"),
)


def location(config: DataConfig) -> CacheLocation:
    return locate_cache(Path("/nowhere"), config, Tokenizer.build(["en"]))


def waves(found: CacheLocation) -> str:
    return WaveWork(found.folder, found.settings).store.folder.name


@pytest.mark.parametrize(("settings", "features", "waveforms"), BEFORE)
def test_the_caches_of_the_default_mels_are_where_they_were(settings, features, waveforms):
    for config in (DataConfig(**settings), create_default_config(audio="22k", **settings).data):
        found = location(config)
        assert (found.features.folder.name, waves(found)) == (features, waveforms)
        assert found.tokens.folder.name == "tokens-f2b95979cec79898"


def test_another_way_to_find_the_pitch_is_another_cache_where_pitch_is_stored():
    names = [location(DataConfig(**one)).features.folder.name for one, *_ in BEFORE]
    now = location(DataConfig()).features.folder.name
    assert now not in names
    without = DataConfig(with_pitch=False, **YIN)
    assert location(without).features.folder.name == names[2]


def test_another_audio_preset_is_another_cache_of_the_same_tokens():
    before, found = location(DataConfig()), location(create_default_config(audio="24k").data)
    assert found.features.folder != before.features.folder
    assert waves(found) != waves(before)
    assert found.tokens.folder == before.tokens.folder
    assert found.settings.columns[0].width == 100
    # The name of the preset is not part of it: the same mels are the same cache.
    spelled = DataConfig(sample_rate=24000, n_mels=100, fmax=12000.0)
    assert location(spelled).features.folder == found.features.folder
