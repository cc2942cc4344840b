"""From nothing to a voice: make the built-in corpus, train, speak unseen sentences, and judge."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.config.config import XTTSConfig
from myxtts.config.vocoders import VOCODERS
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.workflows.judges import find_judges
from myxtts.workflows.prepare import prepare
from myxtts.workflows.speaking import make_sentences, read_all, resynthesise, write_all
from myxtts.workflows.stages import Announce, Stages
from myxtts.workflows.train import train, train_vocoder

if TYPE_CHECKING:
    import numpy as np

    from myxtts.checkpoints import Voice
    from myxtts.demo_corpus.voices import DemoVoice
    from myxtts.evaluation.evaluator import Evaluation
    from myxtts.evaluation.metrics.session import Subject
    from myxtts.evaluation.report.summary import Report

logger = logging.getLogger(__name__)

RATED = 5  # recordings of nine seconds and more, joined of sentences
CLONED = 10  # sentences in the second voice
MAIN, SECOND = "main voice", "second voice"
# The targets: at most so far above what the ASR makes of the recordings.
TARGETS = {"wer": 0.10, "cer": 0.06}


@dataclass(frozen=True)
class DemoSettings:
    """Where a demo is kept, and how large it is."""

    folder: Path
    language: str = "en"
    speakers: int = 2
    clauses: int = 800
    steps: int = 2100
    vocoder_steps: int = 300
    sentences: int = 100
    hifigan: bool = False
    weights: Path | None = None

    @property
    def audio(self) -> Path:
        return self.folder / "audio"


@dataclass(frozen=True, eq=False)
class Spoken:
    """What is judged under a title, and the log-mels [frames, mels] of its sentences."""

    subject: "Subject"
    mels: "Sequence[np.ndarray]"


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The report and its page; neither where a signal stopped the training, and which it was."""

    stages: Stages
    stopped_by: str = ""
    report: "Report | None" = None
    page: Path | None = None


def run_demo(settings: DemoSettings, announce: Announce = logger.info) -> DemoResult:
    """Run one stage after the other; what is in the folder already is used again."""
    stages, config = Stages(announce), demo_config(settings)
    with stages("corpus"):
        make_corpus(settings)
    with stages("prepare"):
        prepare_corpus(config, announce)
    with stages("train"), informed():
        reason = train(config)
    if reason.is_interrupted:
        return DemoResult(stages, reason)
    with stages("vocoder"), informed():
        reason = train_vocoder(vocoder_config(settings))
    if reason.is_interrupted:
        return DemoResult(stages, reason)
    with stages("speak"):
        voice, spoken = speak(settings, config, announce)
    with stages("judge"):
        report = judge(settings, voice, spoken, announce)
    with stages("report"):
        report = with_times(report, stages)
        page = write(settings, report)
    return DemoResult(stages, report=report, page=page)


def demo_config(settings: DemoSettings, **others: Any) -> XTTSConfig:
    """The settings of a tiny model of phonemes, and some others."""
    from myxtts.config.presets import create_default_config

    return create_default_config(
        str(settings.folder / "corpus"),
        model_size="tiny",
        text_units="phonemes",
        language=settings.language,
        max_steps=settings.steps,
        **{"checkpoint_dir": str(settings.folder), **others},
    )


def vocoder_config(settings: DemoSettings) -> XTTSConfig:
    """The settings of a light vocoder for the same recordings."""
    return demo_config(
        settings,
        vocoder_type="istft",
        stage2_max_steps=settings.vocoder_steps,
        checkpoint_dir=str(settings.folder / "stage2"),
    )


def make_corpus(settings: DemoSettings) -> Path:
    """Make the built-in corpus, unless it is there."""
    from myxtts.demo_corpus.corpus import make_demo

    target, counts = settings.folder / "corpus", (settings.speakers, settings.clauses)
    with progress("speaking") as report:
        return make_demo(target, settings.language, *counts, progress=report)


def prepare_corpus(config: XTTSConfig, announce: Announce) -> None:
    """Compute the features of the corpus, unless they are stored."""
    from myxtts.data.rejections import list_rejections

    bad = prepare(config, announce)
    if bad:
        raise UserError(f"the built-in corpus could not be prepared:\n{list_rejections(bad)}")


@contextlib.contextmanager
def informed() -> Iterator[None]:
    """Let training log what it does."""
    package = logging.getLogger("myxtts")
    level = package.level
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        package.setLevel(level)


def speak(
    settings: DemoSettings, config: XTTSConfig, announce: Announce
) -> "tuple[Voice, dict[str, Spoken]]":
    """Speak unseen sentences in the main voice, through each vocoder, and some in a cloned one.

    The second voice is cloned from a recording of it.
    """
    from myxtts.checkpoints import load_voice
    from myxtts.demo_corpus.corpus import choose_voices
    from myxtts.demo_corpus.sentences import held_out_sentences

    voice = load_voice(config.training.checkpoint_dir)
    unseen = held_out_sentences(settings.language, settings.sentences)
    main, second = choose_voices(settings.language, 2)
    reference = find_reference(config, second.name)
    own, *others = choose_vocoders(settings, announce)
    spoken = {MAIN: _speak(settings, voice, MAIN, own, main, unseen, speaker=main.name)}
    recorded = [one.recorded for one in spoken[MAIN].subject.sentences]
    for name in others:
        title = f"{MAIN}, {VOCODERS[name].title}"
        spoken[title] = _speak(
            settings, voice, title, name, main, unseen, recorded, speaker=main.name
        )
    spoken[SECOND] = _speak(
        settings, voice, SECOND, own, second, unseen[:CLONED], reference=reference
    )
    return voice, spoken


def _speak(
    settings: DemoSettings,
    voice: "Voice",
    title: str,
    vocoder: str,
    own: "DemoVoice",
    texts: Sequence[str],
    recorded: "Sequence[np.ndarray] | None" = None,
    **options: Any,
) -> Spoken:
    """Speak texts, and let the voice of the corpus record them, unless that has been done."""
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.metrics.session import Subject
    from myxtts.evaluation.metrics.table import ENCODER, HARD_TEXTS
    from myxtts.inference.synthesizer import Synthesizer

    synthesizer, language = Synthesizer(voice, vocoder), settings.language
    spec = synthesizer.spec
    with progress("synthesizing", "sentences") as report:
        speech = synthesizer.speak_many(texts, report, language=language, **options)
    spoken = [one.samples for one in speech]
    write_all(audio_folder(settings, title), spoken, spec.sample_rate)
    recorded = recorded or record(settings, own, texts, spec.sample_rate)
    is_clone = "reference" in options  # what its vocoder costs is seen in the main voice
    resynthesised = None if is_clone else resynthesise(recorded, synthesizer.vocoder, spec)
    utterances = [
        Utterance(f"{number:04d}", audio_folder(settings, title), text, own.name, language)
        for number, text in enumerate(texts, start=1)
    ]
    durations = [one.durations for one in speech]
    sentences = make_sentences(utterances, spoken, recorded, resynthesised, durations=durations)
    absent = {
        ENCODER: "no speaker verification is part of this demo",
        HARD_TEXTS: "no hard texts are part of this demo",
    }
    subject = Subject(
        title, language, spec, sentences, VOCODERS[vocoder].title, absent=absent, most_rated=RATED
    )
    return Spoken(subject, [one.mel for one in speech])


def choose_vocoders(settings: DemoSettings, announce: Announce) -> list[str]:
    """The vocoders of this demo, its own first; HiFi-GAN if it is wanted and can be fetched."""
    names = ["istft", "griffin_lim"]
    if settings.hifigan and fetch(settings, "hifigan_universal", announce):
        names.append("hifigan")
    return names


def fetch(settings: DemoSettings, name: str, announce: Announce) -> Path | None:
    """Fetch public weights, unless they are there; announce why where they cannot be had."""
    from myxtts.weights import default_folder, get_weights

    try:
        return get_weights(name, settings.weights or default_folder())
    except (UserError, OSError) as error:
        announce(f"without {name}: {error}")
        return None


def audio_folder(settings: DemoSettings, title: str) -> Path:
    """Where the wavs of a title are."""
    return settings.audio / title.replace(",", "").replace(" ", "-")


def record(
    settings: DemoSettings, voice: "DemoVoice", texts: Sequence[str], sample_rate: int
) -> "list[np.ndarray]":
    """Let a voice of the corpus itself speak texts, as it spoke the corpus."""
    from myxtts.demo_corpus.corpus import record_sentences

    folder = settings.audio / "recorded"
    return read_all(record_sentences(folder, settings.language, voice, texts), sample_rate)


def find_reference(config: XTTSConfig, speaker: str) -> Path:
    """The longest recording of a speaker, of those not trained on where there are any."""
    from myxtts.audio.io import read_info
    from myxtts.data.features.corpora import read_corpora

    corpus, _ = read_corpora(config.data)
    own = [
        [one.audio for one in part if one.speaker == speaker] for part in (corpus.val, corpus.train)
    ]
    return max(own[0] or own[1], key=lambda path: read_info(path).frames)


def judge(
    settings: DemoSettings, voice: "Voice", spoken: Mapping[str, Spoken], announce: Announce
) -> "Report":
    """Run all metrics on the main voice and on the second; on other vocoders those of sound."""
    from myxtts.audio.mel import log_mel
    from myxtts.evaluation.alignment import align, alignment_facts
    from myxtts.evaluation.ceilings import CeilingCache
    from myxtts.evaluation.evaluator import evaluate
    from myxtts.evaluation.metrics.table import ASR, RATER, metrics_that_need
    from myxtts.evaluation.report.plots import Example
    from myxtts.evaluation.report.summary import Report
    from myxtts.weights import default_folder

    fetch(settings, "dnsmos", announce)
    judges = find_judges(settings.language, None, settings.weights or default_folder())
    main, evaluations = spoken[MAIN], {}
    for title, one in spoken.items():
        chosen = None if title in (MAIN, SECOND) else metrics_that_need(ASR, RATER)
        evaluations[title] = evaluate(one.subject, judges, progress, CeilingCache(), metrics=chosen)
    sentences, spec = main.subject.sentences, main.subject.spec
    mels = [log_mel(one.recorded, spec) for one in sentences]
    texts = [one.text for one in sentences]
    alignments = align(voice, mels, texts, settings.language)
    symbols = [voice.tokenizer.symbols[token] for token in alignments[0].tokens]
    frame_seconds = spec.hop_length / spec.sample_rate
    frames = alignments[0].frame_tokens
    return Report(
        title="A voice from the built-in corpus",
        summary=(
            f"A tiny model of phonemes ({settings.language}), trained for {settings.steps:,} steps "
            f"on {settings.speakers} synthetic voices of {settings.clauses:,} sentences each, "
            f"spoke {len(sentences)} sentences that it was not trained on, through a vocoder of "
            f"its own (istft, {settings.vocoder_steps:,} steps)."
        ),
        history=settings.folder / "history.jsonl",
        example=Example(texts[0], symbols, frames, mels[0], main.mels[0], frame_seconds),
        evaluations=evaluations,
        audio={title: audio_folder(settings, title) for title in spoken},
        verdicts=verdicts(evaluations[MAIN]),
        facts={
            **completeness(evaluations[MAIN]),
            **alignment_facts(alignments, frame_seconds),
        },
        folders={"All recordings": settings.audio},
        not_measured=unmeasured(evaluations[MAIN]),
    )


def verdicts(main: "Evaluation") -> list[str]:
    """Whether the error rates are as near to those of the recordings as they should be."""
    from myxtts.evaluation.metrics.table import RECORDED, SPEECH

    lines = []
    for name, most in TARGETS.items():
        if name in main.measures:
            found = main.measures[name].intervals
            above = found[SPEECH].value - found[RECORDED].value
            verdict = "met" if above <= most else "NOT met: train for more --steps"
            text = f"{name.upper()} {above:+.3f} above the recordings', target {most}: {verdict}"
            lines.append(text)
    return lines


def completeness(main: "Evaluation") -> dict[str, float | int | str]:
    """How many sentences were skipped or never ended, and their lengths."""
    from myxtts.evaluation.metrics.robustness import compare_lengths
    from myxtts.evaluation.metrics.table import SPEECH

    sentences = main.subject.sentences
    lengths = compare_lengths(
        [len(one.spoken) for one in sentences], [len(one.recorded) for one in sentences]
    )
    return {
        "skipped sentences": int(main.measures["skipped"].values[SPEECH].sum()),
        "endless sentences": int(main.measures["endless"].values[SPEECH].sum()),
        "length ratio, spoken / recorded": lengths.ratio,
        "least and greatest length ratio": f"{lengths.lowest:.2f}, {lengths.highest:.2f}",
    }


def unmeasured(main: "Evaluation") -> dict[str, str]:
    """What this demo does not measure, and why."""
    hint = "DNSMOS, which rates telephony, hints at it. " if "mos" in main.measures else ""
    reasons = {
        "How natural it sounds": f"{hint}That takes listeners; hear the recordings yourself.",
        "How alike the cloned voice is": "No speaker verification is part of this demo.",
    }
    if "wer" in main.measures:
        return reasons
    language = main.subject.language
    why = f"There is no ASR for {language!r}; lengths and alignments stand in for it."
    return {"What is understood (WER, CER)": why, **reasons}


def with_times(report: "Report", stages: Stages) -> "Report":
    """Add what each stage took, and how long training waited for its data."""
    from myxtts.evaluation.history import read_history

    times = {f"{name}, seconds": seconds for name, seconds in stages.seconds.items()}
    waiting = read_history(report.history).waiting
    if waiting is not None:
        times["share of training that waited for data"] = waiting
    return replace(report, facts={**report.facts, **times})


def write(settings: DemoSettings, report: "Report") -> Path:
    """Write the report into the demo's folder; return the page."""
    from myxtts.evaluation.report.summary import write_report

    return write_report(settings.folder / "report", report)
