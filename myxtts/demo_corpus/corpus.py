"""The built-in corpus: generated sentences, synthesized by espeak-ng, in LJSpeech layout."""

import errno
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

from myxtts import atomic
from myxtts.demo_corpus.sentences import check_language, corpus_sentences, held_out_sentences
from myxtts.demo_corpus.voices import DEFAULT_PITCH, ESPEAK_LANGUAGE, UNSEEN, VOICES, DemoVoice
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores
from myxtts.monitoring.progress import Progress
from myxtts.text.cleaners import normalise
from myxtts.text.languages import get_language
from myxtts.text.phonemes import phonemize

logger = logging.getLogger(__name__)


STAMP = "demo.json"
CHUNK = 100  # sentences per espeak process; another number gives other samples


def make_demo(
    target: Path,
    language: str = "en",
    speakers: int = 3,
    clauses: int = 800,
    seed: int = 0,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Path:
    """Make a corpus of `clauses` sentences for each speaker; do nothing if it is already there.

    The bytes depend on the arguments alone, not on `workers`. `progress(done, total)` counts
    utterances.
    """
    voices = choose_voices(language, speakers)
    _check_positive("clauses", clauses)
    sentences = corpus_sentences(language, speakers * clauses, seed)
    return _make(Path(target), language, voices, sentences, progress, workers)


def make_small_dataset(
    target: Path, progress: Progress | None = None, workers: int | None = None
) -> Path:
    """Make dataset_train_small and dataset_val_small: the same two voices, other sentences."""
    target = Path(target)
    voices = choose_voices("en", 2)
    train, val = corpus_sentences("en", 48), held_out_sentences("en", 12)
    _make(target / "dataset_train_small", "en", voices, train, progress, workers)
    _make(target / "dataset_val_small", "en", voices, val, progress, workers)
    return target


def choose_voices(language: str, speakers: int) -> tuple[DemoVoice, ...]:
    """Return the first `speakers` voices of a language, the main one first."""
    check_language(language)
    _check_positive("speakers", speakers)
    voices = VOICES[language]
    if speakers > len(voices):
        raise UserError(
            f"The built-in corpus has {len(voices)} speakers for {language!r}; "
            f"{speakers} were asked for. Ask for fewer speakers and more clauses."
        )
    return voices[:speakers]


def unseen_voices(language: str) -> tuple[DemoVoice, ...]:
    """Return voices that are in no corpus; those to be tested come first."""
    check_language(language)
    return UNSEEN[language]


def plan_jobs(language: str, voices: Sequence[DemoVoice], sentences: Sequence[str]) -> list[dict]:
    """Give each voice an equal share of the sentences, and cut each share into jobs.

    A job is the work of one process: {"voice", "rate", "pitch", "lines": [[id, sentence], ...]}.
    With "reader" the front end of that language says how espeak pronounces them.
    """
    jobs = []
    share = len(sentences) // len(voices)
    for number, voice in enumerate(voices):
        own = sentences[number * share : (number + 1) * share]
        lines = [[f"{voice.name}-{i:04d}", text] for i, text in enumerate(own, start=1)]
        espeak_name = f"{ESPEAK_LANGUAGE[language]}+{voice.variant}"
        settings = {"voice": espeak_name, "rate": voice.rate, "pitch": voice.pitch}
        settings |= {"reader": language} if get_language(language).as_espeak_codes else {}
        jobs += [settings | {"lines": lines[i : i + CHUNK]} for i in range(0, share, CHUNK)]
    return jobs


def record_sentences(
    folder: Path, language: str, voice: DemoVoice, sentences: Sequence[str]
) -> list[Path]:
    """Record sentences in a voice, as for a corpus, into a subfolder named after it."""
    own = folder / voice.name
    own.mkdir(parents=True, exist_ok=True)
    jobs = plan_jobs(language, [voice], sentences)
    speak_jobs(jobs, own)
    return [own / f"{name}.wav" for job in jobs for name, _ in job["lines"]]


def speak_jobs(
    jobs: Sequence[dict],
    folder: Path,
    progress: Progress | None = None,
    workers: int | None = None,
) -> None:
    """Run each job in a new process, which writes FOLDER/ID.wav."""
    _check_espeak({job["voice"] for job in jobs})
    total = sum(len(job["lines"]) for job in jobs)
    done = 0
    # Threads only wait for processes. Leaving the block early, as Ctrl-C does, cancels waiting jobs
    # and lets the running ones finish, which takes about a second.
    with ThreadPoolExecutor(workers or available_cores()) as pool:
        for job, _ in zip(jobs, pool.map(partial(_speak, folder), jobs), strict=True):
            done += len(job["lines"])
            if progress:
                progress(done, total)


def _speak(folder: Path, job: dict) -> None:
    script = Path(__file__).with_name("espeak.py")
    process = subprocess.run(
        [sys.executable, "-P", str(script), str(folder)],
        input=json.dumps(_pronounced(job)),
        capture_output=True,
        text=True,
        encoding="utf-8",
        # Ctrl-C at a terminal reaches the whole process group; only the parent should handle it.
        start_new_session=True,
    )
    if process.returncode != 0:
        reason = (process.stderr.strip() or f"exit code {process.returncode}").splitlines()[-1]
        raise UserError(
            f"espeak-ng could not speak {job['lines'][0][0]} and those after it "
            f"into {folder}: {reason}. Check the free space there, and that espeakng-loader "
            "is whole: pip install --force-reinstall espeakng-loader."
        )


def _pronounced(job: dict) -> dict:
    """A job with the codes of phonemes in place of its sentences, where espeak misreads them."""
    if "reader" not in job:
        return job
    language = job["reader"]
    write = get_language(language).as_espeak_codes
    names, sentences = zip(*job["lines"], strict=True)
    spoken = phonemize([normalise(sentence, language) for sentence in sentences], language)
    lines = [[name, write(ipa)] for name, ipa in zip(names, spoken, strict=True)]
    return job | {"lines": lines, "has_codes": True}


def _check_espeak(voices: Iterable[str]) -> None:
    """Raise where espeak-ng would silently use its default voice instead."""
    try:
        import espeakng_loader
    except ImportError as error:
        raise UserError(
            "The built-in corpus is spoken by espeak-ng, which is not installed. "
            "Install it with: pip install 'myxtts[phonemes]'"
        ) from error
    variants = Path(espeakng_loader.get_data_path()) / "voices" / "!v"
    for voice in sorted(voices):
        if not (variants / voice.partition("+")[2]).is_file():
            raise UserError(
                f"espeak-ng has no variant for the voice {voice!r}: there is no such file in "
                f"{variants}. Reinstall it: pip install --force-reinstall espeakng-loader"
            )


def _make(
    target: Path,
    language: str,
    voices: Sequence[DemoVoice],
    sentences: Sequence[str],
    progress: Progress | None,
    workers: int | None,
) -> Path:
    jobs = plan_jobs(language, voices, sentences)
    stamp = {
        "corpus": "myxtts built-in",
        "language": language,
        "speakers": [voice.name for voice in voices],
        "utterances": len(sentences),
        "plan": hashlib.sha256(json.dumps(jobs).encode()).hexdigest(),
    }
    if _is_made(target, stamp):
        logger.info("%s already holds this corpus", target)
        return target
    with _published_whole(target, stamp) as folder:
        (folder / "wavs").mkdir()
        speak_jobs(jobs, folder / "wavs", progress, workers)
        _write_tables(folder, language, jobs)
        (folder / "README.txt").write_text(_readme(language, jobs), encoding="utf-8")
        made = stamp | {"wav_bytes": _wav_bytes(folder)}
        (folder / STAMP).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return target


def _is_made(target: Path, stamp: dict) -> bool:
    """Whether the corpus exists already; raise where anything else is in its place."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return False
    try:
        found = json.loads((target / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise UserError(
            f"{target} exists and is not a built-in corpus. Name another folder, or remove it."
        )
    if any(found.get(key) != value for key, value in stamp.items()):
        raise UserError(
            f"{target} holds another built-in corpus ({_summary(found)}; "
            f"wanted: {_summary(stamp)}). Name another folder, or remove it."
        )
    tables = ("metadata.csv", "speakers.csv")
    whole = all((target / name).is_file() for name in tables)
    if not whole or _wav_bytes(target) != found.get("wav_bytes"):
        raise UserError(
            f"{target} is no longer the built-in corpus that was made there: files are missing "
            "or changed. Remove it and make it again."
        )
    return True


def _summary(stamp: dict) -> str:
    names = ", ".join(map(str, stamp.get("speakers") or ["?"]))
    plan = str(stamp.get("plan"))[:8]
    return f"{stamp.get('language')}, {stamp.get('utterances')} clauses by {names}, plan {plan}"


def _wav_bytes(corpus: Path) -> int:
    return sum(path.stat().st_size for path in (corpus / "wavs").glob("*.wav"))


@contextmanager
def _published_whole(target: Path, stamp: dict) -> Iterator[Path]:
    """Yield a hidden folder next to the target, which is renamed to it once it is complete."""
    target = target.absolute()
    folder = _partial(target, os.getpid())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        folder.mkdir()
        yield folder
        _publish(folder, target, stamp)
    except OSError as error:
        raise UserError(
            f"Could not write the built-in corpus to {target}: {error}. "
            "Check permissions and free space there, or name another folder."
        ) from error
    finally:
        # If this fails too, the first error has the reason; the next process removes the folder.
        with suppress(OSError):
            if folder.exists():
                _discard(folder)


def _publish(folder: Path, target: Path, stamp: dict) -> None:
    try:
        atomic.publish(folder, target)  # replaces an empty folder, and no other
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not _is_made(target, stamp):
            raise UserError(
                f"another process has written into {target} while the built-in corpus was made. "
                "Run the same command again, or name another folder."
            ) from error
        logger.info("another process has made this corpus in %s in the meantime", target)


def _partial(target: Path, process: int | str) -> Path:
    return target.with_name(f".{target.name}.partial-{process}")


def _remove_abandoned(target: Path) -> None:
    """Remove what a killed process left, but not what a running one is making."""
    for path in target.parent.glob(_partial(target, "*").name):
        process = path.name.rpartition("-")[2]
        living = process.isdigit() and psutil.pid_exists(int(process))
        if not living or int(process) == os.getpid():
            _discard(path)


def _discard(folder: Path) -> None:
    """Remove a folder into which an espeak process may still write, if it outlived its parent."""
    doomed = folder.with_name(f"{folder.name}.discarded-{os.getpid()}")
    folder.rename(doomed)  # that process fails at its next recording
    shutil.rmtree(doomed)


def _write_tables(folder: Path, language: str, jobs: Sequence[dict]) -> None:
    """Write metadata.csv as id|raw|normalised and speakers.csv as id|speaker|language."""
    lines = [line for job in jobs for line in job["lines"]]
    metadata = "".join(f"{name}|{text}|{text}\n" for name, text in lines)
    speakers = "".join(f"{name}|{name.rpartition('-')[0]}|{language}\n" for name, _ in lines)
    (folder / "metadata.csv").write_text(metadata, encoding="utf-8", newline="\n")
    (folder / "speakers.csv").write_text(speakers, encoding="utf-8", newline="\n")


def _readme(language: str, jobs: Sequence[dict]) -> str:
    voices = {}
    for job in jobs:
        pitch = "" if job["pitch"] == DEFAULT_PITCH else f", pitch {job['pitch']}"
        voices[f"  {job['voice']} at {job['rate']} words a minute{pitch}"] = None
    return README.format(language=language, voices="\n".join(voices))


README = """\
The built-in corpus of MyXTTS ({language})

The voices are synthetic: espeak-ng said every sentence. They are:
{voices}
The sentences were composed by a small grammar written for this corpus.

  wavs/ID.wav     mono, 16 bit, 22,050 Hz
  metadata.csv    id|raw text|normalised text
  speakers.csv    id|speaker|language

Sentences and recordings are licensed as MyXTTS is: Apache License, version 2.0.
espeak-ng itself, which is not part of this corpus, is licensed under the GPL, version 3 or later.
"""


def _check_positive(name: str, count: int) -> None:
    if count < 1:
        raise UserError(f"{name} must be at least 1, but is {count}.")
