"""The lines of a run's history and their checksums."""

import json
import zlib

import pytest

from myxtts.errors import UserError
from myxtts.monitoring.history import Trail, encode_line, read_lines


def test_a_line_has_the_crc_of_its_canonical_json():
    line = encode_line({"step": 7, "loss": 0.5})
    check = format(zlib.crc32(b'{"loss": 0.5, "step": 7}'), "08x")
    assert json.loads(line.text) == {"step": 7, "loss": 0.5, "check": check}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"0.25", b"0.75"),
        (b'"step": 2', b'"step": 3'),
        (b"loss", b"less"),
        (b"check", b"chuck"),
        (b"0.25", b"0.2\xff"),
        (b"{", b"["),
    ],
)
def test_a_changed_line_is_an_error_that_names_file_and_line(tmp_path, old, new):
    path = tmp_path / "history.jsonl"
    lines = [encode_line({"step": step, "loss": loss}).text for step, loss in ((1, 0.5), (2, 0.25))]
    path.write_bytes(lines[0] + lines[1].replace(old, new))
    with pytest.raises(UserError, match=r"history\.jsonl, line 2, is damaged .* delete that line"):
        read_lines(path)


def test_lines_of_earlier_versions_have_no_checksum_and_a_torn_one_is_dropped(tmp_path):
    path = tmp_path / "history.jsonl"
    checked = encode_line({"step": 2, "loss": None}).text
    path.write_bytes(b'{"step": 1, "loss": 0.5}\n' + checked + checked[:9])
    assert [line.values for line in read_lines(path)] == [
        {"step": 1, "loss": 0.5},
        {"step": 2, "loss": None},
    ]


def test_a_trail_counts_what_is_learnt_and_not_how_fast():
    slow, fast, other = Trail(), Trail(), Trail()
    slow.add({"step": 1, "loss": 0.5, "data_ms": 9.0})
    fast.add({"step": 1, "loss": 0.5, "data_ms": 1.0})
    other.add({"step": 1, "loss": 0.25})
    assert slow == fast != other
    assert slow.facts() == {
        "lines": 1,
        "check": format(zlib.crc32(b'{"loss": 0.5, "step": 1}'), "08x"),
    }
