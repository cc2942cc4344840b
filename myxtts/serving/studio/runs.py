"""The training runs of a studio: started, stopped, resumed, and looked at by their own files."""

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from starlette.exceptions import HTTPException

from myxtts import atomic
from myxtts.checkpoints import holds_voice
from myxtts.checkpoints.vocoders import find_vocoder
from myxtts.config.presets import PRESETS
from myxtts.errors import UserError
from myxtts.serving.studio.corpora import Corpora
from myxtts.serving.studio.corpora import subject_of as corpus_subject
from myxtts.serving.studio.event_files import EventFiles
from myxtts.serving.studio.jobs import Jobs, shown
from myxtts.serving.studio.places import (
    RUNS,
    VOICES,
    Places,
    check_title,
    read_card,
    write_card,
)
from myxtts.serving.studio.progress import read_progress

TRAIN, VOCODER = "train", "vocoder"
MOST_STEPS = 10_000_000
_SETTINGS = "settings.yaml"  # of a run; the one in the studio's folder is what all begin with
_PAGE = "performance.html"
_BOARD = "tensorboard"
_VOICE, _CARD = "voice", "voice.json"
_OWN_VOCODER = "stage2"  # where a run keeps it
_VOCODER_KIND = "istft"  # which a CPU trains in minutes, and every player can hold
_SENTENCES = 4  # that are spoken to be judged
_WARMUP = 1000
_DECIDED = {"dataset_path", "language", "checkpoint_dir", "tensorboard_log_dir", "max_steps"}
_TRIES = 3  # to copy a voice while a training replaces it


class Runs:
    """The training runs in a studio's folder."""

    def __init__(self, places: Places, jobs: Jobs, corpora: Corpora):
        self._places, self._jobs, self._corpora = places, jobs, corpora
        self._events: dict[str, EventFiles] = {}

    def all(self) -> list[dict[str, Any]]:
        return [self.facts(name) for name in self._places.names(RUNS)]

    def facts(self, name: str) -> dict[str, Any]:
        """What a run is called, what it is trained on, and whether it is under way."""
        folder = self._places.find(RUNS, name)
        card = read_card(folder)
        job = self._jobs.latest(subject_of(name), TRAIN)
        return {
            "id": name,
            "title": str(card.get("title") or name),
            "corpus": card.get("corpus"),
            "language": card.get("language"),
            "size": card.get("size"),
            "steps": card.get("steps") or 0,
            "minutes": card.get("minutes"),
            "evaluate": bool(card.get("evaluate")),
            "is_own": bool(card),
            "has_voice": holds_voice(folder),
            "job": shown(job) if job else None,
        }

    def create(
        self, title: str, corpus: str, size: str, steps: int, minutes: float | None, evaluate: bool
    ) -> dict[str, Any]:
        """Begin a training in a folder of its own."""
        check_numbers(steps, minutes)
        if size not in PRESETS:
            raise UserError(f"a voice is {', '.join(PRESETS)}, not {size!r}")
        source = self._corpora.ready(corpus)
        language = self._corpora.language(corpus)
        title = check_title(title)
        card = {
            **{"title": title, "corpus": corpus, "language": language, "size": size},
            **{"steps": steps, "minutes": minutes, "evaluate": evaluate, "created": time.time()},
        }
        with self._places.making(RUNS, title, VOICES) as folder:
            self._jobs.forget(subject_of(folder.name))
            settings = self._new_settings(folder, card, source)
            self._start(folder, card, lambda: _write(folder, card, settings))
        return self.facts(folder.name)

    def resume(self, name: str, steps: int | None, minutes: float | None) -> dict[str, Any]:
        """Go on where a run was stopped, or beyond where it has ended."""
        folder = self._places.find(RUNS, name)
        card = read_card(folder)
        if not card:
            raise UserError("this run was not begun here: resume it with the command that began it")
        if self._jobs.is_busy(subject_of(name)):
            raise HTTPException(409, "this run is under way")
        card |= {"steps": steps or card["steps"], "minutes": minutes}
        check_numbers(card["steps"], minutes)
        source = self._corpora.ready(str(card["corpus"]))
        # What the run was begun with stays, whatever others begin with by now.
        own = _read_settings(folder / _SETTINGS)
        settings = _merged(own, _decided(_settings(folder, card, source)))
        if not own:
            settings = self._new_settings(folder, card, source)
        self._start(folder, card, lambda: _write(folder, card, settings))
        return self.facts(name)

    def train_vocoder(self, name: str, steps: int) -> dict[str, Any]:
        """Begin to train a vocoder, or go on: what turns the mels of a run's voice into sound."""
        folder = self._places.find(RUNS, name)
        card = read_card(folder)
        if not card:
            raise UserError("this run was not begun here: use `myxtts train-vocoder`")
        check_numbers(steps, None)
        self._corpora.ready(str(card["corpus"]))
        words = ["train-vocoder", "-v", "--config", str(folder / _SETTINGS)]
        words += ["--vocoder", _VOCODER_KIND]
        words += ["--checkpoint-dir", str(folder / _OWN_VOCODER), "--stage2-max-steps", str(steps)]
        uses = [corpus_subject(str(card["corpus"]))]
        self._jobs.start(VOCODER, subject_of(name), card["title"], [words], uses=uses)
        return self.look(name)

    def stop(self, name: str) -> dict[str, Any]:
        self._places.find(RUNS, name)
        job = self._jobs.latest(subject_of(name), TRAIN)
        if job is not None and job.is_running:
            self._jobs.stop(job.id)
        return self.facts(name)

    def remove(self, name: str) -> None:
        folder = self._places.find(RUNS, name)
        refusal = "this run is under way: stop it first"
        with self._jobs.unused(subject_of(name), refusal), atomic.explained(folder):
            atomic.remove_folder(folder)
        self._events.pop(name, None)

    def keep(self, name: str, title: str) -> str:
        """Copy the voice of a run as it is now, to be compared with later ones."""
        folder = self._places.find(RUNS, name)
        if not holds_voice(folder / _VOICE):
            raise UserError("this run has not written a voice yet: it does when it saves")
        with self._places.making(VOICES, check_title(title), RUNS) as target:
            with atomic.explained(target), atomic.new_folder(target) as draft:
                _copy_whole(folder / _VOICE, draft / _VOICE)
                if found := find_vocoder(folder):
                    shutil.copytree(found, draft / _OWN_VOCODER / VOCODER)
            return target.name

    def look(self, name: str) -> dict[str, Any]:
        """All that a page shows of a run."""
        folder = self._places.find(RUNS, name)
        facts = self.facts(name)
        job, vocoding = facts["job"], self._jobs.latest(subject_of(name), VOCODER)
        return {
            **facts,
            "has_vocoder": find_vocoder(folder) is not None,
            "vocoder_job": shown(vocoding) if vocoding else None,
            "vocoder_log": self._jobs.log(vocoding.id) if vocoding else "",
            **read_progress(folder, facts["steps"]),
            "samples": self._samples(name, folder),
            "has_page": (folder / _PAGE).is_file(),
            "log": self._jobs.log(job["id"]) if job else "",
        }

    def page(self, name: str) -> Path:
        """The page on where a run's time went."""
        path = self._places.find(RUNS, name) / _PAGE
        if not path.is_file():
            raise HTTPException(404, "this run has not written that page yet")
        return path

    def sample(self, name: str, tag: str, step: int) -> bytes:
        """A sentence as it was spoken after a step, as a WAV file."""
        found = self._event_files(name).samples().get((tag, step))
        if found is None:
            raise HTTPException(404, "there is no such sample")
        return found.wav(tag, step)

    def _samples(self, name: str, folder: Path) -> list[dict[str, Any]]:
        found = sorted(self._event_files(name).samples())
        return [{"tag": tag, "step": step} for tag, step in found]

    def _event_files(self, name: str) -> EventFiles:
        folder = self._places.find(RUNS, name) / _BOARD
        return self._events.setdefault(name, EventFiles(folder))

    def _new_settings(self, folder: Path, card: dict[str, Any], corpus: Path) -> dict[str, Any]:
        base = _read_settings(self._places.folder / _SETTINGS)
        return _merged(base, _settings(folder, card, corpus))

    def _start(self, folder: Path, card: dict[str, Any], prepare: Callable[[], None]) -> None:
        words = [TRAIN, "-v", "--config", str(folder / _SETTINGS), "--model-size", card["size"]]
        seconds = card["minutes"] * 60 if card["minutes"] else None
        uses = [corpus_subject(str(card["corpus"]))]
        subject = subject_of(folder.name)
        self._jobs.start(TRAIN, subject, card["title"], [words], seconds, uses, prepare)


def subject_of(name: str) -> str:
    return f"{RUNS}/{name}"


def check_numbers(steps: int, minutes: float | None) -> None:
    if not 1 <= steps <= MOST_STEPS:
        raise UserError(f"a training has 1 to {MOST_STEPS:,} steps")
    if minutes is not None and not 0.1 <= minutes <= 60 * 24 * 30:
        raise UserError("a training may take 0.1 minutes to 30 days")


def _settings(folder: Path, card: dict[str, Any], corpus: Path) -> dict[str, Any]:
    """What the studio decides; a short run is looked at more often."""
    steps = card["steps"]
    often = max(1, min(1000, steps // 20))
    warmup = PRESETS[card["size"]].get("training.warmup_steps", _WARMUP)
    return {
        "data": {"dataset_path": str(corpus), "language": card["language"]},
        "training": {
            "checkpoint_dir": str(folder),
            "tensorboard_log_dir": str(folder / _BOARD),
            "epochs": MOST_STEPS,
            "max_steps": steps,
            "warmup_steps": max(1, min(warmup, steps // 10)),
            "log_interval": max(1, min(20, steps // 100)),
            "validation_interval": often,
            "save_interval": often,
            "sample_interval": often * 2,
            "enable_evaluation": card["evaluate"],
            "evaluation_sentences": _SENTENCES,
        },
    }


def _read_settings(path: Path) -> dict[str, Any]:
    """Settings that every training begins with, if somebody has written any."""
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {str(error)[:300]}") from error
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise UserError(f"{path} is no file of settings: `myxtts config create` writes one")
    return found


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """What is set in either, by section; the first goes before where the studio has no need."""
    needed = _decided(over)
    return {
        name: {**own, **over.get(name, {}), **own, **needed.get(name, {})}  # in the first's order
        for name in {**base, **over}
        for own in (base.get(name, {}),)
    }


def _decided(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that nobody but the studio decides: where things are, and how many steps."""
    return {
        name: {key: value for key, value in section.items() if key in _DECIDED}
        for name, section in settings.items()
    }


def _copy_whole(voice: Path, target: Path) -> None:
    """Copy a voice as one save has written it, though a training may replace it meanwhile."""
    target.mkdir()
    for _ in range(_TRIES):
        before = _save_of(voice)
        try:
            shutil.copytree(atomic.present(voice), target, dirs_exist_ok=True)
            if before is not None and before == _save_of(voice):
                return
        except OSError:
            if before == _save_of(voice):  # it is not the training that is in the way
                raise
        for one in list(target.iterdir()):
            shutil.rmtree(one) if one.is_dir() else one.unlink()
    raise UserError("the training replaces its voice just now: try again, or stop it first")


def _save_of(voice: Path) -> tuple[int, int] | None:
    """Another value for each save that has written a voice."""
    with contextlib.suppress(OSError):
        found = atomic.present(voice)
        return found.stat().st_ino, (found / _CARD).stat().st_mtime_ns
    return None


def _write(folder: Path, card: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write the settings of a run, which `myxtts train` reads, and what the studio knows of it."""
    content = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False)
    with atomic.explained(folder):
        atomic.write(folder / _SETTINGS, content.encode(), alone=True)
    write_card(folder, card)
