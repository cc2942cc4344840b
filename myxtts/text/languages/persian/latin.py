"""Latin words inside a Persian text, letter by letter in the Persian names of the letters."""

import re
import unicodedata

_NAMES = dict(
    pair.split(":")
    for pair in (
        "a:ای b:بی c:سی d:دی e:ای f:اف g:جی h:اچ i:آی j:جی k:کی l:ال m:ام n:ان o:او p:پی q:کیو "
        "r:آر s:اس t:تی u:یو v:وی w:دابلیو x:ایکس y:وای z:زد"
    ).split()
)
_LATIN = re.compile("[a-z\u00df-\u024f\u0300-\u036f]+")


def spell_latin(text: str) -> str:
    """Spell the Latin words of a normalised text: "usb" is "یو اس بی"."""
    return _LATIN.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    letters = unicodedata.normalize("NFD", match[0])
    names = " ".join(_NAMES[letter] for letter in letters if letter in _NAMES)
    text, start, end = match.string, match.start(), match.end()
    before = " " if text[max(start - 1, 0) : start].isalnum() else ""
    after = " " if text[end : end + 1].isalnum() else ""
    return before + names + after if names else match[0]
