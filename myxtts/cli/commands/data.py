"""`myxtts data`: look at a corpus, or make the built-in one."""

import argparse
import shlex
from collections import Counter

from myxtts.cli.settings import add_corpus, corpus_config
from myxtts.cli.terminal import add_command
from myxtts.demo_corpus.sentences import GRAMMARS
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

DEMO, SMALL_DEMO = "./data/demo", "./small_dataset_test"


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("data", help="check a corpus, or make the built-in one")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    about = "print what a corpus is, what was understood, and what would be dropped and why"
    add_corpus(add_command(actions, "check", about, check))
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
