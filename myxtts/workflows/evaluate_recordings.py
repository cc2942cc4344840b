"""Evaluate a folder of recordings by their texts and references."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.errors import UserError
from myxtts.evaluation.metrics.table import ENCODER, RECORDINGS
from myxtts.workflows.evaluate_voice import VOCODER, judge
from myxtts.workflows.speaking import REFERENCE, read_all, resynthesise
from myxtts.workflows.stages import Announce, Stages

if TYPE_CHECKING:
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.evaluator import Evaluation
    from myxtts.evaluation.metrics.session import Subject

LANGUAGE = "en"
_MOST_NAMES = 10  # of missing or surplus files


def evaluate_recordings(
    wavs: Path,
    texts: Path,
    references: Path | None = None,
    *,
    language: str = LANGUAGE,
    vocoder: str = VOCODER,
    asr_model: str | None = None,
    weights: Path | None = None,
    fresh_ceilings: bool = False,
    announce: Announce | None = None,
) -> "Evaluation":
    """Judge recordings; references with the same ids are ceilings, others represent the speaker."""
    stages = Stages()
    with stages("reading"):
        subject = read_subject(wavs, texts, references, language, vocoder)
    return judge(subject, "", stages, asr_model, weights, fresh_ceilings, announce)


def read_subject(
    wavs: Path, texts: Path, references: Path | None, language: str, vocoder: str
) -> "Subject":
    """Read recordings, their texts and their references."""
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.evaluation.metrics.session import Sentence, Subject
    from myxtts.inference.vocoders import choose_vocoder

    spec = AudioSpec()
    utterances = match_texts(wavs, texts, language)
    paths = match_references(references, utterances) if references else {}
    spoken = read_all([one.audio for one in utterances], spec.sample_rate)
    found = dict(zip(paths, read_all(list(paths.values()), spec.sample_rate), strict=True))
    known = {REFERENCE: list(found.values())} if found else {}
    absent, name = {}, ""
    recorded = resynthesised = [None] * len(spoken)
    if not found:
        absent[ENCODER] = "no recordings of the speaker were named: do so with --references"
    if found.keys() == {one.id for one in utterances}:
        recorded = [found[one.id] for one in utterances]
        chosen = choose_vocoder(vocoder, wavs, spec)
        resynthesised, name = resynthesise(recorded, chosen, spec), chosen.name
    else:
        absent[RECORDINGS] = "no recordings of the same ids were named: do so with --references"
    sentences = [
        Sentence(one.id, one.text, said, one.speaker, *ceilings)
        for one, said, *ceilings in zip(utterances, spoken, recorded, resynthesised, strict=True)
    ]
    what = f"{wavs}: {len(utterances)} recordings"
    return Subject(what, language, spec, sentences, name, known, None, absent)


def match_texts(wavs: Path, texts: Path, language: str) -> "list[Utterance]":
    """Pair recordings with the lines of their metadata; one without the other is an error."""
    from myxtts.data.corpus.dialects import read_metadata
    from myxtts.data.corpus.recordings import Recordings, make_locator
    from myxtts.data.corpus.utterance import Utterance

    recordings = Recordings([str(wavs.absolute())])
    folder = str(wavs.absolute())
    listing = read_metadata(str(texts), make_locator(recordings, folder, folder, []))
    found, missing = {}, []
    for row in listing.rows:
        path = None if row.reason else listing.locator.locate(row.recording)
        if path is None or not row.text:
            missing.append(row.recording or f"line {row.line}")
            continue
        name = listing.locator.identify(path)
        if name in found:
            raise UserError(f"{texts} has two texts of {name}: keep one")
        found[name] = Utterance(name, Path(path), row.text, REFERENCE, language)
    used = {str(one.audio) for one in found.values()}
    surplus = [stem for stem in recordings.stems() if recordings.find(stem) not in used]
    names = [str(Path(stem).relative_to(folder)) for stem in surplus]
    _check_none(missing, f"of the lines of {texts} have no recording in {wavs}, or no text")
    _check_none(names, f"of the recordings in {wavs} have no text in {texts}")
    return list(found.values())


def match_references(folder: Path, utterances: "Iterable[Utterance]") -> dict[str, Path]:
    """References by id: either of all utterances, or other recordings of the same speaker."""
    from myxtts.data.corpus.recordings import Recordings, make_locator

    place = str(folder.absolute())
    recordings = Recordings([place])
    if not len(recordings):
        raise UserError(f"there is no recording in {folder}: name the folder of the references")
    locator = make_locator(recordings, place, place, [])
    paths = [recordings.find(stem) for stem in recordings.stems()]
    found = {locator.identify(path): Path(path) for path in paths}
    wanted = [one.id for one in utterances]
    missing = [name for name in wanted if name not in found]
    if len(missing) == len(wanted):
        return found
    _check_none(missing, f"of the recordings have no reference of the same name in {folder}")
    surplus = sorted(found.keys() - set(wanted))
    _check_none(surplus, f"of the references in {folder} are of no recording")
    return found


def _check_none(names: list[str], problem: str) -> None:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise UserError(f"{len(names)} {problem}: {', '.join(names[:_MOST_NAMES])}{more}")
