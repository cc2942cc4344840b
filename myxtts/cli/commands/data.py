"""`myxtts data`: look at a corpus, make one of long recordings, or make the built-in one."""

import argparse
import shlex
from collections import Counter
from dataclasses import fields

from myxtts.audio.slice_options import CLIP_FORMATS, PAUSES_BY, SliceOptions
from myxtts.cli.settings import add_corpus, corpus_config
from myxtts.cli.terminal import add_command
from myxtts.demo_corpus.sentences import GRAMMARS
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

DEMO, SMALL_DEMO = "./data/demo", "./small_dataset_test"


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("data", help="check a corpus, or make one, of long recordings too")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "print what a corpus is, what was understood, and what would be dropped and why"
    add_corpus(add_command(actions, "check", about, check))
    _add_slice(actions)
    about = "write texts for the clips of a corpus that have none, by a recogniser; resumable"
    parser = add_command(actions, "transcribe", about, transcribe)
    about = "a corpus with recordings in wavs/, as `myxtts data slice` makes it"
    parser.add_argument("corpus", metavar="CORPUS", help=about)
    about = "what is spoken (default: %(default)s, by moonshine-voice, the extra `eval`)"
    parser.add_argument("--language", default="en", metavar="CODE", help=about)
    about = "the folder of a Whisper or sherpa-onnx model, for any other language too"
    parser.add_argument("--asr-model", metavar="DIR", help=about)
    about = "hear each clip a second time, a tenth faster, and note how far both texts agree"
    parser.add_argument("--confidence", action="store_true", help=about)
    about = "make the built-in corpus: synthetic voices, in the layout of LJSpeech"
    parser = add_command(actions, "demo", about, demo)
    where = f"where to (default: {DEMO}, or {SMALL_DEMO} with --small)"
    parser.add_argument("target", metavar="TARGET", nargs="?", help=where)
    # make_demo has the defaults.
    chosen = parser.add_argument_group("what", argument_default=argparse.SUPPRESS)
    chosen.add_argument(
        "--language", choices=tuple(GRAMMARS), help="language of the built-in corpus"
    )
    chosen.add_argument("--speakers", type=int, metavar="N", help="how many voices")
    chosen.add_argument("--clauses", type=int, metavar="N", help="sentences of each speaker")
    small = f"make {SMALL_DEMO}/ instead: a tiny training and a tiny validation corpus"
    parser.add_argument("--small", action="store_true", help=small)


def _add_slice(actions: argparse._SubParsersAction) -> None:
    about = "cut long recordings at their pauses into the clips of a corpus; resumable"
    parser = add_command(actions, "slice", about, slice_recordings)
    about = "files, or folders of them, in any format that libsndfile reads"
    parser.add_argument("recordings", metavar="RECORDING", nargs="+", help=about)
    about = "the corpus: a new folder, or one that this command has made"
    parser.add_argument("-o", "--output", metavar="CORPUS", required=True, help=about)
    usual = SliceOptions()
    times = {
        "shortest": "drop shorter clips, after joining them to a neighbour where that is near",
        "longest": "cut longer clips at shorter pauses, and drop them where there are none",
        "pause": "cut at pauses that are at least so long",
        "keep": "silence to leave at both ends of a clip",
    }
    for name, about in times.items():
        value = getattr(usual, name)
        about += f" (default: {value:g} s)"
        parser.add_argument(f"--{name}", type=float, default=value, metavar="SECONDS", help=about)
    about = "what is quieter is a pause, in dBFS (default: found for each recording)"
    parser.add_argument("--threshold", type=float, metavar="DB", help=about)
    about = "what tells a pause: its level, or that the voice detector of the extra speakers hears "
    about += "nobody; auto: the detector where noise leaves no quiet parts (default: %(default)s)"
    parser.add_argument("--pauses-by", choices=PAUSES_BY, default=usual.pauses_by, help=about)
    about = "drop clips with a larger share of clipped samples (default: %(default)g; 1: none)"
    value = usual.most_clipped
    parser.add_argument("--most-clipped", type=float, default=value, metavar="SHARE", help=about)
    about = "format of the clips (default: %(default)s)"
    parser.add_argument("--format", choices=CLIP_FORMATS, default=CLIP_FORMATS[0], help=about)


def slice_recordings(args: argparse.Namespace) -> None:
    from myxtts.workflows import slices

    values = {field.name: getattr(args, field.name) for field in fields(SliceOptions)}
    options = SliceOptions(**values)
    done = slices.slice_recordings(args.recordings, args.output, options, args.format)
    print(done.summary())
    if done.failed:
        raise UserError("\n".join(["some recordings cannot be used:", *map(str, done.failed)]))
    if not any(plan.clips() for plan in done.plans):
        raise UserError("no clip is left: the lines above say why")
    print(f"next: myxtts data transcribe {shlex.quote(args.output)} --language en")


def transcribe(args: argparse.Namespace) -> None:
    from myxtts.workflows.transcribe import transcribe_corpus

    done = transcribe_corpus(
        args.corpus, args.language, args.asr_model, with_confidence=args.confidence
    )
    print(done.summary())
    if not done.written + done.kept:
        raise UserError("there is no text in any clip: listen to them, and check --language")
    language = "" if args.language == "en" else f" --language {shlex.quote(args.language)}"
    print(f"next: myxtts data check {shlex.quote(args.corpus)}{language}")
    if done.failed:
        raise UserError("\n".join(["some clips cannot be used:", *map(str, done.failed)]))


def check(args: argparse.Namespace) -> None:
    from myxtts.data.batches.limits import examine
    from myxtts.data.corpus.bandwidth import warn_narrow
    from myxtts.data.corpus.description import summarise
    from myxtts.data.corpus.language_check import check_languages
    from myxtts.data.features.corpora import read_parts

    config = corpus_config(args)
    parts, findings = read_parts(config.data), []
    for part in parts:
        with progress("reading headers", "recordings") as report:
            states = config.model.token_states
            found = examine(part.corpus, config.data, part.location.tokenizer, report, states)
        print(summarise(found.corpus, found.seconds))
        print(f"  {'sample rates':<20}  {_rates(found.sample_rates, config.data.sample_rate)}")
        findings.append(found)
    for part in parts:
        check_languages([part.corpus], part.location.tokenizer)
    warn_narrow(sum((one.sample_rates for one in findings), Counter()), config.data.audio_spec)
    for found in findings:
        found.check(config.data.max_rejected)
    print(f"next: myxtts prepare {shlex.quote(config.data.dataset_path)}")


def demo(args: argparse.Namespace) -> None:
    from myxtts.demo_corpus.corpus import make_demo, make_small_dataset

    given = {n: v for n, v in vars(args).items() if n in ("language", "speakers", "clauses")}
    if args.small and given:
        raise UserError(f"--small is always the same: remove --{', --'.join(given)}")
    with progress("speaking") as report:
        if args.small:
            target = make_small_dataset(args.target or SMALL_DEMO, progress=report)
        else:
            target = make_demo(args.target or DEMO, progress=report, **given)
    print(f"made {target}")
    corpus = target / "dataset_train_small" if args.small else target
    print(f"next: myxtts data check {shlex.quote(str(corpus))}")


def _rates(rates: dict[int, int], wanted: int) -> str:
    """Count recordings by sample rate, and say which are resampled."""
    return ", ".join(
        f"{rate:,} Hz: {count:,}" + ("" if rate == wanted else f" (resampled to {wanted:,} Hz)")
        for rate, count in sorted(rates.items())
    )
