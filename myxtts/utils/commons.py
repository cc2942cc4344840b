"""Old name of `myxtts.runtime.configure_gpus`."""

from myxtts.runtime import configure_gpus

__all__ = ["configure_gpus"]
