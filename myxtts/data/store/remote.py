"""A folder of objects behind a URL (s3://, gs://, file://): the one place that knows fsspec."""

import importlib
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from myxtts.atomic import FULL
from myxtts.data.store.errors import CacheError
from myxtts.errors import UserError

logger = logging.getLogger(__name__)

# Seconds for which a store may fail to answer before a run ends, and before it has ever answered.
PATIENCE = 300.0
FIRST_PATIENCE = 20.0
# Objects that are under way at a time. Each is held in memory until it was checked.
PARALLEL = 4

_LONGEST_PAUSE = 30.0
_EXTRA = "pip install 'myxtts[object-storage]'"
# Waiting does not help. Each package has errors of its own, so some are known by their names.
_FINAL = (FileNotFoundError, PermissionError, ImportError, ValueError, TypeError, MemoryError)
_FINAL_NAMES = {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"}
_FINAL_NAMES |= {"UnauthenticatedError", "PermissionDeniedError", "NotFoundError"}
_DENIED = re.compile(r"status code: 4(?!08|29)\d\d|NoSuchBucket|AccessDenied|\w+AccessKeyId")

Item = TypeVar("Item")
Result = TypeVar("Result")


def is_url(cache_dir: str) -> bool:
    """Whether a cache lies on object storage: `protocol://...`."""
    return "://" in cache_dir


@dataclass(frozen=True)
class Remote:
    """A folder of objects; every call waits for a store that does not answer, for a while."""

    url: str

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def objects(self) -> dict[str, int]:
        """All objects below, by their names relative to the URL, with their sizes."""
        files, path = self._files(), self._path()
        files.invalidate_cache()
        found = self._ask("list", lambda: files.find(path, detail=True), FIRST_PATIENCE)
        names = {name.removeprefix(path).lstrip("/"): info["size"] for name, info in found.items()}
        return {name: size for name, size in names.items() if not name.endswith(".part")}

    def read(self, name: str) -> bytes:
        """One object, whole."""
        return bytes(self._ask(f"read {name} of", lambda: self._files().cat_file(self._path(name))))

    def read_ranges(self, name: str, starts: Sequence[int], ends: Sequence[int]) -> list[bytes]:
        """Some ranges of bytes of one object."""
        paths = [self._path(name)] * len(starts)

        def ask() -> list[bytes]:
            found = self._files().cat_ranges(paths, list(starts), list(ends))
            for error in (one for one in found if isinstance(one, Exception)):
                raise error
            return [bytes(one) for one in found]

        return self._ask(f"read {name} of", ask)

    def write(self, name: str, content: bytes) -> None:
        """Store a small object, whole or not at all."""
        self._put(name, lambda path: self._files().pipe_file(path, content))

    def upload(self, file: Path, name: str) -> None:
        """Store a file, whole or not at all."""
        self._put(name, lambda path: self._files().put_file(str(file), path))

    def remove(self, name: str) -> None:
        """Delete an object; one that is not there is no error."""
        try:
            self._ask(f"delete {name} of", lambda: self._files().rm_file(self._path(name)))
        except MissingObject:
            return

    def _put(self, name: str, put: Callable[[str], None]) -> None:
        path = self._path(name)
        if self.url.startswith(("file://", "local://")):  # a folder has no atomic PUT
            self._ask(f"write {name} to", lambda: put(f"{path}.part"))
            self._ask(f"write {name} to", lambda: self._files().mv(f"{path}.part", path))
        else:
            self._ask(f"write {name} to", lambda: put(path))

    def _path(self, name: str = "") -> str:
        path = str(self._files()._strip_protocol(self.url)).rstrip("/")
        return f"{path}/{name}" if name else path

    def _files(self) -> Any:
        return _file_system(self.url.partition("://")[0], self.url)

    def _ask(self, what: str, call: Callable[[], Result], patience: float = PATIENCE) -> Result:
        """Call until there is an answer; log what is waited for."""
        began, pause = time.monotonic(), 0.5
        while True:
            try:
                return call()
            except Exception as error:  # whatever the user's package raises
                if _is_final(error):
                    raise _final_error(what, self.url, error) from error
                waited = time.monotonic() - began
                if waited + pause > patience:
                    raise CacheError(
                        f"cannot {what} {self.url}: no answer for {waited:.0f} s "
                        f"({_brief(error)}). Run the same command again when it is reachable"
                    ) from error
                message = "cannot %s %s (%s): trying again in %.0f s"
                logger.warning(message, what, self.url, _brief(error), max(1, pause))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class MissingObject(CacheError):
    """An object, or its bucket, does not exist."""


def in_daemons(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Results as they come, from a few threads; leaving early waits for none of them.

    Those of an executor are joined at exit: Ctrl-C would wait for downloads that nobody wants.
    """
    todo, done = queue.SimpleQueue[Item](), queue.SimpleQueue[Result | BaseException]()
    left = threading.Event()
    for item in items:
        todo.put(item)

    def run() -> None:
        while not left.is_set():
            try:
                done.put(work(todo.get_nowait()))
            except queue.Empty:
                return
            except BaseException as error:
                done.put(error)

    for _ in range(min(PARALLEL, len(items))):
        threading.Thread(target=run, name="objects", daemon=True).start()
    try:
        for _ in items:
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            yield found
    finally:
        left.set()


def _file_system(protocol: str, url: str) -> Any:
    """The file system of a protocol: of fsspec's own package, or of obstore where that is absent.

    Instances are kept by fsspec.
    """
    try:
        import fsspec
    except ImportError:
        raise UserError(f"{url}: object storage needs fsspec: {_EXTRA}") from None
    options: dict[str, Any] = {"auto_mkdir": True} if protocol in ("file", "local") else {}
    try:
        kind = fsspec.get_filesystem_class(protocol)
    except ValueError as error:
        raise UserError(f"{url}: {error}; name the cache as in s3://bucket/folder") from None
    except ImportError as error:
        kind = _obstore(protocol)
        if kind is None:
            raise UserError(f"{url}: {error}, or {_EXTRA}") from None
    if kind.__module__.startswith("obstore"):
        # By default a request may take 30 s in all, which is too little for a large object. The
        # endpoint decides between http and https.
        times = {"timeout": "1h", "read_timeout": "20s"}
        options["client_options"] = {**times, "allow_http": True}
        options["retry_config"] = {"max_retries": 1}  # `_ask` is patient, and says so
    return kind(**options)


def _obstore(protocol: str) -> Any:
    try:
        bridge = importlib.import_module("obstore.fsspec")
    except ImportError:
        return None
    if protocol not in bridge.SUPPORTED_PROTOCOLS:
        return None
    bridge.register(protocol)
    import fsspec

    return fsspec.get_filesystem_class(protocol)


def _is_final(error: Exception) -> bool:
    if isinstance(error, (UserError, *_FINAL)) or type(error).__name__ in _FINAL_NAMES:
        return True
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    return bool(_DENIED.search(str(error)))


def _final_error(what: str, url: str, error: Exception) -> UserError:
    if isinstance(error, UserError):
        return error
    brief = f"cannot {what} {url}: {_brief(error)}"
    if isinstance(error, FileNotFoundError) or "NoSuch" in str(error):
        return MissingObject(f"{brief}. Check the name of the bucket and the folder")
    if isinstance(error, OSError) and error.errno in FULL:
        return CacheError(f"{brief}. Free some space there and run the same command again")
    return CacheError(f"{brief}. Check the credentials and what they may do there")


def _brief(error: Exception) -> str:
    """One line: some packages put whole answers of the server into their errors."""
    said = re.search("<Message>(.*?)</Message>", str(error))
    text = said[1] if said else str(error)
    text = " ".join(text.split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
