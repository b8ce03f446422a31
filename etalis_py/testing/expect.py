"""Comparing matches with expectations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etalis_rules.messages import how_many

from etalis_py.events import event
from etalis_py.kernel.matches import Match
from etalis_py.testing.script import Played

_KEYS = ("query", "start", "end", "triples", "boolean")


def assert_matches(
    found: Played | Iterable[Match], expected: Sequence[Mapping[str, Any]], *, ordered: bool = False
) -> None:
    """Assert that every match is expected and every expected one is there; each expectation stands for one match.

    An expectation states only the parts of a match that matter: variables (``"c"``) with their terms in Turtle
    (``":acme"``, ``'"text"@en'``), or as Python values other than text (``12``, ``Decimal("1.5")``), or None for
    unbound; ``query``, ``start``, ``end``, ``boolean``; ``triples`` in Turtle for a CONSTRUCT.  A variable that has one
    of these names is written with its question mark.  ``ordered``: in this order.
    """
    matches = list(found.matches if isinstance(found, Played) else found)
    if ordered:
        good = len(matches) == len(expected) and all(map(_fits, matches, expected))
        missing, surplus = ([], []) if good else (list(expected), matches)
    else:
        missing, surplus = _paired(matches, expected)
    if missing or surplus:
        lines = [
            f"{how_many(len(matches), 'match', 'matches')}, {len(expected)} expected"
            + (" in this order" if ordered else "")
        ]
        lines += [f"  expected: {wanted}" for wanted in missing]
        lines += [f"  found:    {match!r}" for match in surplus]
        raise AssertionError("\n".join(lines))


def _paired(matches: list[Match], expected: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Match]]:
    """The expectations and matches left when as many expectations as possible have been paired with a match."""
    owner: dict[int, int] = {}  # match → expectation

    def place(wanted: int, tried: set[int]) -> bool:
        for number, match in enumerate(matches):
            if number not in tried and _fits(match, expected[wanted]):
                tried.add(number)
                if number not in owner or place(owner[number], tried):
                    owner[number] = wanted
                    return True
        return False

    missing = [wanted for i, wanted in enumerate(expected) if not place(i, set())]
    return missing, [match for number, match in enumerate(matches) if number not in owner]


def _fits(match: Match, wanted: Mapping[str, Any]) -> bool:
    return all(_same(match, key, value) for key, value in wanted.items())


def _same(match: Match, key: str, value: Any) -> bool:
    if key == "triples":
        return match.triples is not None and set(match.triples) == set(event(value, 0).triples)
    if key in _KEYS:
        return bool(getattr(match, key) == value)
    name = key.removeprefix("?")
    term = match.bindings.get(name)
    if value is None or term is None:
        return value is term
    if isinstance(value, str):
        return term == _term(name, value)
    given = match[name]
    return type(given) is type(value) and bool(given == value)


def _term(name: str, text: str) -> object:
    """The term that a text stands for in an expectation, or an error that says how to write one."""
    try:
        return event(f":s :p {text}", 0).triples[0][2]
    except ValueError as error:
        raise ValueError(
            f"{name}: {text!r} is not a term in Turtle; an IRI is as ':acme', a string as '\"acme\"'"
        ) from error
