"""The keys of a settings file, with the lines on which they stand; all YAML is read here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from myxtts.config.config import SECTIONS
from myxtts.config.documents import (
    MOST_YAML_BYTES,
    DocumentError,
    check_sealed_text,
    read_document,
    shown,
)
from myxtts.config.fields import ConfigError, unknown_setting
from myxtts.config.legacy_keys import NOT_YET, RENAMED, RENAMED_SECTIONS, RETIRED

_LONGEST_SCALAR = 10_000  # base-60 numbers cost the square of their length


class Key(NamedTuple):
    """A key of a file, as it stands there."""

    path: str
    value: Any
    line: int
    section: Mapping[str, Any]


def read_keys(file: Path) -> list[Key]:
    """Return the keys of a YAML file in their order: sections one level deep, or none."""
    try:
        text = read_document(file, MOST_YAML_BYTES).decode("utf-8-sig")
        check_sealed_text(text)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no settings file {file}; `myxtts config create` writes one"
        ) from None
    except (OSError, DocumentError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the settings in {file}: {error}") from error
    try:
        return _Reader(file, text).keys()
    except ConfigError:  # which is a ValueError, but not about YAML
        raise
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply for settings") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # also impossible dates
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{file}{line}: this is not valid YAML: {problem}") from None


class PlainLoader(yaml.SafeLoader):
    """YAML of plain values: what is written once stands for one value, of the type it looks like.

    Aliases let a few bytes stand for billions of values, and tags ask for types by name.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # of the stubs
        if isinstance(event, yaml.AliasEvent):
            raise _rejected(event, f"the alias *{event.anchor}: write the values out instead")
        if getattr(event, "tag", None) not in (None, "!"):
            raise _rejected(event, f"the tag {shown(event.tag)}: write the value without it")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > _LONGEST_SCALAR:
            raise _rejected(event, f"a value of {len(event.value):,} characters")
        return super().compose_node(parent, index)


def _rejected(event: yaml.Event, what: str) -> yaml.YAMLError:
    mark: Any = event.start_mark
    return yaml.composer.ComposerError(None, None, f"settings cannot hold {what}", mark)


class _Reader:
    """Walks YAML's node tree, which knows the lines, rather than the dicts made of it."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.loader = PlainLoader(text)

    def keys(self) -> list[Key]:
        root = self.loader.get_single_node()
        if root is None:
            return []
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{self.file} must hold sections ({', '.join(SECTIONS)}) of settings")
        keys: list[Key] = []
        entries = self._entries(root)
        flat = {n: self._value(v) for n, v, _ in entries if not isinstance(v, yaml.MappingNode)}
        for name, node, line in entries:
            if name in RETIRED:
                keys.append(Key(name, None, line, {}))
            elif isinstance(node, yaml.MappingNode):
                keys += self._section(name, node, line)
            elif name not in SECTIONS:
                keys.append(Key(name, flat[name], line, flat))
            elif flat[name] is not None:
                raise ConfigError(f"{self.file}, line {line}: {name} must hold `name: value` lines")
        return keys

    def _section(self, section: str, node: yaml.MappingNode, line: int) -> list[Key]:
        earlier = {path.split(".")[0] for path in (*RENAMED, *NOT_YET)} | set(RENAMED_SECTIONS)
        if section not in SECTIONS and section not in earlier:
            raise unknown_setting(section, SECTIONS, f"in {self.file}, line {line}", "section")
        entries = self._entries(node)
        values = {name: self._value(value) for name, value, _ in entries}
        return [Key(f"{section}.{name}", values[name], at, values) for name, _, at in entries]

    def _entries(self, node: yaml.MappingNode) -> list[tuple[str, yaml.Node, int]]:
        """Return (name, value, line) of a mapping, where a name that comes twice is an error."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{self.file}, line {line}: a name of a setting must be one word")
            name = str(key.value)
            if name in seen:
                raise ConfigError(
                    f"{self.file}, line {line}: {name} is there already, on line {seen[name]}"
                )
            seen[name] = line
        self.loader.flatten_mapping(node)  # `<<`: what is merged comes first, so its heir wins
        entries = {str(k.value): (v, k.start_mark.line + 1) for k, v in node.value}
        return [(name, value, line) for name, (value, line) in entries.items()]

    def _value(self, node: yaml.Node) -> Any:
        return self.loader.construct_object(node, deep=True)
