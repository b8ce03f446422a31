"""The mapping of a container: how the rows of CSV or JSON that are posted to it become graphs."""

from __future__ import annotations

import tomllib

from etalis_py.events.errors import StreamError
from etalis_py.streams.csv_mapping import read_mapping

from .problems import Problem

_LONGEST = 16_000
_DOTS = 100
_UNUSED = ("graph", "stream", "retract", "ties")


def check_mapping(text: str) -> None:
    """Refuse a mapping that a container cannot have."""
    if len(text) > _LONGEST:
        raise Problem("constraint", f"the mapping of a container has at most {_LONGEST:,} characters")
    if max((line.count(".") for line in text.split("\n")), default=0) > _DOTS:
        # A dotted key takes time by the square of its parts, and this is read while others wait.
        raise Problem("constraint", f"a line of the mapping of a container has at most {_DOTS} dots")
    try:
        table = tomllib.loads(text)
        read_mapping(table)
    except (tomllib.TOMLDecodeError, RecursionError, StreamError) as error:
        raise Problem("constraint", f"the mapping of the container cannot be used: {error}") from None
    for key in _UNUSED:
        if key in table:
            raise Problem("constraint", f"the mapping of a container has no {key!r}: each row is a graph of its own")
