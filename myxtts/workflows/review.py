"""Looking through the clips of a corpus and mending it: texts, exclusions, and taking both back.

Every change is a line of `edits.jsonl`, to which lines are only ever added. What a command writes
into `metadata.csv` later does not undo a change, and what somebody writes there by hand stands.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from myxtts.atomic import alone, explained, write
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.limits import examine
from myxtts.data.corpus.metadata_files import TRANSCRIPTION_FILE
from myxtts.data.features.corpora import read_parts
from myxtts.errors import UserError
from myxtts.files import read_regular
from myxtts.text.scripts import is_plain
from myxtts.workflows.transcribe import (
    LOCK,
    METADATA,
    find_clips,
    judge,
    read_heard,
    read_rows,
    read_texts,
)

EDITS = "edits.jsonl"
LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip of a corpus: its text, and what a recogniser made of it."""

    id: str
    path: Path
    text: str | None  # None: there is no line for it
    suspicious: str = ""
    is_excluded: bool = False
    confidence: float | None = None  # of what was heard, while it is the text


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one clip's line: from a text to another one; None is no line."""

    clip: str
    before: str | None
    after: str | None
    excluded: bool = False
    time: float = 0.0


def read_clips(corpus: Path) -> list[Clip]:
    """All clips of a corpus in the layout of LJSpeech, those without a text too."""
    if not any((corpus / "wavs").glob("[!.]*")):
        return []
    texts = read_texts(corpus / METADATA)
    heard = judge(read_heard(corpus / TRANSCRIPTION_FILE))
    excluded = {one.clip for one in standing(read_edits(corpus)).values() if one.excluded}
    found = []
    for clip, path in find_clips(corpus).items():
        before, text = heard.get(clip), texts.get(clip)
        # A text that was corrected is not suspicious any more.
        stands = before is not None and text in (None, "", before.text)
        suspicious = before.suspicious if before and stands else ""
        out = clip in excluded and text is None
        confidence = before.confidence if before and stands else None
        found.append(Clip(clip, path, text, suspicious, out, confidence))
    return found


def check_clips(corpus: Path, language: str) -> dict[str, tuple[str, str]]:
    """Which clips training would drop, by id: the reason and the detail."""
    config = XTTSConfig(data_path=str(corpus), language=language, num_workers=1, max_rejected=1.0)
    found = {}
    for part in read_parts(config.data):
        states = config.model.token_states
        examined = examine(part.corpus, config.data, part.location.tokenizer, None, states)
        found |= {one.id: (one.reason, one.detail) for one in examined.corpus.rejections}
    return found


def set_text(corpus: Path, clip: str, text: str) -> Edit:
    """Give a clip another text, which includes it."""
    text = check_text(text)
    with alone(corpus / LOCK):
        return _change(corpus, clip, text, excluded=False)


def exclude(corpus: Path, clip: str) -> Edit:
    """Take a clip's line out of the corpus; the recording stays."""
    with alone(corpus / LOCK):
        last = standing(read_edits(corpus)).get(clip)
        if last is None or not last.excluded:
            return _change(corpus, clip, None, excluded=True)
        if clip in read_texts(corpus / METADATA):  # a command has brought it back
            _write_texts(corpus, {clip: None})
        return last


def include(corpus: Path, clip: str) -> Edit:
    """Give an excluded clip its last text back, unless it has got one meanwhile."""
    with alone(corpus / LOCK):
        edits = [one for one in read_edits(corpus) if one.clip == clip]
        if not edits or not edits[-1].excluded:
            raise UserError("this clip is not excluded: reload the page")
        text = read_texts(corpus / METADATA).get(clip) or _text_before(edits)
        return _change(corpus, clip, text, excluded=False)


def undo(corpus: Path) -> Edit | None:
    """Take the latest change back that was not taken back before."""
    with alone(corpus / LOCK):
        edits = read_edits(corpus)
        if not edits:
            return None
        last = edits[-1]
        with _appended(corpus, {"undo": True, "time": time.time()}):
            _write_texts(corpus, {last.clip: last.before})
        return last


def reapply(corpus: Path) -> None:
    """Apply changes that a command has overwritten meanwhile."""
    if not (corpus / EDITS).exists():
        return
    with alone(corpus / LOCK):
        edits = standing(read_edits(corpus))
        texts = read_texts(corpus / METADATA)
        wanted = {
            clip: one.after
            for clip, one in edits.items()
            if texts.get(clip) != one.after and (one.excluded or texts.get(clip) == one.before)
        }
        if wanted:
            _write_texts(corpus, wanted)


def check_text(text: str) -> str:
    """A text that a line can hold, tidied."""
    text = " ".join(text.replace("|", " ").split())
    if not text:
        raise UserError("write what is said in it, or exclude the clip")
    if len(text) > LONGEST_TEXT:
        raise UserError(f"a text has at most {LONGEST_TEXT} characters, and this one {len(text)}")
    if not is_plain(text):
        raise UserError("the text has characters that cannot be printed: type it anew")
    return text


def read_edits(corpus: Path) -> list[Edit]:
    """The changes in their order, without those that were taken back."""
    try:
        lines = read_regular(corpus / EDITS).decode("utf-8").split("\n")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{corpus / EDITS} cannot be read ({error}): restore it") from error
    found: list[Edit] = []
    for line in lines:
        try:
            values = json.loads(line)
        except ValueError:  # a line that a kill has torn
            continue
        if values.get("undo"):
            del found[-1:]
        else:
            found.append(Edit(**values))
    return found


def standing(edits: Iterable[Edit]) -> dict[str, Edit]:
    """The last change of each clip."""
    return {one.clip: one for one in edits}


def _text_before(edits: Sequence[Edit]) -> str | None:
    """The text that a clip had before it was excluded, even if that was asked for twice."""
    for one in reversed(edits):
        if one.before is not None or not one.excluded:
            return one.before if one.excluded else one.after
    return None


def _change(corpus: Path, clip: str, after: str | None, excluded: bool) -> Edit:
    before = read_texts(corpus / METADATA).get(clip)
    edit = Edit(clip, before, after, excluded, round(time.time(), 3))
    with _appended(corpus, asdict(edit)):
        _write_texts(corpus, {clip: after})
    return edit


@contextlib.contextmanager
def _appended(corpus: Path, values: Mapping[str, object]) -> Iterator[None]:
    """Add a line, which is taken away again if what it tells of fails: perhaps the disk is full."""
    path = corpus / EDITS
    line = json.dumps(values, ensure_ascii=False) + "\n"
    with explained(path), open(path, "ab+", buffering=0) as file:
        size = file.seek(0, 2)
        try:
            if size:
                file.seek(-1, 2)
                if file.read(1) != b"\n":  # what a kill has torn ends here
                    line = "\n" + line
            content = line.encode()
            if file.write(content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield
        except BaseException:
            file.truncate(size)
            raise


def _write_texts(corpus: Path, texts: Mapping[str, str | None]) -> None:
    """Set lines of the metadata, or remove them."""
    path = corpus / METADATA
    rows = read_rows(path)
    width = len(rows[0]) if rows else 3
    left = dict(texts)
    kept = []
    for row in rows:
        clip = row[0].strip()
        if clip in left:
            if (text := left.pop(clip)) is not None:
                kept.append([clip, *[text] * (len(row) - 1)])
        else:
            kept.append(row)
    kept += [[clip, *[text] * (width - 1)] for clip, text in left.items() if text is not None]
    if not kept and not path.exists():
        return
    with explained(path):
        write(path, "".join("|".join(row) + "\n" for row in kept).encode())
