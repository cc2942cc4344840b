"""From rows of metadata to utterances: who speaks, what can be used, and what cannot and why."""

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from myxtts.audio.io import AudioError
from myxtts.data.corpus.headers import read_headers
from myxtts.data.corpus.listing import Listing, is_file_or_special
from myxtts.data.corpus.metadata_files import SPEAKERS_FILE, read_speakers
from myxtts.data.corpus.recordings import folder_path
from myxtts.data.corpus.table_columns import MetadataRow
from myxtts.data.corpus.utterance import CorpusError, Utterance, shorten
from myxtts.data.rejections import (
    DUPLICATE,
    MALFORMED,
    NO_SPEAKER,
    NO_TEXT,
    TEXT_TOO_LONG,
    Rejection,
)

LONGEST_TEXT = 20_000  # characters: no utterance has as many, and no tokenizer stalls on fewer

# Folders that say how a corpus is stored, not who speaks.
_STORAGE = re.compile(
    r"wav.*|audio|clips?|flac|mp3|data|recordings|"
    r"(?:training|train|eval|validation|valid|val|dev|test)(?:[-_].*)?",
    re.IGNORECASE,
)


class Speakers:
    """Who speaks: by pattern, column, speakers.csv, folder, or else the corpus's own name."""

    def __init__(self, root: Path, pattern: str, listing: Listing):
        self.sources: Counter[str] = Counter()
        self._pattern = _compile(pattern)
        path = os.path.join(listing.locator.home, SPEAKERS_FILE)
        self._listed = read_speakers(path) if is_file_or_special(path) else {}
        self._default = root.name or "speaker"

    def of(self, row: MetadataRow, utterance_id: str) -> str:
        """Return the speaker, or nothing where the user's pattern does not match."""
        speaker, source = self._find(row, utterance_id)
        self.sources[source] += 1
        return speaker

    def language_of(self, utterance_id: str) -> str:
        """Return the language that speakers.csv names, or nothing."""
        return self._listed.get(utterance_id, ("", ""))[1]

    def _find(self, row: MetadataRow, utterance_id: str) -> tuple[str, str]:
        if self._pattern:
            match = self._pattern.search(utterance_id) or self._pattern.search(row.recording)
            return (match[1] or "") if match else "", f"the pattern {self._pattern.pattern}"
        if row.speaker:
            return row.speaker, "a column"
        if utterance_id in self._listed:
            return self._listed[utterance_id][0], SPEAKERS_FILE
        for folder in utterance_id.split("/")[:-1]:
            if not _STORAGE.fullmatch(folder):
                return folder, "folders"
        return self._default, "the corpus directory's name"


class UtteranceFilter:
    """Keeps each usable row once, and remembers the others with their reasons."""

    def __init__(self, root: Path, speakers: Speakers, language: str, max_text_length: int):
        self.rejections: list[Rejection] = []
        self._root = folder_path(str(root))
        self._speakers = speakers
        self._language = language
        self._longest = min(max_text_length or LONGEST_TEXT, LONGEST_TEXT)
        self._owners: dict[str, tuple[str, str]] = {}  # of each id: its recording and its listing
        self._lost: dict[int, Path] = {}  # recordings that are not used, by rejection

    def keep(self, listing: Listing) -> list[Utterance]:
        """Return the utterances of a listing that can be used, in its order."""
        locate, identify = listing.locator.locate, listing.locator.identify
        utterances = []
        for row in listing.rows:
            path = row.recording and (locate(row.recording) or "")
            name = identify(path) if path else ""
            reason, detail = self._fault(row, path, name, listing)
            speaker = "" if reason else self._speakers.of(row, name)
            if not speaker and not reason:
                reason, detail = NO_SPEAKER, "the speaker pattern does not match"
            if reason:
                self._reject(row, path, name, listing.name, reason, detail)
            else:
                self._owners[name] = path, listing.name
                language = row.language or self._speakers.language_of(name) or self._language
                utterances.append(Utterance(name, Path(path), row.text, speaker, language))
        return utterances

    def measured_rejections(self) -> tuple[Rejection, ...]:
        """Return the rejections, with the seconds of speech that are lost with them."""
        headers = read_headers(list(self._lost.values()))
        for index, header in zip(self._lost, headers, strict=True):
            seconds = 0.0 if isinstance(header, AudioError) else header.seconds
            self.rejections[index] = replace(self.rejections[index], seconds=seconds)
        return tuple(self.rejections)

    def _fault(self, row: MetadataRow, path: str, name: str, listing: Listing) -> tuple[str, str]:
        """Return why a row cannot be used, as reason and detail; both are empty where it can."""
        if row.reason:
            return row.reason, row.detail
        if not row.recording:
            return MALFORMED, "no recording is named"
        if not path:
            return listing.locator.explain(row.recording)
        if not row.text:
            return NO_TEXT, "its text is empty"
        if len(row.text) > self._longest:
            return TEXT_TOO_LONG, f"{len(row.text):,} characters, at most {self._longest:,}"
        if name in self._owners:
            return DUPLICATE, f"{self._owners[name][1] or 'another file'} has this id already"
        return "", ""

    def _reject(
        self, row: MetadataRow, path: str, name: str, listing: str, reason: str, detail: str
    ) -> None:
        where = f"{listing}, line {row.line}" if row.line else ""
        shown = name or row.recording.removeprefix(self._root) or where
        detail = f"{where}: {detail}" if where else detail
        # A second line for a recording that is used loses no speech.
        is_lost = path and self._owners.get(name, ("",))[0] != path
        if is_lost and not row.seconds:
            self._lost[len(self.rejections)] = Path(path)
        seconds = row.seconds if is_lost else 0.0
        self.rejections.append(Rejection(shorten(shown), reason, shorten(detail, 200), seconds))


def _compile(pattern: str) -> re.Pattern | None:
    if not pattern:
        return None
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise CorpusError(
            f"the speaker pattern {pattern!r} is not a regular expression: {error}"
        ) from None
    if compiled.groups != 1:
        raise CorpusError(
            f"the speaker pattern {pattern!r} has {compiled.groups} groups; put one pair of "
            r"parentheses around the speaker, as in ^(p\d+)_"
        )
    return compiled
