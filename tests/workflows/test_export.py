"""Voices exported as ONNX graphs: they speak, clone and stream as the trained ones do."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from myxtts.audio.io import write_wav
from myxtts.checkpoints import CheckpointError, load_trainable, load_voice, weights_of
from myxtts.checkpoints.files import describe, sealed
from myxtts.cli.main import main
from myxtts.errors import UserError
from myxtts.inference.errors import SynthesisError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.workflows.export import export
from myxtts.workflows.exports.settings import ExportSettings
from myxtts.workflows.parity import Case, Parity, choose_cases, compare
from tests.helpers.make_voice import make_voice
from tests.helpers.small_voice import small_run

onnx = pytest.importorskip("onnx", reason="onnx is not installed: the extra `export`")
pytest.importorskip("tf2onnx", reason="tf2onnx is not installed: the extra `export`")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: the extra `speak`")

ROOT = Path(__file__).parents[2]
TEXT = "Hello there. Good bye, and thanks."


def quiet(line: str) -> None:
    """Print nothing."""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return small_run(tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("exported") / "small"
    export("onnx", ExportSettings(str(run), target, licence="CC0"), quiet)
    return target


@pytest.fixture(scope="module")
def engines(run, folder) -> tuple[Synthesizer, Synthesizer]:
    return Synthesizer.load(run), Synthesizer.load(folder)


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "text, language", [(TEXT, "en"), ("سلام. حال شما چطور است؟", "fa")], ids=["en", "fa"]
)
def test_both_engines_speak_alike(engines, text, language, rate):
    options = {"language": language, "speaker": "ben", "speaking_rate": rate}
    trained, exported = (one.speak(text, **options) for one in engines)
    np.testing.assert_array_equal(trained.durations, exported.durations)
    np.testing.assert_allclose(trained.mel, exported.mel, atol=1e-3)
    # An untrained pitch jumps, and with it the number of harmonics.
    assert np.sqrt(np.square(trained.samples - exported.samples).mean()) < 1e-2


def test_a_recording_is_cloned_alike(engines, tmp_path):
    write_wav(tmp_path / "someone.wav", make_voice(3.0, 22050), 22050)
    said = [one.speak("Hello.", reference=tmp_path / "someone.wav") for one in engines]
    np.testing.assert_allclose(said[0].mel, said[1].mel, atol=1e-3)


def test_style_weights_mix_alike(engines):
    weights = np.linspace(-1, 1, engines[0].voice.config.model.gst_num_style_tokens)
    said = [one.speak("Hello.", style_weights=list(weights)) for one in engines]
    np.testing.assert_allclose(said[0].mel, said[1].mel, atol=1e-3)


def test_chunks_of_a_mel_make_the_samples_of_the_whole(engines):
    _, exported = engines
    speech = exported.speak("A sentence to be cut into chunks.")
    whole = exported.vocoder(speech.mel, exported.spec, 0)
    chunks = [speech.mel[at : at + 20] for at in range(0, len(speech.mel), 20)]
    streamed = np.concatenate(list(exported.vocoder.stream(chunks)))
    np.testing.assert_allclose(streamed, whole, atol=1e-3)


def test_it_speaks_without_tensorflow_keras_and_fcntl(folder, tmp_path):
    program = """
import sys
for name in ("tensorflow", "keras", "fcntl", "resource"):
    sys.modules[name] = None  # an import of it is an error from here on
from myxtts.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    target = tmp_path / "hello.wav"
    words = ["synthesize", "--voice", str(folder), "--text", TEXT, "-o", str(target)]
    command = [sys.executable, "-c", program, *words]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert target.stat().st_size > 10_000


def test_the_folder_has_a_card_and_a_report(folder):
    card = (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "| licence of the voice | CC0 |" in card and "consent" in card
    report = json.loads((folder / "parity.json").read_text())
    assert report["cases"] >= 6 and report["other_durations"] == 0 and report["rms"] < 3e-3


@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_fewer_bits_make_smaller_files(run, folder, tmp_path, weights):
    target = tmp_path / "packed"
    export("onnx", ExportSettings(str(run), target, weights=weights), quiet)
    for name in ("vocoder.onnx", "acoustic.onnx"):
        sizes = [(one / name).stat().st_size for one in (target, folder)]
        assert sizes[0] < 0.95 * sizes[1]
    # Tables of Fourier transforms are most of this vocoder, and are no weights.
    vocoder = onnx.load(target / "vocoder.onnx").graph
    large = [one for one in vocoder.initializer if min(one.dims, default=0) > 15]
    kinds = {len(one.dims): one.data_type for one in large}
    assert kinds[3] == onnx.TensorProto.FLOAT
    assert any(one.name.endswith(f":{weights}") for one in vocoder.initializer)
    assert Synthesizer.load(target).speak("Hello.").seconds > 0.1


@pytest.mark.parametrize("weights, tolerance", [("float32", 0.0), ("float16", 1e-3)])
def test_an_export_can_be_trained_further(run, tmp_path, weights, tolerance):
    target = tmp_path / "exported"
    export("onnx", ExportSettings(str(run), target, weights=weights), quiet)
    trained, opened = load_voice(run), load_trainable(target)
    own, found = (weights_of(one.model) for one in (trained, opened))
    assert own.keys() == found.keys()
    for name, value in own.items():
        np.testing.assert_allclose(found[name], value, atol=tolerance, err_msg=name)
    np.testing.assert_array_equal(opened.voices, trained.voices)
    assert opened.speakers == trained.speakers


def test_most_weights_are_stored_once(folder):
    places = json.loads((folder / "export.json").read_text())["places"]
    with safe_open(folder / "weights.safetensors", "np") as file:
        rest = list(file.keys())
    assert not set(rest) & places.keys()
    # What only training uses, and what the conversion has computed with.
    assert {name.split("/")[0] for name in rest} <= {"mu", "calibration", "style", "speaker"}


def test_weights_of_8_bits_cannot_be_trained_further(run, tmp_path):
    target = tmp_path / "exported"
    export("onnx", ExportSettings(str(run), target, weights="int8"), quiet)
    with pytest.raises(CheckpointError, match="8 bits, which cannot be fine-tuned"):
        load_trainable(target)


def test_a_voice_with_a_refiner_draws_the_same_noise(tmp_path):
    run = small_run(tmp_path / "run", languages=("en",), refiner_layers=1)
    export("onnx", ExportSettings(str(run), tmp_path / "out"), quiet)
    pair = [Synthesizer.load(one, may_be_endless=True) for one in (run, tmp_path / "out")]
    said = [one.speak("Hello.", seed=7, temperature=0.6, refine_steps=2) for one in pair]
    np.testing.assert_allclose(said[0].mel, said[1].mel, atol=1e-3)
    other = pair[1].speak("Hello.", seed=8, temperature=0.6, refine_steps=2)
    assert other.mel.shape != said[1].mel.shape or np.abs(other.mel - said[1].mel).max() > 0.0


def test_a_voice_reads_a_text_anew_in_both_engines(run, folder):
    pair = [Synthesizer.load(one, may_be_endless=True) for one in (run, folder)]
    said = [one.speak("Hello.", seed=7, temperature=1.0) for one in pair]
    np.testing.assert_allclose(said[0].mel, said[1].mel, atol=1e-3)
    np.testing.assert_array_equal(said[0].durations, said[1].durations)


def test_a_saved_model_speaks_alike(run, tmp_path):
    lines: list[str] = []
    export("saved-model", ExportSettings(str(run), tmp_path / "out"), lines.append)
    assert (tmp_path / "out" / "saved_model.pb").is_file()
    assert "speak" in lines[-1] and "vocode" in lines[-1]


def test_a_litert_model_speaks_alike(run, tmp_path):
    target = tmp_path / "out"
    export("litert", ExportSettings(str(run), target), quiet)
    report = json.loads((target / "parity.json").read_text())
    assert report["cases"] >= 6 and report["other_durations"] == 0 and report["rms"] < 3e-3
    without = report["without_delegate"]
    assert without["cases"] == report["cases"] and without["other_durations"] == 0
    assert report["delegate"] == "XNNPACK" and report["other_samples"] == 0
    described = json.loads((target / "voice.json").read_text())
    assert described["speakers"] == ["anna", "ben"] and described["languages"] == ["en", "fa"]
    assert (target / "tokenizer.json").is_file() and (target / "voice.tflite").is_file()
    assert "| format | LiteRT |" in (target / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_what_litert_does_not_run_is_refused(run, tmp_path):
    settings = ExportSettings(str(run), tmp_path / "out", vocoder="griffin_lim")
    with pytest.raises(UserError, match=r"griffin_lim .* is not converted to LiteRT"):
        export("litert", settings, quiet)
    assert list(tmp_path.iterdir()) == []


def test_the_vocoder_of_an_export_is_the_one_that_it_has(folder):
    assert Synthesizer.load(folder, "istft").vocoder.name == "istft"
    assert Synthesizer.load(folder, "griffin_lim").vocoder.name == "griffin_lim"
    with pytest.raises(SynthesisError, match="export the voice again with --vocoder hifigan"):
        Synthesizer.load(folder, "hifigan")


def test_an_export_is_not_exported_again(folder, tmp_path):
    with pytest.raises(UserError, match="is an exported voice"):
        export("onnx", ExportSettings(str(folder), tmp_path / "out"), quiet)


def test_nothing_is_left_of_an_export_that_deviates(run, tmp_path, monkeypatch):
    from myxtts.workflows.exports import engines

    def deviating(*arguments) -> Parity:
        return Parity(6, 3, 9, 0.5, 0.1, 0.2, 0.1, 10.0)

    monkeypatch.setattr(engines, "compare", deviating)
    with pytest.raises(UserError, match="does not speak as the voice does"):
        export("onnx", ExportSettings(str(run), tmp_path / "out"), quiet)
    assert list(tmp_path.iterdir()) == []


class TestDamage:
    """Files of an export that are not what was written."""

    @pytest.fixture
    def copy(self, folder, tmp_path) -> Path:
        import shutil

        return Path(shutil.copytree(folder, tmp_path / "copy"))

    @pytest.mark.parametrize("name", ["acoustic.onnx", "vocoder.onnx", "config.yaml"])
    def test_a_truncated_file_is_named(self, copy, name):
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
            load_voice(copy)

    @pytest.mark.parametrize(
        "change",
        [{"tensor": "nothing"}, {"axes": [3, 1]}, {"shape": [1, 2, 3]}, {"graph": "../x.onnx"}],
        ids=["tensor", "axes", "shape", "graph"],
    )
    def test_a_weight_that_is_not_where_it_should_be_is_named(self, copy, change):
        card = json.loads((copy / "export.json").read_text())
        first = next(iter(card["places"]))
        card["places"][first] |= change
        self.change(copy, places=card["places"])
        with pytest.raises(CheckpointError, match=r"no weight|cannot be fine-tuned"):
            load_trainable(copy)

    def test_a_missing_file_is_named(self, copy):
        (copy / "reference.onnx").unlink()
        with pytest.raises(CheckpointError, match=r"lacks reference\.onnx"):
            load_voice(copy)

    def test_a_later_format_is_refused(self, copy):
        self.change(copy, format=99)
        with pytest.raises(CheckpointError, match="install a later one"):
            load_voice(copy)

    def test_other_files_than_the_known_ones_are_refused(self, copy):
        card = json.loads((copy / "export.json").read_text())
        files = card["files"] | {"../../etc/passwd": card["files"]["acoustic.onnx"]}
        self.change(copy, files=files)
        with pytest.raises(CheckpointError, match="does not describe an exported voice"):
            load_voice(copy)

    @pytest.mark.parametrize("key_comes_first", [True, False])
    def test_weights_outside_of_the_graph_are_refused(self, copy, key_comes_first):
        model = onnx.load(copy / "reference.onnx")
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="../../../etc/passwd")
        content, key, value = (
            model.SerializeToString(),
            b"\x0a\x08location",
            b"\x12\x13../../../etc/passwd",
        )
        assert key + value in content
        if not key_comes_first:
            content = content.replace(key + value, value + key)
        self.replace_graph(copy, "reference.onnx", content)
        with pytest.raises(UserError, match="refers to weights in other files"):
            load_voice(copy)

    def test_a_graph_that_is_none_is_refused(self, copy):
        self.replace_graph(copy, "acoustic.onnx", b"\x08\x09garbage")
        with pytest.raises(UserError, match="is no graph that can be run"):
            load_voice(copy)

    def test_a_graph_of_another_kind_is_refused(self, copy):
        self.replace_graph(copy, "acoustic.onnx", (copy / "vocoder.onnx").read_bytes())
        with pytest.raises(UserError, match="has no"):
            load_voice(copy)

    def replace_graph(self, copy: Path, name: str, content: bytes) -> None:
        (copy / name).write_bytes(content)
        card = json.loads((copy / "export.json").read_text())
        self.change(copy, files=card["files"] | {name: describe(copy / name)})

    def change(self, copy: Path, **fields) -> None:
        card = json.loads((copy / "export.json").read_text())
        card.pop("check")
        (copy / "export.json").write_text(json.dumps(sealed(card | fields)))


def test_cases_cover_languages_speakers_and_rates(engines):
    cases = choose_cases(engines[0].voice)
    assert {one.language for one in cases} == {"en", "fa"}
    assert {one.speaker for one in cases} == {"anna", "ben"}
    assert {one.speaking_rate for one in cases} == {0.5, 1.0, 2.0}


def test_parity_counts_what_differs(engines):
    trained, _ = engines
    said = trained.speak("Hello there.")
    louder = replace(said, samples=said.samples + np.float32(0.01))
    longer = replace(said, durations=said.durations + 1)
    cases = [Case("a", "en", "anna", 1.0), Case("b", "en", "anna", 1.0)]
    answers = iter([louder, longer])
    found = compare(cases, lambda case: said, lambda case: next(answers))
    assert (found.cases, found.other_durations, found.largest_duration) == (2, 1, 1)
    assert found.rms == pytest.approx(0.01, rel=1e-3) and not found.holds
    nothing = compare(cases, lambda case: said, lambda case: longer)
    assert nothing.mel is None and not nothing.holds
    assert compare(cases, lambda case: said, lambda case: said).holds


def test_the_words_of_a_lexicon_are_not_those_of_the_command_line(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("myxtts.workflows.export.export", lambda _, given, __: seen.append(given))
    words = ["export", "--voice", "x", "--to", "sherpa", "-o", str(tmp_path / "y")]
    assert main(words) == 0 and main([*words, "--words", "some.txt"]) == 0
    assert [given.words for given in seen] == [None, Path("some.txt")]
