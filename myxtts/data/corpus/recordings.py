"""The recordings of a corpus: listed once, then found under the names that metadata give them."""

import logging
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from myxtts.audio.io import MISSING
from myxtts.data.rejections import OUTSIDE

logger = logging.getLogger(__name__)

EXTENSIONS = (".wav", ".flac", ".ogg", ".mp3", ".opus")
AUDIO_FOLDERS = ("wavs", "wav", "audio", "clips")

# A path with an empty, `.` or `..` component must be straightened before it is compared.
_CROOKED = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")
_HERE = re.compile(r"(?:\./+)+")


class Recordings:
    """Every recording and every `.txt` below some folders, by absolute path without extension."""

    def __init__(self, folders: Iterable[str]):
        self.folders = tuple(folders)
        self._real = tuple(folder_path(os.path.realpath(folder)) for folder in self.folders)
        self.texts: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._exact: dict[str, str] = {}  # those that share a name, with their extensions
        self._names: dict[str, str | None] | None = None
        for folder in self.folders:
            for path, extension in _walk(folder):
                self._add(path, extension)

    def __len__(self) -> int:
        return len(self._paths)

    def stems(self) -> list[str]:
        """Return the recordings' paths without extension, sorted."""
        return sorted(self._paths)

    def find(self, path: str) -> str | None:
        """Return the recording at `path`, whatever extension it is written or stored with."""
        exact = self._exact and self._exact.get(path)
        return exact or self._paths.get(without_extension(path)) or self._paths.get(path)

    def find_bare(self, stem: str) -> str | None:
        """Return the recording whose path without extension is `stem`."""
        return self._paths.get(stem)

    def straighten(self, path: str) -> str:
        """Return an absolute path without detours, under the name that the corpus goes by."""
        path = os.path.normpath(path)
        for folder, real in zip(self.folders, self._real, strict=True):
            if path.startswith(real):
                return folder_path(folder) + path[len(real) :]
        return path

    def find_by_name(self, name: str) -> str | None:
        """Return the only recording of that file name, in whichever folder it lies."""
        if self._names is None:
            self._names = {}
            for stem, path in self._paths.items():
                file_name = stem.rpartition("/")[2]
                self._names[file_name] = None if file_name in self._names else path
        return self._names.get(without_extension(name))

    def _add(self, path: str, extension: str) -> None:
        if not _is_utf8(path):
            logger.warning("%r is not used: its name is not UTF-8", path)
            return
        stem = _composed(path)[: -len(extension)]
        if extension == ".txt":
            self.texts[stem] = path
        elif (other := self._paths.setdefault(stem, path)) != path:
            # a.wav next to a.flac: the bare name means the first of EXTENSIONS.
            self._exact[_composed(path)], self._exact[_composed(other)] = path, other
            self._paths[stem] = min(path, other, key=_preference)


@dataclass(frozen=True)
class Locator:
    """How one metadata file names its recordings, and what their ids are."""

    recordings: Recordings
    home: str  # the metadata's folder; like all folders here, it ends with a slash
    bases: tuple[str, ...]  # the folders that names may be relative to, best first
    id_folders: tuple[str, ...]  # ids are relative to the first of these that holds the recording
    prefix: str = ""  # a placeholder folder such as VITS's DUMMY1/, taken off before looking
    by_name: bool = False

    def locate(self, written: str) -> str | None:
        """Return the path of the recording that the metadata call `written`."""
        # The common spelling, a bare id, takes one look-up; a crooked path is never a key.
        if not self.prefix and (path := self.recordings.find_bare(self.bases[0] + written)):
            return path
        name = self._clean(written)
        for place in self._places(name):
            if path := self.recordings.find(place):
                return path
        if self.by_name and "/" not in name:
            return self.recordings.find_by_name(name)
        return None

    def explain(self, written: str) -> tuple[str, str]:
        """Return reason and detail for a recording that was not located."""
        name = self._clean(written)
        folders = tuple(folder_path(folder) for folder in self.recordings.folders)
        if not any(place.startswith(folders) for place in self._places(name)):
            return OUTSIDE, "its path leads out of the corpus folder"
        return MISSING, f"no such file in {self.bases[0]}"

    def identify(self, path: str) -> str:
        """Return a recording's id: its path inside the audio folder, without extension."""
        for folder in self.id_folders:
            if path.startswith(folder):
                return without_extension(_composed(path[len(folder) :]))
        return without_extension(_composed(os.path.basename(path)))

    def count(self, names: Iterable[str]) -> int:
        """Count the recordings that are named, each once: speakers 0 and 1 may be names too."""
        return sum(self.locate(name) is not None for name in set(names))

    def adapted(self, names: Sequence[str]) -> "Locator":
        """Return the variant of this locator that finds most of `names`, itself if equal."""
        variants = [self, replace(self, by_name=True)]
        firsts = {name.partition("/")[0] for name in map(_clean, names)}
        if len(firsts) == 1 and (first := firsts.pop()):
            if not any(os.path.isdir(base + first) for base in self.bases):
                variants.insert(1, replace(self, prefix=first + "/"))
        return max(variants, key=lambda variant: variant.count(names))

    def _clean(self, written: str) -> str:
        return _clean(written).removeprefix(self.prefix)

    def _places(self, name: str) -> list[str]:
        """Return the absolute paths that a name may stand for."""
        if name.startswith("/"):
            return [self.recordings.straighten(name)]
        if _CROOKED.search(name):
            # `..` is only meant from where the metadata lie, never from inside an audio folder.
            bases = (self.home, folder_path(self.recordings.folders[0]))
            return [os.path.normpath(base + name) for base in bases]
        return [base + name for base in self.bases]


def make_locator(
    recordings: Recordings, home: str, wavs: str, id_folders: Sequence[str]
) -> Locator:
    """Look in `wavs` if it was named, else in the usual folders; then next to the metadata."""
    root = recordings.folders[0]
    usual = [os.path.join(place, name) for place in (root, home) for name in AUDIO_FOLDERS]
    places = [wavs] if wavs else [place for place in usual if os.path.isdir(place)]
    bases = dict.fromkeys(folder_path(place) for place in (*places, home, root))
    homes = dict.fromkeys(folder_path(place) for place in (*id_folders, *places, root))
    owners = sorted(homes, key=len, reverse=True) if not id_folders else list(homes)
    return Locator(recordings, folder_path(home), tuple(bases), tuple(owners))


def folder_path(path: str) -> str:
    """Return a folder's path with one slash at its end, so that it is a prefix of its files."""
    return path.rstrip("/") + "/"


def without_extension(name: str) -> str:
    """Take off the extension of a recording; other dots belong to the name."""
    stem, dot, extension = name.rpartition(".")
    return stem if dot and "." + extension.lower() in EXTENSIONS else name


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield recordings and texts below a folder with their extensions; symlinks are followed."""
    wanted = {*EXTENSIONS, ".txt"}
    pending: list[tuple[str, frozenset[tuple[int, int]]]] = [(folder, frozenset())]
    while pending:
        here, ancestors = pending.pop()
        try:
            status = os.stat(here)
            with os.scandir(here) as listing:
                entries = list(listing)
        except OSError as error:
            logger.warning("%s: %s; its recordings are not used", here, error.strerror)
            continue
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            continue  # a symlink in a circle
        for entry in entries:
            if entry.name.startswith("."):
                continue
            # Extensions first: asking every symlink whether it is a folder would cost a stat each.
            extension = entry.name[entry.name.rfind(".") :].lower()
            if extension in wanted:
                yield entry.path, extension
            elif entry.name not in ("cached_features", "__pycache__") and entry.is_dir():
                pending.append((entry.path, ancestors | {identity}))


def _clean(written: str) -> str:
    name = _composed(written).replace("\\", "/")
    here = _HERE.match(name)
    return name[here.end() :] if here else name


def _composed(name: str) -> str:
    """Compose accents: some file systems store them decomposed, metadata rarely do."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _is_utf8(name: str) -> bool:
    """Tell a proper name from one that os.scandir had to escape."""
    return name.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in name)


def _preference(path: str) -> int:
    return EXTENSIONS.index(os.path.splitext(path)[1].lower())
