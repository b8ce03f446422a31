"""Why a run cannot go on from a folder."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: what differs or is damaged, and what to do."""
