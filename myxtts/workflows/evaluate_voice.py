"""Evaluate a voice: it speaks sentences it was not trained on, and every metric judges them."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.errors import UserError
from myxtts.evaluation.metrics.table import ALIGNMENT, HARD_TEXTS, RECORDINGS
from myxtts.monitoring.progress import progress
from myxtts.workflows.clones import find_strangers, write_references
from myxtts.workflows.judges import find_judges
from myxtts.workflows.speaking import (
    REFERENCE,
    Who,
    align_recordings,
    by_name,
    by_reference,
    known_recordings,
    make_sentence,
    read_all,
    resynthesise,
    speak_hard_texts,
    speak_sentences,
)
from myxtts.workflows.stages import Announce, Stages

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.config.config import DataConfig
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.evaluator import Evaluation
    from myxtts.evaluation.metrics.session import Subject
    from myxtts.inference.synthesizer import Synthesizer

SENTENCES = 40
VOCODER = "auto"
FOLDER, WAVS = "evaluation", "wavs"


def evaluate(
    voice: "str | Path | Voice",
    corpus: str | Path,
    *,
    sentences: int = SENTENCES,
    speaker: str | None = None,
    reference: Sequence[str] | None = None,
    clone_seconds: float | None = None,
    language: str | None = None,
    vocoder: str = VOCODER,
    asr_model: str | None = None,
    weights: Path | None = None,
    fresh_ceilings: bool = False,
    data: Mapping[str, Any] | None = None,
    speaking: Mapping[str, Any] | None = None,
    announce: Announce | None = None,
) -> "Evaluation":
    """Judge a voice (its folder, its run's, or a loaded one) on held-out text of its corpus.

    Each sentence is spoken as its own speaker, as one `speaker` who recorded it, or as that of
    `reference` recordings. With `clone_seconds`, the corpus is one of other speakers: those that
    the voice does not know are cloned, each from so many seconds of its own recordings. `data`
    overrides settings of the voice's own data, such as `val_dataset_path`; `speaking` are further
    `SpeakingOptions`, such as `refine_steps`. `announce` is called with an estimate of the ASR's
    time.
    """
    from myxtts.inference.speaking_options import find_language

    stages = Stages()
    with stages("loading"):
        synthesizer = load_synthesizer(voice, vocoder)
    settings = replace(synthesizer.voice.config.data, dataset_path=str(corpus), **(data or {}))
    language = find_language(language, synthesizer.voice)
    name = voice if isinstance(voice, str | Path) else voice.folder
    options = dict(speaking or {})
    with stages("speaking"):
        if clone_seconds:
            who = (speaker, clone_seconds)
            subject = speak_clones(
                str(name), synthesizer, settings, language, sentences, *who, **options
            )
        else:
            chosen, trained_on = choose_held_out(
                settings, synthesizer, language, sentences, speaker, reference
            )
            what = f"{name}: {len(chosen)} sentences that it was not trained on"
            subject = speak(what, synthesizer, chosen, trained_on, language, reference, **options)
    own = synthesizer.voice.config.model.speaker_encoder
    return judge(subject, own, stages, asr_model, weights, fresh_ceilings, announce)


def load_synthesizer(voice: "str | Path | Voice", vocoder: str = VOCODER) -> "Synthesizer":
    """Load a voice; speech that never ends is counted, and does not raise."""
    from myxtts.inference.synthesizer import Synthesizer

    return Synthesizer.load(voice, vocoder, may_be_endless=True)


def choose_held_out(
    settings: "DataConfig",
    synthesizer: "Synthesizer",
    language: str,
    count: int,
    speaker: str | None = None,
    reference: Sequence[str] | None = None,
) -> "tuple[list[Utterance], Sequence[Utterance]]":
    """Choose from what the voice's own settings hold out of the corpus, deterministically.

    Return these utterances, and those that the voice was trained on.
    """
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.evaluator import choose_utterances
    from myxtts.inference.errors import check_known

    voice = synthesizer.voice
    if speaker:
        check_known(speaker, voice.speakers, "speaker")
    corpus, separate = read_corpora(settings)
    found = separate.utterances if separate else corpus.val
    able = _sayable(
        synthesizer,
        language,
        [
            one
            for one in found
            if one.speaker == (speaker or one.speaker)
            and (reference or one.speaker in voice.speakers)
        ],
    )
    if not able:
        raise UserError(
            f"{settings.dataset_path} holds out no sentence in {language!r} by a speaker of the "
            f"voice ({len(found)} are held out): name the corpus that it was trained on"
        )
    return choose_utterances(able, count), corpus.train


def _sayable(
    synthesizer: "Synthesizer", language: str, utterances: "Sequence[Utterance]"
) -> "list[Utterance]":
    """The utterances of a language whose texts have a sound."""
    able = [one for one in utterances if one.language == language]
    silent = set(synthesizer.nothing_to_say([one.text for one in able], language)) if able else ()
    return [one for number, one in enumerate(able) if number not in silent]


def speak_clones(
    name: str,
    synthesizer: "Synthesizer",
    settings: "DataConfig",
    language: str,
    count: int,
    speaker: str | None,
    seconds: float,
    **options: Any,
) -> "Subject":
    """Clone the speakers of a corpus that a voice does not know, and speak some of their texts."""
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.evaluator import choose_utterances

    corpus, _ = read_corpora(settings)
    able = _sayable(synthesizer, language, corpus.utterances)
    strangers = find_strangers(able, synthesizer.voice.speakers, seconds, speaker)
    chosen = choose_utterances(strangers.sentences, count)
    what = f"{name}: {len(chosen)} sentences of {len(strangers.references)} speakers that it does "
    what += f"not know, each cloned from {seconds:g} s"
    with tempfile.TemporaryDirectory() as folder:
        rate = synthesizer.spec.sample_rate
        references = write_references(Path(folder), strangers.references, seconds, rate)

        def who(speaker: str) -> dict[str, Any]:
            return {"reference": [references[speaker]]}

        return speak(what, synthesizer, chosen, strangers.others, language, who=who, **options)


def speak(
    what: str,
    synthesizer: "Synthesizer",
    utterances: "Sequence[Utterance]",
    others: "Sequence[Utterance]",
    language: str,
    reference: Sequence[str] | None = None,
    who: Who = by_name,
    **options: Any,
) -> "Subject":
    """Speak held-out and hard texts; read the recordings of the former, and resynthesise them.

    `others` represent the speakers; all is said as `who` each of them is, or as the speaker of a
    reference, whom nobody in the corpus is. `options` are further ones of `Synthesizer.speak_many`.
    """
    from myxtts.evaluation.metrics.session import Subject

    spec = synthesizer.spec
    who = by_reference(reference) if reference else who
    with progress("speaking", "sentences") as report:
        speech = speak_sentences(synthesizer, utterances, language, who, report, **options)
    recorded = read_all([one.audio for one in utterances], spec.sample_rate)
    resynthesised = resynthesise(recorded, synthesizer.vocoder, spec)
    needed = list({one.speaker for one in utterances})
    known = known_recordings(others, needed, spec.sample_rate)
    absent = {}
    if reference:
        known[REFERENCE] = read_all([Path(one) for one in reference], spec.sample_rate)
        absent[RECORDINGS] = "the recordings are of other speakers than the reference"
    found = zip(utterances, speech, recorded, resynthesised, strict=True)
    sentences = [
        make_sentence(one.id, one.text, REFERENCE if reference else one.speaker, *others)
        for one, *others in found
    ]
    hard = alignments = None
    if not reference:
        try:
            alignments = align_recordings(synthesizer.voice, sentences, spec, language)
        except UserError as error:
            absent[ALIGNMENT] = str(error)
    try:
        first = who(utterances[0].speaker)
        hard = speak_hard_texts(synthesizer, speech, language=language, **first, **options)
    except UserError as error:
        absent[HARD_TEXTS] = str(error)
    given = (synthesizer.vocoder.name, known, hard, absent)
    return Subject(what, language, spec, sentences, *given, alignments=alignments)


def judge(
    subject: "Subject",
    own: str,
    stages: Stages,
    asr_model: str | None = None,
    weights: Path | None = None,
    fresh_ceilings: bool = False,
    announce: Announce | None = None,
) -> "Evaluation":
    """Run every metric whose judge is available; `own` is the voice's own speaker encoder."""
    from myxtts.evaluation.ceilings import CeilingCache
    from myxtts.evaluation.evaluator import evaluate as run_metrics
    from myxtts.weights import default_folder

    with stages("opening the judges"):
        judges = find_judges(subject.language, asr_model, weights or default_folder(), own)
    cache = CeilingCache(is_fresh=fresh_ceilings)
    evaluation = run_metrics(subject, judges, progress, cache, announce)
    return replace(evaluation, seconds={**stages.seconds, **evaluation.seconds})


def report(folder: Path, evaluation: "Evaluation") -> str:
    """Write everything; return the tables, what was not measured, where it is, and the seconds."""
    from myxtts.evaluation.metrics.table import ASR
    from myxtts.evaluation.report.page import FIGURES
    from myxtts.evaluation.report.rows import absences

    began = time.monotonic()
    page = write(folder, evaluation)
    seconds = {**evaluation.seconds, "writing": time.monotonic() - began}
    asr = seconds.pop(ASR, 0.0)
    parts = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items())
    lines = [*_tables(evaluation), "", *absences(evaluation)]
    lines += [f"page    {page}", f"figures {page.with_name(FIGURES)}"]
    lines += [f"audio   {page.parent / WAVS}"]
    lines += [f"seconds: {parts}; {sum(seconds.values()):.1f} in all, and {asr:.1f} of the ASR"]
    return "\n".join(lines)


def _tables(evaluation: "Evaluation") -> Iterator[str]:
    """Yield what was judged by whom, and every table that has rows."""
    from myxtts.evaluation.report import rows
    from myxtts.evaluation.report.tables import aligned

    yield evaluation.subject.what
    if evaluation.judges:
        yield f"judged by {', '.join(evaluation.judges.values())}"
    for table in (rows.measure_rows, rows.speaker_rows, rows.fault_rows):
        if found := table(evaluation):
            yield f"\n{aligned(found)}"
        if table is rows.speaker_rows:
            yield from rows.speaker_facts(evaluation)


def write(folder: Path, evaluation: "Evaluation") -> Path:
    """Write the speech as wavs, the figures and the page; return the page."""
    from myxtts.audio.io import write_wav
    from myxtts.evaluation.report.page import write_evaluation

    subject = evaluation.subject
    for old in (folder / WAVS).rglob("*.wav"):
        old.unlink()
    for one in subject.sentences:
        name = f"{one.id.replace('/', '_')}.wav"
        write_wav(folder / WAVS / name, one.spoken, subject.spec.sample_rate)
    for number, samples in enumerate(subject.hard.spoken if subject.hard else (), 1):
        name = f"{number:03d}.wav"
        write_wav(folder / WAVS / "hard" / name, samples, subject.spec.sample_rate)
    return write_evaluation(folder, evaluation)


def folder_of_voice(voice: Path) -> Path:
    """Inside of a run, but next to a voice folder, which training replaces at each checkpoint."""
    is_run = not (voice / "voice.json").exists()
    return voice / FOLDER if is_run else folder_next_to(voice)


def folder_next_to(folder: Path) -> Path:
    """Next to recordings, not inside: the next evaluation would read its wavs as recordings."""
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}-{FOLDER}")
