"""Markdown without its marks: what a reader would read aloud."""

import re

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_RULE = re.compile(r"\s{0,3}(?:[-*_]\s*){3,}")
_SETEXT = re.compile(r"\s{0,3}(=+|-+)\s*")
_TABLE_RULE = re.compile(r"[\s|:-]+")
_QUOTE = re.compile(r"^(?:\s{0,3}>\s?)+")
_BULLET = re.compile(r"^\s{0,12}(?:[-*+]|\d{1,9}[.)])\s+")
_RULES = (
    (re.compile(r"<!--.{0,2000}?-->"), ""),
    (re.compile(r"!\[([^\]\n]{0,500})\]\([^)\n]{0,2000}\)"), r"\1"),
    (re.compile(r"\[([^\]\n]{1,500})\]\([^)\n]{0,2000}\)"), r"\1"),
    (re.compile(r"\[([^\]\n]{1,500})\]\[[^\]\n]{0,200}\]"), r"\1"),
    (re.compile(r"\[\^[^\]\n]{1,100}\]:?"), ""),
    (re.compile(r"<(https?://[^>\s]{1,2000})>"), r"\1"),
    (re.compile(r"</?[A-Za-z][^>\n]{0,2000}>"), ""),
    (re.compile(r"`+([^`\n]*)`+"), r"\1"),
    (re.compile(r"(\*{1,3}|~~)(?=\S)([^*~\n]{1,2000}?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_\n]{1,2000}?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"\\([\\`*_{}\[\]()#+.!>~|-])"), r"\1"),
)


def plain_lines(lines: list[str]) -> list[str]:
    """Drop front matter, code blocks and rules; write underlined headings with `#`."""
    found: list[str] = []
    fence = ""
    for line in _without_front_matter(lines):
        mark = _FENCE.match(line)
        if fence or mark:
            is_end = mark and mark[1] == fence
            fence = "" if is_end else fence or (mark[1] if mark else "")
            found.append("")
        elif found and found[-1].strip() and (under := _SETEXT.fullmatch(line)):
            found[-1:] = [f"{'#' if under[1][0] == '=' else '##'} {found[-1].strip()}", ""]
        elif _RULE.fullmatch(line) or "|" in line and _TABLE_RULE.fullmatch(line):
            found.append("")
        else:
            found.append(line)
    return found


def plain_text(line: str) -> str:
    """A line without links, emphasis, tags, quotes and bullets; an item is its own paragraph."""
    line = _QUOTE.sub("", line)
    bare = _BULLET.sub("", line)
    is_item = bare != line
    for pattern, kept in _RULES:
        bare = pattern.sub(kept, bare)
    return f"\n{bare}\n" if is_item else bare


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1:200], 1):
            if line.strip() in ("---", "..."):
                return lines[number + 1 :]
    return lines
