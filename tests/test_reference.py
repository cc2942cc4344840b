"""The reference pages: what is committed is what the tables of the code give."""

import pytest

from tools.reference import FOLDER, flags_page, pages, settings_page


@pytest.mark.parametrize("name", ["flags.md", "settings.md"])
def test_the_reference_is_that_of_the_code(name):
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == pages()[name], f"docs/reference/{name} is outdated: run `make reference`"


def test_every_command_and_every_kind_of_argument_is_in_the_reference():
    text = flags_page()
    for command in ("myxtts train", "myxtts data check", "myxtts config create"):
        assert f"\n## {command}\n" in text
    assert "\n## myxtts data\n" not in text
    assert "| `-o`, `--output FILE` |" in text
    assert "| `CORPUS` |" in text and " (required) |" in text
    assert r"| `--language en\|fa` |" in text


def test_every_setting_is_in_the_reference_with_its_limits():
    text = settings_page()
    assert "| `val_fraction` | float | `0.02` | 0.0 to 0.5 | `--val-fraction` |" in text
    assert "| `max_mel_frames` | int | `1600` | at least 1 |" in text
    assert "| `cache_dtype` | str | `float16` | `float16`, `float32` |" in text
    assert r"| `mixed_precision` | bool \| None | `null` | – | – |" in text
    assert "| `data.batch_size` | 8 | 32 | 48 | 64 |" in text
