"""The scripts and code points of texts: what is mixed, and what is typed with another keyboard."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from myxtts.text.guess import SCRIPT_LETTERS
from myxtts.text.languages import get_language

_SHOWN = 40  # characters of an example
# Scripts that a language uses next to its own; Latin words are reported by themselves.
_COMPANIONS = {"Kana": {"Han"}, "Hangul": {"Han"}}


def describe_script(texts: Sequence[str], language: str) -> list[str]:
    """Say how many texts have letters of other scripts, and which are typed as other letters."""
    row = get_language(language)
    expected = {row.script, "Latin"} | _COMPANIONS.get(row.script, set())
    mixed = [text for text in texts if scripts_of(text) - expected]
    findings = []
    if mixed:
        found = Counter(name for text in mixed for name in scripts_of(text) - expected)
        names = ", ".join(f"{name} in {count:,}" for name, count in found.most_common())
        findings.append(
            f"{len(mixed):,} of {len(texts):,} texts have letters of another script than that of "
            f"{row.name} ({names}), such as {mixed[0][:_SHOWN]!r}. They are not spoken: correct "
            "the texts, or give these utterances their own language in the metadata"
        )
    return [*findings, *_describe_forms(texts, row.foreign_forms)]


def scripts_of(text: str) -> set[str]:
    """The names of all scripts that a text has letters of."""
    return {name for name, letters in SCRIPT_LETTERS.items() if letters.search(text)}


def _describe_forms(texts: Iterable[str], forms: Mapping[str, str]) -> list[str]:
    """Count letters that other keyboards write, such as Arabic ye and kaf in Persian."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({letter: text.count(letter) for letter in forms if letter in text})
    if not counts:
        return []
    shown = ", ".join(f"{one} {count:,} times" for one, count in counts.most_common())
    read = " and ".join(dict.fromkeys(forms[one] for one, _ in counts.most_common()))
    return [f"the texts have letters of another keyboard ({shown}), which are read as {read}"]


def is_plain(text: str) -> bool:
    """Whether a text has no control characters, lone surrogates or the like."""
    return all(unicodedata.category(letter) not in ("Cc", "Cs", "Cn", "Co") for letter in text)
