"""Writes docs/reference/: every command with its flags, every setting with its limits.

make reference
"""

import argparse
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field
from pathlib import Path
from types import UnionType
from typing import Any

from myxtts.cli.main import build_parser
from myxtts.config.config import ALIASES, SECTIONS, SETTINGS
from myxtts.config.flags import FLAGS
from myxtts.config.presets import AUDIO_PRESETS, PRESETS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
ORIGIN = "<!-- Written by `make reference` from the tables in the code: do not edit. -->\n"
NONE = "–"


def pages() -> dict[str, str]:
    """The text of every page by its file name."""
    return {"flags.md": flags_page(), "settings.md": settings_page()}


def flags_page() -> str:
    """Every command with the arguments of its own, then the flags that set settings."""
    parts = [
        "# Commands and flags\n",
        ORIGIN,
        _wrapped(
            "`myxtts COMMAND --help` shows the same on the terminal. Flags that set a setting have "
            "the same name in every command that takes them: the [last table](#flags-of-settings) "
            "explains them, and [Settings](settings.md) has their limits."
        ),
    ]
    parser = build_parser()
    parts.append(f"## {parser.prog}\n\n{_arguments(parser)}")
    for name, about, command in _commands(parser):
        parts.append(f"## {name}\n\n{_sentence(about)}\n")
        parts.append(_arguments(command))
    parts.append("## Flags of settings\n")
    rows = [(_code(flag.names), f"`{flag.field}`", _flag_help(flag)) for flag in FLAGS]
    parts.append(_table(("Flag", "Setting", "Meaning"), rows))
    return "\n".join(part for part in parts if part)


def settings_page() -> str:
    """Every setting by its section, then what each preset sets."""
    parts = [
        "# Settings\n",
        ORIGIN,
        _wrapped(
            "A settings file has the sections below. `myxtts config create` writes one, and "
            "`myxtts config show --explain` prints every value and where it comes from. The "
            "variable `MYXTTS_<SECTION>_<SETTING>` wins over a flag, a flag over the file, and the "
            "file over the default."
        ),
    ]
    header = ("Setting", "Type", "Default", "Allowed", "Flags", "Meaning")
    for name, section in SECTIONS.items():
        parts.append(f"## {name}\n\n{section.__doc__}\n")
        rows = [_setting(path, spec) for path, spec in SETTINGS.items() if _section(path) == name]
        parts.append(_table(header, rows))
    parts.append("## Model sizes\n\nWhat `model_size` sets, unless it is set explicitly.\n")
    parts.append(_table(("Setting", *PRESETS), _presets(PRESETS)))
    parts.append("## Audio presets\n\nWhat `audio` sets, unless it is set explicitly.\n")
    parts.append(_table(("Setting", *AUDIO_PRESETS), _presets(AUDIO_PRESETS)))
    parts.append("## Second names\n")
    names = [(f"`{name}`", f"`{path}`") for name, path in ALIASES.items()]
    parts.append(_table(("Name", "Stands for"), names))
    return "\n".join(parts)


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Every command that runs, with its help: `data check` is one, `data` is not."""
    for action in _subparsers(parser):
        about = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            if _subparsers(command):
                yield from _commands(command)
            else:
                yield command.prog, about[name], command


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction]:
    return [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]


def _arguments(parser: argparse.ArgumentParser) -> str:
    """A table of a command's own arguments, and the names of its flags of settings."""
    own, shared = [], []
    for action in parser._actions:
        if action.dest in SETTINGS:
            shared += action.option_strings
        elif not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            own.append((_code(_spellings(action)), _help(parser, action)))
    parts = [_table(("Argument", "Meaning"), own)]
    if set(shared) == {name for flag in FLAGS for name in flag.names}:
        parts.append("It takes all [flags of settings](#flags-of-settings).\n")
    elif shared:
        parts.append(_wrapped(f"Flags of settings: {_code(shared)}"))
    if parser.epilog:
        parts.append(_wrapped(parser.epilog))
    return "\n".join(parts)


def _spellings(action: argparse.Action) -> list[str]:
    """The names of an argument, the last one with the value that it takes."""
    metavar = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    value = "" if action.nargs == 0 else str(metavar or action.dest.upper())
    if not action.option_strings:
        return [value]
    *others, last = action.option_strings
    return [*others, f"{last} {value}".strip()]


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"{text} (required)" if action.required and action.option_strings else text


def _flag_help(flag: Any) -> str:
    return flag.help or flag.spec.metadata["help"]


def _setting(path: str, spec: Field) -> tuple[str, ...]:
    kind = str(spec.type) if isinstance(spec.type, UnionType) else spec.type.__name__
    flags = [name for flag in FLAGS if flag.field == path for name in flag.names]
    return (
        f"`{path.partition('.')[2]}`",
        kind,
        f"`{_value(spec.default)}`",
        _allowed(spec),
        _code(flags) or NONE,
        spec.metadata["help"],
    )


def _allowed(spec: Field) -> str:
    choices, low, high = (spec.metadata[key] for key in ("choices", "low", "high"))
    if choices:
        return _code(choices)
    if low is None and high is None:
        return NONE
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at most {high}" if low is None else f"at least {low}"


def _presets(table: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    paths = dict.fromkeys(path for preset in table.values() for path in preset)
    for path in paths:
        default = SETTINGS[path].default
        values = [preset.get(path, default) for preset in table.values()]
        yield (f"`{path}`", *map(_value, values))


def _value(value: Any) -> str:
    """A value as a settings file has it."""
    return json.dumps(value) if not value or value is True else str(value)


def _section(path: str) -> str:
    return path.partition(".")[0]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    cells = [[" ".join(cell.split()).replace("|", r"\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote {FOLDER / name}")


if __name__ == "__main__":
    main()
