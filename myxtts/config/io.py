"""Settings from files, flags and the environment, and where each value came from."""

import logging
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import yaml

from myxtts import atomic
from myxtts.config.config import ALIASES, BEFORE, SECTIONS, SETTINGS, XTTSConfig
from myxtts.config.documents import sealed_text
from myxtts.config.fields import ConfigError, coerce, unknown_setting
from myxtts.config.flags import FLAGS
from myxtts.config.legacy_keys import HINTS, NOT_YET, RENAMED, RENAMED_SECTIONS, RETIRED
from myxtts.config.presets import NAMED_PRESETS, create_default_config, preset_values
from myxtts.config.training import LAST_RATE_SHARE
from myxtts.config.yaml_keys import Key, read_keys

logger = logging.getLogger(__name__)

_SIZE = "model.model_size"
_RATE, _LAST_RATE = "training.learning_rate", "training.min_learning_rate"
_SIZED = frozenset(path for preset in NAMED_PRESETS[_SIZE].values() for path in preset)
# Further names that settings go by, with their paths: flags have shorter ones than fields.
_OTHER_NAMES = {
    **{name.removeprefix("--").replace("-", "_"): f.field for f in FLAGS for name in f.names},
    **{alias.rpartition(".")[2]: path for alias, path in ALIASES.items()},
}
_SHORT_VARIABLES = {
    "MYXTTS_ENABLE_MIXED_PRECISION": "data.mixed_precision",
    "MYXTTS_ENABLE_XLA": "training.enable_xla_compilation",
}
_VARIABLE = re.compile(rf"MYXTTS_({'|'.join(SECTIONS).upper()})_(\w+)")


class Setting(NamedTuple):
    """A value, and where it came from."""

    value: Any
    origin: str


Settings = dict[str, Setting]


@dataclass(frozen=True)
class Resolved:
    """A configuration, and for the path of every setting where its value came from."""

    config: XTTSConfig
    origins: dict[str, str]

    @property
    def given(self) -> dict[str, str]:
        """Where the value of each setting came from that the user has set."""
        kinds = ("environment ", "flag ", "file ")
        return {path: by for path, by in self.origins.items() if by.startswith(kinds)}


def load_config(path: str | os.PathLike[str]) -> XTTSConfig:
    """Read a YAML file; other settings come from the presets that it names and the defaults."""
    return resolve(file=path, environ={}).config


def resolve(
    file: str | os.PathLike[str] | None = None,
    flags: Mapping[str, tuple[Any, str]] | None = None,
    environ: Mapping[str, str] = os.environ,
    preset: str | None = None,
) -> Resolved:
    """Settle every setting: environment, then flag, then file, then preset, then default.

    `flags` is what `flags.flag_values` returns; `preset` is the model size where none is given.
    """
    given = given_settings(file, flags, environ)
    if preset is not None and _SIZE not in given:
        given[_SIZE] = _setting(_SIZE, preset, f"preset {preset}")
    settled = {path: Setting(spec.default, "default") for path, spec in SETTINGS.items()}
    for name, table in NAMED_PRESETS.items():
        chosen = given.get(name, settled[name]).value
        origin = f"preset {chosen}"
        settled |= {path: Setting(value, origin) for path, value in table[chosen].items()}
    settled |= given
    return Resolved(_build(settled), {path: origin for path, (_, origin) in settled.items()})


def given_settings(
    file: str | os.PathLike[str] | None = None,
    flags: Mapping[str, tuple[Any, str]] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """What the user has set: in the environment, then by flag, then in a file."""
    in_file = _from_file(Path(file)) if file is not None else {}
    over = _from_flags(flags or {}) | environment_settings(environ)
    chosen = chosen_in_file(in_file, over)
    _report_overruled(chosen, in_file, over)
    return chosen | over


def chosen_in_file(in_file: Mapping[str, Setting], over: Mapping[str, Setting]) -> Settings:
    """Return a file's settings without those that only repeat what `over` replaces.

    A saved configuration holds every setting, whether or not anyone chose it. In such a file the
    values that equal its own presets belong to these: another model size or audio preset, set by
    flag or environment, replaces them. So does another learning rate the one that was derived from
    it.
    """
    kept = dict(in_file)
    if not _is_saved(in_file):
        return kept
    if _RATE in over and _LAST_RATE in in_file and _is_derived_rate(in_file):
        del kept[_LAST_RATE]
    for name in _replaced_presets(in_file, over):
        for path, value in preset_values(name, _preset_in(in_file, name)).items():
            if path in in_file and in_file[path].value == value:
                del kept[path]
    return kept


def environment_settings(environ: Mapping[str, str]) -> dict[str, Setting]:
    """Return what MYXTTS_<SECTION>_<FIELD> and the short names set; an empty one sets nothing."""
    settings: dict[str, Setting] = {}
    for name, text in sorted(environ.items()):
        match = _VARIABLE.fullmatch(name)
        path = _SHORT_VARIABLES.get(name) or (match and ".".join(match.groups()).lower())
        if path and text:
            _put(settings, path, text, f"environment {name}")
    return settings


def explain(resolved: Resolved) -> str:
    """Return a table of every setting, its value as YAML writes it, and its origin."""
    values = _flatten(to_dict(resolved.config))
    rows = [(path, _as_yaml(value), resolved.origins[path]) for path, value in values.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{p:<{widths[0]}}  {v:<{widths[1]}}  {o}" for p, v, o in rows)


def to_dict(config: XTTSConfig) -> dict[str, dict[str, Any]]:
    """Return the settings by section and name, as a file holds them."""
    config.check()
    nested: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for path in SETTINGS:
        section, name = path.split(".")
        nested[section][name] = getattr(getattr(config, section), name)
    return nested


def save_config(
    config: XTTSConfig,
    path: str | os.PathLike[str],
    *,
    only_differences: bool = False,
    sealed: bool = False,
) -> None:
    """Write a YAML file that loads as an equal configuration; `sealed`, no other one."""
    text = as_yaml(config, only_differences=only_differences)
    _write(sealed_text(text) if sealed else text, path)


def as_yaml(config: XTTSConfig, *, only_differences: bool = False) -> str:
    """The text of such a file, with every setting or with what differs from its presets."""
    values = _flatten(to_dict(config))
    if only_differences:
        size, audio = config.model.model_size, config.data.audio
        plain = _flatten(to_dict(create_default_config(model_size=size, audio=audio)))
        plain |= {name: SETTINGS[name].default for name in NAMED_PRESETS}
        different = {key: value for key, value in values.items() if value != plain[key]}
        # A file that could be an old one says of young settings, too, what they are.
        young = BEFORE if _is_saved(different) else ()
        values = {key: value for key, value in values.items() if key in {*different, *young}}
    return _in_sections({key: _dump({key.split(".")[1]: value}) for key, value in values.items()})


def save_choices(resolved: Resolved, path: str | os.PathLike[str]) -> None:
    """Write a YAML file of what was chosen, with every other setting as a comment.

    What nobody chose stays open, so that another preset or a later default can set it.
    """
    lines = {}
    for key, value in _flatten(to_dict(resolved.config)).items():
        line = _dump({key.split(".")[1]: value})
        if key != _SIZE and resolved.origins[key].startswith(("default", "preset")):
            line = indent(line, "#", lambda _: True)
        lines[key] = f"# {_meaning(key)}\n{line}"
    note = "# Settings that are commented out follow model_size, audio and the defaults.\n\n"
    _write(note + _in_sections(lines), path)


def _write(text: str, path: str | os.PathLike[str]) -> None:
    path = Path(path)
    with atomic.explained(path, ConfigError, before="the settings are not saved: "):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, text.encode(), alone=True)


def _in_sections(lines: Mapping[str, str]) -> str:
    """Put the lines of some settings, by path, under the names of their sections."""
    parts = []
    for section in SECTIONS:
        own = [text for path, text in lines.items() if path.startswith(f"{section}.")]
        if own:
            parts.append(f"{section}:\n{indent(''.join(own), '  ')}")
    return "\n".join(parts)


def _meaning(path: str) -> str:
    choices = SETTINGS[path].metadata["choices"]
    return SETTINGS[path].metadata["help"] + (f" ({' | '.join(choices)})" if choices else "")


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True, width=float("inf"))


def _as_yaml(value: Any) -> str:
    return _dump({"": value}).partition(": ")[2].strip()


def _flatten(nested: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{s}.{name}": value for s, values in nested.items() for name, value in values.items()}


def _build(settled: Mapping[str, Setting]) -> XTTSConfig:
    values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for path, (value, _) in settled.items():
        section, name = path.split(".")
        values[section][name] = value
    try:
        sections: dict[str, Any] = {n: cls(**values[n]) for n, cls in SECTIONS.items()}
        return XTTSConfig(**sections)
    except ConfigError as error:
        named = [p for p in re.findall(r"[a-z]+\.\w+", str(error)) if p in settled]
        origins = "; ".join(f"{path} comes from: {settled[path].origin}" for path in named)
        raise ConfigError(f"{error} ({origins})" if origins else str(error)) from None


def _put(settings: dict[str, Setting], path: str, value: Any, origin: str) -> None:
    """Add a setting to its layer, where it may not contradict one under another name."""
    known = ALIASES.get(path, path)
    if known not in SETTINGS:
        raise unknown_setting(path, SETTINGS, f"in {origin}", other_names=_OTHER_NAMES)
    setting = _setting(known, value, origin)
    if known in settings and settings[known].value != setting.value:
        raise ConfigError(
            f"{known} is {settings[known].value!r} by {settings[known].origin}, "
            f"but {setting.value!r} by {origin}: keep one of them"
        )
    settings[known] = setting


def _is_derived_rate(settings: Mapping[str, Setting]) -> bool:
    last, rate = settings[_LAST_RATE].value, settings[_RATE].value
    return last is not None and math.isclose(last, LAST_RATE_SHARE * rate)


def _report_overruled(
    chosen: Mapping[str, Setting], in_file: Mapping[str, Setting], over: Mapping[str, Setting]
) -> None:
    """Name the values of a file that stay although another preset was chosen."""
    for name in _replaced_presets(in_file, over):
        new = preset_values(name, over[name].value)
        old = preset_values(name, _preset_in(in_file, name))
        changing = {path for path in new if old[path] != new[path]}
        staying = {path: chosen[path] for path in SETTINGS if path in changing & chosen.keys()}
        differing = {p: setting for p, setting in staying.items() if setting.value != new[p]}
        if differing:
            _check_effect(over[name], differing, has_effect=changing != staying.keys())
            free = {p: setting for p, setting in differing.items() if p not in over}
            _warn_staying(over[name], free, new)


def _check_effect(preset: Setting, differing: Mapping[str, Setting], has_effect: bool) -> None:
    """Raise for a flag that names a preset all of whose values a file sets otherwise."""
    file = next(iter(differing.values())).origin
    if not has_effect and preset.origin.startswith("flag"):
        raise ConfigError(
            f"{preset.origin} {preset.value} has no effect: {file} sets every value that it would "
            "change; remove the flag, or these values from the file"
        )


def _warn_staying(preset: Setting, staying: Mapping[str, Setting], new: Mapping[str, Any]) -> None:
    values = [
        f"{path}={_as_yaml(setting.value)} ({preset.value}: {_as_yaml(new[path])})"
        for path, setting in staying.items()
    ]
    if values:
        logger.warning(
            "%s %s leaves these values of %s: %s",
            *(preset.origin, preset.value),
            next(iter(staying.values())).origin,
            ", ".join(values),
        )


def _replaced_presets(in_file: Mapping[str, Setting], over: Mapping[str, Setting]) -> list[str]:
    """The settings that name a preset, and another one than the file."""
    return [
        name
        for name in NAMED_PRESETS
        if name in over and over[name].value != _preset_in(in_file, name)
    ]


def _preset_in(in_file: Mapping[str, Setting], name: str) -> Any:
    return in_file[name].value if name in in_file else SETTINGS[name].default


def _setting(path: str, value: Any, origin: str) -> Setting:
    try:
        return Setting(coerce(path, SETTINGS[path], value, text=True), origin)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None


def _from_flags(flags: Mapping[str, tuple[Any, str]]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for path, (value, name) in flags.items():
        _put(settings, path, value, f"flag {name}")
    return settings


def _from_file(file: Path) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    renamed, retired, not_yet = [], [], []
    for key in read_keys(file):
        path = _full_path(key.path)
        if path in RENAMED:
            renamed.append(key._replace(path=path))
        elif path in RETIRED:
            retired.append(f"{key.path} ({HINTS[path]})" if path in HINTS else key.path)
        elif path in NOT_YET:
            not_yet.append(key.path)
        elif ALIASES.get(path, path) not in SETTINGS:
            raise unknown_setting(
                key.path, SETTINGS, f"in {file}, line {key.line}", other_names=_OTHER_NAMES
            )
        elif path == "data.dataset_path" and not key.value:
            logger.warning("%s, line %d: dataset_path is empty and ignored", file, key.line)
        else:
            as_name = "" if path in SETTINGS else f" (as {path})"
            _put(settings, path, key.value, f"file {file}{as_name}")
    for key in renamed:
        _put_successor(settings, key, file)
    if retired:
        logger.warning("%s: ignored, these have no effect any more: %s", file, ", ".join(retired))
    if not_yet:
        logger.warning("%s: ignored, these have no effect yet: %s", file, ", ".join(not_yet))
    if _is_saved(settings):
        origin = f"file {file}, which is older than this setting"
        settings |= {
            path: Setting(value, origin) for path, value in BEFORE.items() if path not in settings
        }
    return settings


def _is_saved(in_file: Mapping[str, Any]) -> bool:
    """Whether a file holds every setting of its time, as saved configurations do."""
    return {_SIZE, *_SIZED} <= in_file.keys()


def _put_successor(settings: dict[str, Setting], key: Key, file: Path) -> None:
    """Add an old key's value under its new name, unless the file has set that already."""
    path, convert = RENAMED[key.path]
    if key.value is None:
        logger.warning("%s, line %d: %s is empty and ignored", file, key.line, key.path)
        return
    setting = _setting(path, convert(key.value, key.section), f"file {file} (as {key.path})")
    kept = settings.setdefault(path, setting).value
    note = "" if kept == setting.value else f", which is set to {kept} and wins"
    logger.warning("%s, line %d: %s is now called %s%s", file, key.line, key.path, path, note)


def _full_path(path: str) -> str:
    """Return the path of a key, with the section that it was written without, if it was."""
    section, _, name = path.rpartition(".")
    section = RENAMED_SECTIONS.get(section, section)
    if section:
        return f"{section}.{name}"
    for known in (SETTINGS, ALIASES, RENAMED, RETIRED, NOT_YET):
        for candidate in (name, *(f"{s}.{name}" for s in SECTIONS)):
            if candidate in known:
                return candidate
    return name
