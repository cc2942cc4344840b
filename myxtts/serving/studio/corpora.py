"""The corpora of a studio: recordings that come in, clips that are cut, texts that are mended."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.audio.io import AudioError, open_blocks
from myxtts.errors import UserError
from myxtts.evaluation.asr import ASRS, WHISPER_FOLDER
from myxtts.serving.studio.jobs import Jobs, shown
from myxtts.serving.studio.places import (
    CORPORA,
    RECORDINGS,
    Places,
    check_title,
    plain_name,
    read_card,
    write_card,
)
from myxtts.serving.studio.receiving import Receiver, new_draft, remove_drafts
from myxtts.serving.studio.takes import Takes
from myxtts.text.languages import LANGUAGES
from myxtts.workflows import review
from myxtts.workflows.slice_plans import PLANS, WAVS, Plan, read_plans
from myxtts.workflows.transcribe import METADATA

DEMO = "demo"
_DEMO_STAMP = "demo.json"
_DEMO_SIZE = ("--speakers", "2", "--clauses", "240")
_MOST_PER_PAGE = 200
VIEWS = ("all", "doubtful", "untranscribed", "excluded")


class Corpora:
    """The corpora in a studio's folder."""

    def __init__(self, places: Places, jobs: Jobs):
        self._places, self._jobs = places, jobs
        self._lock, self._keeping = threading.Lock(), threading.Lock()
        self._checked: dict[str, tuple[Any, dict[str, tuple[str, str]] | str]] = {}
        self._receiver = Receiver()
        self.takes = Takes(places, self._receiver)
        remove_drafts([*places.of(RECORDINGS).glob("*"), *places.of(CORPORA).glob(f"*/{WAVS}")])

    def all(self) -> list[dict[str, Any]]:
        return [self.facts(name) for name in self._places.names(CORPORA)]

    def facts(self, name: str) -> dict[str, Any]:
        """What a corpus is called, its language, and what is done with it."""
        folder = self._places.find(CORPORA, name)
        card = {**read_card(folder, _DEMO_STAMP), **read_card(folder)}
        job = self._jobs.latest(subject_of(name))
        clips, texts = _count(folder)
        return {
            "id": name,
            "title": str(card.get("title") or name),
            "language": _language(card),
            "clips": clips,
            "texts": texts,
            "recordings": sum(1 for _ in self._recordings(name)),
            "job": shown(job) if job else None,
        }

    def create(self, title: str, language: str) -> dict[str, Any]:
        if language not in LANGUAGES:
            raise UserError(f"there is no language {language!r} here: {', '.join(LANGUAGES)}")
        title = check_title(title)
        card = {"title": title, "language": language, "created": time.time()}
        # Recordings without a corpus are another one's, whose folder somebody has removed.
        with self._places.making(CORPORA, title, RECORDINGS) as folder:
            self._jobs.forget(subject_of(folder.name))
            write_card(folder, card)
            # By this folder `myxtts data slice` knows a corpus that it may fill.
            with atomic.explained(folder):
                (folder / PLANS).mkdir()
        return self.facts(folder.name)

    def remove(self, name: str) -> None:
        """Delete a corpus with its recordings; no command may be using it."""
        folder, recordings = self._places.find(CORPORA, name), self._places.of(RECORDINGS) / name
        refusal = "a job works on this corpus, or trains on it: wait until it has ended, or stop it"
        with self._jobs.unused(subject_of(name), refusal):
            # In this order: what a kill leaves is a corpus that can be deleted again.
            self.takes.forget(name)
            for one in (recordings, folder):
                if one.is_dir():
                    with atomic.explained(one):
                        atomic.remove_folder(one)

    def make_demo(self) -> None:
        """Have the built-in corpus made, where nothing is in its place."""
        if DEMO in self._places.names(CORPORA):
            raise HTTPException(409, "the built-in corpus is there already")
        target = str(self._places.of(CORPORA) / DEMO)
        steps = [["data", "demo", target, *_DEMO_SIZE]]
        self._jobs.start("demo", subject_of(DEMO), "built-in corpus", steps)

    # Recordings.

    def recordings(self, name: str) -> list[dict[str, Any]]:
        """The long recordings of a corpus, and whether each has been cut."""
        cut = self._cut(name)
        found = []
        for path in sorted(self._recordings(name)):
            plan = cut.get(path.stem)
            dropped: dict[str, int] = {}
            for one in plan.slices if plan else ():
                if one.dropped:
                    dropped[one.dropped] = dropped.get(one.dropped, 0) + 1
            clips = len(plan.clips()) if plan else None
            seconds = _seconds(path)
            found.append(
                {"name": path.stem, "seconds": seconds, "clips": clips, "dropped": dropped}
            )
        return found

    async def add_recording(self, name: str, filename: str, content: AsyncIterator[bytes]) -> str:
        """Take a long recording, to be cut later; return its name."""
        self._places.find(CORPORA, name)
        folder = self._places.of(RECORDINGS) / name
        stem = plain_name(Path(filename).stem) or "recording"
        async with self._receiver.received(folder, content) as (decoded, _):
            taken = self._cut(name)
            return (await asyncio.to_thread(self._publish, decoded, stem, taken)).stem

    def keep_take(self, name: str, take: str, text: str) -> str:
        """Make a clip of a sentence that was read aloud; return its id."""
        corpus = self._places.find(CORPORA, name)
        self._check_idle(name)
        text = review.check_text(text)
        with self._keeping:  # two tabs may keep the same take
            clip = self._make_clip(corpus, self.takes.sound(take), text)
            self.takes.remove(take)
        return clip

    def _make_clip(self, corpus: Path, sound: Path, text: str) -> str:
        """Copy a recording into a corpus with its text: both, or neither."""
        draft = new_draft(corpus / WAVS, "flac")
        with atomic.explained(draft):
            draft.parent.mkdir(exist_ok=True)
            try:
                shutil.copyfile(sound, draft)
                atomic.sync(draft)
                path = self._publish(draft, "read")
            finally:
                draft.unlink(missing_ok=True)
            try:
                self._edit(corpus, lambda: review.set_text(corpus, path.stem, text))
            except BaseException:
                path.unlink()
                raise
        return path.stem

    def _cut(self, name: str) -> dict[str, Plan]:
        """How recordings were cut, by their names; those that were removed since too."""
        try:
            plans = read_plans(self._places.of(CORPORA) / name).values()
        except UserError:
            return {}
        return {Path(plan.source).stem: plan for plan in plans}

    def _publish(self, decoded: Path, stem: str, taken: Collection[str] = ()) -> Path:
        """Give a recording a name that is free, and was not that of another one which was cut."""
        with self._lock:
            number, target = 1, decoded.with_name(f"{stem}.flac")
            names = {one.stem.casefold() for one in decoded.parent.iterdir()}
            names |= {one.casefold() for one in taken}
            while target.stem.casefold() in names:
                number += 1
                target = decoded.with_name(f"{stem}-{number}.flac")
            atomic.publish(decoded, target)
        return target

    def remove_recording(self, name: str, recording: str) -> None:
        """Delete a long recording; clips that were cut from it stay."""
        self._places.find(CORPORA, name)
        self._check_idle(name)
        path = self._recording(name, recording)
        with atomic.explained(path):
            path.unlink()

    def _recording(self, name: str, recording: str) -> Path:
        for path in self._recordings(name):
            if path.stem == recording:
                return path
        raise HTTPException(404, "there is no recording of that name")

    def _recordings(self, name: str) -> Iterator[Path]:
        folder = self._places.of(RECORDINGS) / name
        return folder.glob("[!.]*.flac") if folder.is_dir() else iter(())

    # Commands.

    def slice(self, name: str) -> dict[str, Any]:
        """Cut all recordings into clips."""
        corpus = self._places.find(CORPORA, name)
        if not self.recordings(name):
            raise UserError("there is no recording to cut: add one")
        source = str(self._places.of(RECORDINGS) / name)
        steps = [["data", "slice", source, "-o", str(corpus)]]
        return shown(self._jobs.start("slice", subject_of(name), name, steps))

    def transcribe(self, name: str) -> dict[str, Any]:
        """Have a recogniser write the texts that are missing."""
        corpus = self._places.find(CORPORA, name)
        language = self.language(name)
        if not can_transcribe(language):
            raise UserError(
                f"no recogniser for {language} is installed: type the texts, or start the server "
                f"with the folder of a Whisper or sherpa-onnx model in {WHISPER_FOLDER}"
            )
        steps = [["data", "transcribe", str(corpus), "--language", language, "--confidence"]]
        return shown(self._jobs.start("transcribe", subject_of(name), name, steps))

    def language(self, name: str) -> str:
        folder = self._places.find(CORPORA, name)
        return _language({**read_card(folder, _DEMO_STAMP), **read_card(folder)})

    def ready(self, name: str) -> Path:
        """The folder of a corpus that can be trained on, with every change applied."""
        corpus = self._places.find(CORPORA, name)
        self._check_idle(name)
        with self._lock:
            review.reapply(corpus)
        if _count(corpus)[1] < 2:
            raise UserError("this corpus has fewer than two clips with a text: add some")
        return corpus

    # Clips.

    def table(self, name: str, view: str, start: int, count: int) -> dict[str, Any]:
        """Some clips of a view, how many each view has, and what would be dropped."""
        corpus = self._places.find(CORPORA, name)
        with self._lock:
            if not self._jobs.is_busy(subject_of(name)):
                review.reapply(corpus)
            clips = review.read_clips(corpus)
            edits = len(review.read_edits(corpus))
        rejected = self._check(name, corpus)
        problem = rejected if isinstance(rejected, str) else None
        reasons = {} if isinstance(rejected, str) else rejected
        views = {
            "all": clips,
            "doubtful": [one for one in clips if one.suspicious or one.id in reasons],
            "untranscribed": [one for one in clips if not one.text and not one.is_excluded],
            "excluded": [one for one in clips if one.is_excluded],
        }
        chosen = views.get(view, clips)[start : start + min(count, _MOST_PER_PAGE)]
        return {
            "counts": {one: len(found) for one, found in views.items()},
            "clips": [_row(one, reasons.get(one.id)) for one in chosen],
            "dropped": _summed(reasons),
            "problem": problem,
            "edits": edits,
        }

    def clip(self, name: str, clip: str) -> Path:
        """The recording of a clip."""
        for one in review.read_clips(self._places.find(CORPORA, name)):
            if one.id == clip:
                return one.path
        raise HTTPException(404, "there is no clip of that name")

    def change(self, name: str, clip: str, text: str | None, excluded: bool | None) -> None:
        """Write a clip's text, exclude it, or include it again."""
        corpus = self._places.find(CORPORA, name)
        if text is None and excluded is None:
            raise UserError("say what to change: the text, or whether the clip is excluded")
        self.clip(name, clip)
        if text is not None:
            self._edit(corpus, lambda: review.set_text(corpus, clip, text))
        elif excluded:
            self._edit(corpus, lambda: review.exclude(corpus, clip))
        else:
            self._edit(corpus, lambda: review.include(corpus, clip))

    def undo(self, name: str) -> str | None:
        """Take the latest change back; return the clip that it was of."""
        corpus = self._places.find(CORPORA, name)
        with self._lock:
            last = review.undo(corpus)
        return last.clip if last else None

    def _edit(self, corpus: Path, change: Any) -> None:
        with self._lock:
            change()

    def _check(self, name: str, corpus: Path) -> dict[str, tuple[str, str]] | str:
        """What training would drop, looked at again when something has changed."""
        if not (corpus / METADATA).is_file():
            return {}
        state = (corpus / METADATA).stat().st_mtime_ns, _mtime(corpus / WAVS)
        known = self._checked.get(name)
        if known is None or known[0] != state:
            try:
                found: dict[str, tuple[str, str]] | str
                found = review.check_clips(corpus, self.language(name))
            except UserError as error:
                found = str(error)
            known = self._checked[name] = (state, found)
        return known[1]

    def _check_idle(self, name: str) -> None:
        if self._jobs.is_busy(subject_of(name)):
            raise HTTPException(409, "a job is working on this corpus: wait until it has ended")


def subject_of(name: str) -> str:
    return f"{CORPORA}/{name}"


def can_transcribe(language: str) -> bool:
    """Whether a recogniser for a language is at hand."""
    return bool(os.environ.get(WHISPER_FOLDER)) or (
        language in ASRS and find_spec("moonshine_voice") is not None
    )


def _language(card: dict[str, Any]) -> str:
    found = card.get("language")
    return found if found in LANGUAGES else "en"


def _row(clip: review.Clip, rejected: tuple[str, str] | None) -> dict[str, Any]:
    return {
        "id": clip.id,
        "text": clip.text or "",
        "seconds": _seconds(clip.path),
        "suspicious": clip.suspicious,
        "confidence": clip.confidence,
        "dropped": ": ".join(rejected) if rejected else "",
        "excluded": clip.is_excluded,
    }


def _summed(reasons: dict[str, tuple[str, str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for reason, _ in reasons.values():
        found[reason] = found.get(reason, 0) + 1
    return found


def _count(corpus: Path) -> tuple[int, int]:
    """The recordings in a corpus, and the lines of its metadata."""
    wavs = corpus / WAVS
    clips = sum(1 for one in os.scandir(wavs) if one.name[0] != ".") if wavs.is_dir() else 0
    try:
        texts = (corpus / METADATA).read_bytes().count(b"\n")
    except OSError:
        texts = 0
    return clips, texts


def _seconds(path: Path) -> float | None:
    try:
        with open_blocks(path) as (info, _):
            return round(info.seconds, 2)
    except AudioError:
        return None


def _mtime(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
