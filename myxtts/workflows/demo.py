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
from myxtts.evaluation.metrics.table import (
    ASR,
    ENCODER,
    HARD_TEXTS,
    RATER,
    RECORDED,
    SPEECH,
    metrics_that_need,
)
from myxtts.monitoring.progress import progress
from myxtts.workflows.judges import find_judges
from myxtts.workflows.prepare import prepare
from myxtts.workflows.speaking import align_recordings, read_all, resynthesise, speak_recorded
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

RATED = 5  # recordings of at least nine seconds, joined from sentences
CLONED = 10  # sentences in the second voice
MAIN, SECOND = "main voice", "second voice"
OWN_VOCODER = "istft"
# The targets: the most that error rates may exceed those of the recordings.
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
class DemoResult:
    """The report and its page, or the signal that stopped the training."""

    stages: Stages
    stopped_by: str = ""
    report: "Report | None" = None
    page: Path | None = None


def run_demo(settings: DemoSettings, announce: Announce = logger.info) -> DemoResult:
    """Run all stages; results that are already in the folder are reused."""
    from myxtts.evaluation.report.summary import write_report

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
        report = replace(report, facts={**report.facts, **times(report, stages)})
        page = write_report(settings.folder / "report", report)
    return DemoResult(stages, report=report, page=page)


def demo_config(settings: DemoSettings, **others: Any) -> XTTSConfig:
    """The settings of a tiny model of phonemes, with overrides."""
    from myxtts.config.presets import create_default_config

    return create_default_config(
        str(settings.folder / "corpus"),
        model_size="tiny",
        text_units="phonemes",
        language=settings.language,
        max_steps=settings.steps,
        **{"checkpoint_dir": str(settings.folder), **others},
    )


def vocoder_config(settings: DemoSettings, folder: str = "stage2", **others: Any) -> XTTSConfig:
    """The settings of a light vocoder for the same recordings, in a folder of the demo."""
    steps, place = settings.vocoder_steps, str(settings.folder / folder)
    others = {"stage2_max_steps": steps, "checkpoint_dir": place, **others}
    return demo_config(settings, vocoder_type=OWN_VOCODER, **others)


def make_corpus(settings: DemoSettings) -> Path:
    """Make the built-in corpus, unless it exists."""
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
    """Show the log of the package at level INFO."""
    package = logging.getLogger("myxtts")
    level = package.level
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        package.setLevel(level)


def speak(
    settings: DemoSettings, config: XTTSConfig, announce: Announce
) -> "tuple[Voice, dict[str, Subject]]":
    """Speak unseen sentences in the main voice, through each vocoder, and some in a cloned one.

    The second voice is cloned from a recording of it.
    """
    from myxtts.checkpoints import load_voice
    from myxtts.demo_corpus.corpus import choose_voices
    from myxtts.demo_corpus.sentences import held_out_sentences

    voice = load_voice(config.training.checkpoint_dir)
    unseen = held_out_sentences(settings.language, settings.sentences)
    main, second = choose_voices(settings.language, 2)
    titles = {MAIN: OWN_VOCODER, f"{MAIN}, {VOCODERS['griffin_lim'].title}": "griffin_lim"}
    if settings.hifigan and fetch(settings, "hifigan_universal", announce):
        titles[f"{MAIN}, {VOCODERS['hifigan'].title}"] = "hifigan"
    rate = config.data.sample_rate
    recorded = record(settings, main, unseen, rate)
    spoken = {
        title: _speak(settings, voice, title, vocoder, recorded, main, speaker=main.name)
        for title, vocoder in titles.items()
    }
    recorded = record(settings, second, unseen[:CLONED], rate)
    reference = find_reference(config, second.name)
    spoken[SECOND] = _speak(
        settings, voice, SECOND, OWN_VOCODER, recorded, second, reference=reference
    )
    return voice, spoken


def _speak(
    settings: DemoSettings,
    voice: "Voice",
    title: str,
    vocoder: str,
    recorded: "Mapping[str, np.ndarray]",
    recorded_by: "DemoVoice",
    **options: Any,
) -> "Subject":
    """Speak texts next to their recordings by a voice of the corpus."""
    from myxtts.evaluation.metrics.session import Subject
    from myxtts.inference.synthesizer import Synthesizer

    synthesizer = Synthesizer(voice, vocoder)
    spec, language = synthesizer.spec, settings.language
    ceilings = [recorded.values()]
    if "reference" not in options:  # what the vocoder costs is seen in the main voice
        ceilings.append(resynthesise(list(recorded.values()), synthesizer.vocoder, spec))
    by_text = dict(zip(recorded, zip(*ceilings, strict=True), strict=True))
    folder = audio_folder(settings, title)
    with progress("synthesizing", "sentences") as report:
        options |= {"language": language, "progress": report}
        sentences = speak_recorded(synthesizer, by_text, folder, recorded_by.name, **options)
    absent = {
        ENCODER: "no speaker verification is part of this demo",
        HARD_TEXTS: "no hard texts are part of this demo",
    }
    return Subject(
        title, language, spec, sentences, VOCODERS[vocoder].title, absent=absent, most_rated=RATED
    )


def fetch(settings: DemoSettings, name: str, announce: Announce) -> Path | None:
    """Fetch public weights, unless they exist; announce the reason if that fails."""
    from myxtts.weights import default_folder, get_weights

    try:
        return get_weights(name, settings.weights or default_folder())
    except (UserError, OSError) as error:
        announce(f"without {name}: {error}")
        return None


def audio_folder(settings: DemoSettings, title: str) -> Path:
    """The folder of the wavs of a title."""
    return settings.audio / title.replace(",", "").replace(" ", "-")


def record(
    settings: DemoSettings, voice: "DemoVoice", texts: Sequence[str], sample_rate: int
) -> "dict[str, np.ndarray]":
    """Record texts in a voice of the corpus, as the corpus was recorded; samples by text."""
    from myxtts.demo_corpus.corpus import record_sentences

    paths = record_sentences(settings.audio / "recorded", settings.language, voice, texts)
    return dict(zip(texts, read_all(paths, sample_rate), strict=True))


def find_reference(config: XTTSConfig, speaker: str) -> Path:
    """The longest recording of a speaker, of the held-out ones if there are any."""
    from myxtts.audio.io import read_info
    from myxtts.data.features.corpora import read_corpora

    corpus, _ = read_corpora(config.data)
    own = [
        [one.audio for one in part if one.speaker == speaker] for part in (corpus.val, corpus.train)
    ]
    return max(own[0] or own[1], key=lambda path: read_info(path).frames)


def judge(
    settings: DemoSettings, voice: "Voice", spoken: "Mapping[str, Subject]", announce: Announce
) -> "Report":
    """Run all metrics on both voices, and on other vocoders those of sound."""
    from myxtts.audio.mel import log_mel
    from myxtts.evaluation.alignment import alignment_facts
    from myxtts.evaluation.ceilings import CeilingCache
    from myxtts.evaluation.evaluator import evaluate
    from myxtts.evaluation.report.plots import Example
    from myxtts.evaluation.report.summary import Report
    from myxtts.weights import default_folder

    fetch(settings, "dnsmos", announce)
    judges = find_judges(settings.language, None, settings.weights or default_folder())
    evaluations = {}
    for title, subject in spoken.items():
        chosen = metrics_that_need(ASR, RATER)
        if title in (MAIN, SECOND):
            chosen = None
            of = (subject.sentences, subject.spec, settings.language)
            subject = replace(subject, alignments=align_recordings(voice, *of))
        evaluations[title] = evaluate(subject, judges, progress, CeilingCache(), metrics=chosen)
    main = evaluations[MAIN].subject
    sentences, spec, alignments = main.sentences, main.spec, main.alignments
    text, mel = sentences[0].text, log_mel(sentences[0].recorded, spec)
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
        example=Example(text, symbols, frames, mel, sentences[0].mel, frame_seconds),
        evaluations=evaluations,
        audio={title: audio_folder(settings, title) for title in spoken},
        verdicts=verdicts(evaluations[MAIN]),
        facts=completeness(evaluations[MAIN])
        | alignment_facts(alignments, frame_seconds)
        | ezafes(voice, evaluations[MAIN]),
        folders={"All recordings": settings.audio},
        not_measured=unmeasured(evaluations[MAIN]),
    )


def verdicts(main: "Evaluation") -> list[str]:
    """Whether the error rates meet their targets."""
    lines = []
    for name, most in TARGETS.items():
        if name in main.measures:
            found = main.measures[name].intervals
            above = found[SPEECH].value - found[RECORDED].value
            verdict = "met" if above <= most else "NOT met: train for more --steps"
            figure = f"{name.upper()} {above:+.3f} above the recordings'"
            lines.append(f"{figure}, target {most}: {verdict}")
    return lines


def completeness(main: "Evaluation") -> dict[str, float | int | str]:
    """How many sentences were skipped or never ended, and their lengths."""
    sentences = main.subject.sentences
    spoken = [len(one.spoken) for one in sentences]
    recorded = [len(one.recorded) for one in sentences]
    ratios = [own / natural for own, natural in zip(spoken, recorded, strict=True)]
    return {
        "skipped sentences": int(main.measures["skipped"].values[SPEECH].sum()),
        "endless sentences": int(main.measures["endless"].values[SPEECH].sum()),
        "length ratio, spoken / recorded": sum(spoken) / sum(recorded),
        "least and greatest length ratio": f"{min(ratios):.2f}, {max(ratios):.2f}",
    }


def ezafes(voice: "Voice", main: "Evaluation") -> dict[str, str]:
    """How many ezafes that the front end writes are heard in recordings and in speech."""
    from myxtts.evaluation.alignment import BARELY_HEARD, heard_sounds

    subject = main.subject
    texts = [one.text for one in subject.sentences]
    sources = {
        "recordings": [one.aligned_durations for one in subject.alignments],
        "speech": [one.durations for one in subject.sentences],
    }
    found = {}
    for name, durations in sources.items():
        heard, written = heard_sounds(voice, texts, durations, subject.language)
        if written:
            title = f"ezafes longer than {BARELY_HEARD} frames in the {name}"
            found[title] = f"{heard} of {written}"
    return found


def unmeasured(main: "Evaluation") -> dict[str, str]:
    """What this demo does not measure, and why."""
    hint = "DNSMOS, which rates telephony, gives a hint. " if "mos" in main.measures else ""
    reasons = {
        "How natural it sounds": f"{hint}That takes listeners: listen to the recordings.",
        "How alike the cloned voice is": "No speaker verification is part of this demo.",
    }
    if "wer" in main.measures:
        return reasons
    language = main.subject.language
    why = f"There is no ASR for {language!r}; see lengths and alignments instead."
    return {"What is understood (WER, CER)": why, **reasons}


def times(report: "Report", stages: Stages) -> dict[str, float]:
    """The seconds of each stage, and the share of training that waited for data."""
    from myxtts.evaluation.history import read_history

    found = {f"{name}, seconds": seconds for name, seconds in stages.seconds.items()}
    waiting = read_history(report.history).waiting
    if waiting is not None:
        found["share of training that waited for data"] = waiting
    return found
