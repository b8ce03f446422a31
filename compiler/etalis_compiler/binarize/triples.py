"""Triple patterns: leaves, and blocks of them as chains of joins."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.relations import Op
from etalis_rules.terms import RDF_TYPE

from ..knowledge import KnowledgeSummary
from ..unsupported import Fault
from .builder import Lowered, LoweringContext, Names, NodeBuilder, guard, map_ref, steps, unite

# A block becomes one chain of joins for each set of triples that the background provides: 2 ** n of them.
MAX_BACKGROUND_TRIPLES = 8


def lower_bgp(bgp: alg.BGP, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """One chain of joins for each set of triples that the stream may provide."""
    if bgp.graph is not None or not bgp.triples:
        return Lowered(None, guard(bgp, above.conditions))
    triples = bgp.triples  # a pattern written twice may match two occurrences
    stored = [] if bgp.stream else [i for i, t in enumerate(triples) if b.summary.may_hold(t)]
    if len(stored) > MAX_BACKGROUND_TRIPLES:
        raise Fault(
            "background-triples",
            f"{len(stored)} triple patterns of one block may match the stream as well as the background",
            f"at most {MAX_BACKGROUND_TRIPLES} may: put patterns that are meant for the background into GRAPH, "
            "or split the block",
        )
    branches = []
    for size in range(len(stored) + 1):
        for looked_up in combinations(stored, size):
            timed = [t for i, t in enumerate(triples) if i not in looked_up]
            if timed:
                rest = tuple(triples[i] for i in looked_up)
                branches.append(_bgp_chain(timed, rest, above, b, not stored, bgp.stream))
    timeless = None
    if len(stored) == len(triples):
        timeless = guard(alg.BGP(triples), above.conditions)
    ref = unite(branches, alg.scope(bgp), b, distinct=len(branches) > 1)
    if b.drops_blank_nodes and ref is not None:
        kept = tuple(name for name in sorted(ref.columns) if alg.is_visible(name) or name in above.needed)
        if len(kept) < len(ref.columns):
            ref = b.add(ir.Map(kept, ref))
    return Lowered(ref, timeless)


def _bgp_chain(
    timed: list[alg.Triple],
    looked_up: tuple[alg.Triple, ...],
    above: LoweringContext,
    b: NodeBuilder,
    alone: bool,
    stream: str,
) -> ir.Ref:
    wanted, conditions, bound = above
    order = timed if b.consuming else _connected(timed)
    # Conditions that read the interval, or draw a value, belong to the whole block, not to parts of it.
    last = tuple(c for c in conditions if alg.operators(c) & (alg.INTERVAL | alg.VOLATILE))
    waiting = [c for c in conditions if c not in last]

    def ready(names: Names) -> tuple[alg.Expr, ...]:
        now = [c for c in waiting if alg.variables(c) <= names]
        waiting[:] = [c for c in waiting if c not in now]
        return tuple(now)

    single = alone and len(timed) == 1
    ref = lower_leaf(order[0], b, wanted if single else None, stream)
    names = _triple_variables(order[0])
    ref = map_ref(ref, wanted if single else names, b, steps(ready(names), bound)) or ref
    for triple in order[1:]:
        own = _triple_variables(triple)
        leaf = lower_leaf(triple, b, None, stream)
        leaf = map_ref(leaf, own, b, steps([c for c in waiting if alg.variables(c) <= own], bound)) or leaf
        shared = tuple(sorted(names & own))
        names |= own
        tests = steps(ready(names), bound if b.late(ref, leaf) else None)
        kept = b.kept_for(bound, ref, leaf)
        ref = b.add(ir.Join(tuple(sorted(names)), Op.AND, ref, leaf, shared, tests, kept))
    if looked_up:
        extra = frozenset().union(*map(_triple_variables, looked_up))
        step = ir.Background(alg.BGP(looked_up), tuple(sorted(extra - names)))
        names |= extra
        ref = b.add(ir.Map(tuple(sorted(names)), ref, (step, *steps(ready(names)))))
    if waiting or last:
        # The first kind reads variables that no triple binds.
        ref = b.add(ir.Map(tuple(sorted(names)), ref, steps((*waiting, *last))))
    if len(timed) > 1 and alone:
        ref = b.add(ir.Map(tuple(sorted(names)), ref, (), distinct=True))
    return ref


def lower_block(block: alg.Block, above: LoweringContext, b: NodeBuilder) -> Lowered:
    """Joined triple patterns and paths: a set over all variables, before any of them is dropped."""
    wanted, conditions, bound = above
    early = tuple(c for c in conditions if not alg.operators(c) & (alg.INTERVAL | alg.VOLATILE))
    late = tuple(c for c in conditions if c not in early)
    within, b.in_block = b.in_block, True
    part = b.lower(block.child, alg.scope(block.child), early, bound)
    b.in_block = within
    timed = part.timed
    if timed is not None:
        timed = b.add(ir.Map(tuple(sorted(timed.columns)), timed, (), distinct=True))
        head = tuple(sorted(timed.columns))
        if b.drops_blank_nodes:
            head = tuple(name for name in head if name in wanted and alg.is_visible(name))
        if late or b.consuming:
            timed = b.add(ir.Map(head, timed, steps(late)))
    return Lowered(timed, guard(part.timeless, late))


def _connected(triples: list[alg.Triple]) -> list[alg.Triple]:
    """The triples in the order written, except that triples that share a variable with those before them go first."""
    rest = list(triples)
    order = [rest.pop(0)]
    names = _triple_variables(order[0])
    while rest:
        best = next((t for t in rest if _triple_variables(t) & names), rest[0])
        rest.remove(best)
        order.append(best)
        names |= _triple_variables(best)
    return order


def _triple_variables(t: alg.Triple) -> Names:
    return alg.node_variables(t.subject, t.predicate, t.object)


def sources_of(t: alg.Triple, known: KnowledgeSummary, stream: str = "") -> tuple[ir.Leaf, ...]:
    """The triples that match a pattern or from which the schema derives one that does, as leaves without columns.

    If they cannot be told apart from others, it is one leaf that sees what is entailed.  A leaf whose object stands for
    the subject of the pattern is for the range of a property, which gives no type to a literal.
    """
    entailed = (ir.Leaf((), t.subject, t.predicate, t.object, stream, True),)
    predicate, object_ = alg.constant_of(t.predicate), alg.constant_of(t.object)
    if predicate == RDF_TYPE and object_ in known.parameters:
        return entailed
    if not known.entailed:
        return (ir.Leaf((), t.subject, t.predicate, t.object, stream),)
    if not predicate or (predicate == RDF_TYPE and (not object_ or known.type_is_ruled)):
        return entailed
    properties = known.properties_implying(predicate)
    if predicate != RDF_TYPE:
        if RDF_TYPE in properties:
            return entailed  # entailed types imply it as well
        return (ir.Leaf((), t.subject, _one_of(properties), t.object, stream),)
    leaves = [ir.Leaf((), t.subject, _one_of(properties), _one_of(known.classes_implying(object_)), stream)]
    of_domain, of_range = known.implies_type(object_)
    if of_domain:
        leaves.append(ir.Leaf((), t.subject, _one_of(of_domain), ir.Any(), stream))
    if of_range:
        leaves.append(ir.Leaf((), ir.Any(), _one_of(of_range), t.subject, stream))
    return tuple(leaves)


def lower_leaf(t: alg.Triple, b: NodeBuilder, wanted: Names | None, stream: str = "") -> ir.Ref:
    """The leaf or leaves that see the occurrences of a triple pattern and of triples that imply it."""
    names = _triple_variables(t)
    head = tuple(sorted(names if wanted is None else names & wanted))
    leaves = [replace(leaf, head=head) for leaf in sources_of(t, b.summary, stream)]
    branches = [
        _resources(b.add(leaf), t.subject, b) if isinstance(leaf.subject, ir.Any) else b.add(leaf) for leaf in leaves
    ]
    several = len(leaves) > 1 or any(isinstance(p, ir.OneOf) for p in (leaves[0].predicate, leaves[0].object))
    return (unite(branches, names, b, distinct=True) if several else None) or branches[0]


def _resources(ref: ir.Ref, node: alg.Var | alg.Const, b: NodeBuilder) -> ir.Ref:
    """The node restricted to resources: the range of a property gives no type to a literal."""
    if alg.variable_of(node) not in ref.columns:
        return ref
    test = alg.Apply("!", (alg.Apply("ISLITERAL", (node,)),))
    return b.add(ir.Map(ref.columns, ref, (ir.Condition(test),)))


def _one_of(terms: Names) -> ir.Position:
    return alg.Const(next(iter(terms))) if len(terms) == 1 else ir.OneOf(tuple(sorted(terms)))
