"""Long recordings into a corpus of clips without texts; resumable.

A corpus has `wavs/`, the table `slices.csv`, and for each recording `slices/NAME.json`: where it is
cut. That file is written before the first clip, so a run that was stopped goes on with the clips
that are missing.
"""

import hashlib
import logging
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from myxtts.audio.encode import encode_audio
from myxtts.audio.io import AudioError, open_blocks, read_info
from myxtts.audio.slice_options import AUTO, LEVEL, VOICE, SliceOptions
from myxtts.audio.slicing import Levels, Slice, cut, find_slices, has_quiet_parts, measure_levels
from myxtts.audio.voice_activity import find_voice, has_detector
from myxtts.data.corpus.recordings import EXTENSIONS
from myxtts.errors import UserError
from myxtts.files import open_regular
from myxtts.monitoring.progress import Progress, progress
from myxtts.workflows.slice_plans import (
    WAVS,
    Plan,
    read_plans,
    write_part,
    write_plan,
    write_table,
)

logger = logging.getLogger(__name__)

# What libsndfile reads and recorders write, besides what a corpus is made of.
LONG_EXTENSIONS = (*EXTENSIONS, ".aif", ".aiff", ".au", ".caf", ".oga", ".rf64", ".w64")


@dataclass(frozen=True, slots=True)
class Sliced:
    """What a call did: the plans of its recordings, clips that are new, files without use."""

    corpus: Path
    plans: tuple[Plan, ...]
    written: int
    failed: tuple[AudioError, ...]
    repeated: tuple[str, ...]  # files with the bytes of another one

    def summary(self) -> str:
        """How many clips there are, and what was dropped and why."""
        clips = sum(len(plan.clips()) for plan in self.plans)
        seconds = sum(plan.seconds(plan.clips().values()) for plan in self.plans)
        total = sum(plan.frames / plan.sample_rate for plan in self.plans)
        lines = [
            f"{self.corpus}: {_counted(clips, 'clip')}, {_minutes(seconds)} of "
            f"{_minutes(total)} in {_counted(len(self.plans), 'recording')} "
            f"({self.written:,} written now, {clips - self.written:,} were there)"
        ]
        pauses = total - sum(plan.seconds(plan.slices) for plan in self.plans)
        lines.append(f"  {'pauses':<20}  {_minutes(pauses)}")
        for reason, (count, lost) in self.dropped().items():
            lines.append(f"  {'dropped: ' + reason:<20}  {count:,} parts, {_minutes(lost)}")
        lines += [f"  {path}: the same recording again, skipped" for path in self.repeated]
        return "\n".join(lines)

    def dropped(self) -> dict[str, tuple[int, float]]:
        """The number of parts and their seconds by reason, the most frequent first."""
        counts: Counter[str] = Counter()
        seconds: Counter[str] = Counter()
        for plan in self.plans:
            for one in plan.slices:
                if one.dropped:
                    counts[one.dropped] += 1
                    seconds[one.dropped] += plan.seconds([one])
        return {reason: (count, seconds[reason]) for reason, count in counts.most_common()}


def slice_recordings(
    recordings: Sequence[str | os.PathLike[str]],
    corpus: str | os.PathLike[str],
    options: SliceOptions | None = None,
    format: str = "flac",
) -> Sliced:
    """Cut recordings, files or folders of them, at their pauses into the clips of a corpus.

    What is finished is not done again. A recording that cannot be read is reported in the end.
    """
    corpus = Path(corpus).expanduser()
    paths = find_recordings(recordings, corpus)
    known = read_plans(corpus)
    plans, failed, repeated = _plan_all(paths, corpus, known, options or SliceOptions(), format)
    if not plans:
        raise failed[0]
    write_table({**known, **{plan.name: plan for plan in plans}}, corpus)
    return Sliced(corpus, tuple(plans), _write_clips(plans, corpus), tuple(failed), repeated)


def find_recordings(recordings: Sequence[str | os.PathLike[str]], corpus: Path) -> list[Path]:
    """All files that are named, and those of folders by their extensions; none of the corpus."""
    inside = os.path.realpath(corpus)
    found: dict[str, Path] = {}
    for one in recordings:
        place = Path(one).expanduser()
        if not place.exists():
            raise UserError(f"there is no recording {place}: name a file, or a folder of them")
        files = list(_files_below(place, inside)) if place.is_dir() else [place]
        if not files:
            raise UserError(
                f"there is no recording ({' '.join(LONG_EXTENSIONS)}) in {place}: name another "
                "folder, or the files themselves"
            )
        for file in files:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _files_below(folder: Path, excluded: str) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(here, name)) != excluded
        )
        if os.path.realpath(here) == excluded:
            continue
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith(LONG_EXTENSIONS):
                yield Path(here, name)


def _plan_all(
    paths: Sequence[Path],
    corpus: Path,
    known: dict[str, Plan],
    options: SliceOptions,
    format: str,
) -> tuple[list[Plan], list[AudioError], tuple[str, ...]]:
    """Decide where recordings are cut, reading those that are new."""
    planner = _Planner(corpus, known, options, format)
    plans: dict[str, Plan] = {}
    failed: list[AudioError] = []
    repeated: list[str] = []
    with progress("finding pauses", "s of audio") as report:
        clock = _Clock(report, paths, failed)
        for path in clock.readable:
            try:
                plan = planner.plan(path, clock.reading(path))
            except AudioError as error:
                failed.append(error)
                continue
            if plan.name in plans:
                repeated.append(str(path))
            plans.setdefault(plan.name, plan)
            clock.finish(path)
    return list(plans.values()), failed, tuple(repeated)


class _Planner:
    """Knows recordings by their bytes: a file may be moved, and its plan still holds."""

    def __init__(self, corpus: Path, known: dict[str, Plan], options: SliceOptions, format: str):
        self._corpus, self._options, self._format = corpus, options, format
        self._by_content = {plan.sha256: plan for plan in known.values()}
        self._by_source = {plan.source: plan for plan in known.values()}
        self._seen: set[str] = set()  # in this call
        clips = (corpus / WAVS).glob("*-0001.*")
        names = {*known, *(path.stem.removesuffix("-0001") for path in clips)}
        self._taken = {name.casefold() for name in names}

    def plan(self, path: Path, report: Callable[[int], object]) -> Plan:
        """The plan of a recording, which is read where it is new."""
        source, content = os.path.abspath(path), _sha256(path)
        plan = self._by_content.get(content)
        if plan is not None:
            _check_options(plan, self._options, self._format, self._corpus)
            if source == plan.source or content in self._seen:
                return plan
            plan = replace(plan, source=source)
        else:
            _check_unchanged(self._by_source.get(source), self._corpus)
            with open_blocks(path) as (info, blocks):
                levels = measure_levels(info, blocks, report)
            found = tuple(find_slices(levels, self._options, _voice(path, levels, self._options)))
            name = _new_name(path, self._taken)
            facts = (name, source, content, info.sample_rate, levels.frames, self._format)
            plan = Plan(*facts, self._options, found)
        self._by_content[content] = plan
        self._seen.add(content)
        write_plan(plan, self._corpus)
        return plan


def _voice(path: Path, levels: Levels, options: SliceOptions) -> np.ndarray | None:
    """Where somebody speaks in a recording, if that is to tell its pauses; read a second time."""
    if options.pauses_by == LEVEL or options.threshold is not None:
        return None
    if options.pauses_by == AUTO:
        longest = options.longest * levels.sample_rate
        if has_quiet_parts(levels) or levels.frames <= longest:
            return None
        if not has_detector():
            advice = "run pip install 'myxtts[speakers]', whose voice detector may find them"
            logger.warning("%s: it has no quiet parts, and so no pauses: %s", path, advice)
            return None
    with open_blocks(path) as (_, blocks):
        voice = find_voice(levels, blocks)
    if options.pauses_by == AUTO and voice.any():
        logger.info("%s: noise hides the pauses, so the voice detector finds them", path)
    return voice if options.pauses_by == VOICE or voice.any() else None


class _Clock:
    """Reports the seconds of several recordings as one job."""

    def __init__(self, report: Progress, paths: Sequence[Path], failed: list[AudioError]):
        self._report, self._done = report, 0.0
        self._infos = {}
        for path in paths:
            try:
                with open_blocks(path) as (info, _):
                    self._infos[path] = info
            except AudioError as error:
                failed.append(error)
        self.readable = list(self._infos)
        self._total = sum(info.seconds for info in self._infos.values())

    def reading(self, path: Path) -> Callable[[int], object]:
        """A function that is told how many samples of a recording are read."""
        rate = self._infos[path].sample_rate
        return lambda frames: self._show(self._done + frames / rate)

    def finish(self, path: Path) -> None:
        self._done += self._infos[path].seconds
        self._show(self._done)

    def _show(self, seconds: float) -> None:
        self._report(round(seconds), round(self._total), seconds)


def _check_unchanged(before: Plan | None, corpus: Path) -> None:
    if before is not None:
        raise UserError(
            f"{before.source} has changed since it was cut into {corpus}: name another folder with "
            "-o, or give the recording another name"
        )


def _check_options(plan: Plan, options: SliceOptions, format: str, corpus: Path) -> None:
    """Other clips under the same names would get the texts of these."""
    before = {**asdict(plan.options), "format": plan.format}
    now = {**asdict(options), "format": format}
    other = [
        f"{name} {before[name]} (now {now[name]})" for name in now if before[name] != now[name]
    ]
    if other:
        raise UserError(
            f"{plan.source} was cut into {corpus} with {', '.join(other)}: give the same options, "
            "or name another folder with -o"
        )


def _new_name(path: Path, taken: set[str]) -> str:
    """The file's name in letters that ids may have, with a number where it is taken."""
    name = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", path.stem)).strip("-.")
    name = first = name or "recording"
    number = 1
    while name.casefold() in taken:
        number += 1
        name = f"{first}-{number}"
    taken.add(name.casefold())
    return name


def _write_clips(plans: Sequence[Plan], corpus: Path) -> int:
    """Write the clips that are missing; return their number."""
    missing = {plan.name: _missing(plan, corpus) for plan in plans}
    work = [plan for plan in plans if missing[plan.name]]
    failed: list[AudioError] = []
    written = 0
    with progress("writing clips", "s of audio") as report:
        paths = {plan.name: Path(plan.source) for plan in work}
        clock = _Clock(report, list(paths.values()), failed)
        if failed:
            raise failed[0]
        for plan in work:
            path, ids = paths[plan.name], {one: clip for clip, one in missing[plan.name].items()}
            with open_blocks(path) as (info, blocks):
                for one, samples in cut(blocks, list(ids), clock.reading(path)):
                    content = encode_audio(samples, info.sample_rate, plan.format)
                    write_part(plan.clip_path(ids[one], corpus), content)
                    written += 1
            clock.finish(path)
    return written


def _missing(plan: Plan, corpus: Path) -> dict[str, Slice]:
    return {
        clip: one
        for clip, one in plan.clips().items()
        if not _is_whole(plan.clip_path(clip, corpus), one)
    }


def _is_whole(path: Path, one: Slice) -> bool:
    try:
        return read_info(path).frames == one.end - one.start
    except AudioError:
        return False


def _sha256(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
