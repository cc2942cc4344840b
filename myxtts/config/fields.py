"""Fields that check themselves: the type by annotation, choices and range by metadata."""

import difflib
import functools
import math
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, field, fields
from types import NoneType
from typing import Any, ClassVar, Literal, TypeVar, get_args

from myxtts.config.documents import shown
from myxtts.errors import UserError

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_SHORT = {"lr": "learning_rate"}
_MOST = 10**9  # of anything that can be counted
_NOTHING = frozenset({"none", "null", "auto", "off", "~"})


# What a setting affects besides the step itself: which utterances share a batch; which features
# there are; their values; where something is on this machine; the vocoder; how other settings are
# chosen.
Effect = Literal["plan", "features", "preprocessing", "path", "vocoder", "origin"]


class ConfigError(UserError, ValueError):
    """An invalid setting: the message names it, its value and what is allowed."""


def option(
    default: Any,
    help: str,
    *,
    choices: Collection[str] = (),
    low: float | None = None,
    high: float | None = None,
    same_as: str = "",
    stored: bool = True,
    old_words: dict[str, str] | None = None,
    affects: Effect | None = None,
    before: Any = None,
) -> Any:
    """Declare a field: `same_as` marks an old name, `stored=False` what no file can hold.

    `old_words` maps former values to their successors. `before` is what runs and voices have that
    were made before there was such a setting, where that is not the default.
    """
    metadata = {
        "help": help,
        "choices": choices,
        "low": low,
        "high": high,
        "same_as": same_as,
        "stored": stored,
        "old_words": old_words or {},
        "affects": affects,
        "before": before,
    }
    return field(default=default, compare=stored, repr=stored, metadata=metadata)


class Section:
    """A group of settings, each checked whenever it is set, and their relations when built."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    section: ClassVar[str] = ""
    aliases: ClassVar[dict[str, str]] = {}

    def __post_init__(self) -> None:
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        known = self.aliases.get(name, name)
        spec = type(self).__dataclass_fields__.get(known)
        if spec is None:
            raise unknown_setting(name, [f.name for f in fields(self)], f"in {self.section}")
        object.__setattr__(self, known, coerce(f"{self.section}.{known}", spec, value))

    @classmethod
    def affecting(cls, *kinds: Effect) -> tuple[str, ...]:
        """The names of the settings that affect one of these."""
        return tuple(spec.name for spec in fields(cls) if spec.metadata["affects"] in kinds)

    def check(self) -> None:
        """Raise ConfigError where two values do not fit each other."""

    def require(self, holds: bool, complaint: str) -> None:
        """Raise `complaint` unless it holds; a {name} in it becomes the setting and its value."""
        if not holds:
            named = {
                spec.name: f"{self.section}.{spec.name} ({getattr(self, spec.name)})"
                for spec in fields(self)
            }
            raise ConfigError(complaint.format(**named))


S = TypeVar("S", bound=Section)


def section(name: str, **aliases: str) -> Callable[[type[S]], type[S]]:
    """Name a dataclass of settings, and let it take and show some fields under a second name."""

    def decorate(cls: type[S]) -> type[S]:
        cls.section, cls.aliases = name, aliases
        cls.__init__ = _taking_aliases(cls.__init__)  # type: ignore[method-assign]  # adds names
        for alias, known in aliases.items():
            setattr(cls, alias, property(operator.attrgetter(known)))
        return cls

    return decorate


def _taking_aliases(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Section, *args: Any, **given: Any) -> None:
        values: dict[str, Any] = {}
        for name, value in given.items():
            known = self.aliases.get(name, name)
            if known not in type(self).__dataclass_fields__:
                raise unknown_setting(name, type(self).__dataclass_fields__, f"in {self.section}")
            if known in values and values[known] != value:
                names = " and ".join(n for n in given if self.aliases.get(n, n) == known)
                raise ConfigError(
                    f"{self.section}: {names} are one switch under two names, but were given as "
                    f"{values[known]!r} and {value!r}; give only {known}"
                )
            values[known] = value
        init(self, *args, **values)

    return __init__


def unknown_setting(
    name: str,
    known: Iterable[str],
    where: str,
    kind: str = "setting",
    other_names: Mapping[str, str] | None = None,
) -> ConfigError:
    """Return the error for an unknown name, with the nearest known name or path.

    `other_names` are further names, each with the path that it stands for.
    """
    names = {**(other_names or {}), **{path.rpartition(".")[2]: path for path in known}}
    nearest = _nearest(name.rpartition(".")[2].lower(), names)
    hint = (
        f"did you mean {names[nearest]!r}?"
        if nearest
        else "`myxtts config show` lists every setting"
    )
    return ConfigError(f"unknown {kind} {shown(name)} {where}: {hint}")


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`; of two alike, one with its first word."""
    name = "_".join(_SHORT.get(word, word) for word in name.split("_"))
    close = difflib.get_close_matches(name, known, 5, 0.5)
    first = name.partition("_")[0]
    return max(
        close,
        key=lambda one: (
            difflib.SequenceMatcher(None, one, name).ratio()
            + (0.1 if one.partition("_")[0] == first else 0.0)
        ),
        default=None,
    )


def coerce(path: str, spec: Field, value: Any, *, text: bool = False) -> Any:
    """Return `value` as its field's type; `text` allows the words that files and shells write."""
    kind, is_optional = _kind(spec)
    if kind is Any:
        return value
    if is_optional and (value is None or (text and _means_nothing(kind, value))):
        return None
    convert, noun = _CONVERTERS[kind]
    try:
        converted = convert(value, text)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{path} must be {noun}, got {shown(value)}") from None
    converted = spec.metadata["old_words"].get(converted, converted)
    _check_range(path, spec, converted)
    return converted


def _kind(spec: Field) -> tuple[Any, bool]:
    if spec.type is Any or isinstance(spec.type, type):
        return spec.type, False
    (kind,) = (t for t in get_args(spec.type) if t is not NoneType)
    return kind, True


def _means_nothing(kind: type, value: Any) -> bool:
    """Say whether a word leaves a setting open; for a switch, "off" means false."""
    word = str(value).lower()
    return word in _NOTHING and not (kind is bool and word in _WORDS)


def _to_bool(value: Any, text: bool) -> bool:
    if isinstance(value, bool):
        return value
    if text and str(value).lower() in _WORDS:
        return _WORDS[str(value).lower()]
    raise TypeError


def _to_int(value: Any, text: bool) -> int:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, str):
        value = float(value) if set(value) & set(".eE") else int(value)
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError
        return int(value)
    return operator.index(value)


def _to_float(value: Any, text: bool) -> float:
    if isinstance(value, bool) or not math.isfinite(float(value)):
        raise TypeError
    return float(value)


def _to_str(value: Any, text: bool) -> str:
    value = "" if value is None else os.fspath(value)
    if not isinstance(value, str):
        raise TypeError
    return value


_CONVERTERS: dict[type, tuple[Callable[[Any, bool], Any], str]] = {
    bool: (_to_bool, "true or false"),
    int: (_to_int, "a whole number"),
    float: (_to_float, "a finite number"),
    str: (_to_str, "text (in quotes, if it looks like something else)"),
}


def _check_range(path: str, spec: Field, value: Any) -> None:
    choices, low, high = (spec.metadata[key] for key in ("choices", "low", "high"))
    if choices and value not in choices:
        raise ConfigError(f"{path} must be one of {', '.join(choices)}; got {shown(value)}")
    if low is not None and value < low:
        raise ConfigError(f"{path} must be at least {low}, got {shown(value)}")
    high = _MOST if high is None and isinstance(value, int) else high
    if high is not None and value > high:
        raise ConfigError(f"{path} must be at most {high}, got {shown(value)}")
