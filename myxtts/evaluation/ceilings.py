"""What judges said of recordings before: kept by content, so that no recording is judged twice."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from myxtts import atomic
from myxtts.evaluation.asr import Recording

_FORMAT = 1


def default_folder() -> Path:
    """The folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "myxtts" / "ceilings"


class CeilingCache:
    """Answers of judges, a file for each, named by judge and recording.

    A judge's `identity` covers its weights, its version and its settings. With `is_fresh` nothing
    is read, and everything is written anew. A file that is damaged counts as absent.
    """

    def __init__(self, folder: Path | None = None, is_fresh: bool = False):
        self.folder, self.is_fresh = folder or default_folder(), is_fresh

    def recall(self, identity: str, recording: Recording) -> Any | None:
        """Return what a judge has said of a recording, or None if that is not known."""
        if self.is_fresh:
            return None
        try:
            found = json.loads(self._path(identity, recording).read_text(encoding="utf-8"))
            answer, digest = found["answer"], found["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if digest == _digest(answer) else None

    def keep(self, identity: str, recording: Recording, answer: Any) -> None:
        """Keep what a judge said, unless there is no place to."""
        path = self._path(identity, recording)
        text = json.dumps({"answer": answer, "sha256": _digest(answer)}, ensure_ascii=False)
        with contextlib.suppress(OSError):  # the next evaluation judges again, which costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, f"{text}\n".encode())

    def _path(self, identity: str, recording: Recording) -> Path:
        samples, rate = recording
        content = np.ascontiguousarray(samples, np.float32).tobytes()
        heard = hashlib.sha256(content + f"|{rate}".encode()).hexdigest()
        judge = hashlib.sha256(f"{_FORMAT}|{identity}".encode()).hexdigest()
        return self.folder / judge[:16] / f"{heard}.json"


def answers(
    cache: CeilingCache | None,
    identity: Callable[[], str],
    recordings: Sequence[Recording],
    is_kept: Sequence[bool],
    ask: Callable[[list[Recording]], Sequence[Any]],
) -> list[Any]:
    """Ask a judge about recordings; of those that are kept, only about what is not known yet."""
    if cache is None:
        return list(ask(list(recordings)))
    judge = identity()
    found = [
        cache.recall(judge, one) if kept else None
        for one, kept in zip(recordings, is_kept, strict=True)
    ]
    unknown = [number for number, answer in enumerate(found) if answer is None]
    asked = ask([recordings[number] for number in unknown]) if unknown else []
    for number, answer in zip(unknown, asked, strict=True):
        found[number] = answer
        if is_kept[number]:
            cache.keep(judge, recordings[number], answer)
    return found


def _digest(answer: Any) -> str:
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()
