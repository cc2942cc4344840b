"""Metadata in every common spelling: tables, JSON manifests and trees of texts become rows."""

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from glob import glob
from itertools import chain, islice
from typing import NamedTuple

from myxtts.audio.io import MISSING
from myxtts.data.corpus.recordings import Locator, Recordings, folder_path, without_extension
from myxtts.data.corpus.table_columns import MetadataRow, find_columns, header_roles
from myxtts.data.corpus.utterance import CorpusError, shorten
from myxtts.data.rejections import MALFORMED, NO_TEXT, UNREADABLE_TEXT
from myxtts.files import open_regular

METADATA_NAMES = (
    "metadata_train.csv metadata.csv metadata.txt metadata.tsv metadata.jsonl metadata.json "
    "train_manifest.json train_manifest.jsonl manifest.json manifest.jsonl train.txt train.csv "
    "train.tsv train.jsonl train.json training.txt validated.tsv transcripts.csv transcripts.txt "
    "transcript.csv transcript.txt filelists/*train*.txt *train*.txt *train*.csv "
    "*manifest*.json* *.csv *.tsv *.jsonl"
).split()
SPEAKERS_FILE = "speakers.csv"
DELIMITERS = {"|": "|", "\t": "tabs", ",": "commas"}
TEXT_FOLDERS = ("txt", "text", "texts", "transcripts")

_PARTNERS = (
    ("training", "validation"),
    *(("train", word) for word in ("eval", "val", "valid", "validation", "dev")),
)
_HELD_OUT = re.compile(r"(?:^|[_.-])(?:eval|val|valid|validation|dev|test)(?:[_.-]|$)")
_SAMPLE_ROWS = 400
_LONGEST_HEADER = 10_000  # characters
_LONGEST_QUOTE = 20  # lines: a quoted field that goes on for longer was never closed
_LARGEST_TEXT_FILE = 100_000  # bytes, of one utterance in a tree
_MICROPHONE = re.compile(r"_mic\d$")  # VCTK recorded every utterance with two


@dataclass(frozen=True)
class Listing:
    """What one source of metadata lists, and how it was understood."""

    name: str
    understood: str
    locator: Locator
    rows: Iterable[MetadataRow]


class _Table(NamedTuple):
    """A file cut into fields; a line that cannot be cut comes with a complaint instead."""

    form: str
    delimiter: str
    header: list[str] | None
    lines: Iterable[tuple[int, list[str], str]]


def find_metadata(root: str) -> tuple[str, str]:
    """Return the paths of training metadata and of their validation partner, empty if absent."""
    has_usual = os.path.exists(os.path.join(root, "metadata.csv"))
    for pattern in METADATA_NAMES:
        names = [name for name in sorted(glob(pattern, root_dir=root)) if _may_train(root, name)]
        if len(names) > 1:
            raise CorpusError(
                f"{root}: several files could be its metadata: {', '.join(names[:8])}. "
                "Name the one to use (--metadata-train-file)"
            )
        # A lone metadata_train.csv next to metadata.csv is a part of it.
        if names and (pattern != "metadata_train.csv" or not has_usual or _partner(root, names[0])):
            return os.path.join(root, names[0]), _partner(root, names[0])
    return "", ""


def read_metadata(path: str, locator: Locator) -> Listing:
    """Read a table or a manifest; its form and columns are found out from its first rows."""
    name = os.path.basename(path)
    table = _read_table(path)
    lines = iter(table.lines)
    sample = list(islice(lines, _SAMPLE_ROWS))
    rows = [fields for _, fields, complaint in sample if not complaint]
    if not rows:
        seen = f" (line {sample[0][0]}: {sample[0][2]})" if sample else ""
        raise CorpusError(f"{path}: it lists no utterance{seen}. Write lines such as id|text")
    try:
        columns, locator = find_columns(table.header, rows, table.delimiter, locator)
    except CorpusError as error:
        raise CorpusError(f"{path}: {error}") from None
    return Listing(
        name,
        f"{name}: {table.form}: {columns.describe()}",
        locator,
        (
            MetadataRow(line, "", reason=MALFORMED, detail=complaint)
            if complaint
            else columns.row(line, fields)
            for line, fields, complaint in chain(sample, lines)
        ),
    )


def read_tree(recordings: Recordings, locator: Locator) -> Listing | None:
    """Read recordings with a text file each, next to them or in a tree of its own."""
    root = folder_path(recordings.folders[0])
    stems = recordings.stems()
    if any(_text_of(stem, recordings) for stem in stems):
        rows = _tree_rows(recordings, stems, "", "")
        return Listing("", "a text file next to each recording", locator, rows)
    for text_folder in TEXT_FOLDERS:
        text_root = f"{root}{text_folder}/"
        audio_root = _twin_of(text_root, recordings)
        if audio_root:
            locator = replace(locator, id_folders=(audio_root, *locator.id_folders))
            rows = _tree_rows(recordings, stems, audio_root, text_root)
            understood = f"texts in {text_folder}/, each with a recording of the same name"
            return Listing("", understood, locator, rows)
    return None


def read_speakers(path: str) -> dict[str, tuple[str, str]]:
    """Read the speaker of each id, and perhaps the language, from a table `id|speaker|language`."""
    table = _read_table(path)
    return {
        without_extension(fields[0].strip()): (fields[1].strip(), "".join(fields[2:3]).strip())
        for _, fields, complaint in table.lines
        if not complaint and len(fields) > 1 and fields[1].strip()
    }


def read_text(path: str) -> str:
    """Read UTF-8 with or without a byte order mark, or say where it is none."""
    try:
        with open_regular(path) as file:
            data = file.read(1 << 16)
            # Look before reading on: a recording given by mistake may be huge.
            if b"\0" not in data:
                data += file.read()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}") from error
    if (at := data.find(b"\0")) >= 0:
        raise CorpusError(
            f"{path}: line {_line_of(data, at)} holds a NUL byte, so this is not UTF-8 text. Name "
            "the metadata file rather than a recording, or save it as UTF-8 if it is UTF-16"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path}: line {_line_of(data, error.start)} is not UTF-8 (byte "
            f"0x{data[error.start]:02x}). Convert the file, for instance with "
            "iconv -f WINDOWS-1252 -t UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_file_or_special(path: str) -> bool:
    """Whether there is something other than a directory; reading it tells what is wrong with it."""
    return os.path.exists(path) and not os.path.isdir(path)


def _may_train(root: str, name: str) -> bool:
    """Whether a file may list what to train on: not speakers, and not what is held out."""
    is_other = name == SPEAKERS_FILE or _HELD_OUT.search(os.path.basename(name))
    return not is_other and is_file_or_special(os.path.join(root, name))


def _partner(root: str, name: str) -> str:
    """Return the validation file that goes with a training file, or nothing."""
    folder, name = os.path.split(os.path.join(root, name))
    for train, held_out in _PARTNERS:
        partner = os.path.join(folder, name.replace(train, held_out))
        if train in name and is_file_or_special(partner):
            return partner
    return ""


def _read_table(path: str) -> _Table:
    text = read_text(path)
    start = text[:_LONGEST_HEADER].lstrip()[:1]
    if start == "{" or (start == "[" and path.endswith(".json")):
        objects = _json_list(path, text) if start == "[" else _json_lines(text)
        return _manifest(path, objects)
    lines = text.split("\n")
    filled = [line for line in lines[:_SAMPLE_ROWS] if line.strip()]
    delimiter, header = _find_delimiter(filled)
    cut = _cut_csv(lines) if delimiter == "," else _cut(lines, delimiter)
    form = f"a table with {DELIMITERS[delimiter]}"
    if header:
        cut, form = islice(cut, 1, None), f"{form} and a header"
    return _Table(form, delimiter, header, cut)


def _find_delimiter(lines: list[str]) -> tuple[str, list[str] | None]:
    """Return the delimiter that makes a header of the first line, else the first in most lines."""
    if lines and len(lines[0]) <= _LONGEST_HEADER:
        for delimiter in DELIMITERS:
            fields = next(csv.reader([lines[0]], delimiter=delimiter))
            if header_roles(fields):
                return delimiter, fields
    for delimiter in DELIMITERS:
        if 2 * sum(delimiter in line for line in lines) >= max(1, len(lines)):
            return delimiter, None
    return "|", None


def _cut(lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line.split(delimiter), ""


def _cut_csv(lines: list[str]) -> Iterator[tuple[int, list[str], str]]:
    """Cut at commas, minding quotes; each line that an unclosed quote swallows has a complaint."""
    reader = csv.reader(line + "\n" for line in lines)
    while True:
        first = reader.line_num + 1
        complaint = ""
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            complaint = str(error)
        count = reader.line_num + 1 - first
        if count > 1 and not complaint:
            quotes = sum(line.count('"') for line in lines[first - 1 : reader.line_num])
            if count > _LONGEST_QUOTE or quotes % 2:
                complaint = f"a quote opened in line {first} is not closed"
        if complaint:
            yield from ((first + step, [], complaint) for step in range(count))
        elif any(map(str.strip, fields)):
            yield first, [_on_one_line(field) for field in fields], ""


def _manifest(path: str, objects: Iterable[tuple[int, dict, str]]) -> _Table:
    """Cut JSON objects into the fields that the first of them have."""
    objects = iter(objects)
    sample = list(islice(objects, _SAMPLE_ROWS))
    header = list(dict.fromkeys(key for _, entry, _ in sample for key in entry))
    if header and not header_roles(header):
        raise CorpusError(
            f"{path}: the manifest's keys are {', '.join(map(shorten, header[:8]))}; it needs a "
            "recording (such as audio_filepath) and a text (such as text)"
        )
    lines = (
        (number, [_json_field(entry.get(key)) for key in header], complaint)
        for number, entry, complaint in chain(sample, objects)
    )
    return _Table("a JSON manifest", "|", header, lines)


def _json_lines(text: str) -> Iterator[tuple[int, dict, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, *_json_object(line)


def _json_object(line: str) -> tuple[dict, str]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, f"not JSON: {error}"
    return (entry, "") if isinstance(entry, dict) else ({}, "not a JSON object")


def _json_list(path: str, text: str) -> Iterator[tuple[int, dict, str]]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{path}: not JSON: {error}") from error
    for number, entry in enumerate(entries, 1):
        is_object = isinstance(entry, dict)
        yield number, entry if is_object else {}, "" if is_object else "not a JSON object"


def _json_field(value: object) -> str:
    if isinstance(value, str):
        # JSON can spell half a character, which nothing could store.
        return _on_one_line(value.encode("utf-8", "replace").decode("utf-8"))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""


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
        return MetadataRow(0, recording, _on_one_line(read_text(text_path)).strip())
    except (CorpusError, OSError) as error:
        return MetadataRow(0, recording, reason=UNREADABLE_TEXT, detail=str(error))


def _is_second_microphone(stem: str, known: set[str]) -> bool:
    return stem.endswith("_mic2") and stem.removesuffix("2") + "1" in known


def _on_one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def _line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1
