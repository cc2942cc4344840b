"""Voices in the players of other projects: what these are told, and how they speak."""

import argparse
import json
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from myxtts.errors import UserError
from myxtts.export.players import player_table
from myxtts.export.single_file import with_padding
from myxtts.inference.synthesizer import Synthesizer
from myxtts.models.onnx.graph import Graph
from myxtts.text.tokenizer import Tokenizer
from myxtts.workflows.export import export
from myxtts.workflows.exports.settings import ExportSettings
from tests.helpers.small_voice import small_run

pytest.importorskip("tf2onnx", reason="tf2onnx is not installed: the extra `export`")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: the extra `speak`")

# A fixture exports a voice, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(1200)


def quiet(line: str) -> None:
    """Print nothing."""


@pytest.fixture(scope="module")
def english(tmp_path_factory) -> Path:
    pytest.importorskip("espeakng_loader", reason="espeak is not installed: the extra `phonemes`")
    return small_run(tmp_path_factory.mktemp("english"), "piper", ("en",))


@pytest.fixture(scope="module")
def persian(tmp_path_factory) -> Path:
    return small_run(tmp_path_factory.mktemp("persian"), "characters", ("fa",), ("one",))


@pytest.fixture(scope="module")
def piper_voice(english, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("piper") / "en_US-small-medium.onnx"
    export("piper", ExportSettings(str(english), target), quiet)
    return target


@pytest.fixture(scope="module")
def persian_piper_voice(persian, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("piper") / "fa_IR-small-medium.onnx"
    export("piper", ExportSettings(str(persian), target), quiet)
    return target


@pytest.fixture(scope="module")
def sherpa_voice(english, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("sherpa") / "english"
    export("sherpa", ExportSettings(str(english), target), quiet)
    return target


@pytest.fixture(scope="module")
def persian_sherpa_voice(persian, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("sherpa") / "persian"
    export("sherpa", ExportSettings(str(persian), target), quiet)
    return target


def test_the_json_tells_piper_and_home_assistant_what_they_ask_for(piper_voice):
    config = json.loads(Path(f"{piper_voice}.json").read_text(encoding="utf-8"))
    assert config["audio"]["sample_rate"] == 22050 and config["num_speakers"] == 2
    assert config["phoneme_type"] == "espeak" and config["espeak"]["voice"] == "en-us"
    assert config["phoneme_id_map"]["_"] == [0] and config["phoneme_id_map"]["^"] == [1]
    assert config["speaker_id_map"] == {"anna": 0, "ben": 1}
    assert config["dataset"] == "en_US-small-medium" and config["language"]["code"] == "en_US"
    names = {path.name for path in piper_voice.parent.iterdir()}
    assert names == {
        *("en_US-small-medium.onnx", "en_US-small-medium.onnx.json"),
        *("en_US-small-medium.MODEL_CARD.md", "en_US-small-medium.parity.json"),
    }


def test_padding_may_stand_anywhere(piper_voice, english):
    graph = Graph(piper_voice.read_bytes(), piper_voice)
    tokens = Synthesizer.load(english).voice.tokenizer.encode("Hello there.")
    padded = with_padding(tokens)
    assert padded[0, 0] == 1 and padded[0, 1] == 0 and padded[0, -1] == 2
    heard = []
    for ids in (padded, tokens[None].astype(np.int64)):
        how = {"input_lengths": [ids.shape[1]], "scales": [0.0, 1.0, 0.0], "sid": [1]}
        heard.append(graph.run(input=ids, **how))
    np.testing.assert_allclose(heard[0]["output"], heard[1]["output"], atol=1e-5)
    frames = heard[0]["output_durations"]
    assert frames.shape == padded.shape and (frames[padded == 0] == 0).all()


def test_merged_phonemes_are_refused_with_the_remedy():
    tokenizer = Tokenizer.build(["en"], "phonemes")
    with pytest.raises(UserError, match="--text-units piper"):
        player_table(tokenizer, "en")


def test_a_script_of_bytes_is_refused():
    tokenizer = Tokenizer.build(["zh-cn"], "characters")
    with pytest.raises(UserError, match="by bytes"):
        player_table(tokenizer, "zh-cn")


def test_a_griffin_lim_voice_is_refused(english, tmp_path):
    settings = ExportSettings(str(english), tmp_path / "x.onnx", vocoder="griffin_lim")
    with pytest.raises(UserError, match="train-vocoder"):
        export("piper", settings, quiet)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_piper_would_not_find_is_refused(english, tmp_path):
    with pytest.raises(UserError, match=r"does not end in \.onnx"):
        export("piper", ExportSettings(str(english), tmp_path / "voice"), quiet)


def test_persian_letters_reach_the_voice_however_they_are_written():
    tokenizer = Tokenizer.build(["fa"], "characters")
    table = player_table(tokenizer, "fa")
    own = {symbol: index for index, symbol in enumerate(tokenizer.symbols)}
    assert table.ids["،"] == own[","] and table.ids["؟"] == own["?"]
    assert table.ids["ي"] == own["ی"] and table.ids["ك"] == own["ک"]  # of an Arabic keyboard
    alef, madda = table.ids["ا"], table.ids["\u0653"]
    assert table.pairs[alef, madda] == own["آ"] and madda >= tokenizer.vocab_size


def test_a_letter_and_its_mark_are_said_as_one(persian_piper_voice, persian):
    graph = Graph(persian_piper_voice.read_bytes(), persian_piper_voice)
    config = json.loads(Path(f"{persian_piper_voice}.json").read_text(encoding="utf-8"))
    ids = {symbol: index for symbol, (index,) in config["phoneme_id_map"].items()}
    apart = [1, *(ids[point] for point in "ا\u0653ب"), 2]
    whole = [1, ids["آ"], ids["ب"], 2]
    found = [
        graph.run(input=[one], input_lengths=[len(one)], scales=[0.0, 1.0, 0.0])["output"]
        for one in (with_padding(apart)[0], whole)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_piper_speaks_with_alignments(piper_voice):
    piper = pytest.importorskip("piper", reason="piper-tts is not installed")
    voice = piper.PiperVoice.load(str(piper_voice))
    how = piper.SynthesisConfig(speaker_id=1)
    (chunk,) = voice.synthesize("Hello there.", how, include_alignments=True)
    assert chunk.sample_rate == 22050 and len(chunk.audio_float_array) > 5000
    said = {one.phoneme for one in chunk.phoneme_alignments}
    assert {"h", "ə", "l"} <= said
    slow = piper.SynthesisConfig(speaker_id=1, length_scale=2.0)
    (slower,) = voice.synthesize("Hello there.", slow)
    assert len(slower.audio_float_array) > 1.6 * len(chunk.audio_float_array)


def test_piper_reads_every_symbol_of_its_own_table():
    phoneme_ids = pytest.importorskip("piper.phoneme_ids", reason="piper-tts is not installed")
    own = set(Tokenizer.build(["en"], "piper").symbols)
    theirs = {symbol for symbol in phoneme_ids.DEFAULT_PHONEME_ID_MAP if len(symbol) == 1}
    assert theirs - {"_", "^", "$"} <= own


def test_piper_writes_a_persian_wav(persian_piper_voice, tmp_path):
    piper = pytest.importorskip("piper", reason="piper-tts is not installed")
    voice = piper.PiperVoice.load(str(persian_piper_voice))
    with wave.open(str(tmp_path / "fa.wav"), "wb") as file:
        voice.synthesize_wav("سلام، حال شما چطور است؟", file)
    assert (tmp_path / "fa.wav").stat().st_size > 20_000


def test_wyoming_piper_lists_the_pair(piper_voice):
    reason = "wyoming-piper is not installed"
    wyoming_piper = pytest.importorskip("wyoming_piper.__main__", reason=reason)
    folder, name = str(piper_voice.parent), piper_voice.stem
    args = argparse.Namespace(data_dir=[folder], voice=name, no_streaming=False)
    info = wyoming_piper._piper_info(args, {})
    (listed,) = info.tts[0].voices
    # It lists no speakers of a voice that is not one of its own catalog.
    assert listed.name == name and listed.installed and listed.languages == ["en_US"]
    assert listed.description == f"{name} (medium)"


SHERPA = """
import json, sys
import sherpa_onnx
vits = sherpa_onnx.OfflineTtsVitsModelConfig(**json.loads(sys.argv[1]))
model = sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=1)
engine = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model))
said = [engine.generate(text, sid=engine.num_speakers - 1) for text in sys.argv[2:]]
print(json.dumps([engine.num_speakers, *([one.sample_rate, len(one.samples)] for one in said)]))
"""


def heard_from_sherpa(folder: Path, *texts: str, **options) -> list:
    """What sherpa-onnx says of texts; in a process of its own, which a faulty model would end."""
    pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed")
    files = {"model": str(folder / "model.onnx"), "tokens": str(folder / "tokens.txt")}
    command = [sys.executable, "-c", SHERPA, json.dumps(files | options), *texts]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_sherpa_speaks_english_by_a_lexicon(sherpa_voice):
    lexicon = str(sherpa_voice / "lexicon.txt")
    speakers, (rate, samples) = heard_from_sherpa(sherpa_voice, "Hello.", lexicon=lexicon)
    assert (speakers, rate) == (2, 22050) and samples > 1000


def test_sherpa_of_version_1_reads_any_word_by_espeak(sherpa_voice):
    sherpa = pytest.importorskip("sherpa_onnx", reason="sherpa-onnx is not installed")
    if not sherpa.__version__.startswith("1."):
        pytest.skip("sherpa-onnx 2 has no espeak-ng")
    data = pytest.importorskip("espeakng_loader").get_data_path()
    _, (rate, samples) = heard_from_sherpa(sherpa_voice, "Unheard of words.", data_dir=data)
    assert rate == 22050 and samples > 5000


def test_sherpa_speaks_persian_by_characters(persian_sherpa_voice):
    texts = ("سلام", "سلام حال شما چطور است")
    speakers, (_, short), (_, long) = heard_from_sherpa(persian_sherpa_voice, *texts)
    assert speakers == 1 and long > 1.5 * short > 1000


def test_tokens_are_one_code_point_each(sherpa_voice):
    lines = (sherpa_voice / "tokens.txt").read_text(encoding="utf-8").splitlines()
    symbols = [line.rsplit(" ", 1)[0] for line in lines]
    assert all(len(symbol) == 1 for symbol in symbols) and len(set(symbols)) == len(symbols)
    lexicon = (sherpa_voice / "lexicon.txt").read_text(encoding="utf-8").splitlines()
    known = set(symbols)
    assert all(set(line.split()[1:]) <= known for line in lexicon)
