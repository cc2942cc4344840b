"""Where a server listens, and whom it lets in."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from myxtts.errors import UserError
from myxtts.serving.limits import Limits

_SHORTEST_KEY = 8
_LAST_PORT = 65535


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, and to whom."""

    voices: Sequence[str]
    clones: Path
    host: str = "127.0.0.1"
    port: int = 8020
    api_key: str | None = None
    without_key: bool = False  # although others than this machine can connect
    hosts: Sequence[str] = ()  # names that requests may address, besides those of this machine
    wyoming: tuple[str, int] | None = None
    limits: Limits = field(default_factory=Limits)
    studio: Path | None = None  # the folder of one
    demo: bool = False  # whether a studio without a corpus makes the built-in one

    def __post_init__(self) -> None:
        for port in (self.port, *(self.wyoming or ())[1:]):
            if not 0 <= port <= _LAST_PORT:
                raise UserError(f"a port is a number from 0 to {_LAST_PORT:,}, not {port}")
        if self.api_key is not None and len(self.api_key) < _SHORTEST_KEY:
            raise UserError(f"an API key has at least {_SHORTEST_KEY} characters: use a longer one")
        if not (is_loopback(self.host) or self.api_key or self.without_key):
            raise UserError(
                f"everybody who reaches {self.host} could use this server: give it an --api-key "
                "(or MYXTTS_API_KEY), or say that this is meant with --without-api-key"
            )
        if self.wyoming and not (is_loopback(self.wyoming[0]) or self.without_key):
            raise UserError(
                f"Wyoming knows no keys, so everybody who reaches {self.wyoming[0]} could use it: "
                "say that this is meant with --without-api-key"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
