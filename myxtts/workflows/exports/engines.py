"""Exports that myxtts itself or TensorFlow runs: graphs of ONNX, and a SavedModel."""

from dataclasses import replace
from typing import TYPE_CHECKING

from myxtts.workflows.exports.common import (
    CARD,
    REPORT,
    Tell,
    card_and_report,
    check_float32,
    check_parity,
    new_folder,
    size_of,
    speaker,
)
from myxtts.workflows.exports.settings import ExportSettings
from myxtts.workflows.parity import choose_cases, compare

if TYPE_CHECKING:
    from myxtts.inference.synthesizer import Synthesizer


def export_onnx(trained: "Synthesizer", settings: ExportSettings, tell: Tell) -> None:
    """Write a folder of graphs that `myxtts synthesize` speaks with."""
    from myxtts.export.onnx_voice import fill_folder
    from myxtts.inference.synthesizer import Synthesizer

    with new_folder(settings.output) as draft:
        fill_folder(draft, trained.voice, trained.vocoder.model, settings.weights)
        exported = Synthesizer.load(draft, may_be_endless=True)
        cases, has_graph = choose_cases(trained.voice), trained.vocoder.model.has_weights
        parity = compare(cases, speaker(trained), speaker(exported), has_graph)
        tell(f"parity: {parity}")
        check_parity(parity, settings)
        card, report = card_and_report(trained, settings, "onnx (myxtts)", parity)
        (draft / CARD).write_bytes(card)
        (draft / REPORT).write_bytes(report)
    tell(f"{settings.output}: {size_of(settings.output)}")


def export_saved_model(trained: "Synthesizer", settings: ExportSettings, tell: Tell) -> None:
    """Write a SavedModel, for TensorFlow Serving and for programs that have TensorFlow."""
    from myxtts.export.tensorflow import SavedModel, SavedVocoder, write_saved_model
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import Vocoder

    check_float32(settings)
    has_graph = trained.vocoder.model.has_weights
    with new_folder(settings.output) as draft:
        write_saved_model(draft, trained.voice, trained.vocoder.model)
        model = SavedModel(draft, trained.voice.model)
        vocoder = trained.vocoder
        if has_graph:
            vocoder = Vocoder(SavedVocoder(model, vocoder.model))
        saved = Synthesizer(replace(trained.voice, model=model), vocoder, may_be_endless=True)
        cases = choose_cases(trained.voice)
        parity = compare(cases, speaker(trained), speaker(saved), has_graph)
        tell(f"parity: {parity}")
        check_parity(parity, settings)
        card, report = card_and_report(trained, settings, "SavedModel", parity)
        (draft / CARD).write_bytes(card)
        (draft / REPORT).write_bytes(report)
    tell(f"{settings.output}: a SavedModel with the signatures {', '.join(model.signatures)}")
