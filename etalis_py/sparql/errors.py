"""Errors of backward evaluation."""

from __future__ import annotations


class Unsupported(ValueError):
    """A pattern is meaningful but cannot be evaluated backwards; raised when it is prepared, never while it runs."""
