"""Two voices on the same sentences: side by side, blind, and in figures with their intervals."""

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.audio.io import read_audio, read_info, write_wav
from myxtts.errors import UserError
from myxtts.evaluation.listening import at_one_level, balanced_sides
from myxtts.evaluation.listening_tally import preference
from myxtts.serving.studio.corpora import Corpora
from myxtts.serving.studio.jobs import Jobs, shown
from myxtts.serving.studio.places import (
    COMPARISONS,
    Places,
    check_title,
    read_card,
    write_card,
)
from myxtts.text.scripts import is_plain
from myxtts.workflows import review

COMPARE = "compare"
MOST_SENTENCES, LONGEST_SENTENCE = 50, 500
SIDES = ("a", "b")
_MOST_REFERENCES = 8
_LINES, _METADATA, _FIGURES = "lines.txt", "metadata.csv", "evaluation.json"
_LIKENESS = "voices"  # the part of an evaluation that measures it
_LEVEL, _REFERENCES, _ANSWERS = "level", "references", "answers.json"
_SOURCE = "speech"  # of the measures of an evaluation


@dataclass(frozen=True, slots=True)
class Side:
    """A voice of a comparison, as `myxtts synthesize` takes it."""

    id: str
    title: str
    path: Path
    speaker: str | None = None
    reference: Path | None = None

    def words(self) -> list[str]:
        found = ["--voice", str(self.path)]
        if self.reference:
            return [*found, "--reference", str(self.reference)]
        return [*found, "--speaker", self.speaker] if self.speaker else found


class Comparisons:
    """The comparisons in a studio's folder."""

    def __init__(self, places: Places, jobs: Jobs, corpora: Corpora):
        self._places, self._jobs, self._corpora = places, jobs, corpora
        self._lock = threading.Lock()

    def all(self) -> list[dict[str, Any]]:
        found = [self._facts(name) for name in self._places.names(COMPARISONS)]
        return sorted(found, key=lambda one: -one["created"])

    def create(
        self, sides: Sequence[Side], sentences: Sequence[str], language: str, corpus: str | None
    ) -> dict[str, Any]:
        """Have both voices say the same sentences, and both be judged."""
        if sides[0].id == sides[1].id:
            raise UserError("both are the same voice: choose another one")
        lines = check_sentences(sentences)
        clips = self._clips_of(corpus) if corpus else []
        title = check_title(f"{sides[0].title} · {sides[1].title}"[:60])
        named = {f"{number:04d}": line for number, line in enumerate(lines, 1)}
        card = {
            **{"title": title, "created": time.time(), "language": language},
            "sides": [{"id": one.id, "title": one.title} for one in sides],
            "sentences": named,
            "corpus": corpus,
        }
        with self._places.making(COMPARISONS, title) as folder:
            self._jobs.forget(subject_of(folder.name))
            with atomic.explained(folder):
                text = "".join(f"{id}|{line}\n" for id, line in named.items())
                atomic.write(folder / _LINES, text.encode())
                self._copy(clips, folder / _REFERENCES)
            write_card(folder, card)
            steps = list(_steps(folder, sides, language, bool(clips)))
            self._jobs.start(COMPARE, subject_of(folder.name), title, steps)
        return self.look(folder.name)

    def look(self, name: str) -> dict[str, Any]:
        """What is known of a comparison so far."""
        folder = self._places.find(COMPARISONS, name)
        facts = self._facts(name)
        job = facts["job"]
        ready = [one for one in SIDES if (folder / one / _METADATA).is_file()]
        return {
            **facts,
            "ready": ready,
            "figures": _figures(folder),
            "no_likeness": _no_likeness(folder),
            "log": self._jobs.log(job["id"]) if job else "",
            **self._tally(folder),
        }

    def remove(self, name: str) -> None:
        folder = self._places.find(COMPARISONS, name)
        refusal = "this comparison is being made: stop it first"
        with self._jobs.unused(subject_of(name), refusal), atomic.explained(folder):
            atomic.remove_folder(folder)

    def clip(self, name: str, side: str, number: int) -> Path:
        """A sentence by one voice, as loud as by the other one."""
        folder = self._places.find(COMPARISONS, name)
        ids = list(read_card(folder).get("sentences", {}))
        if side not in SIDES or not 0 <= number < len(ids):
            raise HTTPException(404, "there is no such clip")
        with self._lock:
            if not (folder / _LEVEL).is_dir():
                _level(folder, ids)
        return folder / _LEVEL / side / f"{ids[number]}.wav"

    # Blind listening: which voice is first in a trial follows from the comparison's name.

    def trial_clip(self, name: str, number: int, place: int) -> Path:
        folder = self._places.find(COMPARISONS, name)
        order = _order(folder)
        if not 0 <= number < len(order) or place not in (0, 1):
            raise HTTPException(404, "there is no such clip")
        return self.clip(name, SIDES[order[number][place]], number)

    def answer(self, name: str, number: int, place: int | None) -> dict[str, Any]:
        """Note which of two clips somebody has preferred, if either."""
        folder = self._places.find(COMPARISONS, name)
        order = _order(folder)
        if not 0 <= number < len(order) or place not in (0, 1, None):
            raise HTTPException(404, "there is no such trial")
        with self._lock:
            answers = read_card(folder, _ANSWERS)
            answers[str(number)] = None if place is None else int(order[number][place])
            write_card(folder, answers, _ANSWERS)
        return self._tally(folder)

    def forget(self, name: str) -> None:
        """Begin the blind listening anew."""
        folder = self._places.find(COMPARISONS, name)
        write_card(folder, {}, _ANSWERS)

    def _tally(self, folder: Path) -> dict[str, Any]:
        """How many trials are answered; who was preferred is told when all are."""
        order, answers = _order(folder), read_card(folder, _ANSWERS)
        given = [answers[str(at)] for at in range(len(order)) if str(at) in answers]
        answered = [at for at in range(len(order)) if str(at) in answers]
        found: dict[str, Any] = {"answered": answered, "tally": None}
        if order and len(given) == len(order):
            counts = [sum(one == side for one in given) for side in (0, 1)]
            result = preference(counts[0], counts[1], len(given) - sum(counts))
            share = None
            if sum(counts):
                share = {"low": result.share.low, "value": result.share.value}
                share["high"] = result.share.high
            found["tally"] = {
                **{"first": counts[0], "second": counts[1], "neither": result.neither},
                **{"share": share, "p": result.p},
            }
        return found

    def _facts(self, name: str) -> dict[str, Any]:
        folder = self._places.of(COMPARISONS) / name
        card = read_card(folder)
        job = self._jobs.latest(subject_of(name))
        return {
            "id": name,
            "title": card.get("title") or name,
            "created": card.get("created") or 0,
            "language": card.get("language"),
            "corpus": card.get("corpus"),
            "sides": card.get("sides") or [],
            "sentences": list(card.get("sentences", {}).values()),
            "job": shown(job) if job else None,
        }

    def _clips_of(self, corpus: str) -> list[Path]:
        clips = review.read_clips(self._corpora.ready(corpus))
        spoken = [one.path for one in clips if one.text]
        return spoken[:: max(1, len(spoken) // _MOST_REFERENCES)][:_MOST_REFERENCES]

    def _copy(self, clips: Sequence[Path], target: Path) -> None:
        for number, path in enumerate(clips):
            target.mkdir(exist_ok=True)
            shutil.copyfile(path, target / f"reference-{number}{path.suffix}")


def subject_of(name: str) -> str:
    return f"{COMPARISONS}/{name}"


def check_sentences(sentences: Sequence[str]) -> list[str]:
    """Sentences that a file of lines can hold, tidied."""
    found = [" ".join(one.replace("|", " ").split()) for one in sentences]
    found = list(dict.fromkeys(one for one in found if one))
    if not 1 <= len(found) <= MOST_SENTENCES:
        raise UserError(f"write 1 to {MOST_SENTENCES} different sentences, one a line")
    for one in found:
        if len(one) > LONGEST_SENTENCE or not is_plain(one):
            raise UserError(f"a sentence has at most {LONGEST_SENTENCE} printable characters")
    return found


def _steps(
    folder: Path, sides: Sequence[Side], language: str, has_references: bool
) -> "list[list[str]]":
    steps = []
    for side, one in zip(SIDES, sides, strict=True):
        words = ["synthesize", *one.words(), "--text-file", str(folder / _LINES)]
        steps.append([*words, "--language", language, "-o", str(folder / side)])
    for side in SIDES:
        texts = str(folder / side / _METADATA)
        words = ["evaluate", "--wavs", str(folder / side), "--texts", texts]
        words += ["--language", language, "-o", str(folder / f"evaluation-{side}")]
        if has_references:
            words += ["--references", str(folder / _REFERENCES)]
        steps.append(words)
    return steps


def _order(folder: Path) -> list[list[int]]:
    """Which voice is at each place of each trial."""
    count = len(read_card(folder).get("sentences", {}))
    if not count:
        return []
    seed = list(folder.name.encode())
    return balanced_sides(count, len(SIDES), np.random.default_rng(seed)).tolist()


def _level(folder: Path, ids: Sequence[str]) -> None:
    """Write the clips of both voices at one loudness and one rate."""
    paths = [[folder / side / f"{id}.wav" for id in ids] for side in SIDES]
    if not all(path.is_file() for some in paths for path in some):
        raise HTTPException(404, "these sentences have not been spoken yet")
    rate = max(read_info(path).sample_rate for some in paths for path in some)
    clips = at_one_level([[read_audio(path, rate) for path in some] for some in paths], rate)
    target = folder / _LEVEL
    with atomic.explained(target), atomic.new_folder(target) as draft:
        for side, some in zip(SIDES, clips, strict=True):
            (draft / side).mkdir()
            for id, samples in zip(ids, some, strict=True):
                write_wav(draft / side / f"{id}.wav", samples, rate)


def _figures(folder: Path) -> list[dict[str, Any]]:
    """The measures of both voices of which more or less is better, with their intervals."""
    found = [read_card(folder / f"evaluation-{side}", _FIGURES) for side in SIDES]
    if not all(found):
        return []
    rows = []
    for name in dict.fromkeys(name for one in found for name in one.get("measures", {})):
        intervals = [one["measures"].get(name, {}).get(_SOURCE) for one in found]
        if any(one and one.get("value") is not None for one in intervals) and _better(name):
            rows.append(
                {"name": name, "title": _title(name), "better": _better(name)}
                | dict(zip(SIDES, intervals, strict=True))
            )
    return rows


def _no_likeness(folder: Path) -> str | None:
    """Why the likeness to the speaker of a corpus could not be measured, where one was chosen."""
    if not read_card(folder).get("corpus"):
        return None
    found = (read_card(folder / f"evaluation-{side}", _FIGURES) for side in SIDES)
    reasons = (one.get("not_measured", {}).get(_LIKENESS) for one in found)
    return next((str(reason) for reason in reasons if reason), None)


def _title(name: str) -> str:
    from myxtts.evaluation.metrics.table import METRICS

    return METRICS[name].title if name in METRICS else name


def _better(name: str) -> str:
    from myxtts.evaluation.metrics.table import METRICS

    return str(METRICS[name].better or "") if name in METRICS else ""
