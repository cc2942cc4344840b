"""English abbreviations, titles, initials and Roman numerals in words."""

import re
from collections.abc import Callable

from myxtts.text.languages.english.numbers import cardinal, ordinal

# Read the same wherever they stand; a title is capitalised and the rest may be.
_TITLES = {
    "Mr": "mister",
    "Mrs": "missus",
    "Ms": "miz",
    "Messrs": "messieurs",
    "Dr": "doctor",
    "Prof": "professor",
    "Rev": "reverend",
    "Hon": "honorable",
    "Gen": "general",
    "Col": "colonel",
    "Maj": "major",
    "Capt": "captain",
    "Lt": "lieutenant",
    "Sgt": "sergeant",
    "Cpl": "corporal",
    "Gov": "governor",
    "Sen": "senator",
    "Pres": "president",
    "Jr": "junior",
    "Sr": "senior",
    "Esq": "esquire",
    "Co": "company",
    "Corp": "corporation",
    "Inc": "incorporated",
    "Ltd": "limited",
    "Bros": "brothers",
    "Ave": "avenue",
    "Blvd": "boulevard",
    "Rd": "road",
    "Mt": "mount",
    "Ft": "fort",
    "Feb": "february",
    "Aug": "august",
    "Sept": "september",
    "Oct": "october",
    "Nov": "november",
    "Dec": "december",
}
_WORDS = {
    "etc": "et cetera",
    "vs": "versus",
    "approx": "approximately",
    "dept": "department",
    "est": "established",
    "assn": "association",
    "govt": "government",
    "misc": "miscellaneous",
}
# Words of their own without a number after them: "no." ends many a sentence.
_BEFORE_NUMBER = {
    "no": "number",
    "nos": "numbers",
    "vol": "volume",
    "fig": "figure",
    "ch": "chapter",
    "p": "page",
    "pp": "pages",
    "jan": "january",
    "mar": "march",
    "apr": "april",
    "jun": "june",
    "jul": "july",
}
_REGNAL_NAMES = (
    "Alexander Benedict Catherine Charles Clement Edward Elizabeth Ferdinand Francis Frederick "
    "George Gregory Gustavus Henry Innocent Ivan James John Leo Leopold Louis Mary Napoleon "
    "Nicholas Paul Peter Philip Pius Richard Urban Victor Wilhelm William"
).split()
_DIVISIONS = "Act Book Chapter Figure Part Phase Section Table Type Volume War".split()
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}

# No letter, digit or apostrophe may stand before an abbreviation: "disco." is not a company.
_START = r"(?<![\w'])"
_TITLE = re.compile(_START + rf"({'|'.join(_TITLES)})\.(\s?)(?=(.?))")
_WORD = re.compile(_START + rf"({'|'.join(_WORDS)})\.(\s?)(?=(.?))", re.IGNORECASE)
_NUMBERED = re.compile(_START + rf"({'|'.join(_BEFORE_NUMBER)})\. ?(?=[A-Z]?\d)", re.IGNORECASE)
_SAINT = re.compile(_START + r"St\. ?(?=[A-Z])")
_STREET = re.compile(r"(?<=\w )St\.(\s?)(?=(.?))")
_LATIN = re.compile(_START + r"(e\. ?g|i\. ?e)\.", re.IGNORECASE)
_LATIN_WORDS = {"e": "for example", "i": "that is"}
_DOTTED = re.compile(
    r"(?<![\w'.])((?:[A-Za-z]\.)+[A-Za-z](?!\w)\.?|[APap]\. [Mm]\.|Ph\.D\.?)(?=(.?))"
)
# "I." ends a sentence more often than it abbreviates a name.
_INITIAL = re.compile(_START + r"([A-HJ-Z])\. ?(?=[A-Z])")
_BARE_TITLE = re.compile(_START + r"(Mr|Mrs|Ms|Dr)(?= [A-Z])")
_REGNAL = re.compile(rf"\b({'|'.join(_REGNAL_NAMES)}) ([IVX]+)\b(?:\.(?= [a-z]))?")
_DIVISION = re.compile(rf"\b({'|'.join(_DIVISIONS)}) ([IVXLC]+)\b(?:\.(?= [a-z]))?")


def expand_abbreviations(text: str) -> str:
    """Say titles, initials, dotted letters and Roman numerals; the text still has its capitals."""
    text = _REGNAL.sub(lambda m: _numeral(m, "the {}", ordinal), text)
    text = _DIVISION.sub(lambda m: _numeral(m, "{}", cardinal), text)
    text = _BARE_TITLE.sub(lambda m: _TITLES[m[1]], text)
    if "." not in text:
        return text
    text = _LATIN.sub(lambda m: _LATIN_WORDS[m[1][0].lower()], text)
    text = _DOTTED.sub(_letters, text)
    text = _SAINT.sub("saint ", text)
    text = _STREET.sub(lambda m: _word("street", m[1], m[2]), text)
    text = _TITLE.sub(lambda m: _word(_TITLES[m[1]], m[2], m[3]), text)
    text = _WORD.sub(lambda m: _word(_WORDS[m[1].lower()], m[2], m[3]), text)
    text = _NUMBERED.sub(lambda m: _BEFORE_NUMBER[m[1].lower()] + " ", text)
    return _INITIAL.sub(r"\1 ", text)


def _word(word: str, space: str, following: str) -> str:
    """Replace an abbreviation; its dot survives only where it also ends the text."""
    if not following or not space and following in "\"')":
        return f"{word}.{space}"
    return word if following in ",;:.!?—…-" else f"{word} "


def _letters(match: re.Match[str]) -> str:
    """Spell dotted letters: hyphens make the voices read "a-m" as letters, not as an article."""
    letters = "-".join(re.findall(r"[A-Za-z]", match[1]))
    return letters if match[2] else f"{letters}."


def _numeral(match: re.Match[str], form: str, speak: Callable[[int], str]) -> str:
    """Say a Roman numeral after its name, or leave what is not one."""
    value = roman_value(match[2])
    if value is None:
        return match[0]
    return f"{match[1]} {form.format(speak(value))}"


def roman_value(numeral: str) -> int | None:
    """Read a well-formed Roman numeral below 400."""
    total = 0
    for index, letter in enumerate(numeral):
        value = _ROMAN_VALUES[letter]
        following = numeral[index + 1 : index + 2]
        total += -value if following and _ROMAN_VALUES[following] > value else value
    return total if _to_roman(total) == numeral else None


def _to_roman(value: int) -> str:
    out = ""
    for size, letters in ((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX")):
        out += letters * (value // size)
        value %= size
    for size, letters in ((5, "V"), (4, "IV"), (1, "I")):
        out += letters * (value // size)
        value %= size
    return out
