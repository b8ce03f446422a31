"""EXISTS in filters and in expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.operators import is_leaf
from etalis_rules.relations import OuterOp

from ..correlated_exists import is_correlated
from ..known_at_end import only_forward, settled
from .builder import MARK, Lowered, Names, NodeBuilder, guard, map_ref, reads, steps


def filter_exists(part: Lowered, certain: Names, b: NodeBuilder, conditions: tuple[alg.Expr, ...]) -> Lowered:
    """FILTER with EXISTS in it: each EXISTS becomes a column, then the filter is a plain one."""
    timed = part.timed
    for condition in conditions:
        if timed is not None:
            timed, plain = mark_all(timed, certain, b, condition)
            timed = map_ref(timed, frozenset(timed.columns), b, (ir.Condition(plain),))
    if part.timeless is not None and any(is_streamed(c, b) for c in conditions):
        settled(part.late)
        return Lowered(timed, None, only_forward(alg.Filter(alg.Known(part.timeless), conditions)))
    return Lowered(timed, guard(part.timeless, conditions), guard(part.late, conditions))


def mark_all(ref: ir.Ref, certain: Names, b: NodeBuilder, e: alg.Expr) -> tuple[ir.Ref, alg.Expr]:
    """The node with a column for every EXISTS in the expression, and the expression that reads them."""
    marked = ref

    def mark_of(pattern: alg.Pattern) -> alg.Expr:
        nonlocal marked
        mark = f"{MARK}{next(b.marks)}"
        marked = _mark(marked, certain, b, pattern, mark)
        return alg.Var(mark)

    plain = alg.without_exists(e, mark_of)
    return marked, plain


def _mark(ref: ir.Ref, certain: Names, b: NodeBuilder, pattern: alg.Pattern, mark: str) -> ir.Ref:
    """The node with the column ``mark``, which says whether the pattern has a compatible solution.

    It is looked for backwards if substituting the columns means more than joining with them, or if whether it is a
    solution changes with what comes: a timeless one whose optional part, MINUS or EXISTS looks at the stream.
    """
    columns = frozenset(ref.columns)
    child, every = alg.unfiltered(pattern)
    own = alg.scope(child)
    conditions = tuple(c for c in every if not alg.variables(c) <= own)
    inner = alg.filtered(child, tuple(c for c in every if alg.variables(c) <= own))
    head = tuple(sorted(columns | {mark}))
    shared = columns & alg.scope(inner)
    right = None
    if not (any(map(alg.has_exists, conditions)) or is_correlated(inner, columns)):
        right = b.observing().lower(inner, shared | reads(conditions) & alg.scope(inner))
    if right is None or right.late is not None:
        leaves = watched((alg.Exists(pattern),), b)
        return b.add(ir.Recall(head, ref, pattern, mark, leaves))
    node = ir.Outer(
        head=head,
        op=OuterOp.EXISTS,
        left=ref,
        right=right.timed,
        background=right.timeless,
        certain=tuple(sorted(certain & columns & alg.certain(inner))),
        condition=steps(conditions),
        mark=mark,
    )
    return b.add(node)


def watched(conditions: Iterable[alg.Expr], b: NodeBuilder) -> tuple[str, ...]:
    """The leaves of the patterns inside EXISTS: their occurrences make up the history to look back at."""
    private = b.apart()
    for pattern in chain.from_iterable(map(_asked, conditions)):
        private.lower(only_forward(pattern), alg.scope(pattern))
    leaves = {name: node for name, node in private.nodes.items() if is_leaf(node)}
    for name, node in leaves.items():
        b.nodes.setdefault(name, node)
    return tuple(sorted(leaves))


def _asked(e: alg.Expr) -> Iterator[alg.Pattern]:
    """The pattern of each EXISTS, also of one inside another: a part that no event matches has no nodes to show it."""
    for pattern in alg.patterns_of_exists(e):
        yield pattern
        inside = (expression for part in alg.subpatterns(pattern) for expression in alg.expressions(part))
        yield from chain.from_iterable(map(alg.patterns_of_exists, inside))


def is_streamed(e: alg.Expr, b: NodeBuilder) -> bool:
    """Whether an EXISTS in the expression may find an occurrence."""
    return any(b.apart().lower(p, alg.scope(p)).timed is not None for p in alg.patterns_of_exists(e))
