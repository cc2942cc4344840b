"""The table of languages that can be spoken: a new one is a file and a row."""

import difflib

from myxtts.text.errors import TextError
from myxtts.text.language import Language
from myxtts.text.languages.arabic import ARABIC
from myxtts.text.languages.chinese import CHINESE
from myxtts.text.languages.english import ENGLISH
from myxtts.text.languages.hindi import HINDI
from myxtts.text.languages.japanese import JAPANESE
from myxtts.text.languages.korean import KOREAN
from myxtts.text.languages.latin.czech import CZECH
from myxtts.text.languages.latin.dutch import DUTCH
from myxtts.text.languages.latin.french import FRENCH
from myxtts.text.languages.latin.german import GERMAN
from myxtts.text.languages.latin.hungarian import HUNGARIAN
from myxtts.text.languages.latin.italian import ITALIAN
from myxtts.text.languages.latin.polish import POLISH
from myxtts.text.languages.latin.portuguese import PORTUGUESE
from myxtts.text.languages.latin.spanish import SPANISH
from myxtts.text.languages.latin.turkish import TURKISH
from myxtts.text.languages.persian import PERSIAN
from myxtts.text.languages.russian import RUSSIAN

# Models number their languages in this order: a new one goes to the end.
LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        ENGLISH,
        PERSIAN,
        SPANISH,
        FRENCH,
        GERMAN,
        ITALIAN,
        PORTUGUESE,
        POLISH,
        TURKISH,
        RUSSIAN,
        DUTCH,
        CZECH,
        ARABIC,
        CHINESE,
        HUNGARIAN,
        KOREAN,
        JAPANESE,
        HINDI,
    )
}


def get_language(code: str) -> Language:
    """Look a language up, or say which ones there are."""
    if code in LANGUAGES:
        return LANGUAGES[code]
    near = difflib.get_close_matches(str(code).lower(), LANGUAGES, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise TextError(f"unknown language {code!r}.{hint} Known languages: {', '.join(LANGUAGES)}.")


def greeting(code: str) -> str:
    """A short text to try a voice of a language with; an unknown one is greeted in English."""
    return LANGUAGES.get(code, ENGLISH).greeting
