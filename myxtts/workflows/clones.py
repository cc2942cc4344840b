"""Speakers that a voice does not know, each with recordings to clone it from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.errors import UserError

if TYPE_CHECKING:
    from myxtts.data.corpus.utterance import Utterance

LEAST_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class Strangers:
    """Utterances of speakers that a voice does not know, and others to compare them with.

    `references` are recordings of each of these speakers, which no sentence and no comparison uses.
    """

    references: Mapping[str, Sequence["Utterance"]]
    sentences: Sequence["Utterance"]
    others: Sequence["Utterance"]


def find_strangers(
    utterances: "Sequence[Utterance]", known: Sequence[str], seconds: float, speaker: str | None
) -> Strangers:
    """Set aside so many seconds of recordings of each speaker that is not known, or of one."""
    import soundfile

    if seconds < LEAST_SECONDS:
        raise UserError(
            f"{seconds:g} s do not identify a speaker: clone from {LEAST_SECONDS:g} s or more"
        )
    own: dict[str, list[Utterance]] = {}
    for one in utterances:
        if one.speaker not in known and one.speaker == (speaker or one.speaker):
            own.setdefault(one.speaker, []).append(one)
    references: dict[str, list[Utterance]] = {}
    for name, some in own.items():
        references[name], left = [], seconds
        for one in some:
            if left <= 0:
                break
            references[name].append(one)
            left -= soundfile.info(one.audio).duration
        if left > 0 or len(some) - len(references[name]) < 2:
            raise UserError(
                f"{name} has {len(some)} recordings, too few for {seconds:g} s to clone it from "
                "and two to compare the clone with: lower the seconds"
            )
    if not own:
        languages = ", ".join(sorted({one.language for one in utterances})) or "this language"
        raise UserError(
            f"nobody whom the voice does not know speaks {languages} in the corpus"
            f"{f' as {speaker!r}' if speaker else ''}: name a corpus of other speakers, or the "
            "language with --language"
        )
    aside = {one.id for some in references.values() for one in some}
    others = [one for one in utterances if one.id not in aside]
    return Strangers(references, [one for one in others if one.speaker in own], others)


def write_references(
    folder: Path, references: "Mapping[str, Sequence[Utterance]]", seconds: float, rate: int
) -> dict[str, str]:
    """Write so many seconds of each speaker's references as one wav; return these by speaker."""
    import numpy as np

    from myxtts.audio.io import write_wav
    from myxtts.workflows.speaking import read_all

    found = {}
    for number, (name, some) in enumerate(references.items(), 1):
        samples = np.concatenate(read_all([one.audio for one in some], rate))
        path = folder / f"{number:04d}.wav"
        write_wav(path, samples[: round(seconds * rate)], rate)
        found[name] = str(path)
    return found
