"""The library espeak-ng, by its C interface: words to IPA in one voice."""

import ctypes
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from myxtts.text.errors import TextError

SYNCHRONOUS, DONT_EXIT = 0x02, 0x8000  # of espeak_Initialize
UTF8, IPA, WITH_TIES = 1, 0x02, 0x80  # of espeak_TextToPhonemes
_TIE = 0x361  # a character above two letters
_REINSTALL = "install it again: pip install --force-reinstall espeakng-loader"


class _Voice(ctypes.Structure):
    """The beginning of `espeak_VOICE`; of each language a byte of priority stands before it."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),
        ("identifier", ctypes.c_char_p),
    )


def _load_copy(library: str) -> ctypes.CDLL:
    # Linux and macOS keep a file that is deleted as long as it is loaded; Windows keeps it.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return ctypes.CDLL(str(shutil.copy(library, Path(folder))))


class Espeak:
    """One copy of the library with one voice, that of a language code such as `en-us`.

    The state of the library is global: another voice needs another copy, which the system takes for
    a second library only if it is another file. Calls must not overlap.
    """

    def __init__(self, library: str, data: str, voice: str):
        try:
            self._library = _load_copy(library)
        except OSError as error:
            raise TextError(
                f"cannot load espeak-ng from {library} (data in {data}): {error}. It is copied to "
                f"{gettempdir()} and loaded from there: if that folder is full, read-only or "
                f"mounted noexec, set TMPDIR to another one; otherwise {_REINSTALL}"
            ) from error
        if self._library.espeak_Initialize(SYNCHRONOUS, 0, data.encode(), DONT_EXIT) <= 0:
            raise TextError(
                f"espeak-ng, loaded from {library}, cannot open its data in {data}: {_REINSTALL}"
            )
        found = next((one for one, code in self._voices() if code == voice), None)
        if found is None or self._library.espeak_SetVoiceByName(found) != 0:
            raise TextError(
                f"espeak-ng, loaded from {library}, has no voice {voice!r} in {data}: {_REINSTALL}"
            )
        self._say = self._library.espeak_TextToPhonemes
        self._say.restype = ctypes.c_char_p
        self._say.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_int]

    @property
    def version(self) -> str:
        self._library.espeak_Info.restype = ctypes.c_char_p
        return self._library.espeak_Info(None).decode().split()[0].replace("-dev", "")

    def ipa(self, words: str) -> str:
        """What is said, with ties within sounds of several letters."""
        rest = ctypes.pointer(ctypes.c_char_p(words.encode()))
        clauses = []
        while rest.contents.value is not None:
            if said := self._say(rest, UTF8, IPA | WITH_TIES | _TIE << 8):
                clauses.append(said.decode())
        return " ".join(clauses)

    def _voices(self) -> Iterator[tuple[bytes, str]]:
        """The identifiers of voices and their first languages, the likeliest voice first."""
        listed = self._library.espeak_ListVoices
        listed.argtypes, listed.restype = [ctypes.c_void_p], ctypes.POINTER(ctypes.POINTER(_Voice))
        for pointer in listed(None):
            if not pointer:
                return
            voice = pointer.contents
            yield voice.identifier, voice.languages[1:].decode()
