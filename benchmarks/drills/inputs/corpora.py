"""Metadata from strangers: tables, filelists and manifests of every form, damaged or malicious."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.drills.inputs.mutate import mutated
from benchmarks.drills.judging import Bounds, Input

KIND = "metadata of corpora"
COUNT, PER_CASE = 2600, 40
# Every corpus has the same few recordings, which `data check` reads as well.
BOUNDS = Bounds(cpu_seconds=1.5, cpu_per_byte=5e-6, megabytes=200.0, memory_per_byte=60.0)

CLIPS = 8
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1256", "utf-7")
_BIG = 300_000


def set_up(folder: Path, seed: int) -> None:
    from tests.helpers.make_corpus import make_corpus

    make_corpus(folder / "base", CLIPS, seed=seed, rate=16000, seconds=(0.3, 0.5))


def warm_up() -> None:
    """Nothing: `data check` uses no TensorFlow."""


def inputs(folder: Path, seed: int, count: int) -> Iterator[Input]:
    random = Random(f"corpora {seed}")
    lines = (folder / "base" / "metadata.csv").read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split("|")[:2]) for line in lines]
    for _ in range(count):
        form = random.choice(list(_FORMS))
        how, spoilt = _spoil_rows(random, rows) if random.random() < 0.5 else ("", rows)
        name, data = _FORMS[form](spoilt)
        if not how or random.random() < 0.2:
            what, data = _spoil_text(random, data)
            how = f"{how}-{what}".strip("-")
        yield Input(f"{form}-{how}", len(data), _check(folder / "base", name, data))


def _check(base: Path, name: str, data: bytes):
    def run(own: Path) -> int:
        from myxtts.cli.main import main

        root = own / "corpus"
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(data)
        (root / "wavs").mkdir()
        for path in (base / "wavs").iterdir():
            os.link(path, root / "wavs" / path.name)
        return main(["data", "check", str(root)])

    return run


# Forms: rows of id and text to the name of a file and its bytes.


def _table(delimiter: str, header: str = ""):
    def write(rows) -> bytes:
        lines = [header] if header else []
        lines += [delimiter.join((name, text, text)) for name, text in rows]
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")

    return write


def _filelist(rows) -> bytes:
    return "".join(f"wavs/{n}.wav|{t}\n" for n, t in rows).encode("utf-8", "surrogatepass")


def _records(rows) -> list[dict]:
    return [{"audio_filepath": f"wavs/{n}.wav", "text": t, "duration": 0.4} for n, t in rows]


def _json(rows) -> bytes:
    return json.dumps(_records(rows)).encode()


def _json_lines(rows) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in _records(rows)).encode()


_FORMS = {
    "ljspeech": lambda rows: ("metadata.csv", _table("|")(rows)),
    "comma": lambda rows: ("metadata.csv", _table(",", "file,text,normalised")(rows)),
    "tab": lambda rows: ("validated.tsv", _table("\t", "path\tsentence\tnote")(rows)),
    "filelist": lambda rows: ("filelists/x_train_filelist.txt", _filelist(rows)),
    "manifest": lambda rows: ("manifest.json", _json(rows)),
    "manifest-lines": lambda rows: ("train_manifest.jsonl", _json_lines(rows)),
    "speakers": lambda rows: ("speakers.csv", _table("|")(rows)),
}


def _spoil_rows(random: Random, rows) -> tuple[str, list]:
    """Rows of which some hold what nobody should believe."""
    rows = list(rows)
    name, value = random.choice(_VALUES)
    value = value(random) if callable(value) else value
    at, in_id = random.randrange(len(rows)), random.random() < 0.6
    chosen = range(len(rows)) if random.random() < 0.2 else [at]
    for i in chosen:
        rows[i] = (value, rows[i][1]) if in_id else (rows[i][0], value)
    return f"{name}-in-{'id' if in_id else 'text'}", rows


_VALUES = (
    ("nothing", ""),
    ("parent", "../../canary/precious"),
    ("parents", "../" * 40 + "etc/passwd"),
    ("absolute", "/etc/passwd"),
    ("device", "/dev/zero"),
    ("url", "http://127.0.0.1:9/x.wav"),
    ("home", "~root/.bashrc"),
    ("null", "utt-0000\0.wav"),
    ("escape", "\x1b]0;title\x07\x1b[2J"),
    ("bidi", "\u202eutt-0000\u2066"),
    ("surrogate", "\ud800\udc00\ud800"),
    ("combining", "e" + "\u0301" * 3000),
    ("huge", lambda random: "a" * random.randrange(1000, _BIG)),
    ("words", lambda random: "word " * random.randrange(1000, _BIG // 5)),
    ("digits", lambda random: "9" * random.randrange(1000, 20_000)),
    ("quotes", '"' * 501),
    ("delimiters", lambda random: "|" * random.randrange(10, 20_000)),
    ("commas", lambda random: "," * random.randrange(10, 20_000)),
    ("tabs", lambda random: "\t" * random.randrange(10, 20_000)),
    ("lines", "\n" * 1000),
    ("returns", "\r" * 1000),
    ("same", "utt-0000"),
    ("with-extension", "utt-0000.wav"),
    ("other-case", "UTT-0000"),
    ("folder", "wavs"),
    ("dots", "."),
    ("slashes", "/" * 2000),
    ("deep", "a/" * 2000),
    ("long-name", "x" * 300),
    ("formula", "=cmd|' /C calc'!A0"),
    ("format", "%s%n{0}{self}"),
    ("regex", "(a+)+$" * 100),
    ("glob", "*?[!]" * 50),
)


def _spoil_text(random: Random, data: bytes) -> tuple[str, bytes]:
    """The same file with other bytes, in another encoding or of another size."""
    how = random.randrange(8)
    if how == 0:
        encoding = random.choice(_ENCODINGS)
        return encoding, data.decode("utf-8", "replace").encode(encoding, "replace")
    if how == 1:
        name, made = random.choice(_WHOLE)
        return name, made
    if how == 2:
        return "duplicated", data * random.choice((2, 3, 400))
    return mutated(random, data)


_WHOLE = (
    ("empty", b""),
    ("blank", b" \n\t\n" * 1000),
    ("nulls", b"\0" * 10_000),
    ("deep-list", b"[" * 50_000),
    ("deep-object", b'{"a":' * 20_000),
    ("deep-closed", b"[" * 30_000 + b"]" * 30_000),
    ("number", b"1" * 20_000),
    ("float", b'[{"text": 1e400, "audio_filepath": -1e400}]'),
    ("nan", b'[{"text": NaN, "audio_filepath": Infinity}]'),
    ("types", b'[{"text": {"a": []}, "audio_filepath": ["wavs/utt-0000.wav"]}, 3, null, "x"]'),
    ("half-pair", b'[{"text": "\\ud800 word", "audio_filepath": "wavs/utt-0000.wav"}]'),
    ("null-name", b'[{"text": "word", "audio_filepath": "wavs/\\u0000.wav"}]'),
    ("same-keys", b'[{"text": "one", "text": "two", "audio_filepath": "wavs/utt-0000.wav"}]'),
    ("one-line", b"x" * _BIG),
    ("many-lines", b"x\n" * (_BIG // 2)),
    ("unclosed", b'utt-0000|"never closed\n' + b"utt-0001|word\n" * 3000),
    ("columns", b"|".join([b"x"] * 50_000)),
    ("wide-header", b",".join(b"c%d" % n for n in range(2000)) + b"\nutt-0000,word\n"),
    ("json-strings", b'["' + b"a" * _BIG + b'"]'),
    ("many-keys", b'{"a":1,' + b",".join(b'"%d":0' % n for n in range(20_000)) + b"}"),
)
