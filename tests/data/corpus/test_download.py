"""Downloading against a local server: resuming, checksums, hostile archives."""

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from myxtts.data.corpus import download
from myxtts.data.corpus.download import DownloadError, download_ljspeech

CLIPS = 3


@pytest.fixture
def server(monkeypatch):
    """A server whose `body`, ability to resume and breaking point a test sets."""
    monkeypatch.setattr(download, "_WAIT_SECONDS", 0.0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            here = self.server
            here.ranges.append(self.headers.get("Range"))
            if here.status:
                return self.send_error(here.status)
            if here.leads_to:
                self.send_response(302)
                self.send_header("Location", here.leads_to)
                return self.end_headers()
            start = 0
            if here.resumes and self.headers.get("Range"):
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                if start >= len(here.body):
                    return self.send_error(416)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(here.body) - 1}/*")
            else:
                self.send_response(200)
            rest = here.body[start:]
            if here.tells_length:
                self.send_header("Content-Length", here.length_text or str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: here.breaks_after] if here.breaks_after else rest)

        def log_message(self, *args):
            """Keep the test's output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.body, server.ranges, server.resumes, server.breaks_after = b"", [], True, 0
        server.status, server.tells_length = 0, True
        server.leads_to = server.length_text = ""
        server.url = f"http://127.0.0.1:{server.server_address[1]}/LJSpeech-1.1.tar.bz2"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def make_archive(names=None, links=()) -> bytes:
    """Pack a tiny LJSpeech, or files of other names."""
    ids = [f"LJ001-000{n}" for n in range(CLIPS)]
    files = {f"LJSpeech-1.1/wavs/{id}.wav": b"RIFF" for id in ids}
    files["LJSpeech-1.1/metadata.csv"] = "".join(f"{id}|one|one\n" for id in ids).encode()
    files.update(names or {})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:bz2") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, goal in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, goal
            archive.addfile(member)
    return packed.getvalue()


def fetch(server, target, sha256=None, **options):
    sha256 = sha256 or hashlib.sha256(server.body).hexdigest()
    return download_ljspeech(target, server.url, sha256, expected_clips=CLIPS, **options)


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_fetches_verifies_and_leaves_only_the_corpus(server, tmp_path):
    server.body = make_archive()
    seen = []
    target = tmp_path / "data" / "ljspeech"
    assert fetch(server, target, progress=lambda *step: seen.append(step)) == target
    assert left_in(tmp_path / "data") == ["ljspeech"]
    assert left_in(target) == ["metadata.csv", "wavs"]
    assert left_in(target / "wavs") == ["LJ001-0000.wav", "LJ001-0001.wav", "LJ001-0002.wav"]
    assert ("download", len(server.body), len(server.body)) in seen
    assert [stage for stage, _, _ in seen if stage == "unpack"] == ["unpack"] * 4


def test_a_resumed_download_of_unknown_length_promises_no_total(server, tmp_path):
    server.body = make_archive()
    server.tells_length = False
    (tmp_path / "LJSpeech-1.1.tar.bz2.part").write_bytes(server.body[:100])
    seen = []
    fetch(server, tmp_path / "lj", progress=lambda *step: seen.append(step))
    assert server.ranges == ["bytes=100-"]
    assert ("download", len(server.body), 0) in seen


@pytest.mark.parametrize("length", ["many", "9" * 30, "-5"])
def test_a_length_that_is_no_number_is_ignored(server, tmp_path, length):
    server.body, server.length_text = make_archive(), length
    seen = []
    try:
        fetch(server, tmp_path / "lj", progress=lambda *step: seen.append(step))
    except DownloadError as error:  # Python's own client believes in 30 digits
        assert "the connection" in str(error)
    assert {total for stage, _, total in seen if stage == "download"} <= {0}


@pytest.mark.parametrize("address", ["http://127.0.0.1:odd/x", "http://[::1/x"])
def test_a_redirect_to_no_address_is_an_error(server, tmp_path, address):
    server.leads_to = address
    with pytest.raises(DownloadError, match="the server's answer is not valid"):
        fetch(server, tmp_path / "lj", sha256="0" * 64)


def test_folders_nested_too_deeply_are_refused(server, tmp_path):
    server.body = make_archive({"LJSpeech-1.1/" + "d/" * 1500 + "x": b"x"})
    with pytest.raises(DownloadError, match="nested too deeply|cannot be unpacked|too long"):
        fetch(server, tmp_path / "lj")
    assert not (tmp_path / "lj").exists()


@pytest.mark.parametrize("name", ["LJSpeech-1.1/wavs/big.wav", "LJSpeech-1.1/" + "n" * 4_000_000])
def test_an_archive_that_unpacks_to_more_than_its_clips_can_take_is_refused(
    server, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(download, "_MOST_CLIP_BYTES", 100_000)
    server.body = make_archive({name: bytes(4_000_000)})
    assert len(server.body) < 10_000
    with pytest.raises(DownloadError, match="more than 0.3 MB, which is more than 3 clips"):
        fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("pack", [lambda tar: tar, bz2.compress, gzip.compress, lzma.compress])
def test_archives_are_unpacked_however_they_are_packed(server, tmp_path, pack):
    server.body = pack(bz2.decompress(make_archive()))
    assert left_in(fetch(server, tmp_path / "lj")) == ["metadata.csv", "wavs"]


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress])
def test_an_archive_that_is_damaged_inside_is_refused_and_removed(server, tmp_path, pack):
    packed = bytearray(pack(bz2.decompress(make_archive())))
    packed[len(packed) // 2 :] = bytes(len(packed) - len(packed) // 2)
    server.body = bytes(packed)
    with pytest.raises(DownloadError, match="it cannot be unpacked"):
        fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == []


def test_a_complete_corpus_is_not_fetched_again(server, tmp_path):
    server.body = make_archive()
    fetch(server, tmp_path / "lj")
    fetch(server, tmp_path / "lj")
    assert server.ranges == [None]


def test_a_broken_connection_is_resumed_where_it_broke(server, tmp_path):
    server.body = make_archive()
    server.breaks_after = 80
    fetch(server, tmp_path / "lj")
    assert server.ranges[:3] == [None, "bytes=80-", "bytes=160-"]
    assert left_in(tmp_path) == ["lj"]


def test_a_later_run_goes_on_with_the_partial_file(server, tmp_path):
    server.body = make_archive()
    (tmp_path / "LJSpeech-1.1.tar.bz2.part").write_bytes(server.body[:100])
    fetch(server, tmp_path / "lj")
    assert server.ranges == ["bytes=100-"]


def test_giving_up_keeps_what_arrived_and_says_so(server, tmp_path):
    server.body = make_archive()
    server.breaks_after = 10
    with pytest.raises(DownloadError, match=r"after 50 of \d+ bytes.* 50 bytes are kept"):
        fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == ["LJSpeech-1.1.tar.bz2.part"]
    assert (tmp_path / "LJSpeech-1.1.tar.bz2.part").read_bytes() == server.body[:50]


def test_a_server_that_cannot_resume_starts_over(server, tmp_path):
    server.body, server.resumes = make_archive(), False
    (tmp_path / "LJSpeech-1.1.tar.bz2.part").write_bytes(b"something else")
    fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == ["lj"]


def test_a_complete_partial_file_is_used(server, tmp_path):
    server.body = make_archive()
    (tmp_path / "LJSpeech-1.1.tar.bz2.part").write_bytes(server.body)
    fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == ["lj"]


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    server.body = make_archive()
    with pytest.raises(DownloadError, match=r"sha256 is [0-9a-f]{64} instead of 0000"):
        fetch(server, tmp_path / "lj", sha256="0" * 64)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    "archive",
    [
        make_archive({"../escaped.txt": b"x"}),
        make_archive({"LJSpeech-1.1/../../escaped.txt": b"x"}),
        make_archive(links=[("LJSpeech-1.1/link", "/etc")]),
    ],
    ids=["parent", "nested parent", "link"],
)
def test_hostile_members_are_refused(server, tmp_path, archive):
    server.body = archive
    folder = tmp_path / "inner"
    with pytest.raises(DownloadError, match="unsafe member|neither file nor directory"):
        fetch(server, folder / "lj")
    assert left_in(folder) == []
    assert left_in(tmp_path) == ["inner"]


def test_an_incomplete_archive_is_refused(server, tmp_path):
    server.body = make_archive({"LJSpeech-1.1/wavs/extra.wav": b"RIFF"})
    with pytest.raises(DownloadError, match="3 lines in metadata.csv and 4 recordings"):
        fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == []


def test_a_directory_with_something_else_is_left_alone(server, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DownloadError, match="is not LJSpeech .it has no metadata.csv"):
        fetch(server, tmp_path)
    assert left_in(tmp_path) == ["notes.txt"] and server.ranges == []


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (503, 5)])
def test_server_errors(server, tmp_path, status, requests):
    server.status = status
    with pytest.raises(DownloadError, match=f"the server answers {status}"):
        fetch(server, tmp_path / "lj", sha256="0" * 64)
    assert len(server.ranges) == requests
    assert left_in(tmp_path) == []


def test_two_downloads_at_once_do_not_mix(server, tmp_path):
    server.body = make_archive()
    with download._only_one(tmp_path / "LJSpeech-1.1.tar.bz2.part"):
        with pytest.raises(DownloadError, match="another download is under way"):
            fetch(server, tmp_path / "lj")
    assert server.ranges == []


def test_a_full_disk_is_noticed_before_the_download(server, tmp_path, monkeypatch):
    server.body = make_archive()
    usage = download.shutil.disk_usage(tmp_path)._replace(free=len(server.body))
    monkeypatch.setattr(download.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(DownloadError, match="GB are free. Make room"):
        fetch(server, tmp_path / "lj")
    assert left_in(tmp_path) == []
