"""Where a program needs values: the conditions that they have to fulfil, and the predicates whose objects they are.

A condition of a whole pattern holds for every answer.  One of a branch, such as the optional part of OPTIONAL or what
must not happen, holds for every answer of that branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from etalis_rules import algebra as alg
from etalis_rules.terms import parts

COMPARISONS = frozenset(("<", "<=", ">", ">="))
"""The comparisons of SPARQL that are errors between values of different kinds."""
Predicates = dict[str, set[str]]
"""By variable, the predicates whose object it is in all answers."""
Spelled = Callable[[str], str]
"""How a term is written under the prefixes of a program."""
_OF_ELEMENTS = frozenset(("PREVIOUS", "FIRST", "LAST"))
"""The functions that give the value of another element of a run."""


class Compared(NamedTuple):
    """A variable, and how it is written where it is compared: ``?x`` or ``PREVIOUS(?x)``."""

    name: str
    shown: str


def objects_of(pattern: alg.Pattern) -> Predicates:
    """The predicates of the objects that every answer of a pattern needs."""
    found: Predicates = {}
    for triple in alg.needed_triples(pattern):
        predicate, name = alg.constant_of(triple.predicate), alg.variable_of(triple.object)
        if predicate and name:
            found.setdefault(name, set()).add(predicate)
    return found


def conditions_of(pattern: alg.Pattern) -> Iterator[alg.Expr]:
    """The conditions that every answer of a pattern fulfils, those of steps of runs and of NEXT included."""
    for part in alg.needed_parts(pattern):
        for condition in alg.own_conditions(part):
            yield from alg.conjuncts(condition)


def branches(pattern: alg.Pattern, around: Predicates | None = None) -> Iterator[tuple[alg.Pattern, Predicates]]:
    """A pattern and the parts that an answer may lack, each with the predicates of what its conditions see."""
    predicates = {**(around or {}), **objects_of(pattern)}
    yield pattern, predicates
    for part in alg.needed_parts(pattern):
        for branch in _branches_of(part):
            yield from branches(branch, predicates)


def _branches_of(part: alg.Pattern) -> Iterator[alg.Pattern]:
    """The parts of a pattern that an answer may lack, under the conditions across both sides; what EVENT asks."""
    if isinstance(part, alg.Record):
        yield part.pattern
    for below in alg.parts(part):
        if below.role not in (alg.Role.SIDE, alg.Role.MEMBER):
            yield alg.Filter(below.pattern, alg.conditions_of_branches(part))
        elif isinstance(part, alg.Union):
            yield below.pattern


def joined_branches(pattern: alg.Pattern, around: Predicates | None = None) -> Iterator[Predicates]:
    """The predicates of the objects by which a pattern, and the parts that an answer may lack, are joined.

    The variables of a sub-query are left out, as those that it does not show are not those around it.
    """
    predicates = {name: set(some) for name, some in (around or {}).items()}
    needed = list(alg.needed_parts(pattern, selects=False))
    for part in needed:
        for triple in part.triples if isinstance(part, alg.BGP) and part.graph is None else ():
            predicate, name = alg.constant_of(triple.predicate), alg.variable_of(triple.object)
            if predicate and name:
                predicates.setdefault(name, set()).add(predicate)
    yield predicates
    for part in needed:
        seen = {name: predicates[name] for name in alg.shown_to_branches(part, predicates)}
        for branch in _branches_of(part):
            yield from joined_branches(branch, seen)


def compared(e: alg.Expr) -> Compared | None:
    """The variable whose value an expression is, in this element of a run or in another one."""
    match e:
        case alg.Var(name):
            return Compared(name, f"?{name}")
        case alg.Apply(op, (alg.Var(name), *more)) if op in _OF_ELEMENTS:
            places = "".join(f", {parts(place.term)[0]}" for place in more if isinstance(place, alg.Const))
            return Compared(name, f"{op}(?{name}{places})")
    return None


def sentence(term: Spelled, which: str, predicate: str, value: str, *, among: str, kind: str, effect: str) -> str:
    """What is told of values of a predicate; ``among`` says of how many events this is known, "" if of all."""
    events = f" in the events{among}" if among else ""
    return f"{which} of {term(predicate)}{events} are {kind}, as {term(value)}: {effect}"
