"""The audio preset: what it sets, and how it meets files, flags and single values."""

import pytest

from myxtts.config.config import SETTINGS, AudioSpec, ConfigError, XTTSConfig
from myxtts.config.flags import FLAGS
from myxtts.config.io import (
    load_config,
    resolve,
    save_choices,
    save_config,
)
from myxtts.config.presets import (
    AUDIO_PRESETS,
    NAMED_PRESETS,
    audio_preset_of,
    create_default_config,
    preset_values,
)

AUDIO = "data.audio"
BY_FLAG = {AUDIO: ("24k", "--audio")}
WIDE = AudioSpec(24000, 1024, 256, 1024, 100, 0.0, 12000.0)


@pytest.fixture
def write(tmp_path):
    def write(text: str):
        path = tmp_path / "c.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def as_before(path) -> None:
    """Rewrite a saved file as a version without audio presets has saved it."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("  audio:")))


def test_the_presets_are_those_that_the_settings_allow():
    assert tuple(AUDIO_PRESETS) == SETTINGS[AUDIO].metadata["choices"]
    assert all(path in SETTINGS for preset in AUDIO_PRESETS.values() for path in preset)
    assert [flag.names for flag in FLAGS if flag.field == AUDIO] == [("--audio",)]
    # What two kinds of presets set would depend on their order.
    size, audio = (preset_values(name, SETTINGS[name].default) for name in NAMED_PRESETS)
    assert not size.keys() & audio.keys()


def test_the_default_is_what_it_was():
    assert create_default_config().data.audio_spec == AudioSpec()
    assert AudioSpec() == AudioSpec(22050, 1024, 256, 1024, 80, 0.0, 8000.0, 1e-5)
    assert create_default_config(audio="22k") == XTTSConfig()
    assert resolve(environ={}).config == XTTSConfig()


def test_a_flag_a_file_the_environment_and_a_keyword_set_all_mels(write):
    found = [
        resolve(flags=BY_FLAG, environ={}),
        resolve(file=write("data: {audio: 24k}"), environ={}),
        resolve(environ={"MYXTTS_DATA_AUDIO": "24k"}),
    ]
    for resolved in found:
        assert resolved.config == create_default_config(audio="24k")
        assert resolved.origins["data.n_mels"] == "preset 24k"
    assert found[0].config.data.audio_spec == WIDE
    assert found[0].origins[AUDIO] == "flag --audio"


def test_single_values_win_over_the_preset(write):
    text = "data: {audio: 24k, n_mels: 80, hop_length: 240}"
    spec = load_config(write(text)).data.audio_spec
    assert spec == AudioSpec(24000, 1024, 240, 1024, 80, 0.0, 12000.0)
    spec = create_default_config(audio="24k", fmax=11000.0).data.audio_spec
    assert (spec.fmax, spec.n_mels) == (11000.0, 100)
    flags = BY_FLAG | {"data.sample_rate": (32000, "--sample-rate")}
    assert resolve(flags=flags, environ={}).config.data.audio_spec.sample_rate == 32000


def test_both_presets_apply_together():
    config = create_default_config(model_size="tiny", audio="24k")
    assert (config.model.decoder_dim, config.data.n_mels) == (192, 100)
    flags = BY_FLAG | {"model.model_size": ("tiny", "--model-size")}
    assert resolve(flags=flags, environ={}).config == config


def test_a_value_that_contradicts_the_preset_is_named_with_both_origins():
    flags = BY_FLAG | {"data.sample_rate": (22050, "--sample-rate")}
    with pytest.raises(ConfigError) as error:
        resolve(flags=flags, environ={})
    assert str(error.value) == (
        "data.fmax (12000.0) is above half of data.sample_rate (22050) (data.fmax comes from: "
        "preset 24k; data.sample_rate comes from: flag --sample-rate)"
    )


def test_an_unknown_preset_is_refused():
    for make in (create_default_config, XTTSConfig):
        with pytest.raises(ConfigError, match="data.audio must be one of 22k, 24k; got '48k'"):
            make(audio="48k")


@pytest.mark.parametrize("saved", ["complete", "choices", "complete, before there were presets"])
def test_a_flag_wins_over_the_preset_that_a_file_repeats(tmp_path, caplog, saved):
    path, plain = tmp_path / "c.yaml", resolve(environ={})
    save_choices(plain, path) if saved == "choices" else save_config(plain.config, path)
    if "before" in saved:
        as_before(path)
        assert "audio:" not in path.read_text()
    resolved = resolve(file=path, flags=BY_FLAG, environ={})
    assert resolved.config == create_default_config(audio="24k")
    assert resolved.origins["data.fmax"] == "preset 24k"
    assert not caplog.records


def test_back_to_the_default_over_a_complete_file(tmp_path, caplog):
    save_config(create_default_config(audio="24k"), tmp_path / "c.yaml")
    flags = {AUDIO: ("22k", "--audio")}
    assert resolve(file=tmp_path / "c.yaml", flags=flags, environ={}).config == XTTSConfig()
    assert not caplog.records


def test_what_a_file_sets_besides_its_preset_stays_and_is_listed(tmp_path, caplog):
    path = tmp_path / "c.yaml"
    save_config(create_default_config(n_mels=90), path)
    config = resolve(file=path, flags=BY_FLAG, environ={}).config
    assert config == create_default_config(audio="24k", n_mels=90)
    (message,) = (record.getMessage() for record in caplog.records)
    assert message == (
        f"flag --audio 24k leaves these values of file {path}: data.n_mels=90 (24k: 100)"
    )


def test_a_flag_that_could_change_nothing_is_an_error(write):
    path = write("data: {sample_rate: 44100, n_mels: 128, fmax: 16000}")
    with pytest.raises(ConfigError, match="--audio 24k has no effect: file .*c.yaml sets every"):
        resolve(file=path, flags=BY_FLAG, environ={})


def test_saved_configurations_come_back(tmp_path):
    config = create_default_config(audio="24k", model_size="tiny", num_workers=3)
    for only_differences in (False, True):
        save_config(config, tmp_path / "c.yaml", only_differences=only_differences)
        assert load_config(tmp_path / "c.yaml") == config
    text = (tmp_path / "c.yaml").read_text()
    assert text == "data:\n  audio: 24k\n  num_workers: 3\n\nmodel:\n  model_size: tiny\n"
    chosen = resolve(flags=BY_FLAG, environ={})
    save_choices(chosen, tmp_path / "c.yaml")
    assert "\n  audio: 24k\n" in (tmp_path / "c.yaml").read_text()
    assert "\n  #n_mels: 100\n" in (tmp_path / "c.yaml").read_text()
    assert load_config(tmp_path / "c.yaml") == chosen.config


def test_mels_are_known_by_their_preset():
    assert audio_preset_of(AudioSpec()) == "22k"
    assert audio_preset_of(WIDE) == "24k"
    assert audio_preset_of(AudioSpec(n_mels=20)) is None
