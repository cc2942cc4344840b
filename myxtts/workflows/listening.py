"""A blind listening test of folders of audio and of voices, and the tally of its listeners."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from myxtts.checkpoints import holds_voice
from myxtts.errors import UserError
from myxtts.workflows.evaluate_voice import SENTENCES
from myxtts.workflows.listening_clips import HIDDEN, Speaking, gather_clips

PAGE = "listening.html"
_HTML = (".html", ".htm")
_MEGABYTE = 1_000_000
_DESIGNS = {"preference": "AB preference", "rating": "MUSHRA-like ratings"}


def write_listening_test(
    systems: Sequence[Path],
    output: Path | None = None,
    *,
    references: Path | None = None,
    sentences: int = SENTENCES,
    seed: int = 0,
    speaking: Speaking | None = None,
) -> str:
    """Write the page that compares systems, folders of audio or voices; return what was done.

    `references` are recordings of the same sentences, a hidden reference. At most so many
    `sentences` are compared, of those that all systems have.
    """
    from myxtts.evaluation.listening import ListeningTest, at_one_level, make_trials
    from myxtts.evaluation.report.listening import write_listening_page

    path = page_path(output)
    named = name_systems(systems, references)
    said, clips, rate = gather_clips(named, sentences, speaking or Speaking())
    trials = make_trials(said, at_one_level(clips, rate), seed)
    test = ListeningTest(tuple(named), trials, rate, seed)
    page = write_listening_page(path, test)
    return "\n".join(
        [
            f"{_DESIGNS[test.design]}, {len(trials)} sentences by {', '.join(named)}",
            f"page  {path} ({path.stat().st_size / _MEGABYTE:.1f} MB, id {page})",
            "tally myxtts evaluate --tally listening.json ..., the files that listeners save",
        ]
    )


def tally_answers(files: Sequence[Path]) -> str:
    """The pooled table of the files that listeners saved."""
    from myxtts.evaluation.listening_tally import read_sheet, tally
    from myxtts.evaluation.report.tables import aligned

    sheets = [read_sheet(path) for path in files]
    rows, legend = tally(sheets)
    answers = sum(len(one.answers) for one in sheets)
    what = f"page {sheets[0].page}: {answers} answers, {len(sheets)} listeners"
    return f"{what}\n\n{aligned(rows)}\n\n{legend}"


def page_path(output: Path | None) -> Path:
    """Where the page goes: the file, or listening.html in the folder, that was named."""
    if output is None:
        return Path(PAGE)
    if output.suffix.lower() in _HTML and not output.is_dir():
        return output
    if output.is_file():
        raise UserError(f"{output} is a file: name a folder, or a file that ends in .html, with -o")
    return output / PAGE


def name_systems(systems: Sequence[Path], references: Path | None = None) -> dict[str, Path]:
    """Folders by the names that the tally shows: their last parts, where these differ."""
    if len(systems) < 2:
        raise UserError("a comparison takes at least two systems: name them behind --listen")
    short = [path.absolute().name for path in systems]
    names = short if len(set(short)) == len(short) else list(map(str, systems))
    pairs = list(zip(map(_printable, names), systems, strict=True))
    pairs += [(HIDDEN, references)] if references else []
    for _, path in pairs:
        if not path.is_dir():
            raise UserError(f"there is no folder {path}: check its name")
    if len(dict(pairs)) < len(pairs) or len({path.resolve() for _, path in pairs}) < len(pairs):
        raise UserError("one folder is named twice: compare different ones")
    return dict(pairs)


def has_voice(systems: Iterable[Path]) -> bool:
    """Whether one of the folders holds a voice, which needs TensorFlow to speak."""
    return any(map(holds_voice, systems))


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)
