"""The functions an expression calls, as far as they decide how it may be moved or kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ..terms import is_iri, parts
from ..traversal import Name, Text, transform
from .nodes import Apply, Const, Exists, Expr, Pattern, Var
from .structure import expressions, subexpressions, subpatterns

INTERVAL = frozenset({"GETDURATION", "GETSTARTTIME", "GETENDTIME"})
"""Functions that read the interval of the group they are in."""

DRAWN = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})
"""Functions that draw a new value at every call."""

VOLATILE = DRAWN | {"NOW"}
"""Functions that may answer differently the next time."""

OF_THE_SOLUTION = INTERVAL | VOLATILE | {"EXISTS"}
"""What reads more than the values of an expression's variables; ``EXISTS`` as ``operators`` names it."""

TELLS_UNBOUND = frozenset({"BOUND", "COALESCE"})
"""Functions that distinguish a variable that is not bound yet from one that is."""


MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
"""Each comparison as it is when its sides are exchanged."""

COMPARISONS = frozenset(MIRRORED)


def comparison(e: Expr) -> tuple[str, Expr, Expr] | None:
    """The operator and the two sides of a comparison; None for any other expression.

    ``?x IN (?y)`` is ``?x = ?y`` (SPARQL 1.1, 17.4.1.9).
    """
    if isinstance(e, Apply) and (e.op in COMPARISONS or (e.op == "IN" and len(e.args) == 2)):
        left, right = e.args
        return "=" if e.op == "IN" else e.op, left, right
    return None


def equality(e: Expr) -> tuple[Expr, Expr] | None:
    """The two sides of ``a = b`` or ``sameTerm(a, b)`` if it depends on the values of their variables alone; else None.

    Whatever is the same term has the same key, as what is equal has (``values.equality_keys``).
    """
    if operators(e) & OF_THE_SOLUTION:
        return None
    match e:
        case Apply("SAMETERM", (one, other)):
            return one, other
    compared = comparison(e)
    return compared[1:] if compared is not None and compared[0] == "=" else None


def equal_pairs(conditions: Iterable[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """What has the key of what else, by the conditions; each of the two is the first once."""
    for e in (e for condition in conditions for e in conjuncts(condition)):
        sides = equality(e)
        if sides is not None:
            yield from (sides, sides[::-1])


def equalities(conditions: Iterable[Expr]) -> Iterator[tuple[Name, Expr]]:
    """Each variable that has the key of what an expression gives, by the conditions; for ``?x = ?y``, both."""
    return ((one.name, other) for one, other in equal_pairs(conditions) if isinstance(one, Var))


def equated(e: Expr) -> tuple[str, Name, Text] | None:
    """The operator, the variable and the constant of ``?v = c``, ``c = ?v`` or ``sameTerm(…)``; else None."""
    match e:
        case Apply("=" | "SAMETERM" as op, (Var(name), Const(term)) | (Const(term), Var(name))):
            return op, name, term
    return None


def listed(e: Expr) -> tuple[Name, tuple[Text, ...]] | None:
    """The variable and the constants of ``?v IN (c, …)``; else None."""
    match e:
        case Apply("IN", (Var(name), *items)):
            terms = tuple(item.term for item in items if isinstance(item, Const))
            return (name, terms) if len(terms) == len(items) else None
    return None


def pinned(e: Expr) -> tuple[Name, tuple[Text, ...]] | None:
    """A variable and the only terms with which a condition on it can hold; None if they cannot be listed.

    Equal literals may be different terms; an IRI is equal to itself alone.
    """
    if (one := equated(e)) is not None:
        op, name, term = one
        return (name, (term,)) if op == "SAMETERM" or is_iri(term) else None
    several = listed(e)
    return several if several is not None and all(map(is_iri, several[1])) else None


def conjuncts(e: Expr) -> list[Expr]:
    """The parts of a conjunction, from left to right."""
    if isinstance(e, Apply) and e.op == "&&":
        return [part for arg in e.args for part in conjuncts(arg)]
    return [e]


def is_function_iri(op: str) -> bool:
    """Whether the ``op`` of an ``Apply`` names a function by its IRI (``<`` and ``<=`` do not)."""
    return op[:1] == "<" and op[-1:] == ">"


def looks_back(condition: Iterable[Expr]) -> int:
    """How many elements before its own a condition on runs reads: the n of ``PREVIOUS(?p, n)``, or 1."""
    return max((back_of(part) for e in condition for part in subexpressions(e)), default=1)


def back_of(part: object) -> int:
    """How many elements back a value lies: 2 for ``PREVIOUS(?p, 2)``, 1 for ``PREVIOUS(?p)`` and anything else."""
    match part:
        case Apply("PREVIOUS", (_, Const(number))):
            return int(parts(number)[0])
    return 1


def element_read(part: object) -> tuple[str, Name] | None:
    """Which element of a run an expression reads, and the variable: PREVIOUS, PREVIOUS 2 or FIRST; None for others."""
    match part:
        case Apply("PREVIOUS" | "FIRST" as word, (Var(name),)):
            return word, name
        case Apply("PREVIOUS" as word, (Var(name), Const())):
            return f"{word} {back_of(part)}", name
    return None


def elements_named(e: Expr) -> Expr:
    """A condition on runs in which what it reads of other elements are variables: ``PREVIOUS x`` and ``FIRST x``."""

    def named(part: object) -> Var | None:
        read = element_read(part)
        return None if read is None else Var(" ".join(read))

    return transform(e, named)


def substitute(e: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with ``new`` in place of ``old``, except inside EXISTS."""
    return transform(e, lambda part: new if part == old else part if isinstance(part, Exists) else None)


def calls(e: Expr, functions: Collection[str]) -> tuple[Expr, ...]:
    """The distinct calls of these functions in an expression, from left to right; none of those inside EXISTS."""
    return tuple(dict.fromkeys(p for p in subexpressions(e) if isinstance(p, Apply) and p.op in functions))


def operators(e: Expr) -> frozenset[str]:
    """All operator and function names in an expression; ``EXISTS`` for an EXISTS."""
    return frozenset(
        "EXISTS" if isinstance(part, Exists) else part.op
        for part in subexpressions(e)
        if isinstance(part, (Apply, Exists))
    )


def has_exists(e: Expr) -> bool:
    """Whether the expression contains an EXISTS."""
    return any(isinstance(part, Exists) for part in subexpressions(e))


def is_volatile(pattern: Pattern) -> bool:
    """Whether the same pattern over the same graph may answer differently the next time."""
    return any(operators(e) & VOLATILE for part in subpatterns(pattern) for e in expressions(part))
