import argparse
import re

import pytest

from myxtts.config.config import SETTINGS, ConfigError
from myxtts.config.flags import FLAGS, add_flags, flag_values
from myxtts.config.io import resolve


def parse(*arguments: str, wanted=None):
    parser = argparse.ArgumentParser()
    add_flags(parser, wanted)
    return flag_values(parser.parse_args(arguments))


def test_every_flag_sets_a_field_that_exists_and_no_name_comes_twice():
    names = [name for flag in FLAGS for name in flag.names]
    assert len(names) == len(set(names))
    assert all(flag.field in SETTINGS for flag in FLAGS)
    switches = (bool, bool | None)
    kinds = {flag.kind for flag in FLAGS if SETTINGS[flag.field].type in switches}
    assert kinds == {"true", "false"}
    assert all(flag.kind == "value" for flag in FLAGS if SETTINGS[flag.field].type not in switches)


def test_a_switch_has_flags_for_what_is_not_its_default():
    for path in {flag.field for flag in FLAGS if flag.kind != "value"}:
        says = {flag.kind == "true" for flag in FLAGS if flag.field == path}
        assert (not SETTINGS[path].default) in says


def test_nothing_given_sets_nothing():
    assert parse() == {}


@pytest.mark.parametrize("name", ["--data", "--data-path", "--train-data"])
def test_a_flag_under_each_of_its_names_says_which_was_typed(name):
    values = parse(name, "./corpus")
    assert values == {"data.dataset_path": ("./corpus", name)}
    assert resolve(flags=values, environ={}).origins["data.dataset_path"] == f"flag {name}"


@pytest.mark.parametrize("name", ["--no-prefetch-to-gpu", "--disable-gpu-prefetch"])
def test_switches_turn_on_and_off(name):
    assert parse(name) == {"data.prefetch_to_gpu": (False, name)}
    assert parse("--prefetch-to-gpu")["data.prefetch_to_gpu"].value is True
    assert parse("--trim-silence")["data.trim_silence"].value is True
    assert parse("--disable-tf-native-loading")["data.use_tf_native_loading"].value is False


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("--use-pretrained-speaker-encoder",), ("--disable-pretrained-speaker-encoder",)),
        (("--disable-gpu-prefetch",), ("--prefetch-to-gpu",)),
        (("--data", "a"), ("--train-data", "b")),
    ],
)
def test_flags_that_contradict_each_other_are_an_error_that_names_both(capsys, first, second):
    for words in ((*first, *second), (*second, *first)):
        with pytest.raises(SystemExit):
            parse(*words)
        message = capsys.readouterr().err
        assert first[0] in message and second[0] in message and "contradict" in message


def test_a_flag_given_twice_counts_as_the_last_and_two_names_may_agree():
    assert parse("--batch-size", "8", "--batch-size", "16")["data.batch_size"].value == 16
    assert parse("--data", "a", "--train-data", "a")["data.dataset_path"].value == "a"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--disable-gst --gst-num-heads 2", ["--disable-gst", "--gst-num-heads"]),
        (
            "--disable-pretrained-speaker-encoder --speaker-encoder-path x.pt",
            ["--disable-pretrained-speaker-encoder", "--speaker-encoder-path"],
        ),
    ],
)
def test_a_flag_that_another_one_makes_useless_is_an_error(words, names):
    with pytest.raises(ConfigError, match="would have no effect") as error:
        parse(*words.split())
    assert all(name in str(error.value) for name in names)


def test_values_have_their_field_s_type():
    values = parse("--batch-size", "48", "--loudness-lufs", "-23", "--val-fraction", "1e-2")
    assert [value for value, _ in values.values()] == [48, -23.0, 0.01]
    assert parse("--loudness-lufs", "off")["data.loudness_lufs"].value is None


def test_a_line_of_the_documents():
    line = "--preprocessing-mode precompute --batch-size 64 --num-workers 16 --epochs 1000"
    config = resolve(flags=parse(*line.split()), environ={}).config
    assert (config.data.preprocessing_mode, config.data.batch_size) == ("precompute", 64)
    assert (config.data.num_workers, config.training.epochs) == (16, 1000)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--batch-size", "many"), "data.batch_size must be a whole number"),
        (("--batch-size", "0"), "at least 1"),
        (("--preprocessing-mode", "fast"), "precompute"),
        (("--model-size", "huge"), "normal"),
    ],
)
def test_a_bad_value_exits_with_2_and_says_why(capsys, arguments, word):
    with pytest.raises(SystemExit) as error:
        parse(*arguments)
    assert error.value.code == 2
    message = capsys.readouterr().err
    assert word in message and arguments[0] in message


def test_flags_are_chosen_by_field_or_by_name():
    assert parse("--seed", "1", wanted=["training.seed"])["training.seed"].value == 1
    assert parse("--train-data", "d", wanted=["--data"]) != {}
    with pytest.raises(SystemExit):
        parse("--epochs", "1", wanted=["training.seed"])
    with pytest.raises(ConfigError, match="--sead"):
        parse(wanted=["--sead"])


def test_help_shows_each_default_from_its_field():
    parser = argparse.ArgumentParser()
    add_flags(parser)
    text = re.sub(r"\s+", " ", parser.format_help())
    assert "--batch-size BATCH_SIZE utterances per batch (default: 32)" in text
    assert "{auto,precompute,runtime}" in text
    assert "(default: ./data/ljspeech)" in text
    assert "move batches to the GPU ahead of their step (default: on)" in text
    assert "data." not in text


def test_help_does_not_call_a_flag_on_that_switches_off():
    parser = argparse.ArgumentParser()
    add_flags(parser)
    helps = {action.option_strings[0]: action.help for action in parser._actions}
    assert helps["--enable-gst"].endswith("(default: on)")
    assert helps["--trim-silence"].endswith("(default: off)")
    assert not [
        flag.names[0]
        for flag in FLAGS
        if flag.kind == "false" and "default" in helps[flag.names[0]]
    ]


def test_flags_of_a_subcommand_join_those_before_it():
    parser = argparse.ArgumentParser()
    add_flags(parser, ["training.seed"])
    add_flags(parser.add_subparsers().add_parser("go"), ["data.batch_size"])
    values = flag_values(parser.parse_args(["--seed", "3", "go", "--batch-size", "5"]))
    assert {path: value for path, (value, _) in values.items()} == {
        "training.seed": 3,
        "data.batch_size": 5,
    }
