"""What can go wrong in backward evaluation."""

from __future__ import annotations


class Unsupported(ValueError):
    """A pattern has a meaning but cannot be evaluated backwards; raised when it is prepared, never while it runs."""
