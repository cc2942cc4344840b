"""Markdown as it is read aloud."""

import pytest

from myxtts.text.markdown import plain_lines, plain_text


@pytest.mark.parametrize(
    "line, read",
    [
        ("plain * text_with_names 2*3", "plain * text_with_names 2*3"),
        ("**bold**, *thin* and _both_", "bold, thin and both"),
        ("[a link](http://x) and ![a picture](y.png)", "a link and a picture"),
        ("> > quoted", "quoted"),
        ("`code` <b>tag</b><!-- note -->", "code tag"),
        (r"2 \* 3", "2 * 3"),
        ("a note[^1]", "a note"),
        ("- item", "\nitem\n"),
        ("3. item", "\nitem\n"),
    ],
)
def test_marks_are_dropped(line, read):
    assert plain_text(line) == read


def test_blocks_that_nobody_reads_are_dropped():
    lines = ["text", "```python", "code = 1", "```", "***", "a | b", "--|--", "Title", "====="]
    assert plain_lines(lines) == ["text", "", "", "", "", "a | b", "", "# Title", ""]
