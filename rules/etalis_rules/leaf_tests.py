"""What a leaf asks of a triple, as plain cases: whoever tests triples renders these, in whatever language.

>>> from .algebra import Const, Var
>>> from .program import OneOf
>>> tests_of(Leaf(("x",), Var("x"), Const("<p>"), Var("x"), "<s>"))
(Among(place='predicate', terms=('<p>',), negated=False), Same(place='object', other='subject'), OfStream(name='<s>'))
>>> implies(Leaf((), Var("x"), Const("<p>"), Var("y")), Leaf((), Var("x"), OneOf(("<p>", "<q>")), Var("y")))
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .algebra import Const, Var
from .program import Any, Leaf, NoneOf, OneOf, Position
from .traversal import Text

PLACES = ("predicate", "subject", "object")
"""The places of a triple, the most selective first."""


@dataclass(frozen=True, slots=True)
class Among:
    """The term in this place is one of these, or if ``negated`` none of them."""

    place: Text
    terms: tuple[Text, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Same:
    """The terms in two places are equal, for the same variable stands there."""

    place: Text
    other: Text


@dataclass(frozen=True, slots=True)
class OfStream:
    """The triple comes in this stream."""

    name: Text


Test = Among | Same | OfStream


def tests_of(leaf: Leaf) -> tuple[Test, ...]:
    """What a triple must satisfy to match; what an ``entailed`` leaf asks holds of the triples derived from it."""
    return tuple(_tests(leaf))


def _tests(leaf: Leaf) -> Iterator[Test]:
    places: dict[str, str] = {}
    for place in PLACES:
        position = position_of(leaf, place)
        match position:
            case Const(term):
                yield Among(place, (term,))
            case OneOf(terms):
                yield Among(place, terms)
            case NoneOf(terms):
                yield Among(place, terms, negated=True)
            case Var(name):
                if name in places:
                    yield Same(place, places[name])
                places.setdefault(name, place)
            case Any():
                pass
    if leaf.stream:
        yield OfStream(leaf.stream)


def position_of(leaf: Leaf, place: str) -> Position:
    """What stands in one of the ``PLACES`` of a leaf."""
    position: Position = getattr(leaf, place)
    return position


def terms_of(position: Position) -> tuple[str, ...] | None:
    """The terms that a position may hold, or None if there are unboundedly many."""
    match position:
        case Const(term):
            return (term,)
        case OneOf(terms):
            return terms
    return None


def predicates_of(leaf: Leaf) -> tuple[str, ...] | None:
    """The predicates of the triples that a leaf sees, or None if they may be any."""
    return None if leaf.entailed else terms_of(leaf.predicate)


def allows(position: Position, term: str) -> bool:
    """Whether a position may hold the term."""
    terms = terms_of(position)
    if terms is not None:
        return term in terms
    return not (isinstance(position, NoneOf) and term in position.terms)


def may_overlap(one: Leaf, other: Leaf) -> bool:
    """Whether some triple may match both, as far as single places tell."""
    return all(_may_equal(position_of(one, place), position_of(other, place)) for place in PLACES)


def _may_equal(one: Position, other: Position) -> bool:
    for some, rest in ((one, other), (other, one)):
        terms = terms_of(some)
        if terms is not None:
            return any(allows(rest, term) for term in terms)
    return True


def implies(narrow: Leaf, wide: Leaf) -> bool:
    """Whether every triple that ``narrow`` may see is one that ``wide`` sees; it may miss some implications."""
    if wide.stream not in ("", narrow.stream):
        return False
    if wide.entailed or narrow.entailed:
        return wide.entailed
    given = tests_of(narrow)
    return all(_follows(test, given, narrow) for test in tests_of(wide) if not isinstance(test, OfStream))


def _follows(test: Test, given: tuple[Test, ...], leaf: Leaf) -> bool:
    if test in given:
        return True
    if not isinstance(test, Among):
        return False
    position = position_of(leaf, test.place)
    terms = terms_of(position)
    if terms is not None:
        return all((term in test.terms) is not test.negated for term in terms)
    return test.negated and isinstance(position, NoneOf) and set(test.terms) <= set(position.terms)
