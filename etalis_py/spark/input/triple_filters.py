"""Tests of triples, and the slots of their keys, as expressions of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from etalis_rules import program as ir
from etalis_rules.leaf_tests import Among, OfStream, Same, Test, tests_of

from etalis_py.spark.input.expressions import all_of, any_of, one_of, text
from etalis_py.spark.plan.parts import ShardPart

PLACES = {"subject": "s", "predicate": "p", "object": "o"}


Unknown = Callable[[str], str]
"""A test whether what is in a column is no term: then a filter takes it for any term (``nulls``)."""


def leaf_filter(leaf: ir.Leaf, unnamed: str, triple: str = "", unknown: Unknown | None = None) -> str | None:
    """The test whether a row matches the leaf; None if every row does.  ``unnamed``: the stream if none is named.

    ``triple``: what holds the terms, with a dot; empty: the row itself.
    """
    if leaf.entailed:
        return None  # a triple that it entails may match even if it does not match itself
    tests = [_or_unknown(_rendered(test, unnamed, triple), test, unknown) for test in tests_of(leaf)]
    return all_of(tests) if tests else None


def _or_unknown(rendered: str, test: Test, unknown: Unknown | None) -> str:
    places = (test.place,) if isinstance(test, Among) else (test.place, test.other) if isinstance(test, Same) else ()
    names = [PLACES[place] for place in places if place != "predicate"]
    return rendered if unknown is None or not names else any_of([rendered, *map(unknown, names)])


def _rendered(test: Test, unnamed: str, triple: str) -> str:
    match test:
        case Among(place, (term,), False):
            return f"{triple}{PLACES[place]} = {text(term)}"
        case Among(place, terms, negated):
            among = one_of(f"{triple}{PLACES[place]}", terms)
            return f"NOT {among}" if negated else among
        case Same(place, other):
            return f"{triple}{PLACES[place]} = {triple}{PLACES[other]}"
        case OfStream(name):
            return one_of("stream", [name, ""] if name == unnamed else [name])


def any_passes(tests: Iterable[str | None]) -> str | None:
    """Whether one of the tests passes; None, which passes every row, if one of them is None."""
    every = list(tests)
    return None if None in every else any_of([test for test in every if test is not None])


def one_of_slots(slots: Sequence[int], place: str) -> str:
    """The slot at a place, counted from 0."""
    return f"element_at({array(slots)}, {place} + 1)"


def array(numbers: Iterable[int]) -> str:
    """Constant numbers as an array."""
    return f"array({', '.join(map(str, numbers))})"


def shard_of(term: str, shards: int) -> str:
    """The shard of a key."""
    return f"CAST(pmod(crc32({term}), {shards}) AS INT)"


def value_if(test: str | None, value: str) -> str:
    """The value if a row passes the test, else null."""
    return value if test is None else f"CASE WHEN {test} THEN {value} END"


def in_time(part: ShardPart, shard: int, slot: str) -> str:
    """The slot if the slice of time reads the row, else null."""
    return value_if(reads(part, shard), slot)


def in_slice(part: ShardPart, shard: int) -> str:
    """Whether a row ends in the slice of time itself, not in what the slice reads before it."""
    begin, following = part.span(shard)
    tests = [] if begin is None else [f"`end` >= {begin}L"]
    tests += [] if following is None else [f"`end` < {following}L"]
    return all_of(tests) if tests else "TRUE"


def reads(part: ShardPart, shard: int) -> str | None:
    """Whether a slice of time reads a row.  None: the part has no slices."""
    begin, following = part.span(shard)
    tests = [] if begin is None else [f"`end` >= {begin - part.overlap}L"]
    tests += [] if following is None else [f"`end` < {following}L"]
    return all_of(tests) if tests else None


__all__ = [
    "PLACES",
    "Unknown",
    "any_passes",
    "array",
    "in_slice",
    "in_time",
    "leaf_filter",
    "one_of_slots",
    "reads",
    "shard_of",
    "value_if",
]
