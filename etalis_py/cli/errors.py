"""What goes wrong at the command line, apart from what the other rooms already say."""

from __future__ import annotations


class UsageError(ValueError):
    """Options or arguments that do not fit together: exit code 2."""


class Failure(RuntimeError):
    """What was asked cannot be done: exit code 1."""
