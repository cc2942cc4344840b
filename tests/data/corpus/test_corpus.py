"""Corpora in all their dialects, with empty files for recordings where only names matter."""

import json
import os
import time
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.data.corpus.corpus import is_validation, read_corpus
from myxtts.data.corpus.description import summarise
from myxtts.data.corpus.headers import inspect_recordings
from myxtts.data.corpus.utterance import CorpusError, Utterance
from myxtts.data.rejections import Rejection
from tests.helpers.shared_data import shared

TEXTS = {"a1": "The first clause.", "a2": 'He said "two" here.', "b1": "Now a third, with a comma."}


def make(root: Path, files: dict[str, str | bytes], recordings=()) -> Path:
    """Write files and empty recordings below `root`."""
    for name, content in {**dict.fromkeys(recordings, b""), **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def table(line: str, header: str = "") -> str:
    """Fill a line's pattern with each id, its text and its speaker."""
    lines = [line.format(id=id, text=text, speaker=f"anna_{id[0]}") for id, text in TEXTS.items()]
    return "".join(f"{line}\n" for line in ([header] if header else []) + lines)


def wavs(folder="wavs/", extension=".wav") -> list[str]:
    return [f"{folder}{id}{extension}" for id in TEXTS]


def seen(corpus) -> list[tuple[str, str, str, str]]:
    return [(u.id, u.text, u.speaker, u.language) for u in corpus.utterances]


def manifest(**extra) -> str:
    entries = [{"audio_filepath": f"wavs/{i}.wav", "text": t, **extra} for i, t in TEXTS.items()]
    return "".join(json.dumps(entry) + "\n" for entry in entries)


CSV = "".join(
    f'wavs/{id}.wav,"{text.replace(chr(34), chr(34) * 2)}",anna_{id[0]}\n'
    for id, text in TEXTS.items()
)

# name: (metadata file, its content, recordings, where the speaker comes from)
DIALECTS = {
    "LJSpeech": ("metadata.csv", table("{id}|RAW {text} 12|{text}"), wavs(), "default"),
    "LJSpeech, raw only": ("metadata.csv", table("{id}|{text}|"), wavs(), "default"),
    "id and text": ("metadata.csv", table("{id}|{text}"), wavs(), "default"),
    "file name and text": ("metadata.csv", table("{id}.wav|{text}"), wavs(), "default"),
    "path and text": ("metadata.csv", table("wavs/{id}.wav|{text}"), wavs(), "default"),
    "dotted path": ("metadata.csv", table("./wavs/{id}.wav|{text}"), wavs(), "default"),
    "backslashes": ("metadata.csv", table(r"wavs\{id}.wav|{text}"), wavs(), "default"),
    "speaker and language": ("metadata.csv", table("{id}|{text}|{speaker}|en"), wavs(), "column"),
    "language only": ("metadata.csv", table("{id}|{text}|en"), wavs(), "default"),
    "piper": ("metadata.csv", table("{id}|{speaker}|{text}"), wavs(), "column"),
    "tabs": ("metadata.tsv", table("{id}\t{text}"), wavs(), "default"),
    "Coqui": (
        "metadata.csv",
        table("wavs/{id}.wav|{text}|{speaker}", "audio_file|text|speaker_name"),
        wavs(),
        "column",
    ),
    "Coqui, commas": ("metadata.csv", "audio_file,text,speaker_name\n" + CSV, wavs(), "column"),
    "commas without header": ("metadata.csv", CSV, wavs(), "column"),
    "F5": ("metadata.csv", table("wavs/{id}.wav|{text}", "audio_file|text"), wavs(), "default"),
    "unquoted commas": ("metadata.csv", table("{id}.wav,{text}", "path,text"), wavs(), "default"),
    "VITS": ("filelists/x_train_filelist.txt", table("DUMMY1/{id}.wav|{text}"), wavs(), "default"),
    "VITS, speakers": ("train.txt", table("DUMMY2/{id}.wav|{speaker}|{text}"), wavs(), "column"),
    "list in a folder": (
        "filelists/train.txt",
        table("../wavs/{id}.wav|{text}"),
        wavs(),
        "default",
    ),
    "HiFi-GAN": ("training.txt", table("{id}|{text}|{text}"), wavs(), "default"),
    "phonemes next to": ("metadata.csv", table("{id}|{text}|ðə ˈfɜːst ˈklɔːz"), wavs(), "default"),
    "seconds next to": ("metadata.csv", table("{id}|{text}|3.25"), wavs(), "default"),
    "NeMo": ("manifest.json", manifest(duration=1.5), wavs(), "default"),
    "JSON list": (
        "metadata.json",
        json.dumps([json.loads(line) for line in manifest().splitlines()]),
        wavs(),
        "default",
    ),
    "wav/": ("metadata.csv", table("{id}|{text}"), wavs("wav/"), "default"),
    "audio/": ("metadata.csv", table("{id}|{text}"), wavs("audio/"), "default"),
    "clips/, mp3": ("validated.tsv", table("{id}.mp3\t{text}", "path\tsentence"),
                    wavs("clips/", ".mp3"), "default"),
    "next to": ("metadata.csv", table("{id}|{text}"), wavs(""), "default"),
    "FLAC": ("metadata.csv", table("{id}|{text}"), wavs(extension=".FLAC"), "default"),
    "FLAC called wav": ("metadata.csv", table("{id}.wav|{text}"), wavs(extension=".flac"),
                        "default"),
    "BOM and CRLF": ("metadata.csv", "\ufeff" + table("{id}|{text}").replace("\n", "\r\n"), wavs(),
                     "default"),
    "blank lines": ("metadata.csv", "\n" + table("{id}|{text}\n"), wavs(), "default"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_gives_the_same_utterances(tmp_path, name):
    file, content, recordings, speaker = DIALECTS[name]
    root = make(tmp_path / "voice", {file: content}, recordings)
    corpus = read_corpus(root)
    speakers = [f"anna_{id[0]}" if speaker == "column" else "voice" for id in TEXTS]
    expected = [(i, t, s, "en") for (i, t), s in zip(TEXTS.items(), speakers, strict=True)]
    assert seen(corpus) == expected
    assert [u.audio for u in corpus.utterances] == [root / path for path in recordings]
    assert corpus.rejections == ()
    assert os.path.basename(file) in corpus.dialect


def test_numbered_speakers_are_told_from_texts(tmp_path):
    lines = "".join(f"wavs/{n}.wav|{n % 3}|Clause number {n}.\n" for n in range(60))
    make(tmp_path, {"train.txt": lines}, [f"wavs/{n}.wav" for n in range(60)])
    corpus = read_corpus(tmp_path)
    assert corpus.utterances[4].text == "Clause number 4."
    assert (corpus.utterances[4].speaker, corpus.speakers) == ("1", ("0", "1", "2"))


def test_what_was_understood_is_told(tmp_path):
    make(tmp_path, {"metadata.csv": table("{id}|RAW {text}|{text}")}, wavs())
    assert read_corpus(tmp_path).dialect.splitlines() == [
        "metadata.csv: a table with |: recording | raw text | text",
        "recordings in wavs/ (.wav)",
        "speakers from the corpus directory's name",
    ]


def test_nemo_speakers_and_languages(tmp_path):
    make(tmp_path, {"train_manifest.json": manifest(speaker=7, lang="zh_CN")}, wavs())
    corpus = read_corpus(tmp_path)
    assert (corpus.speakers, corpus.languages) == (("7",), ("zh-cn",))


def test_nemo_absolute_paths_below_the_corpus(tmp_path):
    line = json.dumps({"audio_filepath": f"{tmp_path}/wavs/a1.wav", "text": "One."})
    make(tmp_path, {"manifest.jsonl": line}, wavs())
    assert seen(read_corpus(tmp_path)) == [("a1", "One.", tmp_path.name, "en")]


VCTK = {
    "txt/p225/p225_001.txt": "Please call Stella.\n",
    "txt/p226/p226_001.txt": "Ask her to bring these things.\n",
}


def test_vctk_with_two_microphones(tmp_path):
    names = [f"p22{n}/p22{n}_001_mic{m}.flac" for n in (5, 6) for m in (1, 2)]
    make(tmp_path, VCTK, [f"wav48_silence_trimmed/{name}" for name in names])
    assert seen(read_corpus(tmp_path)) == [
        ("p225/p225_001_mic1", "Please call Stella.", "p225", "en"),
        ("p226/p226_001_mic1", "Ask her to bring these things.", "p226", "en"),
    ]


def test_vctk_reports_what_has_no_partner(tmp_path):
    recordings = [f"wav48/p225/p225_00{n}.wav" for n in (1, 2)]
    make(tmp_path, VCTK, recordings)
    corpus = read_corpus(tmp_path, max_rejected=0.9)
    assert [u.id for u in corpus.utterances] == ["p225/p225_001"]
    assert [(r.id, r.reason) for r in corpus.rejections] == [
        ("p225/p225_002", "no text"),
        ("txt/p226/p226_001", "missing recording"),
    ]


def test_texts_beside_recordings(tmp_path):
    files = {"anna/x1.txt": "One.", "ben/x1.txt": "Two.", "ben/x2.normalized.txt": "Three."}
    make(tmp_path, files, ["anna/x1.wav", "ben/x1.wav", "ben/x2.wav"])
    assert seen(read_corpus(tmp_path)) == [
        ("anna/x1", "One.", "anna", "en"),
        ("ben/x1", "Two.", "ben", "en"),
        ("ben/x2", "Three.", "ben", "en"),
    ]


def test_speaker_folders_keep_ids_apart(tmp_path):
    lines = "anna/1|One clause.\nben/1|Another clause.\n"
    make(tmp_path, {"metadata.csv": lines}, ["wavs/anna/1.wav", "wavs/ben/1.wav"])
    corpus = read_corpus(tmp_path)
    assert [(u.id, u.speaker) for u in corpus.utterances] == [("anna/1", "anna"), ("ben/1", "ben")]


def test_bare_ids_find_their_folders_where_names_are_unique(tmp_path):
    files = {"metadata.csv": "x1|One clause.\nx2|Another clause.\n"}
    make(tmp_path, files, ["takes/anna/x1.wav", "takes/ben/x2.wav"])
    corpus = read_corpus(tmp_path, speaker_pattern=r"takes/(\w+)/")
    assert [(u.id, u.speaker) for u in corpus.utterances] == [
        ("takes/anna/x1", "anna"),
        ("takes/ben/x2", "ben"),
    ]
    assert "their folders were searched for" in corpus.dialect


def test_a_sibling_speakers_file_is_honoured(tmp_path):
    files = {"metadata.csv": table("{id}|{text}"), "speakers.csv": "a1|Ann\na2|Ann\nb1|Bob\n"}
    corpus = read_corpus(make(tmp_path, files, wavs()))
    assert [u.speaker for u in corpus.utterances] == ["Ann", "Ann", "Bob"]
    assert corpus.speakers == ("Ann", "Bob")


def test_speaker_pattern(tmp_path):
    make(tmp_path, {"metadata.csv": table("{id}|{text}")}, wavs())
    assert read_corpus(tmp_path, speaker_pattern=r"^([a-z])\d").speakers == ("a", "b")
    corpus = read_corpus(tmp_path, speaker_pattern=r"^(a)", max_rejected=0.5)
    assert [(r.id, r.reason) for r in corpus.rejections] == [("b1", "no speaker")]
    for pattern, message in (("a(", "not a regular expression"), ("a", "has 0 groups")):
        with pytest.raises(CorpusError, match=message):
            read_corpus(tmp_path, speaker_pattern=pattern)


@pytest.mark.parametrize("held_out", ["metadata_eval.csv", "metadata_val.csv"])
def test_separate_metadata_are_found(tmp_path, held_out):
    files = {"metadata_train.csv": "a1|One.\na2|Two.\n", held_out: "b1|Three.\n"}
    corpus = read_corpus(make(tmp_path, files, wavs()))
    assert [u.id for u in corpus.train] == ["a1", "a2"]
    assert [u.id for u in corpus.val] == ["b1"]


def test_separate_metadata_are_named(tmp_path):
    files = {"t.csv": "1|One.\n2|Two.\n", "e.csv": "1|Three.\n"}
    make(tmp_path, files, ["first/1.wav", "first/2.wav", "second/1.wav"])
    corpus = read_corpus(
        tmp_path, metadata_train="t.csv", metadata_eval="e.csv", wavs_train="first",
        wavs_eval=str(tmp_path / "second"),
    )  # fmt: skip
    assert [u.id for u in corpus.train] == ["first/1", "first/2"]
    assert [(u.id, u.text, u.audio) for u in corpus.val] == [
        ("second/1", "Three.", tmp_path / "second/1.wav")
    ]


def test_an_utterance_in_both_files_stays_held_out(tmp_path):
    files = {"metadata.csv": table("{id}|{text}"), "e.csv": "b1|Three.\n"}
    corpus = read_corpus(make(tmp_path, files, wavs()), metadata_eval="e.csv", max_rejected=0.5)
    assert [u.id for u in corpus.train] == ["a1", "a2"]
    assert [u.id for u in corpus.val] == ["b1"]
    assert [(r.id, r.reason) for r in corpus.rejections] == [("b1", "duplicate id")]


def test_recordings_outside_the_corpus_directory_if_named(tmp_path):
    make(tmp_path, {"c/metadata.csv": table("{id}|{text}")}, wavs("elsewhere/"))
    corpus = read_corpus(tmp_path / "c", wavs_train=str(tmp_path / "elsewhere"))
    assert [u.id for u in corpus.utterances] == list(TEXTS)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("b9|Some words.", "missing recording"),
        ("a1|Some words.", "duplicate id"),
        ("b1|  ", "no text"),
        ("b1", "malformed line"),
        ("|Some words.", "malformed line"),
        ("../outside.wav|Some words.", "outside the corpus"),
        ("wavs/../../outside.wav|Some words.", "outside the corpus"),
        ("/etc/outside.wav|Some words.", "outside the corpus"),
        ("b1|" + "word " * 50, "text too long"),
        ("b1|" + "x" * 1_000_000, "text too long"),
        ("x" * 1_000_000 + "|Some words.", "missing recording"),
        ("./" * 500_000 + "x|Some words.", "missing recording"),
        ("../" * 300_000 + "x|Some words.", "outside the corpus"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_dropped_with_its_reason(tmp_path, line, reason):
    good = "a1|One clause.\na2|Another clause.\n"
    make(tmp_path, {"metadata.csv": good + line + "\n"}, wavs())
    make(tmp_path.parent, {}, ["outside.wav"])
    start = time.perf_counter()
    corpus = read_corpus(tmp_path, max_text_length=200, max_rejected=0.5)
    assert time.perf_counter() - start < 2
    assert [u.id for u in corpus.utterances] == ["a1", "a2"]
    assert [r.reason for r in corpus.rejections] == [reason]
    assert "line 3" in corpus.rejections[0].detail
    assert len(summarise(corpus)) < 2000


def test_a_symlink_may_point_anywhere(tmp_path):
    make(tmp_path, {"c/metadata.csv": table("{id}|{text}")}, wavs("elsewhere/"))
    (tmp_path / "c/wavs").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/again").symlink_to(tmp_path / "elsewhere")
    assert [u.id for u in read_corpus(tmp_path / "c").utterances] == list(TEXTS)


def test_composed_and_decomposed_names_are_the_same(tmp_path):
    make(tmp_path, {"metadata.csv": "caf\u00e9|One clause.\n"}, ["wavs/cafe\u0301.wav"])
    assert [u.id for u in read_corpus(tmp_path).utterances] == ["caf\u00e9"]


def test_an_unclosed_quote_drops_only_the_lines_it_swallows(tmp_path):
    lines = [f'wavs/{n}.wav,"Clause {n} of all."' for n in range(20)]
    lines[4] = 'wavs/4.wav,"Never closed'
    make(tmp_path, {"metadata.csv": "path,text\n" + "\n".join(lines)},
         [f"wavs/{n}.wav" for n in range(20)])  # fmt: skip
    corpus = read_corpus(tmp_path)
    assert [r.reason for r in corpus.rejections] == ["malformed line"] * 2
    assert len(corpus.utterances) == 18


def test_a_text_that_holds_the_delimiter_is_kept_whole(tmp_path):
    lines = "a1|One | two.\na2|Three.\nb1|Four.\nb2|Five.\nb3|Six.\n"
    make(tmp_path, {"metadata.csv": lines}, [*wavs(), "wavs/b2.wav", "wavs/b3.wav"])
    assert read_corpus(tmp_path).utterances[0].text == "One | two."


ERRORS = {
    "no metadata": ({}, "no metadata found. Looked for metadata_train.csv, metadata.csv"),
    "empty": ({"metadata.csv": ""}, "metadata.csv: it lists no utterance"),
    "numbers": ({"metadata.csv": "a1|12 7\na2|3 4\n"}, "no column holds text.*'12 7'"),
    "numbers under a header": (
        {"metadata.csv": "path|text\na1|12 7\na2|3 4\n"},
        "the texts are numbers, such as '12 7' for a1",
    ),
    "numbers in a manifest": (
        {"manifest.json": '{"audio_filepath": "wavs/a1.wav", "text": 3}'},
        "the texts are numbers",
    ),
    "no delimiter": ({"metadata.csv": "hello\nworld\n"}, "no delimiter.*first line is 'hello'"),
    "a line of delimiters": ({"metadata.csv": "|" * 1_000_000}, "have 1,000,001 columns"),
    "too many dropped": (
        {"metadata.csv": "a1|One.\na2|Two.\nc1|Three.\n"},
        r"1 of 3 utterances cannot be used; at most 25%(.|\n)*missing recording: 1, such as c1",
    ),
    "nothing left": ({"metadata.csv": "c1|One.\n"}, "1 of 1 utterances .* none is left"),
    "not UTF-8": ({"metadata.csv": b"a1|One.\na2|caf\xe9\n"}, r"line 2 is not UTF-8 \(byte 0xe9"),
    "NUL": ({"metadata.csv": b"a1|One.\na2|T\0wo.\n"}, "line 2 holds a NUL byte"),
    "binary": ({"metadata.csv": b"\x89PNG\r\n\x1a\n\0\0"}, "holds a NUL byte, so this is not"),
    "bad keys": ({"manifest.json": '{"x": 1}'}, "manifest.json: the manifest's keys are x; it"),
    "no JSON": ({"manifest.json": '{"x": \n'}, "lists no utterance .line 1: not JSON"),
    "several lists": (
        {"filelists/a_train.txt": "a1|x", "filelists/b_train.txt": "a1|x"},
        "several files could be its metadata: filelists/a_train.txt, filelists/b_train.txt",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_corpora_are_errors_that_say_what_was_seen(tmp_path, name):
    files, message = ERRORS[name]
    make(tmp_path, files, wavs())
    with pytest.raises(CorpusError, match=message):
        read_corpus(tmp_path)


def test_missing_and_wrong_places(tmp_path):
    make(tmp_path, {"metadata.csv": table("{id}|{text}")}, wavs())
    for root, options, message in (
        (tmp_path / "no", {}, "no: no such directory$"),
        (tmp_path / "metadata.csv", {}, "is a file; name the corpus directory"),
        (tmp_path, {"metadata_train": "x.csv"}, "--metadata-train-file x.csv: not found"),
        (tmp_path, {"wavs_train": "x"}, "--wavs-train-dir x: not found"),
        (tmp_path, {"metadata_train": "wavs/a1.wav"}, "it lists no utterance"),
        (tmp_path, {"metadata_eval": "metadata.csv"}, "cannot be both"),
        (tmp_path, {"val_fraction": 1.0}, "val_fraction is 1.0"),
    ):
        with pytest.raises(CorpusError, match=message):
            read_corpus(root, **options)


def test_unreadable_metadata(tmp_path, monkeypatch):
    make(tmp_path, {"metadata.csv": table("{id}|{text}")}, wavs())

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CorpusError, match="metadata.csv: cannot be read: Permission denied"):
        read_corpus(tmp_path)


def make_numbered(root: Path, count: int) -> Path:
    lines = "".join(f"u{n}|Clause number {n} of them.\n" for n in range(count))
    return make(root, {"metadata.csv": lines}, [f"wavs/u{n}.wav" for n in range(count)])


def test_the_split_is_the_hash_of_the_id():
    first = int(blake2b(b"u0", digest_size=8).hexdigest(), 16) / 2**64
    assert not is_validation("u0", first)
    assert is_validation("u0", first + 1e-9)


def test_more_utterances_move_no_old_ones(tmp_path):
    small = read_corpus(make_numbered(tmp_path / "s", 200), val_fraction=0.1)
    large = read_corpus(make_numbered(tmp_path / "l", 400), val_fraction=0.1)
    old = {u.id for u in small.utterances}
    assert {u.id for u in large.val} & old == {u.id for u in small.val}
    assert 20 <= len(large.val) <= 60


@pytest.mark.parametrize(
    ("count", "fraction", "held_out"),
    [(1, 0.02, 0), (2, 1e-12, 1), (5, 1e-12, 1), (3, 1 - 1e-12, 2), (5, 0.0, 0)],
)
def test_something_is_held_out_but_never_everything(tmp_path, count, fraction, held_out):
    corpus = read_corpus(make_numbered(tmp_path, count), val_fraction=fraction)
    assert (len(corpus.train), len(corpus.val)) == (count - held_out, held_out)
    assert [u.id for u in corpus.utterances] == [f"u{n}" for n in range(count)]


def make_spoken(root: Path) -> Path:
    """Two good recordings of 1.5 and 0.5 s, an empty one, one that is text, two unused ones."""
    lines = ["a|One clause.", "b|Another clause.", "c|A third clause.", "d|A fourth one.", "e|"]
    lines += ["a|One clause again.", "g|A fifth one."]
    make(root, {"metadata.csv": "\n".join(lines), "wavs/d.wav": "not sound"}, ["wavs/c.wav"])
    for name, seconds in (("a", 1.5), ("b", 0.5), ("e", 2.0)):
        soundfile.write(root / f"wavs/{name}.wav", np.zeros(int(seconds * 8000)), 8000)
    return root


def test_headers_are_inspected_in_order(tmp_path):
    corpus = read_corpus(make_spoken(tmp_path), max_rejected=0.5)
    steps = []
    infos, rejections = inspect_recordings(
        corpus.utterances, workers=2, progress=lambda *step: steps.append(step)
    )
    assert [info and info.seconds for info in infos] == [1.5, 0.5, None, None]
    reasons = [(r.id, r.reason) for r in rejections]
    assert reasons == [("c", "empty recording"), ("d", "unreadable recording")]
    assert steps[-1] == (4, 4)


def test_inspecting_nothing():
    assert inspect_recordings([]) == ([], [])


def test_dropped_speech_is_measured_once(tmp_path):
    rejections = read_corpus(make_spoken(tmp_path), max_rejected=0.5).rejections
    # The second line for `a` loses no speech: its recording is used.
    assert [(r.id, r.reason, r.seconds) for r in rejections] == [
        ("e", "no text", 2.0),
        ("a", "duplicate id", 0.0),
        ("g", "missing recording", 0.0),
    ]


def test_the_summary_says_it_all(tmp_path):
    corpus = read_corpus(make_spoken(tmp_path / "voice"), max_rejected=0.5, val_fraction=0.0)
    infos, rejections = inspect_recordings(corpus.utterances)
    corpus = corpus.without(rejections)
    text = summarise(corpus, [info.seconds for info in infos if info])
    assert text.splitlines()[1:10] == [
        "  understood            metadata.csv: a table with |: recording | text",
        "                        recordings in wavs/ (.wav)",
        "                        speakers from the corpus directory's name",
        "  utterances                    2       2.0 s",
        "    training                    2       2.0 s",
        "    validation                  0       0.0 s",
        "  speakers                      1  voice",
        "  languages                     1  en",
        "  dropped                       5       2.0 s  71.4 % of all",
    ]
    assert "    no text                     1       2.0 s" in text
    assert "      g: metadata.csv, line 7: no such file in" in text


def test_order_and_split_survive_leaving_some_out(tmp_path):
    corpus = read_corpus(make_numbered(tmp_path, 9), val_fraction=0.5)
    left = corpus.without([Rejection("u3", "silent recording", "", 2.0)])
    assert [u.id for u in left.utterances] == [f"u{n}" for n in range(9) if n != 3]
    assert {u.id for u in left.val} == {u.id for u in corpus.val} - {"u3"}
    assert left.rejections[-1].seconds == 2.0


@pytest.mark.slow
def test_thirteen_thousand_lines_take_well_under_a_second_of_work(tmp_path):
    make_numbered(tmp_path, 1)
    lines = "".join(f"u{n}|A clause of some length, as clauses are.\n" for n in range(13_100))
    (tmp_path / "metadata.csv").write_text(lines)
    for n in range(13_100):
        os.close(os.open(tmp_path / f"wavs/u{n}.wav", os.O_CREAT))
    start = time.process_time()
    corpus = read_corpus(tmp_path)
    assert time.process_time() - start < 1.0
    assert len(corpus.utterances) == 13_100


@pytest.mark.parametrize(
    ("name", "count", "speakers"),
    [
        ("kathleen_en", 1132, ("kathleen_en",)),
        ("ljspeech100", 100, ("ljspeech100",)),
        ("excerpts80", 240, ("HS", "LJ", "WS")),
    ],
)
def test_real_corpora(name, count, speakers):
    corpus = read_corpus(shared(name))
    infos, rejections = inspect_recordings(corpus.utterances)
    assert (len(corpus.utterances), corpus.speakers) == (count, speakers)
    assert corpus.rejections == () and rejections == [] and len(infos) == count
    assert all(info.sample_rate == 22050 for info in infos)


def test_a_first_utterance_in_full():
    corpus = read_corpus(shared("ljspeech100"))
    assert corpus.utterances[1] == Utterance(
        "LJ001-0002",
        shared("ljspeech100") / "wavs/LJ001-0002.flac",
        "in being comparatively modern.",
        "ljspeech100",
        "en",
    )


def test_text_without_recordings_is_a_clear_error():
    with pytest.raises(CorpusError, match="there is metadata.csv, but no recording .*wavs"):
        read_corpus(shared("lj_text"))
