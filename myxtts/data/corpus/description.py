"""A corpus in a few lines: what it is, what was understood, what is dropped and why."""

from collections.abc import Sequence

from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.utterance import Utterance, shorten
from myxtts.data.rejections import Rejection, by_reason, name_some

_EXAMPLES = 3
_NAMES = 6


def summarise(corpus: Corpus, seconds: Sequence[float] | None = None) -> str:
    """Describe a corpus; `seconds` are the lengths of `corpus.utterances`, where they are known."""
    lengths = None
    if seconds is not None:
        pairs = zip(corpus.utterances, seconds, strict=True)
        lengths = {utterance.id: length for utterance, length in pairs}
    lines = [str(corpus.root)]
    title = "understood"
    for finding in corpus.dialect.splitlines():
        lines.append(f"  {title:<20}  {finding}")
        title = ""
    for title, utterances in (
        ("utterances", corpus.utterances),
        ("  training", corpus.train),
        ("  validation", corpus.val),
    ):
        lines.append(_line(title, len(utterances), _total(utterances, lengths)))
    for title, names in (("speakers", corpus.speakers), ("languages", corpus.languages)):
        lines.append(f"{_line(title, len(names))}  {_some(names)}")
    return "\n".join([*lines, *_dropped(corpus)])


def _dropped(corpus: Corpus) -> list[str]:
    count = len(corpus.rejections)
    lines = [_line("dropped", count, _lost(corpus.rejections) if count else None)]
    if count:
        lines[0] += f"  {100 * count / (count + len(corpus.utterances)):.1f} % of all"
    for reason, group in by_reason(corpus.rejections).items():
        lines.append(_line(f"  {reason}", len(group), _lost(group)))
        lines += name_some(group, _EXAMPLES)
    return lines


def _line(title: str, count: int, seconds: float | None = None) -> str:
    time = "" if seconds is None else f"{_duration(seconds):>12}"
    return f"  {title:<20}  {count:>9,}{time}"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.2f} h" if seconds >= 36 else f"{seconds:.1f} s"


def _total(utterances: Sequence[Utterance], lengths: dict[str, float] | None) -> float | None:
    return None if lengths is None else sum(lengths[utterance.id] for utterance in utterances)


def _lost(rejections: Sequence[Rejection]) -> float:
    return sum(rejection.seconds for rejection in rejections)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    return ", ".join(shorten(name, 32) for name in names[:_NAMES]) + more
