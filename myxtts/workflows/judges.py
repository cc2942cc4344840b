"""The judges of speech that are available here: an ASR, raters and a speaker encoder."""

from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.errors import UserError
from myxtts.evaluation.metrics.table import ASR, ENCODER, OPINION, RATER

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Judges

ENCODERS = ("ecapa_tdnn", "resemblyzer")


def find_judges(
    language: str, asr_model: str | None, weights: Path, own: str | None = None
) -> "Judges":
    """Find the judges of speech in a language; `absent` has the reasons for missing ones.

    `own` is the encoder that the voice is conditioned on, if any: it judges only where there is no
    other. With None no speaker encoder is loaded.
    """
    from myxtts.evaluation.metrics.opinions import DistillMos
    from myxtts.evaluation.metrics.quality import Dnsmos
    from myxtts.evaluation.metrics.session import Judges

    found: dict[str, object] = {}
    absent: dict[str, str] = {}
    finders = {
        ASR: lambda: {"asr": _find_asr(language, asr_model)},
        RATER: lambda: {"rater": Dnsmos.open(_present("dnsmos", weights))},
        OPINION: lambda: {"opinion": DistillMos.find()},
    }
    if own is not None:
        finders[ENCODER] = lambda: _find_encoder(weights, own)
    for need, find in finders.items():
        try:
            found |= find()
        except UserError as error:
            if need == ASR and asr_model:
                raise  # the user has named it
            absent[need] = str(error)
    return Judges(**found, absent=absent)


def _find_asr(language: str, model: str | None):
    from myxtts.evaluation.asr import WHISPER_FOLDER, asr_for

    found = asr_for(language, model)
    if found is None:
        raise UserError(
            f"there is no ASR for {language!r}: name the folder of a Whisper or sherpa-onnx "
            f"model with --asr-model or {WHISPER_FOLDER}"
        )
    return found


def _find_encoder(weights: Path, own: str) -> dict[str, object]:
    from myxtts.checkpoints import load_speaker_encoder

    reasons = []
    for kind in sorted(ENCODERS, key=lambda kind: kind == own):
        try:
            encoder = load_speaker_encoder(kind, _present(kind, weights))
        except UserError as error:
            reasons.append(str(error))
        else:
            return {"embed": encoder.embed_many, "encoder": kind}
    raise UserError("; ".join(reasons))


def _present(name: str, weights: Path) -> Path:
    from myxtts.weights import FOLDER_VARIABLE, PUBLIC, is_present

    public = PUBLIC[name]
    if not is_present(public, weights):
        raise UserError(
            f"the weights of {name} are not in {weights}: `myxtts weights get {name}` fetches "
            f"them, and {FOLDER_VARIABLE} names another folder"
        )
    return weights / public.filename
