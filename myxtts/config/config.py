"""All settings together: three sections, one table of paths, one object."""

import dataclasses
from dataclasses import Field, dataclass
from typing import Any

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.data import DataConfig, audio_spec_of
from myxtts.config.fields import ConfigError, Effect, Section, unknown_setting
from myxtts.config.model import ModelConfig
from myxtts.config.training import TrainingConfig

__all__ = [
    "ALIASES",
    "BEFORE",
    "SECTIONS",
    "SETTINGS",
    "AudioSpec",
    "ConfigError",
    "DataConfig",
    "ModelConfig",
    "TrainingConfig",
    "XTTSConfig",
    "affecting",
    "audio_spec_of",
]

SECTIONS: dict[str, type[Section]] = {
    cls.section: cls for cls in (DataConfig, ModelConfig, TrainingConfig)
}


def _declared() -> dict[str, Field]:
    return {
        f"{name}.{spec.name}": spec
        for name, cls in SECTIONS.items()
        for spec in dataclasses.fields(cls)
    }


# Everything that a file, a flag or the environment may set, by its path.
SETTINGS: dict[str, Field] = {
    path: spec
    for path, spec in _declared().items()
    if spec.metadata["stored"] and not spec.metadata["same_as"]
}
# What runs and voices have of settings that are younger than they are.
BEFORE: dict[str, Any] = {
    path: spec.metadata["before"]
    for path, spec in SETTINGS.items()
    if spec.metadata["before"] is not None
}
# A second name, by its path, and the path that it stands for.
ALIASES: dict[str, str] = {
    f"{name}.{alias}": f"{name}.{known}"
    for name, cls in SECTIONS.items()
    for alias, known in cls.aliases.items()
} | {
    path: spec.metadata["same_as"] for path, spec in _declared().items() if spec.metadata["same_as"]
}


def affecting(*kinds: Effect) -> tuple[str, ...]:
    """The paths of the settings of all sections that affect one of these."""
    return tuple(f"{name}.{own}" for name, cls in SECTIONS.items() for own in cls.affecting(*kinds))


@dataclass(init=False)
class XTTSConfig:
    """All sections; any field of any section may also be given as a keyword of its own."""

    data: DataConfig
    model: ModelConfig
    training: TrainingConfig

    def __init__(
        self,
        *,
        data: DataConfig | None = None,
        model: ModelConfig | None = None,
        training: TrainingConfig | None = None,
        **flat: Any,
    ) -> None:
        given = {"data": data, "model": model, "training": training}
        values = _by_section(flat)
        for name, cls in SECTIONS.items():
            setattr(self, name, _build(cls, given[name], values[name]))
        self._xla: bool | None = None
        self.check()

    def replace(self, **changes: Any) -> "XTTSConfig":
        """A copy with other sections or settings; a setting goes by its name or by its path."""
        given = {name: changes.pop(name, getattr(self, name)) for name in SECTIONS}
        copy = XTTSConfig(**given)
        for owner, values in _by_section(changes).items():
            for name, value in values.items():
                setattr(getattr(copy, owner), name, value)
        copy.check()
        return copy

    def check(self) -> None:
        """Raise ConfigError where values do not fit; call it after changing several of them."""
        for name in SECTIONS:
            getattr(self, name).check()
        self._settle_xla()

    def _settle_xla(self) -> None:
        """Give the switch that has two names one value: that of whichever was changed."""
        named = (self.data.enable_xla, self.training.enable_xla_compilation)
        changed = {value for value in named if value != self._xla}
        if len(changed) > 1:
            known = ALIASES["data.enable_xla"]
            raise ConfigError(
                f"data.enable_xla is {named[0]} and {known} is {named[1]}: they are one switch "
                f"under two names; set only {known}"
            )
        if changed:
            (self._xla,) = changed
            self.data.enable_xla = self.training.enable_xla_compilation = self._xla


def _by_section(flat: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort flat keywords by the section that owns them."""
    values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    paths = [*_declared(), *ALIASES]
    for name, value in flat.items():
        owners = {path.split(".")[0] for path in paths if f".{path}".endswith(f".{name}")}
        if not owners:
            raise unknown_setting(name, paths, "among the keywords of XTTSConfig")
        if len(owners) > 1:
            raise ConfigError(f"{name!r} belongs to {' and '.join(sorted(owners))}: give a section")
        values[owners.pop()][name.rpartition(".")[2]] = value
    return values


def _build(cls: type[Section], given: Section | None, values: dict[str, Any]) -> Section:
    """Return a separate section: changes to it or to `given` do not reach the other."""
    if given is None:
        return cls(**values)
    if not isinstance(given, cls):
        raise ConfigError(f"{cls.section} must be a {cls.__name__}, got {given!r}")
    named = {cls.aliases.get(name, name) for name in values}
    kept = {
        spec.name: getattr(given, spec.name)
        for spec in dataclasses.fields(cls)
        if spec.name not in named
    }
    return cls(**kept, **values)
