"""Addresses, hashtags and mentions as Iranians read them aloud."""

import re

from myxtts.text.languages.persian.numbers import spell_digits

_AT, _DOT, _SLASH, _HASHTAG = "ات", "نقطه", "اسلش", "هشتگ"
_SIGNS = {".": _DOT, "/": _SLASH, "@": _AT, "-": "خط تیره", "_": "آندرلاین", ":": "دو نقطه"}
_SIGNS |= {"?": "علامت سوال", "=": "مساوی", "&": "اند", "%": "درصد", "#": _HASHTAG, "+": "پلاس"}
_SIGNS |= {"~": "مد"}
_HOST = r"(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,12}"
_EMAIL = re.compile(rf"(?<![\w.@])[A-Za-z0-9._+-]{{1,64}}@{_HOST}(?![\w@])")
_URL = re.compile(
    rf"(?<![\w@.])(?:(?:https?|ftp)://[^\s,;!()\"'<>\u0600-\u06ff]{{1,200}}"
    rf"|(?:www\.)?{_HOST}(?:/[^\s,;!()\"'<>\u0600-\u06ff]{{0,200}})?)"
)
_TAG = re.compile(r"#(?=[^\W\d])([\w\u200c]{1,80})")
_MENTION = re.compile(r"(?<!\w)@(?=\w)([\w.]{1,40})")
_IRAN = re.compile(r"\.ir(?![\w-])", re.IGNORECASE)
_PART = re.compile(r"[^\W\d_]+|\d+|.")


def say_addresses(text: str) -> str:
    """Say e-mail addresses, web addresses, hashtags and mentions in words."""
    if "." in text:
        text = _EMAIL.sub(lambda match: _spell(match[0]), text)
        text = _URL.sub(_say_url, text)
    if "#" in text:
        text = _TAG.sub(lambda match: f" {_HASHTAG} {match[1].replace('_', ' ')} ", text)
    if "@" in text:
        text = _MENTION.sub(lambda match: f" {_AT} {_spell(match[1])}", text)
    return text


def _say_url(match: re.Match[str]) -> str:
    """Say an address without its protocol; a mark at its end belongs to the sentence."""
    address = match[0]
    tail = address[len(address.rstrip(".,:?")) :]
    bare = re.sub(r"^[a-z]+://", "", address.removesuffix(tail)).removeprefix("www.").rstrip("/")
    has_www = "www." in address
    return (" دابلیو دابلیو دابلیو نقطه" if has_www else "") + _spell(bare).rstrip() + tail + " "


def _spell(address: str) -> str:
    words = []
    for part in _PART.findall(_IRAN.sub(".آی آر", address)):
        words.append(spell_digits(part) if part.isdecimal() else _SIGNS.get(part, part))
    return f" {' '.join(words)} "
