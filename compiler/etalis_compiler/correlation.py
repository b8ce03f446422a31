"""When EXISTS { P } means more than "some solution of P is compatible".

SPARQL substitutes the outer solution into P.  Usually that is the same as evaluating P on its own and looking for a
compatible solution, which can be done incrementally.  It is not the same if a variable of the outer solution is read
inside P where P itself does not bind it (in a nested filter, or only in the optional side of an operator), if a MINUS
inside P shares it, or if it would decide what is next, absent or repeated.  Such patterns are evaluated backwards, with
the substitution, over the history of occurrences.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules.relations import Op


def is_correlated(pattern: alg.Pattern, outer: frozenset[str]) -> bool:
    """Whether substituting the ``outer`` variables inside the pattern means more than joining with it."""
    match pattern:
        case alg.Outer(_, mandatory, optional):
            hidden = (alg.scope(optional) & outer) - alg.certain(mandatory)
        case alg.Minus(_, right, _):
            # A substituted variable is a constant: MINUS no longer shares it.
            hidden = alg.scope(right) & outer
        case alg.Join(Op.NEXT, left, right):
            hidden = (alg.scope(right) & outer) - alg.certain(left)
        case alg.Absence(left, absent, right):
            sure = alg.certain(left) if right is None else alg.certain(left) | alg.certain(right)
            hidden = (alg.scope(absent) & outer) - sure
        case alg.Runs(child, absent=absent):
            inside = alg.scope(child) if absent is None else alg.scope(child) | alg.scope(absent)
            hidden = (inside & outer) - frozenset(pattern.keys)
        case alg.SubSelect():
            return False
        case alg.Record(inner):
            return is_correlated(inner, outer)
        case _:
            hidden = frozenset()
    if hidden:
        return True
    below = frozenset().union(*map(alg.scope, alg.children(pattern)))
    read = frozenset().union(*map(alg.variables, alg.expressions(pattern)))
    if (read & outer) - below:
        return True
    return any(is_correlated(child, outer) for child in alg.children(pattern))
