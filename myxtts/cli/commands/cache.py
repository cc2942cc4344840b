"""`myxtts cache`: what the cache of a corpus holds, whether it is whole, and how to repair it."""

import argparse
from typing import TYPE_CHECKING

from myxtts.cli.settings import add_corpus, corpus_config
from myxtts.cli.terminal import add_command
from myxtts.config.config import DataConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    from myxtts.data.features.corpora import CorpusPart


def add(verbs: argparse._SubParsersAction) -> None:
    verb = verbs.add_parser("cache", help="inspect, verify, fix or tidy the cache of a corpus")
    actions = verb.add_subparsers(metavar="ACTION", required=True)
    for run, about in (
        (info, "print what is stored, what is missing, and the space it takes"),
        (verify, "read every byte and name whatever is not as it was written"),
        (fix, "make again just what is damaged or missing"),
        (gc, "delete what was stored with other settings or for utterances that are gone"),
    ):
        add_corpus(add_command(actions, run.__name__, about, run))


def info(args: argparse.Namespace) -> None:
    from myxtts.data.features.status import take_inventory

    for part in _parts(corpus_config(args).data):
        print(take_inventory(part.location, part.utterances))


def verify(args: argparse.Namespace) -> None:
    """Exit with 2 where something is wrong or missing."""
    from myxtts.data.features.repair import verify_cache
    from myxtts.data.features.status import other_stores, take_inventory

    problems = []
    for part in _parts(corpus_config(args).data):
        if not part.location.features.folder.exists():
            others = other_stores(part.location)
            hint = f"; of other settings there are {', '.join(others)}" if others else ""
            raise UserError(
                f"nothing is stored in {part.location.place} with these settings: "
                f"run `myxtts prepare {part.corpus.root}`{hint}"
            )
        with progress("verifying", "shards") as report:
            found = verify_cache(part.location, part.utterances, report)
        problems += [(part.location.place, problem) for problem in found]
        if not any(problem.shard for problem in found):
            missing = take_inventory(part.location, part.utterances).features.missing
            stored = len(part.utterances) - missing
            print(f"{part.location.place}: {stored:,} of {len(part.utterances):,} are stored")
    if problems:
        raise UserError(
            f"{len(problems)} problems:\n"
            + "\n".join(f"  {place}: {problem}" for place, problem in problems)
            + "\nrun `myxtts cache fix`, which makes just these again"
        )
    print("every byte is as it was written")


def fix(args: argparse.Namespace) -> None:
    """Repair the cache; what cannot be prepared stays dropped, as `prepare` reports."""
    from myxtts.data.features.repair import fix_cache
    from myxtts.data.rejections import list_rejections

    data = corpus_config(args).data
    for part in _parts(data):
        with progress("fixing") as report:
            done = fix_cache(part.location, part.utterances, data.num_workers, report)
        for problem in done.problems:
            print(f"{part.location.place}: {problem}")
        count = len(done.problems)
        print(f"{count} problem{'' if count == 1 else 's'}; made again: {done.remade.made:,} rows")
        if done.remade.rejections:
            print(f"these cannot be prepared:\n{list_rejections(done.remade.rejections)}")


def gc(args: argparse.Namespace) -> None:
    from myxtts.data.features.repair import collect_garbage

    for part in _parts(corpus_config(args).data):
        freed, names = collect_garbage(part.location, part.utterances)
        for name in names:
            print(f"deleted {name}")
        print(f"freed {freed / 1e6:.1f} MB in {part.location.folder}")


def _parts(data: DataConfig) -> "list[CorpusPart]":
    """The corpora, with what a cache on object storage says of itself fetched."""
    from myxtts.data.features.corpora import read_parts

    parts = read_parts(data)
    for part in parts:
        part.location.pull()
    return parts
