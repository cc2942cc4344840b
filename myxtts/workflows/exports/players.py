"""Exports for the players of other projects: one file from ids to samples."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from myxtts import atomic
from myxtts.config.documents import MOST_JSON_BYTES, DocumentError, read_document
from myxtts.errors import UserError
from myxtts.text.languages import LANGUAGES
from myxtts.workflows.exports.common import (
    CARD,
    REPORT,
    Tell,
    as_line,
    card_and_report,
    check_parity,
    first_line,
    line_cases,
    new_folder,
    size_of,
    to_json,
)
from myxtts.workflows.exports.settings import ExportSettings, check_free
from myxtts.workflows.parity import Case, Parity, compare

if TYPE_CHECKING:
    from myxtts.export.players import PlayerTable
    from myxtts.export.single_file import SingleFile
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer


def export_piper(trained: "Synthesizer", settings: ExportSettings, tell: Tell) -> None:
    """Write NAME.onnx and NAME.onnx.json, and next to them the card and the report."""
    from myxtts.export.piper import check_name, piper_config

    check_name(settings.output)
    single, table = _single_file(trained, settings)
    single = replace(single, varies=trained.voice.model.can_vary)
    path = settings.output
    config = path.with_name(f"{path.name}.json")
    # The players read the pair alone; names of other files must not look like a voice.
    report, card = (path.with_name(f"{path.stem}.{name}") for name in (REPORT, CARD))
    # The graph last: without it there is no voice.
    paths = report, card, config, path
    for each in paths:
        check_free(each)
    described = to_json(piper_config(single, table, path))
    graph = _packed(single, single.graph(), settings.weights)
    parity = _single_parity(trained, single, graph, settings, tell)
    said, measured = card_and_report(trained, settings, "piper", parity)
    atomic.write_outputs(dict(zip(paths, (measured, said, described, graph), strict=True)))
    tell(f"{path}: {len(graph) / 1e6:.1f} MB, and {path.name}.json")


def export_sherpa(trained: "Synthesizer", settings: ExportSettings, tell: Tell) -> None:
    """Write a folder with the graph, its tokens and, for sounds, a lexicon."""
    from myxtts.export import players, sherpa

    single, table = _single_file(trained, settings)
    model = single.graph()
    players.add_metadata(model, sherpa.sherpa_metadata(single))
    graph = _packed(single, model, settings.weights)
    parity = _single_parity(trained, single, graph, settings, tell)
    card, report = card_and_report(trained, settings, "sherpa-onnx", parity)
    with new_folder(settings.output) as draft:
        (draft / sherpa.MODEL).write_bytes(graph)
        (draft / sherpa.TOKENS).write_text(sherpa.token_lines(table), encoding="utf-8")
        if trained.voice.tokenizer.units == "piper":
            lexicon = sherpa.lexicon_lines(single, _lexicon_texts(settings, single.language))
            (draft / sherpa.LEXICON).write_text(lexicon, encoding="utf-8")
        (draft / CARD).write_bytes(card)
        (draft / REPORT).write_bytes(report)
    tell(f"{settings.output}: {size_of(settings.output)}")


def _single_file(
    trained: "Synthesizer", settings: ExportSettings
) -> "tuple[SingleFile, PlayerTable]":
    """The one graph of a voice, and the table by which players write its ids."""
    from myxtts.export.players import player_table
    from myxtts.export.single_file import SingleFile
    from myxtts.inference.speaking_options import find_language

    language = find_language(settings.language, trained.voice)
    table = player_table(trained.voice.tokenizer, language)
    if not trained.vocoder.model.has_weights:
        raise UserError(
            f"a graph cannot hold the vocoder {trained.vocoder.name}: train one with `myxtts "
            "train-vocoder` and name it with --vocoder"
        )
    return SingleFile(trained.voice, trained.vocoder.model, language, table.pairs), table


def _packed(single: "SingleFile", model: Any, weights: str) -> bytes:
    """The bytes of an ONNX model with its weights in so many bits."""
    from myxtts.export.onnx_voice import tables_of
    from myxtts.export.weights import pack_weights

    tables = tables_of(single.voice, single.vocoder)
    return pack_weights(model, weights, tables).SerializeToString()


def _single_parity(
    trained: "Synthesizer",
    single: "SingleFile",
    graph: bytes,
    settings: ExportSettings,
    tell: Tell,
) -> Parity:
    """Compare the one graph, run by onnxruntime, with the voice."""
    from myxtts.models.onnx.graph import Graph

    spoken = _graph_speaker(trained, Graph(graph, settings.output), single.temperature)
    cases = [one for one in line_cases(trained.voice) if one.language == single.language]
    parity = compare(cases, as_line(trained), spoken)
    tell(f"parity: {parity}")
    check_parity(parity, settings)
    return parity


def _graph_speaker(
    trained: "Synthesizer", graph: Any, temperature: float
) -> Callable[[Case], "Speech"]:
    from myxtts.export.single_file import with_padding
    from myxtts.inference.speech import Speech, fade_ends, set_level

    voice, rate = trained.voice, trained.spec.sample_rate

    def say(case: Case) -> "Speech":
        text = first_line(case)
        tokens = voice.tokenizer.encode(text, case.language)
        ids = with_padding(tokens)
        out = graph.run(
            input=ids,
            input_lengths=[ids.shape[1]],
            scales=[temperature, 1.0 / case.speaking_rate, 0.0],
            sid=[voice.speakers.index(case.speaker)],
        )
        samples = set_level(fade_ends(out["output"].reshape(-1), rate), rate)
        frames = out["output_durations"][0]
        # Of the sounds alone: BOS and its padding, then sounds and paddings by turns, EOS.
        durations = np.concatenate([frames[:1], frames[2:-1:2], frames[-1:]]).astype(np.int32)
        mel = np.zeros((len(samples) // trained.spec.hop_length, trained.spec.n_mels), np.float32)
        return Speech(samples, rate, mel, (text,), tokens, durations)

    return say


def _lexicon_texts(settings: ExportSettings, language: str) -> list[str]:
    """The texts whose words go into a lexicon."""
    if settings.words is not None:
        try:
            return [read_document(settings.words, MOST_JSON_BYTES).decode("utf-8")]
        except (OSError, DocumentError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {settings.words}: {error}") from error
    row = LANGUAGES[language]
    return [row.greeting, *(text for texts in row.hard_sentences.values() for text in texts)]
