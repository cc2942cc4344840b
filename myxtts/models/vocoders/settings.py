"""Checks of the settings that a vocoder's file has, before anything is built from them."""

from collections.abc import Mapping
from typing import Any

from myxtts.config.config import ConfigError
from myxtts.config.documents import shown


def check_names(
    settings: Mapping[str, Any], needed: tuple[str, ...], others: tuple[str, ...]
) -> None:
    missing = [name for name in needed if name not in settings]
    surplus = [name for name in settings if name not in (*needed, *others)]
    if missing:
        raise ConfigError(f"{', '.join(missing)} must be among its settings")
    if surplus:
        raise ConfigError(f"{shown(surplus[0])} is no setting of such a vocoder")


def check_whole(name: str, value: Any, low: int = 0, high: int = 10**9) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high}, got {shown(value)}")


def check_wholes(name: str, values: Any, most: int, high: int) -> None:
    if not isinstance(values, list) or not 1 <= len(values) <= most:
        raise ConfigError(f"{name} must be a list of 1 to {most} numbers, got {shown(values)}")
    for value in values:
        check_whole(name, value, 1, high)
