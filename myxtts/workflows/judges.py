"""What judges speech on this machine: an ASR, a rater and a speaker encoder, where they are."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.evaluation.metrics.session import Judges

ENCODERS = ("ecapa_tdnn", "resemblyzer")


def find_judges(
    language: str, asr_model: str | None, weights: Path, own: str | None = None
) -> "Judges":
    """Find what can judge speech in a language; `absent` says why the others cannot.

    A speaker encoder is looked for unless `own` is None. `own` is the encoder that the voice is
    conditioned on, if any: it judges only where there is no other.
    """
    from myxtts.evaluation.metrics.session import Judges
    from myxtts.evaluation.metrics.table import ASR, ENCODER, RATER

    judges = Judges(absent={})
    finders = {
        ASR: lambda: {"asr": _find_asr(language, asr_model)},
        RATER: lambda: {"rater": _find_rater(weights)},
    }
    if own is not None:
        finders[ENCODER] = lambda: _find_encoder(weights, own)
    for need, find in finders.items():
        try:
            judges = replace(judges, **find())
        except UserError as error:
            if need == ASR and asr_model:
                raise  # the user has named it
            judges = replace(judges, absent={**judges.absent, need: str(error)})
    return judges


def _find_asr(language: str, model: str | None):
    from myxtts.evaluation.asr import WHISPER_FOLDER, asr_for

    found = asr_for(language, model)
    if found is None:
        raise UserError(
            f"there is no ASR for {language!r}: name the folder of a Whisper model with "
            f"--asr-model or {WHISPER_FOLDER}"
        )
    return found


def _find_rater(weights: Path):
    from myxtts.evaluation.metrics.quality import Dnsmos

    return Dnsmos.open(_present("dnsmos", weights))


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
