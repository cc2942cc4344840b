"""The error that a user can fix: commands print its message and exit with code 2."""


class UserError(Exception):
    """Bad input, bad settings or a bad disk: the message says what, where and what to do."""

    exit_code = 2
