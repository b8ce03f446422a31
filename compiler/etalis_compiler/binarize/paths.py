"""Property paths over the stream: the least relation of ⟨x, y, hull⟩ under the BGP join.

A step is a leaf, a chain a join with a middle node, an alternative a union, a repetition a ``Closure``.  The pairs of a
path form a set.  Like every pattern, a path has a timed part (at least one streamed edge) and a timeless one, which is
a path over the background.  A zero-length path has the interval of its node's occurrence; one whose end is a constant
is timeless.
"""

from __future__ import annotations

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op

from .builder import Lowered, LoweringContext, NodeBuilder, mapped
from .triples import lower_leaf

X, Y, M = ".x", ".y", ".m"


def lower_path(pattern: alg.PathPattern, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """The path between two nodes under filters and a bound."""
    return mapped(_between(pattern, b, above.bound), above, b)


def _between(pattern: alg.PathPattern, b: NodeBuilder, bound: alg.Bound | None) -> Lowered:
    """Lower the path between its two ends; a constant end, or the same variable at both, becomes a test."""
    if pattern.graph is not None:
        return Lowered(None, pattern)
    relation = _relation(pattern.path, pattern, b, bound, whole=True)
    steps: list[ir.Step] = []
    names: dict[str, str] = {}
    for column, node in ((X, pattern.subject), (Y, pattern.object)):
        if isinstance(node, alg.Const):
            steps.append(ir.Condition(alg.Apply("SAMETERM", (alg.Var(column), node))))
        elif node.name in names.values():
            steps.append(ir.Condition(alg.Apply("SAMETERM", (alg.Var(X), alg.Var(Y)))))
        else:
            names[column] = node.name
    timeless = _timeless(pattern, b)
    if relation is None:
        return Lowered(None, timeless)
    seen = ir.Ref(relation.node, tuple(names.get(c, c) for c in relation.columns))
    if not steps:
        return Lowered(seen, timeless)
    renamed = [alg.rename(s, names) for s in steps]
    return Lowered(b.add(ir.Map(tuple(sorted(names.values())), seen, tuple(renamed))), timeless)


def _timeless(pattern: alg.PathPattern, b: NodeBuilder) -> alg.Pattern | None:
    ends_in_constant = isinstance(pattern.subject, alg.Const) or isinstance(pattern.object, alg.Const)
    if b.summary.predicates is None or b.summary.predicates:
        return pattern
    if ends_in_constant and alg.may_be_empty(pattern.path):
        return pattern
    return None


def _stored(path: alg.Path, b: NodeBuilder) -> bool:
    """Whether the background may hold a triple that is a step of this path."""
    match path:
        case alg.Step(iri):
            return b.summary.predicates is None or iri in b.summary.predicates
        case alg.NotAny():
            return b.summary.predicates is None or bool(b.summary.predicates)
        case alg.Inverse(inner) | alg.Repeated(inner, _, _):
            return _stored(inner, b)
        case alg.Chain(first, second) | alg.Choice(first, second):
            return _stored(first, b) or _stored(second, b)
    raise TypeError(f"not a path: {path!r}")


def _background(path: alg.Path, source: str, target: str) -> alg.PathPattern:
    return alg.PathPattern(alg.Var(source), path, alg.Var(target))


def _relation(
    path: alg.Path, p: alg.PathPattern, b: NodeBuilder, bound: alg.Bound | None, *, whole: bool = False
) -> ir.Ref | None:
    """The timed part of the path as a set of pairs (columns X and Y); ``whole``: its ends are the pattern's."""
    match path:
        case alg.Step(iri):
            edge = alg.Triple(alg.Var(X), alg.Const(iri), alg.Var(Y))
            return lower_leaf(edge, b, None, p.stream)
        case alg.NotAny(iris):
            position = ir.NoneOf(tuple(sorted(iris)))
            return _set([b.add(ir.Leaf((X, Y), alg.Var(X), position, alg.Var(Y), p.stream, b.summary.entailed))], b)
        case alg.Inverse(inner):
            ref = _relation(inner, p, b, bound, whole=whole)
            swap = {X: Y, Y: X}
            return ref and ir.Ref(ref.node, tuple(swap[c] for c in ref.columns))
        case alg.Choice(first, second):
            both = (_relation(way, p, b, bound, whole=whole) for way in (first, second))
            return _set([r for r in both if r is not None], b)
        case alg.Chain(first, second):
            return _chain(first, second, p, b, bound)
        case alg.Repeated(inner, minimum, many):
            edge_ref = _relation(inner, p, b, bound)
            branches = []
            if edge_ref is not None:
                if many:
                    stored = _stored(inner, b) and not p.stream
                    reach = _background(alg.Repeated(inner, 0, True), X, Y) if stored else None
                    branches.append(b.add(ir.Closure((X, Y), edge_ref, (X, Y), reach, b.kept_for(bound, edge_ref))))
                else:
                    branches.append(edge_ref)
            if minimum == 1:
                return _set(branches, b)
            constants = [end for end in (p.subject, p.object) if isinstance(end, alg.Const)]
            if not (whole and constants):  # else the only zero-length step is the constant's own, which is timeless
                branches.append(_every_node(p, b))
            if not constants:
                return _set(branches, b)
            return _set([b.add(ir.Map((X, Y), way, tuple(map(_no_way_back, constants)))) for way in branches], b)
    raise TypeError(f"not a path: {path!r}")


def _no_way_back(end: alg.Const) -> ir.Step:
    """The test that a path does not lead from a constant back to it.

    The constant is reached in zero steps already, so another way adds nothing (SPARQL 1.1 §18.4, ALP).
    """
    both = tuple(alg.Apply("SAMETERM", (alg.Var(column), end)) for column in (X, Y))
    return ir.Condition(alg.Apply("!", (alg.Apply("&&", both),)))


def _chain(
    first: alg.Path, second: alg.Path, p: alg.PathPattern, b: NodeBuilder, bound: alg.Bound | None
) -> ir.Ref | None:
    def onto(ref: ir.Ref, x: str, y: str) -> ir.Ref:
        return ir.Ref(ref.node, tuple({X: x, Y: y}[c] for c in ref.columns))

    left, right = _relation(first, p, b, bound), _relation(second, p, b, bound)
    branches = []
    if left is not None and right is not None:
        kept = b.kept_for(bound, left, right)
        branches.append(b.add(ir.Join((X, Y), Op.AND, onto(left, X, M), onto(right, M, Y), (M,), (), kept)))
    if left is not None and not p.stream and (_stored(second, b) or alg.may_be_empty(second)):
        step = ir.Background(_background(second, M, Y), (Y,))
        branches.append(b.add(ir.Map((X, Y), onto(left, X, M), (step,))))
    if right is not None and not p.stream and (_stored(first, b) or alg.may_be_empty(first)):
        step = ir.Background(_background(first, X, M), (X,))
        branches.append(b.add(ir.Map((X, Y), onto(right, M, Y), (step,))))
    return _set(branches, b)


def _every_node(p: alg.PathPattern, b: NodeBuilder) -> ir.Ref:
    """Every subject and object that occurs, related to itself."""
    subjects = b.add(ir.Leaf((X,), alg.Var(X), ir.Any(), ir.Any(), p.stream, b.summary.entailed))
    objects = b.add(ir.Leaf((X,), ir.Any(), ir.Any(), alg.Var(X), p.stream, b.summary.entailed))
    nodes = b.add(ir.Union((X,), (subjects, objects), True))
    return b.add(ir.Map((X, Y), nodes, (ir.Assign(Y, alg.Var(X)),)))


def _set(refs: list[ir.Ref], b: NodeBuilder) -> ir.Ref | None:
    return b.add(ir.Union((X, Y), tuple(refs), True)) if refs else None
