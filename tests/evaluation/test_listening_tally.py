"""The statistics of a listening test by hand, and the files that listeners save."""

import json
import math
from pathlib import Path

import pytest

from myxtts.errors import UserError
from myxtts.evaluation.listening_tally import mean_rating, preference, read_sheet, shown_p, tally

AB = {
    "format": 1,
    "page": "123456789abc",
    "design": "preference",
    "seed": 0,
    "systems": ["one", "two"],
    "listener": "anna",
    "answers": [{"preferred": name} for name in ("one", "one", "one", "two", None)],
}
RATED = {
    **AB,
    "design": "rating",
    "answers": [{"ratings": {"one": 80, "two": 20}}, {"ratings": {"one": 60, "two": 20}}],
}


def test_a_sign_test_is_the_tail_of_coin_tosses():
    found = preference(3, 1, 2)
    assert found.p == pytest.approx(2 * (4 + 1) / 16)  # 3 or 4 of 4 tosses, either way
    assert found.share.value == 0.75 and found.neither == 2
    assert preference(8, 0).p == pytest.approx(2 / 256)
    assert preference(2, 2).p == preference(0, 0).p == 1.0
    assert preference(1, 3).p == preference(3, 1).p


def test_the_interval_of_a_share_is_exact():
    # All of n: the share below which p^n is less than .025.
    assert preference(8, 0).share.low == pytest.approx(0.025 ** (1 / 8))
    assert preference(8, 0).share.high == 1.0
    assert preference(0, 5).share.high == pytest.approx(1 - 0.025 ** (1 / 5))
    # 1 of 2: at least one with p = low has the probability 1 - (1 - p)^2 = .025.
    assert preference(1, 1).share.low == pytest.approx(1 - math.sqrt(0.975))
    none = preference(0, 0).share
    assert (none.low, none.high) == (0.0, 1.0) and math.isnan(none.value)


def test_the_interval_of_a_mean_is_students():
    # The deviation is 2, so the standard error is 1; t of 3 degrees of freedom is 3.1824.
    found = mean_rating(
        [50 - math.sqrt(3), 50 - math.sqrt(3), 50 + math.sqrt(3), 50 + math.sqrt(3)]
    )
    assert found.value == pytest.approx(50)
    assert found.high - found.value == pytest.approx(3.182446, abs=1e-6)
    assert math.isnan(mean_rating([70]).low) and mean_rating([70]).value == 70


def test_small_p_values_are_not_shown_as_zero():
    assert [shown_p(p) for p in (1.0, 0.0314, 0.0004)] == ["1.000", "0.031", "< 0.001"]


@pytest.fixture
def save(tmp_path):
    def write(name: str, record) -> Path:
        path = tmp_path / name
        path.write_text(record if isinstance(record, str) else json.dumps(record))
        return path

    return write


def test_listeners_are_pooled(save):
    ben = {**AB, "listener": "ben", "answers": [{"preferred": "one"}] * 5}
    sheets = [read_sheet(save("anna.json", AB)), read_sheet(save("ben.json", ben))]
    rows, legend = tally(sheets)
    assert rows[0] == ("listener", "one", "two", "no preference", "for one, %", "p")
    assert rows[1][1:] == ("3", "1", "1", "75.0 [19.4, 99.4]", "0.625")
    assert rows[2][1:] == ("5", "0", "0", "100.0 [47.8, 100.0]", "0.062")
    # 8 of 9: 2 (9 + 1) / 512
    assert rows[3] == ("all", "8", "1", "1", "88.9 [51.8, 99.7]", "0.039")
    assert "sign test" in legend
    assert tally(sheets[:1])[0][1:] == [("all", *rows[1][1:])]


def test_ratings_have_a_row_for_each_system(save):
    rows, _ = tally([read_sheet(save("anna.json", RATED))])
    assert rows[0] == ("system", "all", "ratings")
    # The standard error is 10, and t of one degree of freedom 12.706.
    assert rows[1] == ("one", "70.0 [-57.1, 197.1]", "2")
    assert rows[2] == ("two", "20.0 [20.0, 20.0]", "2")


def test_answers_to_another_page_are_not_pooled(save):
    other = {**AB, "listener": "ben", "page": "ffff"}
    sheets = [read_sheet(save("anna.json", AB)), read_sheet(save("ben.json", other))]
    with pytest.raises(UserError, match=r"ben.json is of the page ffff, and .* of 123456789abc"):
        tally(sheets)


def test_one_listener_does_not_count_twice(save):
    sheets = [read_sheet(save("a.json", AB)), read_sheet(save("a (1).json", AB))]
    with pytest.raises(UserError, match="are of the same listener: keep one"):
        tally(sheets)


@pytest.mark.parametrize(
    "record",
    [
        *("", "[]", "{}", "nonsense", {**AB, "answers": []}, {**AB, "answers": [None]}),
        *({**AB, "answers": [{}]}, {**AB, "answers": [{"preferred": "three"}]}),
        *({**AB, "systems": ["one"]}, {**AB, "systems": "ab"}, {**AB, "page": 7}),
        *({**AB, "listener": "\x1b[2J"}, {**AB, "design": "rating"}, {**AB, "design": ["x"]}),
        {**RATED, "answers": [{"ratings": {"one": 101, "two": 0}}]},
        {**RATED, "answers": [{"ratings": {"one": True, "two": 0}}]},
        {**RATED, "answers": [{"ratings": {"one": 1}}]},
        {**AB, "answers": [{"preferred": ["one"]}]},
    ],
)
def test_other_files_are_rejected(save, record):
    with pytest.raises(UserError, match="holds no answers of a listening test"):
        read_sheet(save("x.json", record))


def test_a_missing_file_and_a_later_format_are_rejected(save, tmp_path):
    with pytest.raises(UserError, match="cannot read .*nothing.json"):
        read_sheet(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="another version"):
        read_sheet(save("x.json", {**AB, "format": 2}))
