"""The names of columns that a table adds to the variables of its queries, none of which is a variable."""

from __future__ import annotations

from collections.abc import Container


def free(name: str, taken: Container[str], prefix: str = "match_") -> str:
    """
    >>> free("id", ["x"]), free("id", ["id"]), free("id", ["id", "match_id"])
    ('id', 'match_id', 'match_match_id')
    """
    while name in taken:
        name = prefix + name
    return name


def bounds(taken: Container[str]) -> tuple[str, str]:
    """The columns of the interval; both are renamed if one has to be.

    >>> bounds(["x"]), bounds(["start"])
    (('start', 'end'), ('interval_start', 'interval_end'))
    """
    start, end = "start", "end"
    while start in taken or end in taken:
        start, end = f"interval_{start}", f"interval_{end}"
    return start, end
