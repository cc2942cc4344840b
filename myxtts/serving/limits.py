"""What a server allows, so that no client can take all of it."""

from dataclasses import dataclass, fields

from myxtts.errors import UserError

_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers above zero; `max_batch` of 1 says every line by itself."""

    max_queue: int = 64  # requests that wait or are being spoken
    max_batch: int = 8  # lines
    max_text: int = 20_000  # characters
    max_upload_mb: int = 20
    max_seconds: int = 1800  # that a request may take
    max_connections: int = 512
    max_loaded: int = 2  # voices
    max_clones: int = 200

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                flag = f"--{field.name.replace('_', '-')}"
                raise UserError(f"{flag} must be at least 1, not {value}")

    @property
    def upload_bytes(self) -> int:
        return self.max_upload_mb * _MEGABYTE

    @property
    def json_bytes(self) -> int:
        """Of a request: each character may be escaped as a pair of \\uXXXX."""
        return 12 * self.max_text + (64 << 10)


GATHER_SECONDS = 0.02  # in which lines of other requests may join a batch
OPENING_LETTERS = 30  # of the first line of a text
HEADER_SECONDS = 10  # in which the head of a request has to arrive
BODY_SECONDS = 60
STALL_SECONDS = 120  # for which a client may take nothing
SHUTDOWN_SECONDS = 10  # for requests that are being answered
