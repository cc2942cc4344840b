"""A corpus: found, understood, read and split into what is trained on and what is held out."""

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from myxtts.data.corpus.dialects import read_metadata
from myxtts.data.corpus.filtering import Speakers, UtteranceFilter
from myxtts.data.corpus.listing import Listing
from myxtts.data.corpus.metadata_files import METADATA_NAMES, SLICES_FILE, find_metadata
from myxtts.data.corpus.recordings import EXTENSIONS, Recordings, folder_path, make_locator
from myxtts.data.corpus.table_columns import is_numbers
from myxtts.data.corpus.utterance import CorpusError, Utterance, shorten
from myxtts.data.rejections import Rejection, by_reason, is_too_much

_HASH_RANGE = 2**64
_SAMPLE = 400  # utterances that stand for all where the corpus is described and checked


@dataclass(frozen=True)
class Corpus:
    """The utterances to train on and to validate with, and what was dropped."""

    root: Path
    dialect: str  # what was understood, one finding a line
    train: tuple[Utterance, ...]
    val: tuple[Utterance, ...]
    rejections: tuple[Rejection, ...] = ()
    val_positions: tuple[int, ...] = ()  # of `val` among all utterances; at their end if empty

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """All utterances in the order of the metadata."""
        if not self.val_positions:
            return self.train + self.val
        train, val, held_out = iter(self.train), iter(self.val), set(self.val_positions)
        count = len(self.train) + len(self.val)
        return tuple(next(val if at in held_out else train) for at in range(count))

    @cached_property
    def speakers(self) -> tuple[str, ...]:
        return tuple(sorted({utterance.speaker for utterance in self.utterances}))

    @cached_property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({utterance.language for utterance in self.utterances}))

    def without(self, rejections: Iterable[Rejection]) -> "Corpus":
        """Return the corpus without the utterances of these ids, with their rejections added."""
        rejections = tuple(rejections)
        ids = {rejection.id for rejection in rejections}
        held_out = {utterance.id for utterance in self.val}
        kept = [utterance for utterance in self.utterances if utterance.id not in ids]
        positions = [at for at, utterance in enumerate(kept) if utterance.id in held_out]
        return _assemble(self.root, self.dialect, kept, positions, self.rejections + rejections)


def read_corpus(
    root: str | os.PathLike,
    *,
    metadata_train: str = "",
    metadata_eval: str = "",
    wavs_train: str = "",
    wavs_eval: str = "",
    language: str = "en",
    speaker_pattern: str = "",
    val_fraction: float = 0.02,
    max_rejected: float = 0.25,
    max_text_length: int = 0,
) -> Corpus:
    """Read a corpus in whichever dialect it is written; no recording is decoded."""
    if not 0 <= val_fraction < 1:
        raise CorpusError(f"val_fraction is {val_fraction}; it must be at least 0 and below 1")
    root = _existing_directory(root)
    train, val = _open_listings(root, metadata_train, metadata_eval, wavs_train, wavs_eval)
    speakers = Speakers(root, speaker_pattern, train)
    usable = UtteranceFilter(root, speakers, language, max_text_length)
    with _paused_collector():
        # What is held out is claimed first: an utterance that both files list stays held out.
        held_out = usable.keep(val) if val else []
        utterances = usable.keep(train) + held_out
    dialect = _describe(root, [train, val] if val else [train], utterances, speakers)
    _check_enough(root, dialect, utterances, usable.rejections, max_rejected)
    _check_words(root, dialect, utterances)
    positions: Sequence[int]
    if val:
        positions = range(len(utterances) - len(held_out), len(utterances))
    else:
        positions = _choose_validation(utterances, val_fraction)
    return _assemble(root, dialect, utterances, positions, usable.measured_rejections())


def is_validation(utterance_id: str, fraction: float) -> bool:
    """Tell by its id alone whether an utterance is held out, so that others never move it."""
    return _hash(utterance_id) < fraction * _HASH_RANGE


def _existing_directory(root: str | os.PathLike) -> Path:
    path = Path(os.path.abspath(os.path.expanduser(root)))
    if path.is_file():
        raise CorpusError(f"{path} is a file; name the corpus directory that holds it")
    if not path.is_dir():
        raise CorpusError(f"{path}: no such directory")
    return path


def _open_listings(
    root: Path, metadata_train: str, metadata_eval: str, wavs_train: str, wavs_eval: str
) -> tuple[Listing, Listing | None]:
    """Find metadata and recordings, and work out how the one names the other."""
    train = _named(root, metadata_train, "--metadata-train-file", os.path.exists)
    val = _named(root, metadata_eval, "--metadata-eval-file", os.path.exists)
    wavs_train = _named(root, wavs_train, "--wavs-train-dir", os.path.isdir)
    wavs_eval = _named(root, wavs_eval, "--wavs-eval-dir", os.path.isdir)
    if not train:
        train, partner = find_metadata(str(root))
        val = val or partner
    if train and val and os.path.samefile(train, val):
        raise CorpusError(f"{train} cannot be both training and validation metadata; name another")
    folders = [folder for folder in (wavs_train, wavs_eval) if folder]
    recordings = Recordings([str(root), *(f for f in folders if not _is_below(f, root))])
    if train and not len(recordings):
        raise CorpusError(
            f"{root}: there is {os.path.basename(train)}, but no recording "
            f"({' '.join(EXTENSIONS)}) anywhere below. Copy the recordings to {root / 'wavs'}, or "
            "name their directory (--wavs-train-dir)"
        )
    # Two audio folders may both hold a 001.wav: their ids begin where their paths part.
    id_folders = []
    if val and wavs_train != wavs_eval:
        id_folders = [os.path.commonpath([wavs_train or str(root), wavs_eval or str(root)])]

    def open_listing(path: str, wavs: str) -> Listing | None:
        home = os.path.dirname(path) if path and _is_below(path, root) else str(root)
        return read_metadata(path, make_locator(recordings, home, wavs, id_folders))

    listing = open_listing(train, wavs_train)
    if not listing and (root / SLICES_FILE).is_file():
        raise CorpusError(
            f"{root}: its clips have no texts yet. `myxtts data transcribe {root}` writes them, or "
            "write metadata.csv with lines such as id|text"
        )
    if not listing:
        names = ", ".join(name for name in METADATA_NAMES if "*" not in name)
        raise CorpusError(
            f"{root}: no metadata found. Looked for {names}, filelists/*train*.txt, and for a text "
            "file with each recording. Name the file (--metadata-train-file), or write "
            "metadata.csv with lines such as id|text"
        )
    return listing, open_listing(val, wavs_eval) if val else None


def _named(root: Path, name: str, flag: str, exists: Callable[[str], bool]) -> str:
    """Return the absolute path of what the user named, relative to the corpus or to here."""
    if not name:
        return ""
    name = os.path.expanduser(name)
    places = [os.path.abspath(place) for place in (os.path.join(root, name), name)]
    for place in places:
        if exists(place):
            return place
    raise CorpusError(f"{flag} {name}: not found, neither in the corpus ({places[0]}) nor here")


@contextlib.contextmanager
def _paused_collector() -> Iterator[None]:
    """Keep Python from searching a million new records, none of them in a cycle, for garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_below(path: str, folder: Path) -> bool:
    return folder_path(path).startswith(folder_path(str(folder)))


def _describe(
    root: Path, listings: Sequence[Listing], utterances: Sequence[Utterance], speakers: Speakers
) -> str:
    """Say what was understood, one finding a line."""
    findings = [listing.understood for listing in listings]
    for listing in listings:
        if listing.locator.prefix:
            findings.append(f"{listing.locator.prefix} in {listing.name} stands for the corpus")
        if listing.locator.by_name:
            findings.append(f"{listing.name} gives file names; their folders were searched for")
    places: Counter[str] = Counter()
    for utterance in utterances[:_SAMPLE]:
        folder = os.path.relpath(str(utterance.audio).removesuffix(utterance.audio.name), root)
        depth = utterance.id.count("/")
        folder = "/".join(folder.split("/")[: -depth or None])
        places[f"{folder}/ ({utterance.audio.suffix.lower()})"] += 1
    if places:
        findings.append("recordings in " + ", ".join(place for place, _ in places.most_common(3)))
        sources = [source for source, _ in speakers.sources.most_common()]
        findings.append("speakers from " + ", ".join(sources))
    return "\n".join(findings)


def _check_enough(
    root: Path,
    dialect: str,
    utterances: Sequence[Utterance],
    rejections: Sequence[Rejection],
    max_rejected: float,
) -> None:
    """Reject a corpus of which nothing or too little is left."""
    total = len(utterances) + len(rejections)
    if not is_too_much(len(rejections), total, max_rejected):
        return
    counts = [
        f"  {reason}: {len(group):,}, such as {group[0].id} ({group[0].detail})"
        for reason, group in by_reason(rejections).items()
    ]
    understood = dialect.replace("\n", "; ")
    raise CorpusError(
        "\n".join(
            [
                f"{root}: {len(rejections):,} of {total:,} utterances cannot be used; "
                + (f"at most {max_rejected:.0%} may be dropped" if utterances else "none is left"),
                *counts,
                f"It was understood as: {understood}. Fix the metadata or the recordings, or name "
                "other files (--metadata-train-file, --wavs-train-dir)",
            ]
        )
    )


def _check_words(root: Path, dialect: str, utterances: Sequence[Utterance]) -> None:
    """Reject texts that are numbers: token ids, durations, or the wrong column."""
    sample = utterances[:_SAMPLE]
    numbers = [utterance for utterance in sample if is_numbers(utterance.text)]
    if len(numbers) > 0.9 * len(sample):
        understood = dialect.replace("\n", "; ")
        raise CorpusError(
            f"{root}: the texts are numbers, such as {shorten(numbers[0].text)!r} for "
            f"{numbers[0].id}. It was understood as: {understood}. Write the words that are "
            "spoken in the text column, or name other metadata (--metadata-train-file)"
        )


def _choose_validation(utterances: Sequence[Utterance], fraction: float) -> list[int]:
    """Return the positions to hold out: by hash, but at least one of two and never all."""
    hashes = [_hash(utterance.id) for utterance in utterances]
    chosen = [at for at, value in enumerate(hashes) if value < fraction * _HASH_RANGE]
    if fraction == 0 or len(utterances) < 2:
        return []
    if not chosen:
        return [hashes.index(min(hashes))]
    if len(chosen) == len(utterances):
        chosen.remove(hashes.index(max(hashes)))
    return chosen


def _hash(utterance_id: str) -> int:
    return int.from_bytes(blake2b(utterance_id.encode(), digest_size=8).digest(), "big")


def _assemble(
    root: Path,
    dialect: str,
    utterances: Sequence[Utterance],
    positions: Iterable[int],
    rejections: tuple[Rejection, ...],
) -> Corpus:
    held_out = set(positions)
    return Corpus(
        root,
        dialect,
        tuple(utterance for at, utterance in enumerate(utterances) if at not in held_out),
        tuple(utterance for at, utterance in enumerate(utterances) if at in held_out),
        rejections,
        tuple(sorted(held_out)),
    )
