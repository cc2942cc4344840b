"""Attacks the program in thousands of small cases, and counts what was lost.

    python benchmarks/drill.py                        # some minutes: a sample of every part
    python benchmarks/drill.py --share 1              # about an hour: everything (make drill)
    python benchmarks/drill.py kills flips --seed 7   # some parts, with other choices

A case that has ended is written to FOLDER/results.jsonl, so a drill that is stopped resumes with
the next case. The table at the end counts every case by what was attacked and how it ended. The
exit code is 1 where anything was lost, wrong, unbounded, or ended in a traceback.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.drills import children  # noqa: E402
from benchmarks.drills.cases import (  # noqa: E402
    BAD,
    CRASHED,
    GOOD,
    HUNG,
    TRACEBACK,
    UNBOUNDED,
    Case,
    Outcome,
    Size,
)
from benchmarks.drills.measuring import Clock, Peak  # noqa: E402

PARTS = ("kills", "power", "flips", "disk", "hostile", "long_runs", "pairs")
AT_ONCE = 2


def main() -> int:
    arguments = _parse()
    folder = Path(arguments.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    children.import_everything()
    size = Size(arguments.share)
    for name in arguments.parts or PARTS:
        drill(name, folder, arguments.seed, size)
    return print_table(read_results(folder), arguments)


def drill(name: str, folder: Path, seed: int, size: Size) -> None:
    """Run those cases of a part that have not run yet."""
    part = importlib.import_module(f"benchmarks.drills.{name}")
    own = folder / f"{name}-{seed}-{size.share:g}"
    if not (own / "ready").exists():
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        print(f"{name}: {part.TITLE}; setting up", file=sys.stderr, flush=True)
        made = children.call(lambda: part.set_up(own, seed, size), own / "set_up.log", 1800)
        if made.code:
            sys.exit(f"{name} cannot be set up (exit code {made.code}):\n{made.text[-4000:]}")
        (own / "ready").touch()
    key = f"{name}-{seed}-{size.share:g}"
    done = {line["case"] for line in read_results(folder) if line["part"] == key}
    waiting = [one for one in part.cases(own, seed, size) if one.name not in done]
    print(f"{name}: {len(waiting)} cases, {len(done)} done before", file=sys.stderr, flush=True)
    with open(folder / "results.jsonl", "a", encoding="utf-8") as results:
        for number, line in enumerate(run_all(waiting, own), 1):
            line = {"part": key, **line}
            results.write(json.dumps(line, ensure_ascii=False) + "\n")
            results.flush()
            if line["result"] in BAD:
                print(f"{name}: {line['case']}: {line['result']}: {line['detail']}", flush=True)
            if number % 50 == 0:
                print(f"{name}: {number} of {len(waiting)}", file=sys.stderr, flush=True)


def run_all(cases: Iterable[Case], folder: Path) -> Iterator[dict]:
    """Run cases in processes of their own, some at a time, and yield how each ended."""
    waiting, running = iter(cases), {}
    while True:
        while len(running) < AT_ONCE and (case := next(waiting, None)):
            running[_Running(case, folder)] = None
        if not running:
            return
        ended = next((one for one in running if one.poll()), None)
        if ended is None:
            time.sleep(0.002)
            continue
        del running[ended]
        yield ended.line


class _Running:
    """A case that runs: one process, one folder, one log, one file with its outcome."""

    def __init__(self, case: Case, folder: Path):
        self.case, self.line = case, {}
        self.folder = Path(tempfile.mkdtemp(prefix="case-", dir=folder))
        self.log, self.answer = self.folder / "log", self.folder / "outcome.json"
        self.began = time.monotonic()
        self.pid = children.start(self._run, self.log)
        self.clock = Clock(self.pid)

    def poll(self) -> bool:
        found, status, usage = os.wait4(self.pid, os.WNOHANG)
        is_late = not found and self.clock.seconds() > self.case.seconds
        if is_late:
            children.kill_group(self.pid)
            _, status, usage = os.wait4(self.pid, 0)
        elif not found:
            return False
        outcome, peak = self._judge(os.waitstatus_to_exitcode(status), is_late)
        if peak is None:  # it was killed: all of what it held, for nobody measured its start
            peak = usage.ru_maxrss / 1024
        self.line = {
            "case": self.case.name,
            "kind": self.case.kind,
            "result": outcome.result,
            "detail": outcome.detail,
            "seconds": round(time.monotonic() - self.began, 3),
            "cpu": round(usage.ru_utime + usage.ru_stime, 3),
            "megabytes": round(peak, 1),
            "counts": outcome.counts or {outcome.result: 1},
        }
        if outcome.result not in BAD:
            shutil.rmtree(self.folder, ignore_errors=True)
        return True

    def _run(self) -> int:
        work = self.folder / "work"
        work.mkdir()
        peak = Peak()
        outcome = self.case.run(work)
        answer = [outcome.result, outcome.detail, outcome.counts, peak.with_children()]
        self.answer.write_text(json.dumps(answer), encoding="utf-8")
        return 0

    def _judge(self, code: int, is_late: bool) -> tuple[Outcome, float | None]:
        """How the case ended, and its peak of memory in megabytes if it could tell."""
        where = f"see {self.log}"
        if is_late:
            return Outcome(HUNG, f"more than {self.case.seconds:.0f} s; {where}"), None
        if not self.answer.exists():
            result = TRACEBACK if code == children.CRASH else CRASHED
            return Outcome(result, f"exit code {code}; {where}"), None
        *values, peak = json.loads(self.answer.read_text(encoding="utf-8"))
        outcome = Outcome(*values)
        if outcome.result not in (*GOOD, *BAD):
            raise ValueError(f"{self.case.name} ended with {outcome.result!r}")
        if outcome.result in BAD:
            outcome = Outcome(outcome.result, f"{outcome.detail}; {where}", outcome.counts)
        elif peak > self.case.megabytes:
            outcome = Outcome(UNBOUNDED, f"{peak:.0f} MB of memory; {where}")
        return outcome, peak


def read_results(folder: Path) -> list[dict]:
    """What has ended so far; a line that a kill tore is no result."""
    path, found = folder / "results.jsonl", []
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def print_table(results: list[dict], arguments: argparse.Namespace) -> int:
    """Print a row for each kind of attack; 1 where anything ended as it must not."""
    parts = [f"{name}-{arguments.seed}-{arguments.share:g}" for name in arguments.parts or PARTS]
    results = [line for line in results if line["part"] in parts]
    kinds = dict.fromkeys((line["part"], line["kind"]) for line in results)
    print(f"{'attack':58} {'cases':>6} {'bad':>4}  how they ended")
    for part, kind in kinds:
        own = [line for line in results if (line["part"], line["kind"]) == (part, kind)]
        counts = count_results(own)
        bad = sum(counts[result] for result in BAD)
        ended = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
        total = sum(counts.values())
        print(f"{part.partition('-')[0] + ': ' + kind:58} {total:6} {bad:4}  {ended}")
    counts = count_results(results)
    bad, total = sum(counts[result] for result in BAD), sum(counts.values())
    hours = sum(line["seconds"] for line in results) / 3600
    print(f"{total} cases, {bad} bad; {hours:.2f} hours of cases, {AT_ONCE} at a time")
    return 1 if bad or not results else 0


def count_results(lines: list[dict]) -> dict[str, int]:
    """How many attacks ended how; a case of many inputs counts each of them."""
    return {r: sum(line["counts"].get(r, 0) for line in lines) for r in (*GOOD, *BAD)}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--share", type=float, default=0.05, help="of all cases (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all choices (%(default)s)")
    default = Path(tempfile.gettempdir()) / "myxtts-drill"
    parser.add_argument("--folder", default=default, help="where it works (%(default)s)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: choose from {', '.join(PARTS)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
