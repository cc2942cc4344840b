"""What must stay the same for a run to be resumed, and how to say in which settings it differs."""

import contextlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from myxtts.checkpoints import saved_states
from myxtts.checkpoints.files import DamagedError
from myxtts.checkpoints.states import SavedState, read_facts
from myxtts.config.config import BEFORE, ConfigError, ModelConfig, XTTSConfig, affecting
from myxtts.config.io import load_config
from myxtts.errors import UserError
from myxtts.monitoring.cores import available_cores

logger = logging.getLogger(__name__)

# Settings of the model that give it no other variables.
_FREE = ("model_size", "dropout", "use_pretrained_speaker_encoder")
_EFFECTS: dict[str, Callable[[Any], bool]] = {
    # Whether there are such variables, not how large the number is.
    "training.ema_decay": lambda value: value > 0,
    "training.gradient_accumulation_steps": lambda value: value > 1,
    "training.adaptive_loss_weights": bool,
    "training.adversarial_loss_weight": bool,
}
_SHOWN = 5


class OtherRun(UserError):
    """A folder holds a run that cannot be resumed with these settings."""


def decisive_settings(config: XTTSConfig) -> dict[str, Any]:
    """The settings that a run's variables and features follow from, by their paths."""
    model = config.model
    unused = {*ModelConfig.affecting("vocoder", "path"), *_FREE}
    if not model.use_gst:
        unused |= {name for name in ModelConfig.__dataclass_fields__ if name.startswith("gst_")}
    if not model.speaker_encoder:
        unused |= {"speaker_encoder_type", "freeze_speaker_encoder"}
    if model.decoder_strategy == "parallel":
        unused.add("decoder_reduction")
    names = [name for name in ModelConfig.__dataclass_fields__ if name not in unused]
    paths = [*(f"model.{name}" for name in names), *affecting("features")]
    found = {path: attrgetter(path)(config) for path in (*paths, *_EFFECTS)}
    return found | {"speaker encoder": model.speaker_encoder or "none"}


def with_settings_of_its_time(
    folder: Path, resume: bool | Path | str | None, config: XTTSConfig
) -> XTTSConfig:
    """The configuration for a run that may be older than some settings: these stay as it was."""
    if resume is False:
        return config
    for path in _checkpoints(folder, resume):
        with contextlib.suppress(DamagedError):
            known = read_facts(path).get("settings") or {}
            younger = {name: value for name, value in BEFORE.items() if name not in known}
            if younger:
                kept = ", ".join(f"{name}={_word(value)}" for name, value in younger.items())
                logger.info("the run is older than some settings, and keeps %s", kept)
            return config.replace(**younger)
    return config


def threads_of_its_time(folder: Path, resume: bool | Path | str | None) -> int | None:
    """The threads an operation of the run that would be resumed: sums are rounded by them.

    None where there is no run, or where it began on another number of cores. Before there was a
    choice it was TensorFlow's.
    """
    if resume is False:
        return None
    for path in _checkpoints(folder, resume):
        with contextlib.suppress(DamagedError):
            known = read_facts(path).get("threads", {"an operation": 0})
            same = known.get("cores", available_cores()) == available_cores()
            return known["an operation"] if same else None
    return None


def check_run_of(folder: Path, resume: bool | Path | str | None, config: XTTSConfig) -> None:
    """Check the settings against those of the run that would be resumed, if there is one.

    `resume` is as `TrainingRun` takes it. A checkpoint that cannot be read is left to who loads it.
    """
    if resume is False:
        return
    for path in _checkpoints(folder, resume):
        with contextlib.suppress(DamagedError):
            check_settings(path, read_facts(path), config)
            return


def _checkpoints(folder: Path, resume: bool | Path | str | None) -> Sequence[Path]:
    """Where a run would be resumed from: the first of them that can be read."""
    if isinstance(resume, (str, Path)):
        return [Path(resume)]
    return saved_states(folder / "checkpoints")[::-1]


def check_settings(checkpoint: Path, facts: Mapping[str, Any], config: XTTSConfig) -> None:
    """Raise for a checkpoint with settings that give other variables or features.

    The version before did not write the settings into its checkpoints: config.yaml has them.
    """
    run = checkpoint.absolute().parents[1]
    before = facts.get("settings")
    if before is None:
        try:
            before = decisive_settings(load_config(run / "config.yaml"))
        except ConfigError:
            return
    raise_if_other(run, setting_differences(before, decisive_settings(config)))


def setting_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A line for each setting whose difference counts; one that only one of both has does not."""
    lines = []
    for path in now.keys() & before.keys():
        effect = _EFFECTS.get(path, lambda value: value)
        if effect(before[path]) != effect(now[path]):
            lines.append(difference(path, before[path], now[path]))
    return sorted(lines)


def check_corpus_facts(saved: SavedState, now: Mapping[str, Any], units: str) -> None:
    """Raise for other speakers, languages, symbols, or speaker encoder."""
    before, lines = saved.facts, []
    for name in ("speakers", "languages"):
        if before.get(name) != now[name]:
            lines.append(difference(name, _names(before.get(name, ())), _names(now[name])))
    if before.get("tokenizer") != now["tokenizer"]:
        lines.append(_describe_symbols(before.get("symbols"), now["symbols"], units))
    if before.get("speaker encoder") != now["speaker encoder"]:
        lines.append("speaker encoder: the run used other weights of it")
    raise_if_other(saved.path.absolute().parents[1], lines)


def raise_if_other(folder: Path, lines: Sequence[str]) -> None:
    """Raise OtherRun with what differs and the ways out, if anything differs."""
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise OtherRun(
            f"{folder} holds a run that was trained with other settings:\n{listed}\n"
            "Choose another folder with --checkpoint-dir, or start over there with "
            "--reset-training, which keeps the old run next to the new one"
        )


def difference(name: str, before: Any, now: Any) -> str:
    return f"{name}: {_word(before)} in the run, {_word(now)} now"


def _word(value: Any) -> str:
    """As YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return f"{len(names)} ({', '.join(names[:_SHOWN])}{f' and {more} more' if more > 0 else ''})"


def _describe_symbols(before: Sequence[str] | None, now: Sequence[str], units: str) -> str:
    what = "symbols of the text"
    if before is None:
        return f"{what}: others in the run than the {len(now)} {units} now"
    lost, new = (
        [one for one in some if one not in others]
        for some, others in ((before, now), (now, before))
    )
    if not lost and not new:
        return (
            f"{what}: the run read its texts by other rules (another version of myxtts or eSpeak)"
        )
    parts = {"only in the run": lost, "only now": new}
    return f"{what}: " + ", ".join(
        f"{_names(found)} {where}" for where, found in parts.items() if found
    )
