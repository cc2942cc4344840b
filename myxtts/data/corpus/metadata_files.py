"""Metadata files in every common spelling: tables and JSON manifests become rows."""

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from glob import glob
from itertools import chain, islice
from typing import NamedTuple

from myxtts.data.corpus.listing import (
    Listing,
    Source,
    is_file_or_special,
    on_one_line,
    read_text,
)
from myxtts.data.corpus.recordings import without_extension
from myxtts.data.corpus.table_columns import MetadataRow, find_columns, header_roles
from myxtts.data.corpus.utterance import CorpusError, shorten
from myxtts.data.rejections import MALFORMED

METADATA_NAMES = (
    "metadata_train.csv metadata.csv metadata.txt metadata.tsv metadata.jsonl metadata.json "
    "train_manifest.json train_manifest.jsonl manifest.json manifest.jsonl train.txt train.csv "
    "train.tsv train.jsonl train.json training.txt validated.tsv transcripts.csv transcripts.txt "
    "transcript.csv transcript.txt filelists/*train*.txt *train*.txt *train*.csv "
    "*manifest*.json* *.csv *.tsv *.jsonl"
).split()
SPEAKERS_FILE = "speakers.csv"
SLICES_FILE, TRANSCRIPTION_FILE = "slices.csv", "transcription.csv"  # of `myxtts data`
DELIMITERS = {"|": "|", "\t": "tabs", ",": "commas"}

_OTHER_TABLES = (SPEAKERS_FILE, SLICES_FILE, TRANSCRIPTION_FILE)
_PARTNERS = (
    ("training", "validation"),
    *(("train", word) for word in ("eval", "val", "valid", "validation", "dev")),
)
_HELD_OUT = re.compile(r"(?:^|[_.-])(?:eval|val|valid|validation|dev|test)(?:[_.-]|$)")
_SAMPLE_ROWS = 400
_LONGEST_HEADER = 10_000  # characters
_LONGEST_QUOTE = 20  # lines: a quoted field that goes on for longer was never closed


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


def read_table(source: Source) -> Listing | None:
    """Read a file of lines with delimiters, which every file is taken for."""
    return _list_rows(source, _cut_table(source.text)) if source.path else None


def read_manifest(source: Source) -> Listing | None:
    """Read a file of JSON objects, one a line or in one list."""
    if not source.path or not _is_json(source.path, source.text):
        return None
    return _list_rows(source, _cut_manifest(source.path, source.text))


def read_speakers(path: str) -> dict[str, tuple[str, str]]:
    """Read the speaker of each id, and perhaps the language, from a table `id|speaker|language`."""
    text = read_text(path)
    table = _cut_manifest(path, text) if _is_json(path, text) else _cut_table(text)
    return {
        without_extension(fields[0].strip()): (fields[1].strip(), "".join(fields[2:3]).strip())
        for _, fields, complaint in table.lines
        if not complaint and len(fields) > 1 and fields[1].strip()
    }


def _may_train(root: str, name: str) -> bool:
    """Whether a file may list what to train on: no table about clips, and not what is held out."""
    is_other = name in _OTHER_TABLES or _HELD_OUT.search(os.path.basename(name))
    return not is_other and is_file_or_special(os.path.join(root, name))


def _partner(root: str, name: str) -> str:
    """Return the validation file that goes with a training file, or nothing."""
    folder, name = os.path.split(os.path.join(root, name))
    for train, held_out in _PARTNERS:
        partner = os.path.join(folder, name.replace(train, held_out))
        if train in name and is_file_or_special(partner):
            return partner
    return ""


def _list_rows(source: Source, table: _Table) -> Listing:
    """Find out from the first rows what the columns are."""
    path, name = source.path, os.path.basename(source.path)
    lines = iter(table.lines)
    sample = list(islice(lines, _SAMPLE_ROWS))
    rows = [fields for _, fields, complaint in sample if not complaint]
    if not rows:
        seen = f" (line {sample[0][0]}: {sample[0][2]})" if sample else ""
        raise CorpusError(f"{path}: it lists no utterance{seen}. Write lines such as id|text")
    try:
        columns, locator = find_columns(table.header, rows, table.delimiter, source.locator)
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


def _is_json(path: str, text: str) -> bool:
    start = _first_character(text)
    return start == "{" or (start == "[" and path.endswith(".json"))


def _first_character(text: str) -> str:
    return text[:_LONGEST_HEADER].lstrip()[:1]


def _cut_table(text: str) -> _Table:
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
            yield first, [on_one_line(field) for field in fields], ""


def _cut_manifest(path: str, text: str) -> _Table:
    """Cut JSON objects into the fields that the first of them have."""
    objects = _json_list(path, text) if _first_character(text) == "[" else _json_lines(text)
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
        return on_one_line(value.encode("utf-8", "replace").decode("utf-8"))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else ""
