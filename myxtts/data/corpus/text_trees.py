"""Corpora without metadata: a text file for each recording, in trees of every common shape."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from myxtts.audio.io import MISSING
from myxtts.data.corpus.listing import Listing, Source, on_one_line, read_text
from myxtts.data.corpus.recordings import Recordings, folder_path
from myxtts.data.corpus.table_columns import MetadataRow
from myxtts.data.corpus.utterance import CorpusError
from myxtts.data.rejections import NO_TEXT, UNREADABLE_TEXT

TEXT_FOLDERS = ("txt", "text", "texts", "transcripts")

_LARGEST_TEXT_FILE = 100_000  # bytes, of one utterance in a tree
_MICROPHONE = re.compile(r"_mic\d$")  # VCTK recorded every utterance with two


def read_texts_next_to_recordings(source: Source) -> Listing | None:
    """Read recordings with a text file of the same name next to each."""
    if source.path:
        return None
    recordings = source.locator.recordings
    stems = recordings.stems()
    if not any(_text_of(stem, recordings) for stem in stems):
        return None
    rows = _tree_rows(recordings, stems, "", "")
    return Listing("", "a text file next to each recording", source.locator, rows)


def read_text_folder(source: Source) -> Listing | None:
    """Read a folder of texts that is a twin of a folder of recordings."""
    if source.path:
        return None
    locator, recordings = source.locator, source.locator.recordings
    root = folder_path(recordings.folders[0])
    for text_folder in TEXT_FOLDERS:
        text_root = f"{root}{text_folder}/"
        audio_root = _twin_of(text_root, recordings)
        if audio_root:
            locator = replace(locator, id_folders=(audio_root, *locator.id_folders))
            rows = _tree_rows(recordings, recordings.stems(), audio_root, text_root)
            understood = f"texts in {text_folder}/, each with a recording of the same name"
            return Listing("", understood, locator, rows)
    return None


def _text_of(stem: str, recordings: Recordings) -> str:
    """Return which text goes with a name: LibriTTS calls the normalised ones so."""
    names = (stem, stem + ".normalized")
    return next((name for name in names if name in recordings.texts), "")


def _twin_of(text_root: str, recordings: Recordings) -> str:
    """Return the folder next to `text_root` with most recordings of its texts, or nothing."""
    root = folder_path(os.path.dirname(text_root.rstrip("/")))
    counts: Counter[str] = Counter()
    for stem in recordings.stems():
        folder, _, name = stem.removeprefix(root).partition("/")
        if text_root + _MICROPHONE.sub("", name) in recordings.texts:
            counts[f"{root}{folder}/"] += 1
    # Of equals the last: wav48_silence_trimmed rather than wav48.
    return max(sorted(counts, reverse=True), key=counts.__getitem__, default="")


def _tree_rows(
    recordings: Recordings, stems: list[str], audio_root: str, text_root: str
) -> Iterator[MetadataRow]:
    """Pair recordings with their text files; what has no partner comes with its reason."""
    known = set(stems)
    used = set()
    for stem in stems:
        if not stem.startswith(audio_root) or _is_second_microphone(stem, known):
            continue
        written = text_root + _MICROPHONE.sub("", stem[len(audio_root) :])
        text_stem = next(
            (s for s in (written, written + ".normalized") if s in recordings.texts), ""
        )
        used.add(text_stem)
        yield _tree_row(recordings.find(stem) or "", recordings.texts.get(text_stem, ""))
    folders = {os.path.dirname(stem) for stem in stems}
    for stem in sorted(set(recordings.texts) - used):
        is_partner = stem.startswith(text_root) if text_root else os.path.dirname(stem) in folders
        if is_partner and not stem.endswith(".original"):
            yield MetadataRow(0, stem, reason=MISSING, detail="a text file without a recording")


def _tree_row(recording: str, text_path: str) -> MetadataRow:
    if not text_path:
        return MetadataRow(0, recording, reason=NO_TEXT, detail="no text file goes with it")
    try:
        if os.path.getsize(text_path) > _LARGEST_TEXT_FILE:
            return MetadataRow(
                0, recording, reason=UNREADABLE_TEXT, detail=f"{text_path}: too large"
            )
        return MetadataRow(0, recording, on_one_line(read_text(text_path)).strip())
    except (CorpusError, OSError) as error:
        return MetadataRow(0, recording, reason=UNREADABLE_TEXT, detail=str(error))


def _is_second_microphone(stem: str, known: set[str]) -> bool:
    return stem.endswith("_mic2") and stem.removesuffix("2") + "1" in known
