"""The programs in examples/: each does what its docstring says, on a tiny corpus and model."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import tensorflow as tf
import yaml

from myxtts.audio.io import read_info
from myxtts.config.io import load_config, save_config
from tests.helpers.make_corpus import make_corpus
from tests.helpers.runs import run_config

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
LONGEST = 80


def load(name: str) -> ModuleType:
    (path,) = (one for one in EXAMPLES if one.stem == name)
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, *argv) -> None:
    assert not load(name).main([str(word) for word in argv])


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> Iterator[Path]:
    """A corpus of two speakers, one of a third, and the settings of a tiny run."""
    folder = tmp_path_factory.mktemp("examples")
    make_corpus(folder / "two", 8, speakers=2, seconds=(0.6, 0.9))
    third = make_corpus(folder / "third", 6, seed=1, seconds=(0.6, 0.9))
    ids = [line.partition("|")[0] for line in (third / "metadata.csv").read_text().splitlines()]
    (third / "speakers.csv").write_text("".join(f"{name}|third\n" for name in ids))
    # Two eager steps take less time than the tracing of one.
    quick = {"max_steps": 2, "enable_graph_mode": False}
    save_config(run_config(folder / "two", folder, **quick), folder / "tiny.yaml")
    short = {"data": {"batch_size": 4, "num_workers": 1}, "training": quick}
    (folder / "short.yaml").write_text(yaml.safe_dump(short))
    yield folder
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def trained(corpora) -> Path:
    """What the example of many speakers leaves."""
    words = ["--data", corpora / "two", "--folder", corpora / "many", "--samples", 1]
    run("many_speakers", *words, "--config", corpora / "tiny.yaml")
    return corpora / "many"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_to_expect(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LONGEST
    usage = text.split('"""')[1]
    assert f"python examples/{path.name}" in usage and "CPU" in usage


@pytest.mark.parametrize("name", ["ljspeech_gpu", "many_speakers"])
def test_the_settings_of_an_example_are_possible_together(name, tmp_path):
    example = load(name)
    config = example.settings(example.parse_args(["--data", str(tmp_path), "--folder", "run"]))
    assert (config.data.dataset_path, config.training.checkpoint_dir) == (str(tmp_path), "run")
    assert config.model.model_size == "normal"


def test_ljspeech_is_trained_and_speaks(corpora):
    words = ["--data", corpora / "two", "--folder", corpora / "lj"]
    run("ljspeech_gpu", *words, "--config", corpora / "tiny.yaml")
    assert read_info(corpora / "lj" / "sample.wav").frames > 0
    assert load_config(corpora / "lj" / "config.yaml").training.max_steps == 2


def test_many_speakers_are_trained_and_sampled(trained):
    assert read_info(trained / "sample-1.wav").frames > 0


def test_a_speaker_is_added_and_speaks(corpora, trained, capsys):
    output = corpora / "finetuned.wav"
    words = ["--voice", trained, "--data", corpora / "third", "--folder", corpora / "tuned"]
    run("finetune", *words, "--output", output, "--config", corpora / "short.yaml")
    assert read_info(output).frames > 0
    assert f"wrote {output}: third" in capsys.readouterr().out


def test_a_voice_is_cloned_from_recordings(corpora, trained):
    output = corpora / "cloned.wav"
    references = sorted((corpora / "third" / "wavs").iterdir())[:2]
    run("clone", "--voice", trained, "--reference", *references, "--output", output)
    assert read_info(output).frames > 0
