"""A disk that is full, without inodes, read-only, or under a quota, at every write of commands.

Each command works on a disk of its own in memory, of which so many pages or inodes are left, from
none to all that it takes. It ends with exit code 2 and says where and what to do, or it succeeds.
Nothing that is half-written is taken for whole, and what was saved before is whole. With room again
the same command ends as if nothing had been.

A disk that becomes read-only, or a quota that ends, in the middle of a command is played by its
file operations, which fail from the n-th on.
"""

import errno
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.drills import children, small_runs
from benchmarks.drills.cases import EQUAL, LOST, REFUSED, WRONG, Case, Outcome, Size
from benchmarks.drills.small_disk import SmallDisk, refuse, why_not
from benchmarks.drills.small_runs import CORPUS, FINE, RUN, VOCODER

TITLE = "disks that refuse"

# What a message can tell the user to do.
_ADVICE = re.compile(
    r"free|room|writable|permission|another folder|another one|choose|--cache-dir|runtime"
    r"|raise the limit",
    re.I,
)

_SET_ASIDE, _DRAFT = re.compile(r"\..+\.old"), re.compile(r"(.+)\.\d+\.tmp")


@dataclass(frozen=True)
class Plan:
    """A command, the state that it begins in, what it makes, and how many cases of each fault."""

    name: str
    words: small_runs.Command
    start: str
    results: tuple[str, ...]
    pages: int
    inodes: int
    operations: int  # of each: read-only, and a quota
    largest: int = 0  # file sizes that are not allowed (RLIMIT_FSIZE)


PLANS = (
    Plan("prepare", small_runs.PREPARE, "bare", (), 40, 14, 16, 6),
    Plan("cache fix", small_runs.FIX, "damaged", (), 20, 8, 8, 3),
    Plan("data demo", small_runs.DEMO, "bare", ("demo",), 10, 6, 6),
    Plan("synthesize", small_runs.SPEAK, "trained", ("said.wav",), 5, 2, 2),
    Plan("train", small_runs.TRAIN, "begun", (RUN,), 12, 5, 6, 2),
    Plan("train, nothing prepared", small_runs.TRAIN, "bare", (RUN,), 4, 0, 2),
    Plan("train-vocoder", small_runs.TRAIN_VOCODER, "trained", (VOCODER,), 7, 3, 3, 1),
    Plan("finetune", small_runs.FINETUNE, "trained", (FINE,), 4, 2, 2),
)


def set_up(folder: Path, seed: int, size: Size) -> None:
    reason = children.call(lambda: _print(why_not()), folder / "mount.log").text.strip()
    (folder / "refused").write_text(reason, encoding="utf-8")
    if reason:
        return
    make_starts(folder, seed)
    needs = {}
    for plan in PLANS:
        log = folder / f"{_file_name(plan.name)}.log"
        ended = children.call(partial(_measure, folder, plan), log, 300)
        if ended.code:
            raise RuntimeError(f"{plan.name} cannot be measured:\n{ended.text[-3000:]}")
        needs[plan.name] = json.loads((folder / f"{_file_name(plan.name)}.json").read_text())
    (folder / "needs.json").write_text(json.dumps(needs), encoding="utf-8")


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    if reason := (folder / "refused").read_text(encoding="utf-8"):
        print(f"disk: no cases: a disk cannot be mounted here ({reason})", file=sys.stderr)
        return
    needs = json.loads((folder / "needs.json").read_text(encoding="utf-8"))
    for plan in PLANS:
        need = needs[plan.name]
        chance = random.Random(f"{seed} {plan.name}")
        faults: list[tuple[str, Callable[[], Fault]]] = [("read-only", ReadOnly)]
        for fault, full, most in (
            (Pages, plan.pages, need["pages"]),
            (Inodes, plan.inodes, need["inodes"]),
            (BecomesReadOnly, plan.operations, need["operations"]),
            (Quota, plan.operations, need["operations"]),
            (Largest, plan.largest, need["largest"]),
        ):
            chosen = _spread(size.count(full) if full else 0, most, chance)
            faults += [(fault.kind, partial(fault, amount)) for amount in chosen]
        for kind, make in faults:
            fault = make()
            run = partial(run_case, folder, plan, fault)
            yield Case(f"{plan.name}, {fault}", f"{plan.name}: {kind}", run, seconds=560)


def run_case(folder: Path, plan: Plan, fault: "Fault", work: Path) -> Outcome:
    """Run a command on a disk that refuses, judge it, then run it again with room."""
    end = folder / f"{_file_name(plan.name)}-end"
    expected, stored = _results(end, plan), small_runs.stored(end / CORPUS)
    with SmallDisk(work / "disk") as disk:
        small_runs.copy(folder / plan.start, disk.folder)
        fault.begin(disk)
        first = small_runs.attempt(
            disk.folder, plan.words, work / "first.log", partial(fault.in_command, disk)
        )
        disk.free()
        # A bad ending is no reason not to look at what it left.
        complaint = small_runs.broken(first) or _judge(first, plan, disk.folder, expected)
        if problem := half_written(disk.folder, plan, expected, stored):
            return Outcome(LOST, f"half-written after the refusal: {problem}")
        again = small_runs.attempt(disk.folder, plan.words, work / "again.log")
        if outcome := small_runs.broken(again, (0,)):
            return Outcome(outcome.result, f"with room again: {outcome.detail}")
        problem = small_runs.differences(_results(disk.folder, plan), expected)
        is_whole = plan.results != (RUN,)
        found = small_runs.stored(disk.folder / CORPUS)
        problem = problem or small_runs.store_differences(found, stored, is_whole)
        if problem:
            return Outcome(LOST, f"with room again: {problem}")
        if complaint:
            return complaint
        said = " ".join(first.text.split())[-200:]
        return Outcome(REFUSED, said) if first.code else Outcome(EQUAL)


def half_written(folder: Path, plan: Plan, expected: dict[str, bytes], stored: dict) -> str:
    """What looks whole to a reader and is not; nothing else may be wrong after a refusal."""
    from myxtts.checkpoints import load_state, saved_states
    from myxtts.checkpoints.files import check_file, read_json
    from myxtts.errors import UserError

    try:
        if plan.start != "damaged":  # what is there to be fixed may be there still
            found = small_runs.stored(folder / CORPUS, skip_unreadable=True)
            if problem := small_runs.store_differences(found, stored, is_whole=False):
                return problem
        for run in (RUN, VOCODER, FINE):
            for path in saved_states(folder / run / "checkpoints"):
                load_state(path)
            for card in folder.glob(f"{run}/[!.]*/vo*.json"):
                for name, record in read_json(card)["files"].items():
                    check_file(card.parent / name, record)
    except UserError as error:
        return str(error)
    for name in ("said.wav", "demo"):
        found = small_runs.contents(folder, name) if name in plan.results else {}
        if found and (problem := small_runs.differences(found, expected)):
            return problem
    return ""


# Faults


@dataclass(frozen=True)
class Fault:
    """What a disk lacks; `begin` takes it away, `in_command` does so inside the command."""

    amount: int = 0
    kind = ""

    def begin(self, disk: SmallDisk) -> None: ...

    def in_command(self, disk: SmallDisk) -> None:
        """The disk looks large until it refuses, as if others had filled it since."""
        _pretend_room()

    def __str__(self) -> str:
        return f"{self.kind} {self.amount}"


class Pages(Fault):
    kind = "pages left"

    def begin(self, disk: SmallDisk) -> None:
        disk.leave_pages(self.amount)

    def in_command(self, disk: SmallDisk) -> None:
        if self.amount % 4:  # one in four sees how full it is before it begins
            _pretend_room()


class Inodes(Fault):
    kind = "inodes left"

    def begin(self, disk: SmallDisk) -> None:
        disk.leave_inodes(self.amount)


class ReadOnly(Fault):
    kind = "read-only"

    def begin(self, disk: SmallDisk) -> None:
        disk.forbid_writing()


class BecomesReadOnly(Fault):
    kind = "read-only from operation"
    code = errno.EROFS

    def in_command(self, disk: SmallDisk) -> None:
        refuse(disk.folder, self.code, self.amount)


class Quota(BecomesReadOnly):
    kind = "quota from operation"
    code = errno.EDQUOT


class Largest(Fault):
    kind = "largest file, kB"

    def in_command(self, disk: SmallDisk) -> None:
        # The log of the command is a file as well.
        limit = max(64, self.amount) * 1024
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


# Set-up


def make_starts(folder: Path, seed: int) -> None:
    """The states that commands begin in."""
    bare = folder / "bare"
    bare.mkdir()
    small_runs.make_corpus(bare, seed)
    prepared = small_runs.copy(bare, folder / "prepared")
    small_runs.run(prepared, *small_runs.PREPARE)
    damaged = small_runs.copy(prepared, folder / "damaged")
    for path in damaged.glob(f"{CORPUS}/cached_features/*/*.*"):
        if path.suffix in (".mel", ".tokens"):
            path.write_bytes(b"")
    begun = small_runs.copy(prepared, folder / "begun")
    killing = partial(small_runs.kill_in_step, 3)
    small_runs.attempt(begun, small_runs.TRAIN, folder / "begun.log", killing)
    trained = small_runs.copy(begun, folder / "trained")
    small_runs.run(trained, *small_runs.TRAIN)


def _measure(folder: Path, plan: Plan) -> None:
    """Run a command undisturbed, keep how it ends, and see what it takes at most."""
    with SmallDisk(folder / f"{_file_name(plan.name)}-disk") as disk:
        small_runs.copy(folder / plan.start, disk.folder)
        counted = folder / f"{_file_name(plan.name)}.operations"
        log = folder / f"{_file_name(plan.name)}-run.log"
        before, peak = disk.used, disk.used

        def count() -> int:
            from myxtts.cli.main import main

            os.chdir(disk.folder)
            seen = refuse(disk.folder, errno.EROFS, 10**9)
            code = main(list(plan.words))
            counted.write_text("\n".join(seen), encoding="utf-8")
            return code

        pid = children.start(count, log)
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            peak = tuple(map(max, peak, disk.used))
            time.sleep(0.002)
        ended = children.finish(pid, log)
        if ended.code:
            raise RuntimeError(ended.text[-3000:])
        end = small_runs.copy(disk.folder, folder / f"{_file_name(plan.name)}-end")
    largest = max(path.stat().st_size for path in end.rglob("*") if path.is_file())
    needs = {
        "pages": peak[0] - before[0],
        "inodes": peak[1] - before[1],
        "operations": len(counted.read_text(encoding="utf-8").splitlines()),
        "largest": largest // 1024,
    }
    target = folder / f"{_file_name(plan.name)}.json"
    target.write_text(json.dumps(needs), encoding="utf-8")


# Judgement


def _results(folder: Path, plan: Plan) -> dict[str, bytes]:
    """The files that a command makes, other than caches."""
    return small_runs.contents(folder, *plan.results) if plan.results else {}


def _judge(
    ended: children.Ended, plan: Plan, folder: Path, expected: dict[str, bytes]
) -> Outcome | None:
    """What is wrong with how a command ended, if anything."""
    if ended.code == 0:
        found = _results(folder, plan)
        left = [name for name in found if _is_said_to_stay(name, ended.text)]
        found = {name: content for name, content in found.items() if name not in left}
        problem = small_runs.differences(found, expected)
        return Outcome(WRONG, f"success, but {problem}") if problem else None
    message = ended.text[ended.text.rfind("error:") :]
    said = " ".join(message.split())[:300]
    names = [f"{name}/" for name in (CORPUS, RUN, VOCODER, FINE)]
    if not any(name in message for name in (str(folder), *names, *plan.results)):
        return Outcome(WRONG, f"the message names no place: {said}")
    if "(--verbose shows where)" in message or not _ADVICE.search(message):
        return Outcome(WRONG, f"the message does not say what to do: {said}")
    return None


def _is_said_to_stay(name: str, text: str) -> bool:
    """Whether a file is left because the disk did not let go of it, and the command says of what.

    It belongs to a folder that was replaced, or is the draft of a file that is no result: a command
    may succeed without either, and the next one removes what is left.
    """
    said = [("remove", path) for path in Path(name).parents if _SET_ASIDE.fullmatch(path.name)]
    said += [("write", found[1]) for found in [_DRAFT.fullmatch(name)] if found]
    return any(
        re.search(rf"cannot {verb} (.*/)?{re.escape(str(of))} \(", text) for verb, of in said
    )


def _spread(count: int, most: int, chance: random.Random) -> list[int]:
    """So many different numbers from 0 to `most`: both ends, and one of each equal part."""
    if count <= 0:
        return []
    edges = [round(most * n / count) for n in range(count + 1)]
    parts = zip(edges[:-1], edges[1:], strict=True)
    inner = [chance.randint(low, max(low, high - 1)) for low, high in parts]
    return sorted({0, *inner[1:]} if count > 1 else {inner[0]})


def _pretend_room() -> None:
    import shutil

    usage = shutil.disk_usage("/")
    shutil.disk_usage = lambda path: usage._replace(free=10**12)


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "-", name)


def _print(text: str) -> None:
    print(text)
