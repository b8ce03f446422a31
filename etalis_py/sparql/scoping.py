"""The scopes of variables, which decide where bindings may be passed sideways without changing a meaning.

SPARQL evaluates bottom-up: a nested group knows nothing of its surroundings.  Passing a binding of a variable down into
a group changes nothing only if every solution of the group that may bind this variable certainly binds it.  These
functions find out where that holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from etalis_rules.algebra import (
    BGP,
    Block,
    Exists,
    Expr,
    Extend,
    Filter,
    GraphNames,
    Join,
    Minus,
    Outer,
    PathPattern,
    Pattern,
    Record,
    Select,
    SubSelect,
    Table,
    Union,
    Var,
    Within,
    certain,
    expressions,
    only_forward,
    rename,
    scope,
    subexpressions,
    subpatterns,
    transform,
)
from etalis_rules.traversal import descend

Names = frozenset[str]

SMALL_TABLE = 8  # rows up to which scanning a table for each incoming solution beats building an index


@dataclass(frozen=True, slots=True)
class Env:
    """The variables that are bound when an operator starts, as far as this is known before evaluation.

    Variables in ``seen`` may be bound, variables in ``certain`` are.  ``given`` are variables that an EXISTS replaced
    by terms, which act as constants and are visible everywhere.  ``anchored`` are path ends that count as constants
    (SPARQL 1.1 §18.4 for zero-length paths).
    """

    seen: Names = frozenset()
    certain: Names = frozenset()
    given: Names = frozenset()
    anchored: Names = frozenset()

    def after(self, pattern: Pattern) -> Env:
        """The environment of a pattern that is joined to the solutions of ``pattern``."""
        return replace(self, seen=self.seen | scope(pattern), certain=self.certain | certain(pattern))

    def hiding(self, names: Names) -> Env:
        gone = names - self.given
        return replace(self, seen=self.seen - gone, certain=self.certain - gone, anchored=self.anchored - gone)

    def only(self, names: Names) -> Env:
        """The environment if only ``names`` (and the substituted variables) are passed on."""
        kept = names | self.given
        return Env(self.seen & kept, self.certain & kept, self.given, self.anchored & kept)


# --- names -----------------------------------------------------------------------------------------------------


def mentioned_in(exprs: Iterable[Expr]) -> Names:
    """Every variable that occurs in the expressions, including anywhere inside an EXISTS."""
    names: set[str] = set()
    for expr in exprs:
        for part in subexpressions(expr):
            if isinstance(part, Var):
                names.add(part.name)
            elif isinstance(part, Exists):
                names |= mentioned(part.pattern)
    return frozenset(names)


def mentioned(pattern: Pattern) -> Names:
    """Every variable that occurs in the pattern, at any depth, in scope or not."""
    names: set[str] = set()
    for part in subpatterns(pattern):
        names |= scope(part)
        for expr in expressions(part):
            names |= {e.name for e in subexpressions(expr) if isinstance(e, Var)}
        if isinstance(part, SubSelect):
            names |= _select_names(part.select)
        elif isinstance(part, Record):
            names |= mentioned(part.pattern)
    return frozenset(names)


def _select_names(select: Select) -> set[str]:
    return {*select.variables, *select.keys, *(v for v, _ in select.extends), *(a.variable for a in select.aggregates)}


def standardise_apart(pattern: Pattern) -> Pattern:
    """The pattern with the variables that a sub-SELECT does not project renamed, so that no two share a name.

    After this a name means the same thing everywhere in the pattern.
    """
    fresh = count(1)

    def rewrite(node: Any) -> Any:
        if isinstance(node, (BGP, PathPattern, GraphNames, Table)):
            return node
        if not isinstance(node, SubSelect):
            return None
        node = descend(node, rewrite)
        hidden = mentioned(node) - frozenset(node.select.variables)
        return SubSelect(rename(node.select, {v: f"{_APART}{next(fresh)}.{v}" for v in sorted(hidden)}))

    return transform(pattern, rewrite)


def alphabetical(names: Iterable[str]) -> list[str]:
    """Variables in the order of their names in the query, whether renamed apart or numbered by the compiler."""

    def place(name: str) -> tuple[int, str]:
        own = name.split(".", 2)[2] if name.startswith(_APART) else name
        return (int(own[1:]), "") if own[:1] == "~" else (-1, own)

    return sorted(names, key=place)


_APART = ".apart"
_GIVEN = ".given."


def substituted(pattern: Pattern, names: Names) -> Pattern:
    """``substitute(pattern, μ)`` of SPARQL 1.1 §18.6, with a name of its own (``given_name``) for each term.

    Places that cannot hold a term keep their variable: the targets of BIND, VALUES and projections.
    """

    return transform(pattern, lambda n: Var(given_name(n.name)) if isinstance(n, Var) and n.name in names else None)


def given_name(variable: str) -> str:
    """The name of a substituted variable, which cannot occur in a query."""
    return _GIVEN + variable


def unseen(exprs: tuple[Expr, ...], names: Names) -> tuple[Expr, ...]:
    """The expressions with variables that are out of scope renamed to ones that nothing ever binds."""
    if not names:
        return exprs
    return rename(exprs, {v: f".unseen.{v}" for v in names})


# --- properties of patterns ------------------------------------------------------------------------------------


def loose(pattern: Pattern, among: Names) -> Names:
    """The names in ``among`` that the pattern may bind, but does not always bind."""
    return (among & scope(pattern)) - certain(pattern)


def hidden_from_outer_join(mandatory: Pattern, optional: Pattern, condition: tuple[Expr, ...]) -> Names:
    """Variables that must not be passed into an outer join: they could remove partners, or affect the condition.

    A variable that only the optional side binds is compared after the partner has been found (queries that are not
    well-designed depend on it); for one that the mandatory side certainly binds it makes no difference.
    """
    read = mentioned_in(condition) & scope(mandatory)
    return (scope(optional) | read) - certain(mandatory)


def passable(select: Select) -> Names:
    """The variables whose bindings may go into a sub-SELECT before it is evaluated."""
    if select.limit is not None or select.offset or select.window is not None:
        return frozenset()
    names = frozenset(select.variables) & certain(select.pattern)
    return names & frozenset(select.keys) if select.grouped else names


def receives(pattern: Pattern, names: Names) -> bool:
    """Whether the pattern is cheaper to evaluate once ``names`` are bound; if not, its solutions are better kept."""
    match pattern:
        case Record():
            return False
        case GraphNames(_, _, child) if child is not None:
            return False
        case BGP() | PathPattern() | GraphNames():
            own = scope(pattern)
            return not own or bool(own & names)
        case Table(_, rows):
            return len(rows) <= SMALL_TABLE
        case Filter(child, conditions):
            return receives(child, names - loose(child, mentioned_in(conditions)))
        case Extend(child, _, expression):
            return receives(child, names - loose(child, mentioned_in((expression,))))
        case Within(child, _) | Block(child):
            return receives(child, names)
        case Minus(left, _, _):
            return receives(left, names)
        case Outer(_, mandatory, optional, condition):
            return receives(mandatory, names - hidden_from_outer_join(mandatory, optional, condition))
        case SubSelect(select):
            return receives(select.pattern, names & passable(select))
        case Union(left, right):
            return receives(left, names) and receives(right, names)
        case Join(_, left, right):
            return receives(left, names) or receives(right, names)
        case _ if only_forward(pattern):
            return False  # it is refused when it is compiled
    raise TypeError(f"not a pattern: {pattern!r}")
