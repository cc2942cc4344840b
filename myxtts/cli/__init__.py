"""The `myxtts` command: one small file per verb."""
