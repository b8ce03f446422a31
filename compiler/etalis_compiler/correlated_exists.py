"""Finds out whether EXISTS { P } means more than "some solution of P is compatible".

SPARQL substitutes the outer solution into P.  Usually that is the same as evaluating P on its own and looking for a
compatible solution, which can be done incrementally.  It is not the same if a variable of the outer solution is read
inside P where P itself does not bind it (in a nested filter, or only in the optional side of an operator), if a MINUS
inside P shares it, or if it would decide what is next, absent or repeated.  Such patterns are evaluated backwards, with
the substitution, over the history of occurrences.
"""

from __future__ import annotations

from etalis_rules import algebra as alg


def is_correlated(pattern: alg.Pattern, outer: frozenset[str]) -> bool:
    """Whether substituting the ``outer`` variables inside the pattern means more than joining with it."""
    match pattern:
        case alg.SubSelect():
            return False
        case alg.Record(inner):
            return is_correlated(inner, outer)
    below = alg.parts(pattern)
    deciding = frozenset[str]().union(*(alg.scope(part.pattern) for part in below if part.decides))
    if (deciding & outer) - _compared(pattern):
        return True
    inside = frozenset[str]().union(*(alg.scope(part.pattern) for part in below))
    read = frozenset().union(*map(alg.variables, alg.expressions(pattern)))
    if (read & outer) - inside:
        return True
    return any(is_correlated(part.pattern, outer) for part in below)


def _compared(pattern: alg.Pattern) -> frozenset[str]:
    """The variables by which deciding parts are compared with a solution that certainly binds them.

    Substituting one of these inside the pattern gives the same as comparing it.
    """
    if isinstance(pattern, alg.Minus):
        return frozenset()  # a substituted variable is a constant: MINUS no longer shares it
    sides = (part for part in alg.parts(pattern) if part.role is alg.Role.SIDE and not part.decides)
    return frozenset(alg.agreed(pattern)).union(*(alg.certain(side.pattern) for side in sides))
