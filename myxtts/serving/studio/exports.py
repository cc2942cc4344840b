"""Voices in the forms of other players, made as jobs and downloaded as one file."""

import shutil
import threading
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.errors import UserError
from myxtts.serving.studio.jobs import FINISHED, Jobs, shown
from myxtts.serving.studio.places import EXPORTS, Places, plain_name, read_card, write_card
from myxtts.serving.voices import Served
from myxtts.workflows.exports.settings import TARGETS, WEIGHTS

_PIPER, _INSIDE = "piper", "voice"


class Exports:
    """The exports in a studio's folder."""

    def __init__(self, places: Places, jobs: Jobs):
        self._places, self._jobs = places, jobs
        self._lock = threading.Lock()

    def all(self) -> list[dict[str, Any]]:
        found = []
        for name in self._places.names(EXPORTS):
            card, job = (
                read_card(self._places.of(EXPORTS) / name),
                self._jobs.latest(_subject(name)),
            )
            known = {key: card.get(key) for key in ("voice", "target", "weights")}
            log = self._jobs.log(job.id) if job and not job.is_running else ""
            found.append({"id": name, **known, "job": shown(job) if job else None, "log": log})
        return found

    def create(self, served: Served, target: str, weights: str) -> None:
        """Begin to write a voice for another player."""
        if target not in TARGETS or weights not in WEIGHTS:
            raise UserError(f"a voice is exported to {', '.join(TARGETS)}, as {', '.join(WEIGHTS)}")
        stem = plain_name(served.name) or "voice"
        with self._places.making(EXPORTS, f"{stem} {target}") as folder:
            subject = _subject(folder.name)
            self._jobs.forget(subject)
            write_card(folder, {"voice": served.name, "target": target, "weights": weights})
            output = folder / _INSIDE / (f"{stem}.onnx" if target == _PIPER else stem)
            output.parent.mkdir()
            words = ["export", "--voice", str(served.path), "--to", target, "-o", str(output)]
            title = f"{served.name}: {target}"
            self._jobs.start("export", subject, title, [[*words, "--weights", weights]])

    def archive(self, name: str) -> Path:
        """The zip of an export that is finished, made when it is first asked for."""
        folder = self._places.find(EXPORTS, name)
        job = self._jobs.latest(_subject(name))
        if job is None or job.state != FINISHED:
            raise HTTPException(404, "this export has not finished")
        target = folder / f"{name}.zip"
        with self._lock, atomic.explained(target):
            if not target.exists():
                draft = shutil.make_archive(str(folder / ".draft"), "zip", folder / _INSIDE)
                atomic.publish(Path(draft), target)
        return target

    def remove(self, name: str) -> None:
        folder = self._places.find(EXPORTS, name)
        refusal = "this export is being made: stop it first"
        with self._jobs.unused(_subject(name), refusal), atomic.explained(folder):
            atomic.remove_folder(folder)


def _subject(name: str) -> str:
    return f"{EXPORTS}/{name}"
