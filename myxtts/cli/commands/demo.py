"""`myxtts demo`: from nothing to a voice that speaks unseen sentences, and a report on it."""

import argparse
import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.cli.terminal import INTERRUPTED, add_command, import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.config.vocoders import VOCODERS
from myxtts.demo_corpus.sentences import GRAMMARS
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    import numpy as np

    from myxtts.checkpoints import Voice
    from myxtts.demo_corpus.corpus import DemoVoice
    from myxtts.evaluation.alignment import Alignment
    from myxtts.evaluation.report.plots import Example
    from myxtts.evaluation.report.report import Clip, ReportFacts, Score
    from myxtts.evaluation.trial import Trial

SPEAKERS, CLAUSES, STEPS, SENTENCES = 2, 800, 2100, 100
VOCODER_STEPS = 300
LEAST = {"speakers": 2, "clauses": 1, "steps": 1, "vocoder_steps": 1, "sentences": 1}
RATED = 5  # recordings of nine seconds and more, put together of sentences
CLONED = 10  # sentences in the second voice
CLIPS = 3  # sentences that the report plays in each voice
# A success is at most this far above what the recogniser makes of the recordings.
WER_ABOVE, CER_ABOVE = 0.10, 0.06


def add(verbs: argparse._SubParsersAction) -> None:
    about = "make the built-in corpus, train a voice on it, let it speak, and judge it, in minutes"
    parser = add_command(verbs, "demo", about, run)
    add_place_and_counts(
        parser,
        "runs/demo",
        ("--steps", STEPS, "training steps of the voice"),
        ("--vocoder-steps", VOCODER_STEPS, "training steps of the vocoder"),
        ("--speakers", SPEAKERS, f"how many voices the corpus has, at least {LEAST['speakers']}"),
        ("--clauses", CLAUSES, "sentences of each speaker in the corpus"),
        ("--sentences", SENTENCES, "how many unseen sentences are spoken and judged"),
    )
    parser.add_argument("--language", choices=tuple(GRAMMARS), default="en", help="what is spoken")
    about = "speak through the public weights of HiFi-GAN as well, which are fetched (56 MB)"
    parser.add_argument("--hifigan", action="store_true", help=about)


def add_place_and_counts(
    parser: argparse.ArgumentParser, folder: str, *counts: tuple[str, int, str]
) -> None:
    """Add where a demonstration is kept, and flags (name, default, meaning) of how many."""
    where = "where everything is kept; what is there already is used (default: %(default)s)"
    named = {"metavar": "FOLDER", "nargs": "?", "type": Path, "default": folder}
    parser.add_argument("folder", **named, help=where)
    for name, default, about in counts:
        about = f"{about} (default: %(default)s)"
        parser.add_argument(name, type=int, metavar="N", default=default, help=about)


def check_counts(args: argparse.Namespace, least: dict[str, int]) -> None:
    """Refuse a count that is below its least."""
    for name, number in least.items():
        if getattr(args, name) < number:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} must be at least {number}, not {getattr(args, name)}")


def run(args: argparse.Namespace) -> int:
    """Do one stage after the other, and say where the results are."""
    check_counts(args, LEAST)
    clock, config = Clock(), demo_config(args)
    import_tensorflow()
    with clock.stage("corpus"):
        make_corpus(args)
    with clock.stage("prepare"):
        prepare(config)
    with clock.stage("train"):
        reason = train(config)
    if is_stopped(reason):
        return INTERRUPTED
    with clock.stage("vocoder"):
        reason = train_vocoder(args, config)
    if is_stopped(reason):
        return INTERRUPTED
    with clock.stage("speak"):
        voice, trials = speak(args, config)
    with clock.stage("judge"):
        facts = judge(args, voice, trials)
    with clock.stage("report"):
        page = report(args, with_times(facts, clock))
    print_outcome(args, facts, page)
    clock.print()
    return 0


def is_stopped(reason: str) -> bool:
    """Whether a signal ended a training; if so, how to go on is said."""
    if reason.is_interrupted:
        print(f"stopped by {reason}; run the same command to go on")
    return reason.is_interrupted


class Clock:
    """Announces each stage, and keeps how many seconds it took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        print(f"== {name}", flush=True)
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began

    def print(self) -> None:
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        print(f"seconds: {stages}; {sum(self.seconds.values()):.1f} in all")


def demo_config(args: argparse.Namespace, **settings) -> XTTSConfig:
    """Return the settings of a tiny model of phonemes, and some others."""
    from myxtts.config.presets import create_default_config

    return create_default_config(
        str(args.folder / "corpus"),
        model_size="tiny",
        text_units="phonemes",
        language=args.language,
        max_steps=args.steps,
        checkpoint_dir=str(args.folder),
        **settings,
    )


def make_corpus(args: argparse.Namespace) -> Path:
    """Make the built-in corpus, unless it is there."""
    from myxtts.demo_corpus.corpus import make_demo

    target = args.folder / "corpus"
    with progress("speaking") as told:
        return make_demo(target, args.language, args.speakers, args.clauses, progress=told)


def prepare(config: XTTSConfig) -> None:
    """Compute the features of the corpus, unless they are stored."""
    from myxtts.data.features.corpora import read_parts
    from myxtts.data.rejections import list_rejections
    from myxtts.workflows.prepare import prepare_part

    bad = [
        one for part in read_parts(config.data) for one in prepare_part(part, config.data, print)
    ]
    if bad:
        raise UserError(f"the built-in corpus could not be prepared:\n{list_rejections(bad)}")


def train(config: XTTSConfig) -> str:
    """Train, going on from the last checkpoint, and say why it ended."""
    from myxtts.workflows.train import train as train_voice

    with informed():
        return train_voice(config)


def train_vocoder(args: argparse.Namespace, config: XTTSConfig) -> str:
    """Train a light vocoder on the same recordings, and say why it ended."""
    from myxtts.workflows.train import train_vocoder as train_it

    second = demo_config(args, vocoder_type="istft", stage2_max_steps=args.vocoder_steps)
    second.training.checkpoint_dir = str(Path(config.training.checkpoint_dir) / "stage2")
    with informed():
        return train_it(second)


@contextlib.contextmanager
def informed() -> Iterator[None]:
    """Let training say what it does."""
    logger = logging.getLogger("myxtts")
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)


def speak(args: argparse.Namespace, config: XTTSConfig) -> "tuple[Voice, list[Trial]]":
    """Say unseen sentences in the main voice, through each vocoder, and some in another voice.

    The other voice comes from a recording of it.
    """
    from myxtts.checkpoints import load_voice
    from myxtts.demo_corpus.corpus import choose_voices
    from myxtts.demo_corpus.sentences import held_out_sentences
    from myxtts.evaluation.trial import Trial
    from myxtts.inference.synthesizer import Synthesizer

    voice = load_voice(config.training.checkpoint_dir)
    unseen = held_out_sentences(args.language, args.sentences)

    def hold(what: str, vocoder: str, own: "DemoVoice", sentences, **manner) -> Trial:
        synthesizer = Synthesizer(voice, vocoder)
        with progress("synthesizing", "sentences") as told:
            speech = synthesizer.speak_many(sentences, told, language=args.language, **manner)
        spoken, mels = [one.samples for one in speech], [one.mel for one in speech]
        write_all(audio_folder(args, what), spoken, synthesizer.spec.sample_rate)
        recorded = record(args, own, sentences, synthesizer.spec.sample_rate)
        heard = (spoken, mels, recorded)
        return Trial(
            what, args.language, sentences, *heard, synthesizer.spec, VOCODERS[vocoder].title
        )

    main, second = choose_voices(args.language, 2)
    reference = find_reference(config, second.name)
    own, *others = chosen_vocoders(args)
    return voice, [
        hold("main voice", own, main, unseen, speaker=main.name),
        *(
            hold(f"main voice, {VOCODERS[name].title}", name, main, unseen, speaker=main.name)
            for name in others
        ),
        hold("second voice", own, second, unseen[:CLONED], reference=reference),
    ]


def chosen_vocoders(args: argparse.Namespace) -> list[str]:
    """The vocoders of this demo, its own first; HiFi-GAN if it is wanted and can be had."""
    names = ["istft", "griffin_lim"]
    if args.hifigan and fetch("hifigan_universal"):
        names.append("hifigan")
    return names


def fetch(name: str) -> Path | None:
    """Fetch public weights, unless they are there; where they cannot be had, say why."""
    from myxtts.weights import default_folder, get_weights

    try:
        return get_weights(name, default_folder())
    except (UserError, OSError) as error:
        print(f"without {name}: {error}")
        return None


def audio_folder(args: argparse.Namespace, what: str) -> Path:
    """Where the model's recordings in a voice are."""
    return args.folder / "audio" / what.replace(",", "").replace(" ", "-")


def write_all(folder: Path, recordings: "Sequence[np.ndarray]", sample_rate: int) -> None:
    """Write recordings as 0001.wav and so on, in place of those of an earlier run."""
    from myxtts.audio.io import write_wav

    for old in folder.glob("*.wav"):
        old.unlink()
    for number, samples in enumerate(recordings, start=1):
        write_wav(folder / f"{number:04d}.wav", samples, sample_rate)


def record(
    args: argparse.Namespace, voice: "DemoVoice", sentences: Sequence[str], sample_rate: int
) -> "list[np.ndarray]":
    """Let a voice of the corpus itself say sentences, in the way it said the corpus."""
    from myxtts.audio.io import read_audio
    from myxtts.demo_corpus.corpus import record_sentences

    folder = args.folder / "audio" / "recorded"
    paths = record_sentences(folder, args.language, voice, sentences)
    return [read_audio(path, sample_rate) for path in paths]


def find_reference(config: XTTSConfig, speaker: str) -> Path:
    """Return the longest recording of a speaker, of those not trained on where there are any."""
    from myxtts.audio.io import read_info
    from myxtts.data.features.corpora import read_corpora

    corpus, _ = read_corpora(config.data)
    own = [
        [one.audio for one in part if one.speaker == speaker] for part in (corpus.val, corpus.train)
    ]
    return max(own[0] or own[1], key=lambda path: read_info(path).frames)


def judge(args: argparse.Namespace, voice: "Voice", trials: "Sequence[Trial]") -> "ReportFacts":
    """Find out what is understood, where a recogniser knows the language, and what is complete."""
    from myxtts.evaluation.alignment import align
    from myxtts.evaluation.report.report import ReportFacts
    from myxtts.evaluation.trial import measure_trial

    main = trials[0]
    scores = listen(args, voice, trials)
    alignments = align(voice, main.recorded_mels, main.sentences, args.language)
    return ReportFacts(
        title="A voice from the built-in corpus",
        summary=(
            f"A tiny model of phonemes ({args.language}), trained for {args.steps:,} steps on "
            f"{args.speakers} synthetic voices of {args.clauses:,} sentences each, said "
            f"{len(main.sentences)} sentences that it never saw, through a vocoder of its own "
            f"(istft, {args.vocoder_steps:,} steps)."
        ),
        history=args.folder / "history.jsonl",
        example=make_example(voice, main, alignments[0]),
        scores=scores,
        measures=measure_trial(main, alignments, scores[0] if scores else None),
        clips=[clip for trial in trials for clip in choose_clips(args, trial, scores)],
        folders={"All recordings": args.folder / "audio"},
        not_measured=unmeasured(args.language, scores),
    )


def listen(args: argparse.Namespace, voice: "Voice", trials: "Sequence[Trial]") -> "list[Score]":
    """Score the model beside the recordings, the main voice first; nothing without a recogniser.

    The other trials of the main voice are those through other vocoders.
    """
    from myxtts.evaluation.asr import asr_for
    from myxtts.evaluation.trial import score_copies, score_model, score_trial

    recogniser = asr_for(args.language)
    if recogniser is None:
        return []

    def hear(score, *given, **more) -> Any:
        with progress("listening", "recordings") as told:
            return score(*given, progress=told, **more)

    main, *others, second = trials
    own, ceiling = hear(score_trial, main, recogniser)
    heard = [(own, main.spoken), (ceiling, main.recorded)]
    for trial in others:
        heard.append((hear(score_model, trial, recogniser, ceiling.rates), trial.spoken))
    for trial in (main, *others):
        copies = copy(voice, trial)
        heard.append((hear(score_copies, trial, recogniser, copies=copies), copies))
    scores = rate(heard, main.spec.sample_rate)
    return [*scores, *hear(score_trial, second, recogniser)]


def copy(voice: "Voice", trial: "Trial") -> "list[np.ndarray]":
    """Return the recordings of a trial as its vocoder makes them from their mels."""
    from myxtts.evaluation.trial import copy_recordings
    from myxtts.inference.vocoders import choose_vocoder

    name = next(name for name, row in VOCODERS.items() if row.title == trial.vocoder)
    return copy_recordings(trial, choose_vocoder(name, voice.folder.parent, trial.spec))


def rate(heard: "Sequence[tuple[Score, Sequence[np.ndarray]]]", sample_rate: int) -> "list[Score]":
    """Add to scores how listeners would find the speech, where that can be predicted."""
    from myxtts.evaluation.metrics.quality import Dnsmos
    from myxtts.evaluation.trial import joined

    path = fetch("dnsmos")
    if path is None:
        return [score for score, _ in heard]
    judge, rated = Dnsmos.open(path), []
    for score, speech in heard:
        found = judge.score_many(joined(speech, sample_rate, RATED))
        mean = sum(one.overall for one in found) / len(found)
        rated.append(replace(score, rating=mean))
    return rated


def make_example(voice: "Voice", trial: "Trial", alignment: "Alignment") -> "Example":
    """Return the first sentence of a trial, to be drawn."""
    from myxtts.evaluation.report.plots import Example

    return Example(
        text=trial.sentences[0],
        symbols=[voice.tokenizer.symbols[token] for token in alignment.tokens],
        frame_tokens=alignment.frame_tokens,
        target_mel=trial.recorded_mels[0],
        output_mel=trial.spoken_mels[0],
        frame_seconds=trial.spec.hop_length / trial.spec.sample_rate,
    )


def choose_clips(
    args: argparse.Namespace, trial: "Trial", scores: "Sequence[Score]"
) -> "Iterator[Clip]":
    """Yield the first recordings of a trial, with what the recogniser heard in them."""
    from myxtts.evaluation.report.report import Clip

    own = [score for score in scores if score.what == f"model, {trial.what}"]
    for number, text in enumerate(trial.sentences[:CLIPS]):
        path = audio_folder(args, trial.what) / f"{number + 1:04d}.wav"
        yield Clip(trial.what, text, path, own[0].rates.sentences[number].heard if own else "")


def unmeasured(language: str, scores: "Sequence[Score]") -> dict[str, str]:
    """Name what this demo does not measure, and why."""
    rated = any(score.rating is not None for score in scores)
    hint = "DNSMOS, which rates telephony, hints at it. " if rated else ""
    reasons = {
        "How natural it sounds": f"{hint}That takes listeners; hear the recordings yourself.",
        "How alike the cloned voice is": "No speaker verification is part of this demo.",
    }
    if scores:
        return reasons
    why = f"There is no recogniser of {language!r} at hand; lengths and alignments stand in for it."
    return {"What is understood (WER, CER)": why, **reasons}


def with_times(facts: "ReportFacts", clock: Clock) -> "ReportFacts":
    """Add to the measures what each stage took, and how long training waited for its data."""
    from myxtts.evaluation.history import read_history

    times = {f"{name}, seconds": seconds for name, seconds in clock.seconds.items()}
    waiting = read_history(facts.history).waiting
    if waiting is not None:
        times["share of training that waited for data"] = waiting
    return replace(facts, measures={**facts.measures, **times})


def report(args: argparse.Namespace, facts: "ReportFacts") -> Path:
    """Write the report and the picture that sums it up; return the page."""
    from myxtts.evaluation.history import read_history
    from myxtts.evaluation.report.plots import write_picture
    from myxtts.evaluation.report.report import write_report

    folder = args.folder / "report"
    write_picture(folder / "summary.png", read_history(facts.history), facts.example)
    return write_report(folder, facts)


def print_outcome(args: argparse.Namespace, facts: "ReportFacts", page: Path) -> None:
    """Print the figures, whether they are what was hoped for, and where everything is."""
    from myxtts.evaluation.report.report import score_rows

    print()
    if facts.scores:
        print_table(score_rows(facts.scores))
        own, ceiling = facts.scores[0].rates, facts.scores[0].ceiling
        for name, most in (("wer", WER_ABOVE), ("cer", CER_ABOVE)):
            above = getattr(own, name) - getattr(ceiling, name)
            verdict = "as hoped" if above <= most else "MORE than hoped: train for more --steps"
            print(f"{name.upper()} {above:+.3f} above the recordings', hoped for {most}: {verdict}")
    for name, value in facts.measures.items():
        print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    for what, why in facts.not_measured.items():
        print(f"not measured: {what}. {why}")
    print()
    print(f"audio   {args.folder / 'audio'}")
    print(f"voice   {args.folder}")
    print(f"plots   {page.parent}")
    print(f"report  {page}")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns: names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *figures in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True)]
        print("  ".join([f"{name:<{widths[0]}}", *cells]).rstrip())
