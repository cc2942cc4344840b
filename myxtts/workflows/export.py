"""A trained voice in a form that runs elsewhere: written, compared with the voice, then named."""

from collections.abc import Callable

from myxtts.errors import UserError
from myxtts.workflows.exports.settings import TARGETS, ExportSettings, check_free

Tell = Callable[[str], None]


def export(target: str, settings: ExportSettings, tell: Tell = print) -> None:
    """Write a voice for a target; raise where it does not speak as the voice itself."""
    from myxtts.inference.synthesizer import Synthesizer

    write = _writer(target)
    check_free(settings.output)
    # Parity is asked for, not quality: a voice that never ends can be exported too.
    synthesizer = Synthesizer.load(settings.voice, settings.vocoder, may_be_endless=True)
    if synthesizer.voice.engine != "keras":
        raise UserError(
            f"{settings.voice} is an exported voice: name the folder of the voice that it was "
            "exported from, or that of its run"
        )
    write(synthesizer, settings, tell)


def _writer(target: str) -> Callable[..., None]:
    from myxtts.workflows.exports import engines, litert, players

    writers: dict[str, Callable[..., None]] = {
        "onnx": engines.export_onnx,
        "piper": players.export_piper,
        "sherpa": players.export_sherpa,
        "saved-model": engines.export_saved_model,
        "litert": litert.export_litert,
    }
    if target not in writers:
        raise UserError(f"unknown target {target!r}: choose one of {', '.join(TARGETS)}")
    return writers[target]
