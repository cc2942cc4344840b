"""`myxtts evaluate`: how good a voice or a folder of recordings is, in figures or to listeners."""

import argparse
from pathlib import Path

from myxtts.cli.settings import add_refining, add_vocoder, add_voice
from myxtts.cli.terminal import add_command, check_least, import_tensorflow, print_line
from myxtts.config.flags import add_flags, flag_values
from myxtts.errors import UserError
from myxtts.workflows.evaluate_voice import FOLDER, SENTENCES

JUDGING = ("vocoder", "asr_model", "weights", "fresh_ceilings")
SPEAKING = ("sentences", "speaker", "reference", "clone_seconds", "language")
REFINING = ("postfilter", "refine_steps", "temperature")
LISTENING = ("texts", "corpus", "speaker", "reference", "language", "vocoder")
CORPUS_FIELDS = (
    *("data.val_dataset_path", "data.metadata_train_file", "data.metadata_eval_file"),
    *("data.wavs_train_dir", "data.wavs_eval_dir", "data.speaker_pattern"),
)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "judge a voice by how it speaks held-out text, or recordings by what they should say"
    parser = add_command(verbs, "evaluate", about, run)
    _add_voice(parser.add_argument_group("a voice"))
    _add_wavs(parser.add_argument_group("recordings instead of a voice"))
    _add_listening(parser.add_argument_group("a blind listening test"))
    about = "language of the text (default: the voice's first; en of recordings)"
    parser.add_argument("--language", metavar="CODE", help=about)
    about = "folder of a Whisper or sherpa-onnx model for the language (default: moonshine, for en)"
    parser.add_argument("--asr-model", metavar="DIR", help=about)
    about = (
        "judge the recordings again; otherwise earlier results of the same judges for the same "
        "recordings are read from the user's cache (XDG_CACHE_HOME or ~/.cache, myxtts/ceilings)"
    )
    parser.add_argument("--fresh-ceilings", action="store_true", help=about)
    about = "folder of the public weights (default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--weights", metavar="FOLDER", type=Path, help=about)
    add_vocoder(parser)
    about = f"folder for the page, the figures and the wavs (default: {FOLDER}/ next to the input);"
    about += " of --listen also the page itself, an .html file (default: listening.html)"
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, help=about)
    parser.usage = (
        "%(prog)s --voice DIR --corpus DIR [options]\n"
        "       %(prog)s --wavs DIR --texts FILE [--references DIR] [options]\n"
        "       %(prog)s --listen DIR DIR [DIR ...] [--references DIR] [options]\n"
        "       %(prog)s --tally FILE [FILE ...]"
    )


def _add_voice(group: argparse._ArgumentGroup) -> None:
    add_voice(group)
    about = "the corpus that the voice was trained on; the held-out part is spoken"
    names = ("--corpus", "--data", "--data-path")
    group.add_argument(*names, metavar="DIR", type=Path, dest="corpus", help=about)
    about = "how many of the held-out sentences (default: %(default)s)"
    group.add_argument("--sentences", metavar="N", type=int, default=SENTENCES, help=about)
    who = group.add_mutually_exclusive_group()
    about = "clone the speaker of this recording for every sentence; may be given several times"
    names = ("--reference", "--reference-audio")
    who.add_argument(*names, metavar="WAV", action="append", dest="reference", help=about)
    about = "only the sentences that this speaker recorded (default: each as its own speaker)"
    who.add_argument("--speaker", metavar="NAME", help=about)
    about = "clone the speakers of the corpus that the voice does not know, each from so many "
    about += "seconds of its recordings, and compare the clones with the others"
    group.add_argument("--clone-seconds", metavar="SECONDS", type=float, help=about)
    add_refining(group)
    add_flags(group, CORPUS_FIELDS)


def _add_wavs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--wavs", metavar="DIR", type=Path, help="recordings to be judged")
    about = "what the recordings should say: id|text, or any metadata that a corpus may have"
    group.add_argument("--texts", metavar="FILE", type=Path, help=about)
    about = "recordings of the same ids, which say the same; or others of the same speaker"
    group.add_argument("--references", metavar="DIR", type=Path, help=about)


def _add_listening(group: argparse._ArgumentGroup) -> None:
    about = "write a page that compares folders of audio, or voices, without naming them: AB "
    about += (
        "preference of two, MUSHRA-like ratings of more or with --references, which are then a "
    )
    about += "hidden reference; voices say --texts (one a line), or what --corpus holds out"
    group.add_argument("--listen", metavar="DIR", type=Path, nargs="+", help=about)
    about = "what the order of sentences and of sides derives from (default: %(default)s)"
    group.add_argument("--seed", type=int, default=0, help=about)
    about = "print the pooled result of the files that listeners saved"
    group.add_argument("--tally", metavar="FILE", type=Path, nargs="+", help=about)


def run(args: argparse.Namespace) -> None:
    """Judge, or let listeners judge, and print the tables."""
    _check(args)
    if args.tally:
        from myxtts.workflows.listening import tally_answers

        print(tally_answers(args.tally))
    elif args.listen:
        _listen(args)
    else:
        _judge(args)


def _listen(args: argparse.Namespace) -> None:
    """Write the page of a listening test."""
    from myxtts.workflows import listening

    if listening.has_voice(args.listen):
        import_tensorflow()
    speaking = listening.Speaking(
        data=_data(args),
        options={name: getattr(args, name) for name in REFINING},
        **{name: getattr(args, name) for name in LISTENING},
    )
    options = {name: getattr(args, name) for name in ("references", "sentences", "seed")}
    where = (args.listen, args.output)
    print(listening.write_listening_test(*where, speaking=speaking, **options))


def _judge(args: argparse.Namespace) -> None:
    """Judge, write the page, and print the tables."""
    from myxtts.workflows import evaluate_voice as workflow
    from myxtts.workflows.evaluate_recordings import LANGUAGE, evaluate_recordings

    import_tensorflow()
    options = {name: getattr(args, name) for name in JUDGING} | {"announce": print_line}
    if args.wavs:
        where = (args.wavs, args.texts, args.references)
        found = evaluate_recordings(*where, language=args.language or LANGUAGE, **options)
        folder = workflow.folder_next_to(args.wavs)
    else:
        options |= {name: getattr(args, name) for name in SPEAKING}
        options["speaking"] = {name: getattr(args, name) for name in REFINING}
        found = workflow.evaluate(args.voice, args.corpus, data=_data(args), **options)
        folder = workflow.folder_of_voice(Path(args.voice))
    print(workflow.report(args.output or folder, found))


def _data(args: argparse.Namespace) -> dict[str, object]:
    """Settings of the corpus that flags set, instead of the voice's own."""
    return {path.partition(".")[2]: value for path, (value, _) in flag_values(args).items()}


def _check(args: argparse.Namespace) -> None:
    """Raise where nothing is named to be judged, or more than one thing, or half of one."""
    check_least(args, sentences=1, seed=0)
    if sum(map(bool, (args.voice, args.wavs, args.listen, args.tally))) != 1:
        raise UserError(
            "name what is to be judged: --voice with --corpus, --wavs with --texts, --listen with "
            "two folders or more, or --tally with what listeners saved"
        )
    if args.clone_seconds and (args.reference or not args.voice):
        raise UserError("--clone-seconds is for a --voice, without a --reference of its own")
    if args.voice and not args.corpus:
        raise UserError("name the corpus that the voice was trained on with --corpus")
    if args.wavs and not args.texts:
        raise UserError("name the file that says what the recordings should say with --texts")
    for path in filter(None, (args.wavs, args.references, args.corpus)):
        if not path.is_dir():
            raise UserError(f"there is no folder {path}: check its name")
    if args.output and args.output.is_file() and not args.listen:
        raise UserError(f"{args.output} is a file: name a folder with -o")
