"""`myxtts evaluate`: how good a voice is, or a folder of recordings, in figures with intervals."""

import argparse
import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.commands.synthesize import VOCODER
from myxtts.cli.evaluating import (
    REFERENCE,
    copy_all,
    find_judges,
    known_recordings,
    read_all,
    say_hard_texts,
    say_held_out,
)
from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.flags import add_flags, flag_values
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.config.config import DataConfig
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.evaluator import Evaluation, Sentence, Subject
    from myxtts.inference.synthesizer import Synthesizer

SENTENCES = 40
FOLDER, WAVS = "evaluation", "wavs"
CORPUS_FIELDS = (
    *("data.val_dataset_path", "data.metadata_train_file", "data.metadata_eval_file"),
    *("data.wavs_train_dir", "data.wavs_eval_dir", "data.speaker_pattern"),
)
_MOST_NAMES = 10  # of missing or surplus files


def add(verbs: argparse._SubParsersAction) -> None:
    about = "judge a voice by what it says of held-out text, or recordings by what they should say"
    parser = add_command(verbs, "evaluate", about, run)
    _add_voice(parser.add_argument_group("a voice"))
    _add_wavs(parser.add_argument_group("recordings instead of a voice"))
    about = "language of the text (default: the voice's first; en of recordings)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "folder of a Whisper model that understands the language (default: moonshine, for en)"
    parser.add_argument("--asr-model", metavar="DIR", help=about)
    about = (
        "judge the recordings again; otherwise what the same judges said of the same recordings "
        "is taken from the user's cache (XDG_CACHE_HOME or ~/.cache, in myxtts/ceilings)"
    )
    parser.add_argument("--fresh-ceilings", action="store_true", help=about)
    about = "where public weights are (default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--weights", metavar="FOLDER", type=Path, help=about)
    about = "how a mel becomes a waveform, as `myxtts synthesize` takes it (default: %(default)s)"
    names = ("--vocoder", "--vocoder-type")
    parser.add_argument(*names, metavar="NAME", default=VOCODER, dest="vocoder", help=about)
    about = (
        f"where the page, the figures and the wavs go (default: {FOLDER}/ beside what is judged)"
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, help=about)
    parser.usage = (
        "%(prog)s --voice DIR --corpus DIR [options]\n"
        "       %(prog)s --wavs DIR --texts FILE [--references DIR] [options]"
    )


def _add_voice(group: argparse._ArgumentGroup) -> None:
    about = "the voice: its folder, or that of the run that made it"
    names = ("--voice", "--checkpoint", "--checkpoint-dir")
    group.add_argument(*names, metavar="DIR", dest="voice", help=about)
    about = "the corpus of the voice, whose held-out sentences are spoken"
    group.add_argument("--corpus", "--data", "--data-path", metavar="DIR", help=about)
    about = "how many of the held-out sentences (default: %(default)s)"
    group.add_argument("--sentences", metavar="N", type=int, default=SENTENCES, help=about)
    who = group.add_mutually_exclusive_group()
    about = "say everything in the voice of this recording; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "only the sentences of this speaker (default: of all, each in its speaker's voice)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    add_flags(group, CORPUS_FIELDS)


def _add_wavs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--wavs", metavar="DIR", type=Path, help="recordings to be judged")
    about = "what the recordings should say: id|text, or any metadata that a corpus may have"
    group.add_argument("--texts", metavar="FILE", type=Path, help=about)
    about = "recordings of the same ids, which say the same; or others of the same speaker"
    group.add_argument("--references", metavar="DIR", type=Path, help=about)


def run(args: argparse.Namespace) -> None:
    """Speak or read, judge, and say where the results are."""
    _check(args)
    clock = Clock()
    if args.wavs:
        with clock.part("reading"):
            subject, own = read_wavs(args), ""
        folder = args.output or _next_to(args.wavs)
    else:
        with clock.part("loading"):
            synthesizer = load(args)
        with clock.part("speaking"):
            subject = speak(args, synthesizer)
        own = synthesizer.voice.config.model.speaker_encoder
        folder = args.output or _beside(Path(args.voice))
    evaluation = judge(args, subject, own, clock)
    with clock.part("writing"):
        page = write(folder, evaluation)
    show(evaluation, page, clock)


class Clock:
    """Keeps how many seconds each part took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began


def load(args: argparse.Namespace) -> "Synthesizer":
    """Load the voice; what is endless is counted, and no error."""
    from myxtts.cli.commands.synthesize import load_synthesizer

    synthesizer = load_synthesizer(args.voice, args.vocoder)
    synthesizer.may_be_endless = True
    return synthesizer


def speak(args: argparse.Namespace, synthesizer: "Synthesizer") -> "Subject":
    """Say held-out and hard texts; read the recordings of the former, and copy them."""
    from myxtts.evaluation.evaluator import COMPARING, ROBUSTNESS, Subject
    from myxtts.inference.speaking_options import find_language

    voice, spec = synthesizer.voice, synthesizer.spec
    language = find_language(args.language, voice)
    held_out = choose_held_out(args, synthesizer, language)
    utterances = held_out.chosen
    with progress("speaking", "sentences") as told:
        spoken = say_held_out(synthesizer, utterances, language, args.reference, told)
    recorded = read_all([one.audio for one in utterances], spec.sample_rate)
    sentences = _sentences(utterances, [one.samples for one in spoken], recorded)
    copies = copy_all(recorded, synthesizer.vocoder, spec)
    sentences = [replace(one, copied=copy) for one, copy in zip(sentences, copies, strict=True)]
    known = known_recordings(
        held_out.others, list({one.speaker for one in utterances}), spec.sample_rate
    )
    who, absent = {"speaker": utterances[0].speaker}, {}
    if args.reference:
        who = {"reference": args.reference}
        sentences = [replace(one, speaker=REFERENCE) for one in sentences]
        known[REFERENCE] = read_all([Path(one) for one in args.reference], spec.sample_rate)
        absent[COMPARING] = "the recordings are of other speakers than the reference"
    hard = None
    try:
        hard = say_hard_texts(synthesizer, spoken, language=language, **who)
    except UserError as error:
        absent[ROBUSTNESS] = str(error)
    what = f"{args.voice}: {len(utterances)} sentences that it was not trained on"
    return Subject(what, language, spec, sentences, synthesizer.vocoder.name, known, hard, absent)


@dataclass(frozen=True)
class HeldOut:
    """The utterances that are said, and those of the corpus that are not held out."""

    chosen: "list[Utterance]"
    others: "list[Utterance]"


def choose_held_out(args: argparse.Namespace, synthesizer: "Synthesizer", language: str) -> HeldOut:
    """Choose of what the voice's own settings hold out of the corpus, always the same."""
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.evaluator import choose_utterances
    from myxtts.inference.errors import check_known

    voice = synthesizer.voice
    if args.speaker:
        check_known(args.speaker, voice.speakers, "speaker")
    corpus, separate = read_corpora(corpus_settings(args, voice.config.data))
    found = separate.utterances if separate else corpus.val
    able = [
        one
        for one in found
        if one.language == language
        and one.speaker == (args.speaker or one.speaker)
        and (args.reference or one.speaker in voice.speakers)
    ]
    silent = set(synthesizer.nothing_to_say([one.text for one in able], language)) if able else ()
    able = [one for number, one in enumerate(able) if number not in silent]
    if not able:
        raise UserError(
            f"{args.corpus} holds out no sentence in {language!r} by a speaker of the voice "
            f"({len(found)} are held out): name the corpus that it was trained on"
        )
    return HeldOut(choose_utterances(able, args.sentences), list(corpus.train))


def corpus_settings(args: argparse.Namespace, data: "DataConfig") -> "DataConfig":
    """The voice's own settings, with the places that were named."""
    named = {path.partition(".")[2]: value for path, (value, _) in flag_values(args).items()}
    return replace(data, dataset_path=args.corpus, **named)


def read_wavs(args: argparse.Namespace) -> "Subject":
    """Read recordings with what they should say, and their references."""
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.evaluation.evaluator import COMPARING, VOICES, Subject
    from myxtts.inference.vocoders import choose_vocoder

    spec = AudioSpec()
    utterances = match_texts(args.wavs, args.texts, args.language or "en")
    paths = match_references(args.references, utterances) if args.references else {}
    spoken = read_all([one.audio for one in utterances], spec.sample_rate)
    is_same_text = paths.keys() == {one.id for one in utterances}
    absent, known, vocoder = {}, {}, None
    if not paths:
        absent[VOICES] = "no recordings of the speaker were named: do so with --references"
    if is_same_text:
        recorded = read_all([paths[one.id] for one in utterances], spec.sample_rate)
        vocoder = choose_vocoder(args.vocoder, args.wavs, spec)
        copies = copy_all(recorded, vocoder, spec)
        sentences = [
            replace(one, copied=copy)
            for one, copy in zip(_sentences(utterances, spoken, recorded), copies, strict=True)
        ]
        known = {REFERENCE: recorded}
    else:
        sentences = _sentences(utterances, spoken)
        known = {REFERENCE: read_all(list(paths.values()), spec.sample_rate)} if paths else {}
        absent[COMPARING] = "no recordings of the same ids were named: do so with --references"
    return Subject(
        f"{args.wavs}: {len(utterances)} recordings",
        args.language or "en",
        spec,
        [replace(one, speaker=REFERENCE) for one in sentences],
        vocoder.name if vocoder else "",
        known,
        None,
        absent,
    )


def match_texts(wavs: Path, texts: Path, language: str) -> "list[Utterance]":
    """Pair recordings with the lines of their metadata; one without the other is named."""
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
    _refuse(missing, f"of the lines of {texts} have no recording in {wavs}, or no text")
    _refuse(names, f"of the recordings in {wavs} have no text in {texts}")
    return list(found.values())


def match_references(folder: Path, utterances: "Iterable[Utterance]") -> dict[str, Path]:
    """References by id: of all utterances, or of none of them, which are of the same speaker."""
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
    _refuse(missing, f"of the recordings have no reference of the same name in {folder}")
    _refuse(
        sorted(found.keys() - set(wanted)), f"of the references in {folder} are of no recording"
    )
    return found


def judge(args: argparse.Namespace, subject: "Subject", own: str, clock: Clock) -> "Evaluation":
    """Let everything judge that is at hand."""
    from myxtts.evaluation.ceilings import CeilingCache
    from myxtts.evaluation.evaluator import evaluate
    from myxtts.weights import default_folder

    import_tensorflow()  # which the speaker encoders run in
    with clock.part("opening the judges"):
        weights = args.weights or default_folder()
        judges = find_judges(subject.language, args.asr_model, weights, own)
    cache = CeilingCache(is_fresh=args.fresh_ceilings)
    evaluation = evaluate(subject, judges, progress, cache, lambda said: print(said, flush=True))
    clock.seconds |= evaluation.seconds
    return replace(evaluation, seconds=dict(clock.seconds))


def write(folder: Path, evaluation: "Evaluation") -> Path:
    """Write the wavs of all that was said, the figures and the page."""
    from myxtts.audio.io import write_wav
    from myxtts.evaluation.report.page import write_evaluation

    subject = evaluation.subject
    for old in (folder / WAVS).rglob("*.wav"):
        old.unlink()
    for one in subject.sentences:
        name = f"{one.id.replace('/', '_')}.wav"
        write_wav(folder / WAVS / name, one.spoken, subject.spec.sample_rate)
    if subject.hard:
        for number, samples in enumerate(subject.hard.spoken, 1):
            name = f"{number:03d}.wav"
            write_wav(folder / WAVS / "hard" / name, samples, subject.spec.sample_rate)
    return write_evaluation(folder, evaluation)


def show(evaluation: "Evaluation", page: Path, clock: Clock) -> None:
    """Print the tables, what was not measured, where everything is, and what it took."""
    from myxtts.evaluation.evaluator import LISTENING
    from myxtts.evaluation.report import page as shown

    print(evaluation.subject.what)
    if evaluation.judges:
        print(f"judged by {', '.join(evaluation.judges.values())}")
    for rows in (shown.measure_rows, shown.voice_rows, shown.fault_rows):
        if table := rows(evaluation):
            print(f"\n{shown.aligned(table)}")
        if rows is shown.voice_rows:
            for line in shown.voice_facts(evaluation):
                print(line)
    print()
    for line in shown.absences(evaluation):
        print(line)
    print(f"page    {page}")
    print(f"figures {page.with_name(shown.FIGURES)}")
    print(f"audio   {page.parent / WAVS}")
    asr = clock.seconds.get(LISTENING, 0.0)
    others = {name: took for name, took in clock.seconds.items() if name != LISTENING}
    parts = ", ".join(f"{name} {took:.1f}" for name, took in others.items())
    print(f"seconds: {parts}; {sum(others.values()):.1f} in all, and {asr:.1f} of the recogniser")


def _check(args: argparse.Namespace) -> None:
    """Refuse what names neither a voice nor recordings, or half of either."""
    if bool(args.voice) == bool(args.wavs):
        raise UserError("name what is to be judged: --voice with --corpus, or --wavs with --texts")
    if args.voice and not args.corpus:
        raise UserError("name the corpus that the voice was trained on with --corpus")
    if args.wavs and not args.texts:
        raise UserError("name the file that says what the recordings should say with --texts")
    if args.sentences < 1:
        raise UserError(f"--sentences must be at least 1, not {args.sentences}")
    for path in (args.wavs, args.references, args.corpus and Path(args.corpus)):
        if path and not path.is_dir():
            raise UserError(f"there is no folder {path}: check its name")
    if args.output and args.output.is_file():
        raise UserError(f"{args.output} is a file: name a folder with -o")


def _sentences(utterances, spoken, recorded=None) -> "list[Sentence]":
    from myxtts.evaluation.evaluator import Sentence

    recorded = recorded or [None] * len(spoken)
    parts = zip(utterances, spoken, recorded, strict=True)
    return [Sentence(one.id, one.text, said, one.speaker, own) for one, said, own in parts]


def _beside(voice: Path) -> Path:
    """Not inside of the voice, which training replaces at each checkpoint."""
    is_run = not (voice / "voice.json").exists()
    return voice / FOLDER if is_run else _next_to(voice)


def _next_to(folder: Path) -> Path:
    folder = folder.absolute()
    return folder.with_name(f"{folder.name}-{FOLDER}")


def _refuse(names: list[str], problem: str) -> None:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise UserError(f"{len(names)} {problem}: {', '.join(names[:_MOST_NAMES])}{more}")
