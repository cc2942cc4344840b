"""What the row of Persian refers to: each imports NumPy and the tables only when it is called."""

from pathlib import Path

from myxtts.text.language import Speak, TextReader


def open_reader(speak: Speak) -> TextReader:
    """Open the front end."""
    from myxtts.text.languages.persian.reading import Reader

    return Reader(speak)


def vowelise(text: str, speak: Speak) -> str:
    """Write the vowels of a normalised text above and below its letters."""
    from myxtts.text.languages.persian.vowels import vowelise

    return vowelise(text, speak)


def judge(folder: Path, speak: Speak) -> list[list[str]]:
    """Read the test sets with the front end and with espeak alone."""
    from myxtts.text.languages.persian.test_sets import judge_test_sets

    return judge_test_sets(folder, speak)
