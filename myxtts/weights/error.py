"""The error of published weights that cannot be read, fetched or used."""

from myxtts.errors import UserError


class WeightsError(UserError):
    """What is wrong with a file of weights, and what to do about it."""
