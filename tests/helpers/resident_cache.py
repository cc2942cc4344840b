"""A cache that is on the device as soon as the host has made its first batch."""

from myxtts.data.batches import resident
from myxtts.data.batches.residence import Residence


def copy_at_once(monkeypatch) -> None:
    """Begin to copy without waiting for steps, and wait for the copy."""
    count = Residence.count

    def counted(residence):
        count(residence)
        residence.wait()

    monkeypatch.setattr(resident, "FIRST_STEPS", 0)
    monkeypatch.setattr(Residence, "count", counted)
