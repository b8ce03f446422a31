"""What the parts of an operator are for: those of a node of the rules, and those of a pattern of the algebra."""

from __future__ import annotations

from enum import Enum, auto


class Role(Enum):
    """What the solutions of a part are for."""

    SIDE = auto()
    """They take part in the solutions of the whole."""
    MEMBER = auto()
    """Several of them make one solution of the whole: the elements of a run."""
    OPTIONAL = auto()
    """They may take part in solutions of the mandatory side, or are only asked for; alone they make none."""
    ABSENT = auto()
    """They keep solutions from being made."""
    PAST = auto()
    """They are occurrences that are looked back at."""
