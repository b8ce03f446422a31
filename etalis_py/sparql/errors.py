"""Errors of backward evaluation."""

from __future__ import annotations


class Unsupported(ValueError):
    """A valid pattern that cannot be evaluated backwards; raised when the pattern is prepared, never while it runs."""
