"""The commands of `myxtts`, one module each."""
