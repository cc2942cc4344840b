"""Stored results of judges, by the content of recordings, so that none is judged twice."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from myxtts import atomic
from myxtts.evaluation.asr import Recording
from myxtts.evaluation.metrics.table import CEILINGS

_FORMAT = 1


def default_folder() -> Path:
    """The folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "myxtts" / "ceilings"


class CeilingCache:
    """Results of judges, one file each, named after judge and recording.

    A judge's `identity` covers its weights, its version and its settings. With `is_fresh` nothing
    is read, and everything is written again. A damaged file counts as absent.
    """

    def __init__(self, folder: Path | None = None, is_fresh: bool = False):
        self.folder, self.is_fresh = folder or default_folder(), is_fresh

    def recall(self, identity: str, recording: Recording) -> Any | None:
        """Return the stored result of a judge for a recording, or None."""
        if self.is_fresh:
            return None
        try:
            found = json.loads(self._path(identity, recording).read_text(encoding="utf-8"))
            answer, digest = found["answer"], found["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if digest == _digest(answer) else None

    def keep(self, identity: str, recording: Recording, answer: Any) -> None:
        """Store the result of a judge, if the folder can be written."""
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
    sources: Mapping[str, Sequence[Recording]],
    ask: Callable[[list[Recording]], Sequence[Any]],
) -> dict[str, list[Any]]:
    """Judge recordings, by source; ceilings only where no result is stored."""
    judge = identity() if cache else ""
    stored = {source: cache for source in CEILINGS if cache}
    found = {
        source: [stored[source].recall(judge, one) if source in stored else None for one in own]
        for source, own in sources.items()
    }
    unknown = [
        (source, number)
        for source, own in found.items()
        for number, answer in enumerate(own)
        if answer is None
    ]
    asked = ask([sources[source][number] for source, number in unknown]) if unknown else []
    for (source, number), answer in zip(unknown, asked, strict=True):
        found[source][number] = answer
        if source in stored:
            stored[source].keep(judge, sources[source][number], answer)
    return found


def _digest(answer: Any) -> str:
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()
