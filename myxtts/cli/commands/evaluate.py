"""`myxtts evaluate`: how good a voice is, or a folder of recordings, in figures with intervals."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.terminal import add_command, import_tensorflow
from myxtts.config.flags import add_flags, flag_values
from myxtts.errors import UserError
from myxtts.workflows.evaluate_voice import FOLDER, SENTENCES, VOCODER, WAVS

if TYPE_CHECKING:
    from myxtts.evaluation.evaluator import Evaluation

CORPUS_FIELDS = (
    *("data.val_dataset_path", "data.metadata_train_file", "data.metadata_eval_file"),
    *("data.wavs_train_dir", "data.wavs_eval_dir", "data.speaker_pattern"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "judge a voice by how it speaks held-out text, or recordings by what they should say"
    parser = add_command(verbs, "evaluate", about, run)
    _add_voice(parser.add_argument_group("a voice"))
    _add_wavs(parser.add_argument_group("recordings instead of a voice"))
    about = "language of the text (default: the voice's first; en of recordings)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "folder of a Whisper model for the language (default: moonshine, for en)"
    parser.add_argument("--asr-model", metavar="DIR", help=about)
    about = (
        "judge the recordings again; otherwise earlier results of the same judges for the same "
        "recordings are read from the user's cache (XDG_CACHE_HOME or ~/.cache, myxtts/ceilings)"
    )
    parser.add_argument("--fresh-ceilings", action="store_true", help=about)
    about = "folder of the public weights (default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--weights", metavar="FOLDER", type=Path, help=about)
    about = "how a mel becomes a waveform, as in `myxtts synthesize` (default: %(default)s)"
    names = ("--vocoder", "--vocoder-type")
    parser.add_argument(*names, metavar="NAME", default=VOCODER, dest="vocoder", help=about)
    about = f"folder for the page, the figures and the wavs (default: {FOLDER}/ next to the input)"
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, help=about)
    parser.usage = (
        "%(prog)s --voice DIR --corpus DIR [options]\n"
        "       %(prog)s --wavs DIR --texts FILE [--references DIR] [options]"
    )


def _add_voice(group: argparse._ArgumentGroup) -> None:
    about = "the voice: its folder, or that of the run that made it"
    names = ("--voice", "--checkpoint", "--checkpoint-dir")
    group.add_argument(*names, metavar="DIR", dest="voice", help=about)
    about = "the corpus that the voice was trained on; the held-out part is spoken"
    group.add_argument("--corpus", "--data", "--data-path", metavar="DIR", help=about)
    about = "how many of the held-out sentences (default: %(default)s)"
    group.add_argument("--sentences", metavar="N", type=int, default=SENTENCES, help=about)
    who = group.add_mutually_exclusive_group()
    about = "clone the speaker of this recording for every sentence; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "only the sentences that this speaker recorded (default: each as its own speaker)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    add_flags(group, CORPUS_FIELDS)


def _add_wavs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--wavs", metavar="DIR", type=Path, help="recordings to be judged")
    about = "what the recordings should say: id|text, or any metadata that a corpus may have"
    group.add_argument("--texts", metavar="FILE", type=Path, help=about)
    about = "recordings of the same ids, which say the same; or others of the same speaker"
    group.add_argument("--references", metavar="DIR", type=Path, help=about)


def run(args: argparse.Namespace) -> None:
    """Judge, write the page, and print the tables."""
    from myxtts.workflows.evaluate_recordings import LANGUAGE, evaluate_recordings
    from myxtts.workflows.evaluate_voice import evaluate, folder_next_to, folder_of_voice, write

    _check(args)
    import_tensorflow()
    judging = {
        **{name: getattr(args, name) for name in ("vocoder", "asr_model", "weights")},
        "fresh_ceilings": args.fresh_ceilings,
        "announce": lambda line: print(line, flush=True),
    }
    if args.wavs:
        language = args.language or LANGUAGE
        found = evaluate_recordings(
            args.wavs, args.texts, args.references, language=language, **judging
        )
        folder = args.output or folder_next_to(args.wavs)
    else:
        data = {path.partition(".")[2]: value for path, (value, _) in flag_values(args).items()}
        chosen = {
            name: getattr(args, name) for name in ("sentences", "speaker", "reference", "language")
        }
        found = evaluate(args.voice, args.corpus, data=data, **chosen, **judging)
        folder = args.output or folder_of_voice(Path(args.voice))
    began = time.monotonic()
    page = write(folder, found)
    _print_evaluation(found, page, {**found.seconds, "writing": time.monotonic() - began})


def _print_evaluation(evaluation: "Evaluation", page: Path, seconds: dict[str, float]) -> None:
    """Print the tables, what was not measured, where everything is, and what it took."""
    from myxtts.evaluation.metrics.table import ASR
    from myxtts.evaluation.report import rows as tables
    from myxtts.evaluation.report.page import FIGURES
    from myxtts.evaluation.report.tables import aligned

    print(evaluation.subject.what)
    if evaluation.judges:
        print(f"judged by {', '.join(evaluation.judges.values())}")
    for rows in (tables.measure_rows, tables.speaker_rows, tables.fault_rows):
        if table := rows(evaluation):
            print(f"\n{aligned(table)}")
        if rows is tables.speaker_rows:
            for line in tables.speaker_facts(evaluation):
                print(line)
    print()
    for line in tables.absences(evaluation):
        print(line)
    print(f"page    {page}")
    print(f"figures {page.with_name(FIGURES)}")
    print(f"audio   {page.parent / WAVS}")
    asr = seconds.pop(ASR, 0.0)
    parts = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items())
    print(f"seconds: {parts}; {sum(seconds.values()):.1f} in all, and {asr:.1f} of the ASR")


def _check(args: argparse.Namespace) -> None:
    """Raise where neither a voice nor recordings are named, or half of either."""
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
