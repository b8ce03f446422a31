"""What is kept of an input without end, and why it may become ever more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .traversal import Name


class Growth(Enum):
    """Why what a node keeps of an input may become ever more."""

    LASTING = auto()
    """Nothing bounds how long a solution of the node lasts."""
    PAST = auto()
    """The node looks at all the past."""
    SINCE_START = auto()
    """The node looks back to the start of the stream."""
    KEYS = auto()
    """There is something for each key."""
    GROUPS = auto()
    """There is something for each group."""


@dataclass(frozen=True, slots=True)
class Forever:
    """What a node keeps of an input without end: in words, with ``{}`` for the input, and again in fewer words.

    It keeps that for each of ``keys``.
    """

    what: str = "every solution of {}"
    growth: Growth = Growth.LASTING
    brief: str = ""
    keys: tuple[Name, ...] = ()
