import logging
from pathlib import Path

import pytest
import yaml

from myxtts.config.config import ALIASES, SETTINGS, ConfigError, XTTSConfig
from myxtts.config.io import explain, load_config, resolve, save_choices, save_config, to_dict
from myxtts.config.legacy_keys import HINTS, NOT_YET, RENAMED, RETIRED
from myxtts.config.presets import PRESETS, create_default_config

ROOT = Path(__file__).parents[2]


@pytest.fixture
def write(tmp_path):
    def write_yaml(text: str, name: str = "x.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_yaml


DOCUMENTS = [
    (
        "data: {dataset_path: ./data/ljspeech, batch_size: 48, preprocessing_mode: precompute, "
        "num_workers: 12, prefetch_buffer_size: 8}",
        {
            "batch_size": 48,
            "preprocessing_mode": "precompute",
            "num_workers": 12,
            "prefetch_buffer_size": 8,
        },
    ),
    (
        "data:\n  preprocessing_mode: runtime\n  batch_size: 16  # smaller\n"
        "  num_workers: 8\n  prefetch_buffer_size: 4",
        {"preprocessing_mode": "runtime", "batch_size": 16},
    ),
    (
        'data:\n  preprocessing_mode: "precompute"\n  cache_verification: true\n'
        "  auto_rebuild_token_cache: true",
        {"preprocessing_mode": "precompute"},
    ),
    (
        'data:\n  preprocessing_mode: "precompute"\n  batch_size: 48\n  num_workers: 16\n'
        "  prefetch_buffer_size: 12\n  \n"
        "training:\n  enable_graph_mode: true\n  enable_xla_compilation: true",
        {
            "preprocessing_mode": "precompute",
            "batch_size": 48,
            "num_workers": 16,
            "prefetch_buffer_size": 12,
            "enable_xla_compilation": True,
        },
    ),
    ("data:\n  num_workers: 24", {"num_workers": 24}),
    ("data:\n  prefetch_buffer_size: 16", {"prefetch_buffer_size": 16}),
    ("data:\n  auto_rebuild_token_cache: true\n  auto_rebuild_mel_cache: true", {}),
    (
        "data:\n  preprocessing_mode: precompute\n  use_tf_native_loading: true\n"
        "  enhanced_gpu_prefetch: true\n  optimize_cpu_gpu_overlap: true\n  batch_size: 48\n"
        "  num_workers: 16\n  prefetch_buffer_size: 12",
        {
            "preprocessing_mode": "precompute",
            "batch_size": 48,
            "num_workers": 16,
            "prefetch_buffer_size": 12,
        },
    ),
    (
        "data:\n  mixed_precision: false\n  enable_xla: false\n"
        "training:\n  enable_eager_debug: true",
        {"mixed_precision": False, "enable_xla": False, "enable_eager_debug": True},
    ),
]


@pytest.mark.parametrize(("text", "values"), DOCUMENTS)
def test_yaml_of_the_documents_loads_without_a_warning(write, caplog, text, values):
    assert load_config(write(text)) == XTTSConfig(**values)
    assert not caplog.records


def test_shipped_files_load_and_hold_only_what_differs(caplog):
    fix = load_config(ROOT / "config_gpu_bottleneck_fix.yaml")
    assert (fix.data.preprocessing_mode, fix.data.batch_size) == ("precompute", 48)
    for path in [ROOT / "config_gpu_bottleneck_fix.yaml", *(ROOT / "configs").glob("*.yaml")]:
        resolved = resolve(file=path, environ={})
        plain = create_default_config(model_size=resolved.config.model.model_size)
        for setting, origin in resolved.origins.items():
            if origin.startswith("file"):
                section, name = setting.split(".")
                assert to_dict(resolved.config)[section][name] != to_dict(plain)[section][name]
    assert not caplog.records


def every_kind_of_value() -> XTTSConfig:
    return XTTSConfig(
        data_path="گفتار: #1 it's",
        speaker_pattern=r"^(p\d+)_",
        loudness_lufs=-23,
        mel_floor=1e-6,
        memory_cache=True,
        enable_xla=False,
        mixed_precision=True,
        model_size="tiny",
        batch_size=32,
    )


@pytest.mark.parametrize("config", [XTTSConfig(), every_kind_of_value()])
@pytest.mark.parametrize("only_differences", [False, True])
def test_yaml_round_trip_is_equal(tmp_path, caplog, config, only_differences):
    path = tmp_path / "new" / "c.yaml"
    save_config(config, path, only_differences=only_differences)
    assert load_config(path) == config
    assert not caplog.records


def test_saved_differences_are_few(tmp_path):
    config = create_default_config(model_size="tiny", num_workers=3)
    save_config(config, tmp_path / "c.yaml", only_differences=True)
    assert (tmp_path / "c.yaml").read_text() == (
        "data:\n  num_workers: 3\n\nmodel:\n  model_size: tiny\n"
    )


def test_saved_choices_hold_what_was_chosen_and_explain_the_rest(tmp_path, caplog):
    flags = {"data.batch_size": (32, "--batch-size"), "model.model_size": ("tiny", "--model-size")}
    resolved = resolve(flags=flags, environ={"MYXTTS_TRAINING_SEED": "7"})
    save_choices(resolved, tmp_path / "c.yaml")
    assert load_config(tmp_path / "c.yaml") == resolved.config
    text = (tmp_path / "c.yaml").read_text(encoding="utf-8")
    about = "what a token stands for; piper: what players can type (characters | phonemes | piper)"
    assert f"  # {about}\n  #text_units: characters\n" in text
    values = yaml.safe_load(text)
    assert values["data"] == {"batch_size": 32}
    assert values["model"] == {"model_size": "tiny"} and values["training"] == {"seed": 7}
    assert not caplog.records


# A model size over a file


SIZE = "model.model_size"
TINY = {SIZE: ("tiny", "--model-size")}


@pytest.mark.parametrize("save", ["complete", "choices"])
def test_a_model_size_wins_over_the_preset_that_a_file_repeats(tmp_path, caplog, save):
    path = tmp_path / "c.yaml"
    plain = resolve(environ={})
    save_config(plain.config, path) if save == "complete" else save_choices(plain, path)
    resolved = resolve(file=path, flags=TINY, environ={})
    assert resolved.config == create_default_config(model_size="tiny")
    assert resolved.origins["model.decoder_dim"] == "preset tiny"
    assert resolved.origins[SIZE] == "flag --model-size"
    by_environment = resolve(file=path, environ={"MYXTTS_MODEL_MODEL_SIZE": "tiny"})
    assert by_environment.config == resolved.config
    assert not caplog.records


def test_what_a_complete_file_sets_besides_its_preset_stays_and_is_listed(tmp_path, caplog):
    path = tmp_path / "c.yaml"
    save_config(create_default_config(model_size="normal", batch_size=5, epochs=3), path)
    resolved = resolve(file=path, flags=TINY, environ={})
    assert resolved.config == create_default_config(model_size="tiny", batch_size=5, epochs=3)
    assert resolved.origins["data.batch_size"] == f"file {path}"
    (message,) = (record.getMessage() for record in caplog.records)
    assert message == (
        f"flag --model-size tiny leaves these values of file {path}: data.batch_size=5 (tiny: 8)"
    )


def test_every_value_of_a_file_that_is_not_complete_was_chosen(write, caplog):
    path = write("data: {batch_size: 32}\nmodel: {model_size: small}")
    assert resolve(file=path, flags=TINY, environ={}).config.data.batch_size == 32
    assert "data.batch_size=32 (tiny: 8)" in caplog.text


def test_the_size_that_a_file_has_already_changes_nothing(tmp_path, caplog):
    config = create_default_config(model_size="tiny", batch_size=5)
    save_config(config, tmp_path / "c.yaml")
    assert resolve(file=tmp_path / "c.yaml", flags=TINY, environ={}).config == config
    assert not caplog.records


def test_a_model_size_that_could_change_nothing_is_an_error(tmp_path):
    def other(value):
        return {int: lambda: 3 * value, float: lambda: 0.5, str: lambda: "v2"}[type(value)]()

    tiny = {path.partition(".")[2]: value for path, value in PRESETS["tiny"].items()}
    others = {name: other(value) for name, value in tiny.items()} | {"discriminator_width": 8}
    save_config(XTTSConfig(**others), tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="--model-size tiny has no effect: file .*c.yaml sets"):
        resolve(file=tmp_path / "c.yaml", flags=TINY, environ={})


# The last learning rate


def test_the_last_learning_rate_follows_the_highest_unless_it_is_set(write):
    for size, rate in (("tiny", 4e-5), ("small", 2e-5), ("normal", 1.2e-5), ("big", 8e-6)):
        training = create_default_config(model_size=size).training
        assert training.last_learning_rate == pytest.approx(rate, rel=1e-12)
    low = {"training.learning_rate": (1e-5, "--lr")}
    assert resolve(flags=low, environ={}).config.training.last_learning_rate == pytest.approx(2e-7)
    with pytest.raises(ConfigError, match="min_learning_rate .1e-05. is above .*learning_rate"):
        load_config(write("training: {learning_rate: 1e-6, min_learning_rate: 1e-5}"))


def test_the_last_rate_of_a_saved_configuration_follows_a_flag(tmp_path):
    # As the version before has saved it.
    config = create_default_config(learning_rate=1e-3, min_learning_rate=2e-5)
    save_config(config, tmp_path / "c.yaml")
    assert load_config(tmp_path / "c.yaml") == config
    low = {"training.learning_rate": (1e-5, "--lr")}
    training = resolve(file=tmp_path / "c.yaml", flags=low, environ={}).config.training
    assert training.last_learning_rate == pytest.approx(2e-7)


# The earlier program


@pytest.mark.parametrize("text", ["training: {checkpoint_interval: null}", "checkpoint_interval:"])
def test_an_old_key_without_a_value_is_ignored(write, caplog, text):
    assert load_config(write(text)) == XTTSConfig()
    assert "training.checkpoint_interval is empty and ignored" in caplog.text


def test_an_old_key_without_its_section_keeps_its_value(write):
    assert load_config(write("checkpoint_interval: 700")).training.save_interval == 700


def test_a_low_learning_rate_of_the_earlier_program_loads(write):
    text = "training:\n  learning_rate: 1e-5\n  warmup_steps: 3000\n"
    assert load_config(write(text)).training.last_learning_rate == pytest.approx(2e-7)


def test_a_file_that_cannot_be_written_is_a_clear_error(write):
    with pytest.raises(
        ConfigError, match=r"settings are not saved: cannot write .* choose another"
    ):
        save_config(XTTSConfig(), write("") / "below_a_file.yaml")


def test_numbers_that_yaml_takes_for_text_are_numbers(write):
    data = load_config(
        write("data: {mel_floor: 1e-4, batch_size: '24', cache_budget_gb: 5e1}")
    ).data
    assert (data.mel_floor, data.batch_size, data.cache_budget_gb) == (1e-4, 24, 50.0)


def test_words_for_switches_and_for_nothing(write):
    data = load_config(
        write("data: {memory_cache: 'true', loudness_lufs: 'off', mixed_precision: auto}")
    ).data
    assert (data.memory_cache, data.loudness_lufs, data.mixed_precision) == (True, None, None)
    off = load_config(write("data: {mixed_precision: off}")).data
    assert off.mixed_precision is False


def test_keys_without_a_section_are_taken(write):
    config = load_config(write("batch_size: 9\nepochs: 2\ndata_path: ./d"))
    assert (config.data.batch_size, config.training.epochs) == (9, 2)
    assert config.data.dataset_path == "./d"


def test_merge_keys_and_empty_sections(write):
    text = "data:\n  <<: {batch_size: 3, num_workers: 2}\n  batch_size: 4\ntraining:\n"
    assert load_config(write(text)) == XTTSConfig(batch_size=4, num_workers=2)
    assert load_config(write("")) == XTTSConfig()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "data:\n  num_workers: 1\n  bach_size: 3",
            ["data.bach_size", "data.batch_size", "line 3"],
        ),
        ("training:\n  batch_sizes: 3", ["training.batch_sizes", "data.batch_size", "line 2"]),
        ("training:\n  prefetch_buffer_size: 3", ["'data.prefetch_buffer_size'"]),
        ("dta:\n  batch_size: 3", ["'dta'", "'data'", "line 1"]),
        ("training: {stage2_lr: 1}", ["did you mean 'training.stage2_learning_rate'?"]),
        ("training: {stage2_lrate: 1}", ["did you mean 'training.stage2_learning_rate'?"]),
        ("training: {grad_acum: 1}", ["did you mean 'training.gradient_accumulation_steps'?"]),
        ("zzz: 1", ["'zzz'", "myxtts config show"]),
        ("data:\n  batch_size: [", ["line", "not valid YAML"]),
        ("data:\n  a: b: c", ["line 2", "not valid YAML"]),
        ("data:\n  x: !!python/object:os.system 1", ["line 2", "not valid YAML"]),
        ("a: 1\n---\nb: 2", ["not valid YAML"]),
        ("data: &a {batch_size: 3}\nmodel: *a", ["line 2", "the alias *a", "write the values out"]),
        ("data:\n  epochs: !!int ''", ["line 2", "the tag", "without it"]),
        ("data: {batch_size: " + "[" * 5000, ["nested too deeply"]),
        ("data: {language: " + "a" * 10_001 + "}", ["line 1", "a value of 10,001 characters"]),
        ("data: {[a]: 1}", ["line 1", "a name of a setting must be one word"]),
        ("data: {fmax: 2001-13-45}", ["not valid YAML"]),
        ("data: {batch_size: 0x" + "f" * 9000 + "}", ["at most 65536, got a whole number of 36"]),
        ("#" * (1 << 18) + "\n", ["cannot read the settings", "larger than 262,144 bytes"]),
        ("- batch_size", ["sections (data, model, training)"]),
        ("data: 5", ["line 1", "data must hold"]),
        ("data:\n  batch_size: 1\n  batch_size: 2", ["line 3", "already, on line 2"]),
        ("data: {batch_size: many}", ["data.batch_size must be a whole number, got 'many'"]),
        ("data: {batch_size: [1]}", ["data.batch_size must be a whole number, got [1]"]),
        ("data: {language: no}", ["data.language must be text (in quotes"]),
        ("data: {batch_size: null}", ["data.batch_size must be a whole number, got None"]),
        (
            "data: {prefetch_to_gpu: true, enhanced_gpu_prefetch: false}",
            ["data.prefetch_to_gpu is True", "False", "as data.enhanced_gpu_prefetch"],
        ),
        (
            "data: {enable_xla: true}\ntraining: {enable_xla_compilation: false}",
            ["True", "as data.enable_xla", "False"],
        ),
        (
            "data: {win_length: 2048}",
            ["data.win_length (2048)", "data.n_fft (1024)", "data.n_fft comes from: default"],
        ),
    ],
)
def test_a_bad_file_is_an_error_that_names_it_and_the_remedy(write, text, words):
    path = write(text)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def laughs(levels: int, line: str) -> str:
    lines = ["l0: &l0 {batch_size: 3}"]
    lines += [line.format(new=n, old=n - 1) for n in range(1, levels)]
    return "\n".join([*lines, f"data: *l{levels - 1}"])


@pytest.mark.parametrize(
    "line",
    ["l{new}: &l{new} [*l{old}, *l{old}, *l{old}]", "l{new}: &l{new}\n  <<: [*l{old}, *l{old}]"],
    ids=["lists", "merges"],
)
def test_aliases_that_grow_without_end_are_rejectd_at_once(write, line):
    path = write(laughs(40, line))
    with pytest.raises(ConfigError, match=r"line \d: .*the alias \*l0: write the values out"):
        load_config(path)


def test_an_unknown_section_is_named_as_one(write):
    path = write("dat:\n  batch_size: 3")
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value) == f"unknown section 'dat' in {path}, line 1: did you mean 'data'?"


def test_a_keyword_s_suggestion_knows_short_words():
    with pytest.raises(ConfigError, match="did you mean 'training.stage2_learning_rate'"):
        XTTSConfig(stage2_lr=1e-4)


def test_a_missing_or_unreadable_file_is_a_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="no settings file.*myxtts config create"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").write_bytes(b"data: \x00")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_config(tmp_path / "c.yaml")


def test_a_yaml_of_the_earlier_program_loads_and_says_what_became_of_its_keys(write, caplog):
    path = write(
        "model:\n  n_mels: 100\n  decoder_dim: 1024\n  decoder_heads: 8\n  tokenizer_type: nllb\n"
        "training:\n  batch_size: 16\n  learning_rate: 1e-4\n  use_huber_loss: true\n"
        "data:\n  dataset_path: ''\n  val_split: 0.1\n  pin_memory: true\n"
        "  metadata_train_file: null\n"
        "gpu_optimizations:\n  allow_memory_growth: true\n"
        "audio: {sample_rate: 24000}\n"
    )
    config = load_config(path)
    assert config == XTTSConfig(
        n_mels=100,
        batch_size=16,
        val_fraction=0.1,
        sample_rate=24000,
        decoder_dim=1024,
        learning_rate=1e-4,
    )
    messages = [record.getMessage() for record in caplog.records]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert any("model.n_mels is now called data.n_mels" in m for m in messages)
    assert any("training.batch_size is now called data.batch_size" in m for m in messages)
    assert any("data.val_split is now called data.val_fraction" in m for m in messages)
    assert any("dataset_path is empty" in m for m in messages)
    (retired,) = (m for m in messages if "no effect any more" in m)
    for key in ("model.tokenizer_type", "training.use_huber_loss", "gpu_optimizations"):
        assert key in retired
    assert "data.pin_memory (see data.prefetch_to_gpu)" in retired
    (later,) = (m for m in messages if "no effect yet" in m)
    assert "model.decoder_heads" in later


def test_the_new_name_wins_over_an_old_one_in_the_same_file(write, caplog):
    config = load_config(write("model: {n_fft: 1024}\ndata: {n_fft: 2048}"))
    assert config.data.n_fft == 2048
    assert "now called data.n_fft, which is set to 2048 and wins" in caplog.text


@pytest.mark.parametrize(
    ("text", "loudness"),
    [
        ("target_loudness_lufs: -20", -20.0),
        ("data: {target_loudness_lufs: -20}", -20.0),
        ("data: {target_loudness_lufs: -20, enable_loudness_normalization: true}", -20.0),
        ("data: {target_loudness_lufs: -20, enable_loudness_normalization: false}", None),
        ("data: {enable_loudness_normalization: true}", -23.0),
        ("data: {enable_loudness_normalization: false}", None),
    ],
)
def test_loudness_of_the_earlier_program(write, text, loudness):
    assert load_config(write(text)).data.loudness_lufs == loudness


def test_phonemes_of_the_earlier_program(write):
    assert load_config(write("data: {enable_phonemes: true}")).data.text_units == "phonemes"
    assert load_config(write("enable_phone_normalization: false")).data.text_units == "characters"


def test_no_key_is_both_known_and_of_the_earlier_program():
    tables = [set(SETTINGS) | set(ALIASES), set(RENAMED), set(RETIRED), set(NOT_YET)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set(HINTS) <= RETIRED
    assert all(new.path in SETTINGS for new in RENAMED.values())


def test_environment_wins_over_flag_over_file_over_preset_over_default(write):
    path = write("data: {batch_size: 1, num_workers: 1, pad_to_multiple: 1}\nmodel_size: tiny")
    resolved = resolve(
        file=path,
        flags={"data.batch_size": (2, "--batch-size"), "data.num_workers": (2, "--num-workers")},
        environ={"MYXTTS_DATA_BATCH_SIZE": "3", "HOME": "/", "MYXTTS_DATA_LANGUAGE": ""},
    )
    data, origins = resolved.config.data, resolved.origins
    assert (data.batch_size, origins["data.batch_size"]) == (
        3,
        "environment MYXTTS_DATA_BATCH_SIZE",
    )
    assert (data.num_workers, origins["data.num_workers"]) == (2, "flag --num-workers")
    assert (data.pad_to_multiple, origins["data.pad_to_multiple"]) == (1, f"file {path}")
    assert (data.max_mel_frames, origins["data.max_mel_frames"]) == (1000, "preset tiny")
    assert (data.language, origins["data.language"]) == ("en", "default")
    assert set(origins) == set(SETTINGS)


def test_a_preset_is_for_want_of_a_size_that_was_given(write):
    resolved = resolve(environ={}, preset="big")
    assert resolved.config == create_default_config(model_size="big")
    assert resolved.origins["model.model_size"] == "preset big"
    given = resolve(file=write("model: {model_size: tiny}"), environ={}, preset="big")
    assert given.config.data.batch_size == 8
    with pytest.raises(ConfigError, match="tiny, small, normal, big; got 'huge'"):
        resolve(environ={}, preset="huge")


def test_short_names_in_the_environment_win_over_the_file(write):
    path = write("data: {mixed_precision: true, enable_xla: true}")
    environ = {"MYXTTS_ENABLE_MIXED_PRECISION": "0", "MYXTTS_ENABLE_XLA": "False"}
    resolved = resolve(file=path, environ=environ)
    assert resolved.config.data.mixed_precision is False
    assert resolved.config.training.enable_xla_compilation is False
    assert resolved.origins["training.enable_xla_compilation"] == "environment MYXTTS_ENABLE_XLA"


def test_old_name_in_the_file_shows_as_the_origin(write):
    path = write("data: {enable_xla: true, enhanced_gpu_prefetch: false}")
    origins = resolve(file=path, environ={}).origins
    assert origins["training.enable_xla_compilation"] == f"file {path} (as data.enable_xla)"
    assert origins["data.prefetch_to_gpu"] == f"file {path} (as data.enhanced_gpu_prefetch)"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MYXTTS_DATA_BACH_SIZE": "3"}, ["environment MYXTTS_DATA_BACH_SIZE", "data.batch_size"]),
        ({"MYXTTS_DATA_BATCH_SIZE": "x"}, ["environment MYXTTS_DATA_BATCH_SIZE", "'x'"]),
        ({"MYXTTS_ENABLE_XLA": "maybe"}, ["MYXTTS_ENABLE_XLA", "true or false", "'maybe'"]),
        (
            {"MYXTTS_ENABLE_XLA": "1", "MYXTTS_TRAINING_ENABLE_XLA_COMPILATION": "0"},
            ["MYXTTS_ENABLE_XLA", "MYXTTS_TRAINING_ENABLE_XLA_COMPILATION", "keep one"],
        ),
    ],
)
def test_a_bad_variable_is_an_error_that_names_it(environ, words):
    with pytest.raises(ConfigError) as error:
        resolve(environ=environ)
    for word in words:
        assert word in str(error.value)


def test_explain_lists_every_setting_aligned_with_its_origin(write):
    path = write("data: {batch_size: 7, loudness_lufs: -23}")
    lines = explain(resolve(file=path, environ={})).splitlines()
    assert [line.split()[0] for line in lines] == list(SETTINGS)
    rows = {line.split()[0]: line for line in lines}
    assert rows["data.batch_size"].split(maxsplit=2)[1:] == ["7", f"file {path}"]
    assert rows["data.mixed_precision"].split()[1:] == ["null", "default"]
    assert rows["data.cache_dir"].split()[1:] == ["''", "default"]
    starts = {line.index("default") for line in lines if line.endswith("default")}
    assert len(starts) == 1


@pytest.mark.slow
def test_every_flipped_bit_of_a_sealed_file_is_rejectd_or_changes_nothing(tmp_path):
    path = tmp_path / "sealed.yaml"
    config = XTTSConfig(batch_size=9, num_workers=3)
    save_config(config, path, only_differences=True, sealed=True)
    original = path.read_bytes()
    for at in range(len(original)):
        for bit in range(8):
            changed = bytearray(original)
            changed[at] ^= 1 << bit
            path.write_bytes(changed)
            try:
                assert load_config(path) == config, f"byte {at}, bit {bit}"
            except ConfigError as error:
                assert str(path) in str(error)


def test_a_sealed_file_may_be_changed_by_one_who_removes_the_seal(tmp_path):
    path = tmp_path / "sealed.yaml"
    save_config(XTTSConfig(batch_size=9), path, only_differences=True, sealed=True)
    text = path.read_text().replace("batch_size: 9", "batch_size: 8")
    path.write_text(text)
    with pytest.raises(ConfigError, match="not what its checksum was made of: .*its last line"):
        load_config(path)
    path.write_text(text[: text.index("# sha256")])
    assert load_config(path).data.batch_size == 8
