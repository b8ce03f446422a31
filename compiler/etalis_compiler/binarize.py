"""Temporal algebra to rules: binarization ([EP] §5, rules (8) to (12)).

A pattern is split in two.  Its *timed* part are the solutions that hold at least one occurrence: they become nodes.
Its *timeless* part are the solutions from the background alone: they stay a pattern, which the rules ask for when
they need it.  For a binary operator, with A = At ∪ A0 and B = Bt ∪ B0:

    timed(A op B) = At op Bt  ∪  At ⋈ B0  ∪  A0 ⋈ Bt          timeless(A op B) = A0 ⋈ B0

because timeless solutions satisfy every temporal condition.  A BGP is split by the subset of its triples that match
occurrences; the rest is looked up when the last occurrence has arrived, so that the background is the one of the
solution's end.

Without a consuming policy a node carries only the variables that are needed above it, and its variables are renamed
to ``~0, ~1, ~2 …`` in the order in which they occur, so that equal goals of different queries are one node.  Under a
consuming policy each node belongs to its query and carries all variables, in alphabetical order: the order of
candidates depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import RDF_TYPE

from .correlation import is_correlated
from .faults import Fault
from .knowledge import KnowledgeSummary
from .late import settled, undecided
from .rewrites.push_filters import TIME, VOLATILE, operators
from .rewrites.push_windows import condition_bound, tighter

MAX_BACKGROUND_TRIPLES = 8

Names = frozenset[str]


class Part(NamedTuple):
    """The two halves of a pattern; ``late`` are timeless solutions that are known when the stream has ended."""

    timed: ir.Ref | None
    timeless: alg.Pattern | None
    late: alg.Pattern | None = None


@dataclass(slots=True)
class Builder:
    """Collects nodes; equal nodes are one."""

    summary: KnowledgeSummary
    policy: str = "unrestricted"
    query: str = ""
    nodes: dict[str, ir.Node] = field(default_factory=dict)
    serial: int = 0

    @property
    def consuming(self) -> bool:
        return self.policy != "unrestricted"

    def add(self, node: ir.Node) -> ir.Ref:
        """The node in its canonical form, as seen from the query (columns carry the query's variable names)."""
        if self.consuming and isinstance(node, ir.Leaf):
            # A leaf consumes nothing and can be shared; its columns keep their alphabetical order.
            head = tuple(sorted(node.head))
            others = [name for name in dict.fromkeys(_mentioned(node)) if name not in head]
            order = {name: f"~{i}" for i, name in enumerate((*head, *others))}
            return self._store(alg.rename(replace(node, head=head), order), head)  # type: ignore[arg-type]
        if self.consuming and not isinstance(node, ir.Leaf):
            self.serial += 1
            node = replace(node, head=tuple(sorted(node.head)), owner=f"{self.query}#{self.serial}")
            return self._store(node, node.head)
        order = {name: f"~{i}" for i, name in enumerate(dict.fromkeys(_mentioned(node)))}
        head = tuple(sorted(node.head, key=lambda n: int(order[n][1:])))
        node = replace(node, head=head)
        return self._store(alg.rename(node, order), head)  # type: ignore[arg-type]

    def _store(self, node: ir.Node, columns: tuple[str, ...]) -> ir.Ref:
        identifier = ir.identify(node)
        self.nodes.setdefault(identifier, node)
        return ir.Ref(identifier, columns)


def _mentioned(node: ir.Node) -> Iterable[str]:
    """Every variable of a node, in the order in which they first occur."""
    for ref in ir.refs(node):
        yield from ref.columns
    match node:
        case ir.Leaf():
            for position in (node.subject, node.predicate, node.object):
                if isinstance(position, alg.Var):
                    yield position.name
        case ir.Group():
            yield from (a.variable for a in node.aggregates)
            yield from (name for name, _ in node.extends)
        case ir.Outer():
            yield from _bound_by(node.condition)
            if node.background is not None:
                yield from sorted(alg.scope(node.background))
            yield from _bound_by(node.steps)
            if node.mark:
                yield node.mark
        case ir.Recall():
            yield from sorted(alg.scope(node.pattern))
            yield node.mark
        case ir.Map() | ir.Join():
            yield from _bound_by(node.steps)
    yield from node.head


def _bound_by(steps: tuple[ir.Step, ...]) -> Iterable[str]:
    for step in steps:
        if isinstance(step, ir.Assign):
            yield step.variable
        elif isinstance(step, ir.Background):
            yield from sorted(alg.scope(step.pattern))


def reads(conditions: Iterable[alg.Expr]) -> Names:
    return frozenset().union(*map(alg.variables, conditions))


def _has_exists(e: alg.Expr) -> bool:
    return any(isinstance(part, alg.Exists) for part in alg.subexpressions(e))


def _guard(pattern: alg.Pattern | None, conditions: tuple[alg.Expr, ...]) -> alg.Pattern | None:
    return alg.Filter(pattern, conditions) if pattern is not None and conditions else pattern


def _steps(conditions: Iterable[alg.Expr], bound: alg.Bound | None = None) -> tuple[ir.Step, ...]:
    tests: list[ir.Step] = [] if bound is None else [ir.Duration(bound)]
    return (*tests, *map(ir.Condition, conditions))


# --- patterns --------------------------------------------------------------------------------------------------


def lower(
    pattern: alg.Pattern,
    needed: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...] = (),
    bound: alg.Bound | None = None,
) -> Part:
    """The nodes for a pattern under filters and a bound on its duration; ``needed`` is read above it."""
    match pattern:
        case alg.Filter(child, own):
            return lower(child, needed, b, own + conditions, bound)
        case alg.Within(child, own_bound):
            if bound is not None and bound.months != own_bound.months:
                inner = lower(child, needed | reads(conditions), b, (), own_bound)
                return _mapped(inner, needed, b, _steps(conditions, bound), conditions)
            return lower(child, needed, b, conditions, tighter(bound, own_bound))
    if any(map(_has_exists, conditions)) and not isinstance(pattern, alg.SubSelect):
        plain = tuple(c for c in conditions if not _has_exists(c))
        marked = tuple(c for c in conditions if _has_exists(c))
        inner = lower(pattern, needed | reads(marked) & alg.scope(pattern), b, plain, bound)
        return _filter_exists(inner, alg.certain(pattern), needed, b, marked)
    wanted = alg.scope(pattern) if b.consuming else needed | reads(conditions)
    match pattern:
        case alg.BGP():
            return lower_bgp(pattern, wanted, b, conditions, bound)
        case alg.PathPattern():
            from .paths import lower_path

            return _mapped(lower_path(pattern, b, bound), wanted, b, _steps(conditions, bound), conditions)
        case alg.Block(child):
            return _block(child, wanted, b, conditions, bound)
        case alg.GraphNames() | alg.Table():
            return Part(None, _guard(pattern, conditions))
        case alg.Join():
            return _join("and", pattern, wanted, b, conditions, bound)
        case alg.SeqJoin():
            return _join("seq", pattern, wanted, b, conditions, bound)
        case alg.EqJoin():
            return _join("equals", pattern, wanted, b, conditions, bound)
        case alg.Union(left, right):
            halves = (lower(left, wanted & alg.scope(left), b), lower(right, wanted & alg.scope(right), b))
            timed = _union([h.timed for h in halves if h.timed is not None], wanted, b)
            sides = [h.timeless for h in halves if h.timeless is not None]
            both = alg.Union(sides[0], sides[1]) if len(sides) == 2 else sides[0] if sides else None
            ends = [h.late for h in halves if h.late is not None]
            late = alg.Union(ends[0], ends[1]) if len(ends) == 2 else ends[0] if ends else None
            return _mapped(Part(timed, both, late), wanted, b, _steps(conditions, bound), conditions)
        case alg.Extend(child, variable, expression):
            inner = lower(child, (wanted - {variable}) | alg.variables(expression) & alg.scope(child), b)
            timed, value = inner.timed, expression
            if _has_exists(expression) and timed is not None:
                timed, value = _mark_all(timed, alg.certain(child), b, expression)
            if _is_streamed(expression, b) and inner.timeless is not None:
                settled(inner.late)
                inner = Part(timed, None, alg.Known(inner.timeless))
            steps = (ir.Assign(variable, value), *_steps(conditions, bound))
            extended = None if inner.timeless is None else alg.Extend(inner.timeless, variable, expression)
            late = None if inner.late is None else alg.Extend(inner.late, variable, expression)
            return Part(_map(timed, wanted, b, steps), _guard(extended, conditions), _guard(late, conditions))
        case alg.LeftJoin(left, right, condition):
            return _outer("optional", left, right, condition, pattern, wanted, b, conditions, bound)
        case alg.EqLeftJoin(left, right, condition):
            return _outer("equalsoptional", left, right, condition, pattern, wanted, b, conditions, bound)
        case alg.SeqRightJoin(left, right, condition):
            return _outer("optionalseq", right, left, condition, pattern, wanted, b, conditions, bound)
        case alg.Minus():
            return _minus(pattern, wanted, b, conditions, bound)
        case alg.SubSelect(select):
            part = lower_select(select, b)
            if part.timed is not None:
                part = Part(_slice(select, part.timed, b), part.timeless, part.late)
            settled(part.late)
            if any(map(_has_exists, conditions)):
                return _filter_exists(part, alg.certain(pattern), wanted, b, conditions)
            return _mapped(part, wanted, b, _steps(conditions, bound), conditions)
    raise TypeError(f"not a pattern: {pattern!r}")


def _map(ref: ir.Ref | None, wanted: Names, b: Builder, steps: tuple[ir.Step, ...]) -> ir.Ref | None:
    if ref is None or not steps:
        return ref
    visible = frozenset(ref.columns) | frozenset(_bound_by(steps))
    head = visible if b.consuming else visible & wanted
    return b.add(ir.Map(tuple(sorted(head)), ref, steps))


def _mapped(
    part: Part, wanted: Names, b: Builder, steps: tuple[ir.Step, ...], conditions: tuple[alg.Expr, ...]
) -> Part:
    late = _guard(part.late, conditions)
    return Part(_map(part.timed, wanted, b, steps), _guard(part.timeless, conditions), late)


def _union(refs: list[ir.Ref], wanted: Names, b: Builder, distinct: bool = False) -> ir.Ref | None:
    if not refs:
        return None
    if len(refs) == 1 and not distinct:
        return refs[0]
    columns = frozenset().union(*(r.columns for r in refs))
    return b.add(ir.Union(tuple(sorted(columns & wanted)), tuple(refs), distinct))


# --- basic graph patterns --------------------------------------------------------------------------------------


def lower_bgp(
    bgp: alg.BGP, wanted: Names, b: Builder, conditions: tuple[alg.Expr, ...], bound: alg.Bound | None
) -> Part:
    """One chain of joins for each set of triples that the stream may provide."""
    if bgp.graph is not None or not bgp.triples:
        return Part(None, _guard(bgp, conditions))
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
                branches.append(_bgp_chain(timed, rest, wanted, b, conditions, bound, not stored, bgp.stream))
    timeless = None
    if len(stored) == len(triples):
        timeless = _guard(alg.BGP(triples), conditions)
    ref = _union(branches, alg.scope(bgp), b, distinct=len(branches) > 1)
    if b.consuming and ref is not None and any(name[0] in "._" for name in ref.columns):
        visible = tuple(name for name in sorted(ref.columns) if name[0] not in "._")
        ref = b.add(ir.Map(visible, ref))
    return Part(ref, timeless)


def _bgp_chain(
    timed: list[alg.Triple],
    looked_up: tuple[alg.Triple, ...],
    wanted: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...],
    bound: alg.Bound | None,
    alone: bool,
    stream: str,
) -> ir.Ref:
    order = timed if b.consuming else _connected(timed)
    # What reads the interval, or is drawn anew each time, belongs to the whole block.
    last = tuple(c for c in conditions if operators(c) & (TIME | VOLATILE))
    waiting = [c for c in conditions if c not in last]

    def ready(names: Names) -> tuple[alg.Expr, ...]:
        now = [c for c in waiting if alg.variables(c) <= names]
        waiting[:] = [c for c in waiting if c not in now]
        return tuple(now)

    if b.consuming:
        # The blank nodes of a block are dropped after it; all other variables decide the order of candidates.
        wanted = frozenset(name for name in wanted if name[0] not in "._")
    single = alone and len(timed) == 1
    ref = lower_leaf(order[0], b, wanted if single else None, stream)
    names = _triple_variables(order[0])
    ref = _map(ref, wanted if single else names, b, _steps(ready(names), bound)) or ref
    for triple in order[1:]:
        own = _triple_variables(triple)
        leaf = lower_leaf(triple, b, None, stream)
        leaf = _map(leaf, own, b, _steps([c for c in waiting if alg.variables(c) <= own], bound)) or leaf
        shared = tuple(sorted(names & own))
        names |= own
        ref = b.add(ir.Join(tuple(sorted(names)), "and", ref, leaf, shared, _steps(ready(names)), bound))
    if looked_up:
        extra = frozenset().union(*map(_triple_variables, looked_up))
        step = ir.Background(alg.BGP(looked_up), tuple(sorted(extra - names)))
        names |= extra
        ref = b.add(ir.Map(tuple(sorted(names)), ref, (step, *_steps(ready(names)))))
    if waiting or last:
        # The first kind reads variables that no triple binds.
        ref = b.add(ir.Map(tuple(sorted(names)), ref, _steps((*waiting, *last))))
    if len(timed) > 1 and alone:
        ref = b.add(ir.Map(tuple(sorted(names)), ref, (), distinct=True))
    return ref


def _block(
    child: alg.Pattern, wanted: Names, b: Builder, conditions: tuple[alg.Expr, ...], bound: alg.Bound | None
) -> Part:
    """Joined triple patterns and paths: a set over all variables, before any of them is dropped."""
    early = tuple(c for c in conditions if not operators(c) & (TIME | VOLATILE))
    late = tuple(c for c in conditions if c not in early)
    part = lower(child, alg.scope(child), b, early, bound)
    timed = part.timed
    if timed is not None:
        timed = b.add(ir.Map(tuple(sorted(timed.columns)), timed, (), distinct=True))
        visible = tuple(name for name in sorted(timed.columns) if name in wanted and name[0] not in "._")
        if late or b.consuming:
            timed = b.add(ir.Map(visible if b.consuming else tuple(sorted(timed.columns)), timed, _steps(late)))
    return Part(timed, _guard(part.timeless, late))


def _connected(triples: list[alg.Triple]) -> list[alg.Triple]:
    """As written, but a triple that shares a variable with those before it comes first."""
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


def lower_leaf(t: alg.Triple, b: Builder, wanted: Names | None, stream: str = "") -> ir.Ref:
    """The leaf, or the leaves, that see the occurrences of a triple pattern and of what implies it."""
    names = _triple_variables(t)
    head = tuple(sorted(names if wanted is None else names & wanted))

    def leaf(s: ir.Position, p: ir.Position, o: ir.Position, entailed: bool = False) -> ir.Ref:
        return b.add(ir.Leaf(head, s, p, o, stream, entailed))

    if not b.summary.entailed:
        return leaf(t.subject, t.predicate, t.object)
    if isinstance(t.predicate, alg.Var):
        return leaf(t.subject, t.predicate, t.object, True)
    predicate = t.predicate.term
    if predicate == RDF_TYPE and (isinstance(t.object, alg.Var) or b.summary.type_is_ruled):
        return leaf(t.subject, t.predicate, t.object, True)
    if predicate == RDF_TYPE and isinstance(t.object, alg.Const):
        classes = b.summary.classes_implying(t.object.term)
        properties = b.summary.properties_implying(RDF_TYPE)
        branches = [leaf(t.subject, _one_of(properties), _one_of(classes))]
        of_domain, of_range = b.summary.implies_type(t.object.term)
        if of_domain:
            branches.append(leaf(t.subject, _one_of(of_domain), ir.Any()))
        if of_range:
            branches.append(_resources(leaf(ir.Any(), _one_of(of_range), t.subject), t.subject, b))
        several = len(branches) > 1 or len(classes) > 1 or len(properties) > 1
        return _union(branches, names, b, distinct=several) or branches[0]
    properties = b.summary.properties_implying(predicate)
    if RDF_TYPE in properties and predicate != RDF_TYPE:
        return leaf(t.subject, t.predicate, t.object, True)  # entailed types imply it as well
    ref = leaf(t.subject, _one_of(properties), t.object)
    return ref if len(properties) == 1 else _union([ref], names, b, distinct=True) or ref


def _resources(ref: ir.Ref, node: alg.Var | alg.Const, b: Builder) -> ir.Ref:
    """A range says nothing of literals."""
    if isinstance(node, alg.Const) or node.name not in ref.columns:
        return ref
    test = alg.Apply("!", (alg.Apply("ISLITERAL", (node,)),))
    return b.add(ir.Map(ref.columns, ref, (ir.Condition(test),)))


def _one_of(terms: Names) -> ir.Position:
    return alg.Const(next(iter(terms))) if len(terms) == 1 else ir.OneOf(tuple(sorted(terms)))


# --- joins -----------------------------------------------------------------------------------------------------


def _join(
    op: str,
    pattern: alg.Join | alg.SeqJoin | alg.EqJoin,
    wanted: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...],
    bound: alg.Bound | None,
) -> Part:
    left_scope, right_scope = alg.scope(pattern.left), alg.scope(pattern.right)
    left = lower(_freed(pattern.left, bound), (wanted | right_scope) & left_scope, b)
    right = lower(_freed(pattern.right, bound), (wanted | left_scope) & right_scope, b)
    settled(left.late)
    settled(right.late)
    branches: list[ir.Ref] = []
    if left.timed is not None and right.timed is not None:
        certain = alg.certain(pattern.left) & alg.certain(pattern.right)
        columns = frozenset(left.timed.columns) | frozenset(right.timed.columns)
        head = tuple(sorted(columns if b.consuming else columns & wanted))
        policy = b.policy if b.consuming and op != "and" else ""
        node = ir.Join(head, op, left.timed, right.timed, tuple(sorted(certain)), _steps(conditions), bound, policy)
        branches.append(b.add(node))
    if left.timed is not None and right.timeless is not None:
        branches.append(_look_up(left.timed, right.timeless, wanted, b, conditions, bound))
    if left.timeless is not None and right.timed is not None:
        branches.append(_look_up(right.timed, left.timeless, wanted, b, conditions, bound))
    timeless = None
    if left.timeless is not None and right.timeless is not None:
        timeless = _guard(_conjoin(left.timeless, right.timeless), conditions)
    return Part(_union(branches, wanted, b), timeless)


def _freed(side: alg.Pattern, bound: alg.Bound | None) -> alg.Pattern:
    """A single streamed triple need not be held to the bound of the join above it: the join tests the whole."""
    match side:
        case alg.Filter(child, conditions):
            return alg.Filter(_freed(child, bound), conditions)
        case alg.Within(alg.BGP(triples) as child, own) if len(triples) == 1 and own == bound:
            return child
    return side


def _conjoin(left: alg.Pattern, right: alg.Pattern) -> alg.Pattern:
    if left == alg.UNIT:
        return right
    return left if right == alg.UNIT else alg.Join(left, right)


def _look_up(
    ref: ir.Ref,
    pattern: alg.Pattern,
    wanted: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...],
    bound: alg.Bound | None,
) -> ir.Ref:
    """A timed solution joined with timeless ones, looked up when it arrives."""
    if pattern == alg.UNIT:
        return _map(ref, wanted, b, _steps(conditions, bound)) or ref
    names = alg.scope(pattern)
    step = ir.Background(pattern, tuple(sorted(names - frozenset(ref.columns))))
    mapped = _map(ref, wanted, b, (step, *_steps(conditions, bound)))
    return mapped or ref


# --- outer joins, MINUS, EXISTS --------------------------------------------------------------------------------


def _outer(
    op: str,
    mandatory: alg.Pattern,
    optional: alg.Pattern,
    condition: tuple[alg.Expr, ...],
    whole: alg.LeftJoin | alg.EqLeftJoin | alg.SeqRightJoin,
    wanted: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...],
    bound: alg.Bound | None,
) -> Part:
    mine, other = alg.scope(mandatory), alg.scope(optional)
    above = wanted | reads(condition)
    left = lower(mandatory, (above | other) & mine, b)
    right = lower(optional, (above | mine) & other, b)
    settled(left.late)
    settled(right.late)
    if right.timed is None and right.timeless is None:
        return _mapped(left, wanted, b, _steps(conditions, bound), conditions)
    branches: list[ir.Ref] = []
    if left.timed is not None:
        names = frozenset(left.timed.columns) | other
        certain = alg.certain(mandatory) & alg.certain(optional)
        node = ir.Outer(
            head=tuple(sorted(names if b.consuming else names & wanted)),
            op=op,
            left=left.timed,
            right=right.timed,
            background=right.timeless,
            certain=tuple(sorted(certain)),
            condition=_steps(condition),
            bound=condition_bound(condition),
            leaves=_watched(condition, b),
            steps=_steps(conditions, bound),
            policy=b.policy if b.consuming and op != "optional" else "",
        )
        branches.append(b.add(node))
    timeless = late = None
    if left.timeless is not None and right.timed is not None:
        branches.append(_look_up(right.timed, left.timeless, wanted, b, condition + conditions, bound))
        late = _guard(undecided(op, left.timeless, optional, condition), conditions)
    elif left.timeless is not None and right.timeless is not None:
        timeless = _guard(alg.LeftJoin(left.timeless, right.timeless, condition), conditions)
    return Part(_union(branches, wanted, b), timeless, late)


def _minus(
    pattern: alg.Minus,
    wanted: Names,
    b: Builder,
    conditions: tuple[alg.Expr, ...],
    bound: alg.Bound | None,
) -> Part:
    other = alg.scope(pattern.right)
    shared = tuple(sorted(frozenset(pattern.scope) & other))
    left = lower(pattern.left, (wanted | frozenset(shared)) & alg.scope(pattern.left), b)
    right = lower(pattern.right, frozenset(shared), b)
    settled(left.late)
    settled(right.late)
    if not shared and right.timed is None:
        return _mapped(left, wanted, b, _steps(conditions, bound), conditions)
    timed = None
    if left.timed is not None:
        names = frozenset(left.timed.columns)
        certain = alg.certain(pattern.left) & alg.certain(pattern.right) & frozenset(shared)
        node = ir.Outer(
            head=tuple(sorted(names if b.consuming else names & wanted)),
            op="minus",
            left=left.timed,
            right=right.timed,
            background=right.timeless,
            certain=tuple(sorted(certain)),
            scope=shared,
            steps=_steps(conditions, bound),
        )
        timed = b.add(node)
    timeless = late = None
    if left.timeless is not None and right.timed is not None:
        late = _guard(alg.Minus(alg.Known(left.timeless), pattern.right, shared), conditions)
    elif left.timeless is not None and right.timeless is not None:
        timeless = _guard(alg.Minus(left.timeless, right.timeless, shared), conditions)
    return Part(timed, timeless, late)


def _filter_exists(part: Part, certain: Names, needed: Names, b: Builder, conditions: tuple[alg.Expr, ...]) -> Part:
    """FILTER with EXISTS in it: each EXISTS becomes a column, then the filter is a plain one."""
    timed = part.timed
    for condition in conditions:
        if timed is not None:
            timed, plain = _mark_all(timed, certain, b, condition)
            timed = _map(timed, frozenset(timed.columns), b, (ir.Condition(plain),))
    if part.timeless is not None and any(_is_streamed(c, b) for c in conditions):
        settled(part.late)
        return Part(timed, None, alg.Filter(alg.Known(part.timeless), conditions))
    return Part(timed, _guard(part.timeless, conditions), _guard(part.late, conditions))


def _mark_all(ref: ir.Ref, certain: Names, b: Builder, e: alg.Expr) -> tuple[ir.Ref, alg.Expr]:
    """The node with a column for every EXISTS in the expression, and the expression that reads them."""
    match e:
        case alg.Exists(pattern):
            b.serial += 1
            mark = f".e{b.serial}"
            return _mark(ref, certain, b, pattern, mark), alg.Var(mark)
        case alg.Apply(op, args):
            rewritten = []
            for arg in args:
                ref, plain = _mark_all(ref, certain, b, arg)
                rewritten.append(plain)
            return ref, alg.Apply(op, tuple(rewritten))
    return ref, e


def _mark(ref: ir.Ref, certain: Names, b: Builder, pattern: alg.Pattern, mark: str) -> ir.Ref:
    columns = frozenset(ref.columns)
    conditions: tuple[alg.Expr, ...] = ()
    inner = pattern
    if isinstance(inner, alg.Filter):
        own = alg.scope(inner.child)
        conditions = tuple(c for c in inner.conditions if not alg.variables(c) <= own)
        kept = tuple(c for c in inner.conditions if alg.variables(c) <= own)
        inner = alg.Filter(inner.child, kept) if kept else inner.child
    head = tuple(sorted(columns | {mark}))
    if any(map(_has_exists, conditions)) or is_correlated(inner, columns):
        leaves = _watched((alg.Exists(pattern),), b)
        return b.add(ir.Recall(head, ref, pattern, mark, leaves))
    shared = columns & alg.scope(inner)
    right = lower(inner, shared | reads(conditions) & alg.scope(inner), b)
    node = ir.Outer(
        head=head,
        op="exists",
        left=ref,
        right=right.timed,
        background=right.timeless,
        certain=tuple(sorted(certain & columns & alg.certain(inner))),
        condition=_steps(conditions),
        mark=mark,
    )
    return b.add(node)


def _watched(conditions: Iterable[alg.Expr], b: Builder) -> tuple[str, ...]:
    """The leaves of the patterns inside EXISTS: their occurrences make up the history that is asked."""
    private = Builder(b.summary)
    for condition in conditions:
        for part in alg.subexpressions(condition):
            if isinstance(part, alg.Exists):
                lower(part.pattern, alg.scope(part.pattern), private)
    leaves = {name: node for name, node in private.nodes.items() if isinstance(node, ir.Leaf)}
    for name, node in leaves.items():
        b.nodes.setdefault(name, node)
    return tuple(sorted(leaves))


def _is_streamed(e: alg.Expr, b: Builder) -> bool:
    """May an EXISTS in the expression find an occurrence?"""
    patterns = (part.pattern for part in alg.subexpressions(e) if isinstance(part, alg.Exists))
    return any(lower(p, alg.scope(p), Builder(b.summary)).timed is not None for p in patterns)


# --- SELECT ----------------------------------------------------------------------------------------------------


def lower_select(select: alg.Select, b: Builder, top: bool = False) -> Part:
    """A SELECT as a goal: grouped, or projected (at the ``top`` of a query its output does that)."""
    outputs = frozenset(select.variables)
    calls = tuple(e for _, e in select.extends)
    order = tuple(k.expression for k in select.order)
    operands = tuple(a.operand for a in select.aggregates if a.operand is not None)
    named = frozenset(name for name, _ in select.extends)
    if any(map(_has_exists, order)):
        raise Fault(
            "exists-in-order",
            "EXISTS cannot stand in ORDER BY",
            "bind it in the WHERE clause, BIND(EXISTS {…} AS ?found), and order by ?found",
        )
    needed = outputs | reads(calls) | reads(order) | reads(operands) | frozenset(select.keys)
    if select.grouped and _needs_order(select):
        needed |= frozenset(name for name in alg.scope(select.pattern) if name[0] not in "._")
    inner = lower(select.pattern, needed & alg.scope(select.pattern), b)
    late = None if inner.late is None else alg.SubSelect(replace(select, pattern=inner.late))
    if inner.timed is None:
        if inner.timeless is None:
            return Part(None, None, late)
        return Part(None, alg.SubSelect(replace(select, pattern=inner.timeless)), late)
    if select.grouped:
        settled(inner.late)
        node = ir.Group(
            head=tuple(sorted(outputs | reads(order))),
            child=inner.timed,
            canonical=tuple(sorted(inner.timed.columns)),
            shown=tuple(sorted(outputs)),
            keys=select.keys,
            aggregates=select.aggregates,
            having=select.having,
            extends=select.extends,
            distinct=select.distinct,
            order=select.order,
            limit=select.limit,
            offset=select.offset,
            window=select.window,
            background=inner.timeless,
            leaves=_watched((*calls, *select.having), b),
        )
        return Part(b.add(node), None)
    ref = inner.timed
    for name, e in select.extends:
        plain = e
        if _has_exists(e):
            ref, plain = _mark_all(ref, alg.certain(select.pattern), b, e)
        columns = frozenset(ref.columns) | {name}
        ref = b.add(ir.Map(tuple(sorted(columns)), ref, (ir.Assign(name, plain),)))
    keep = (outputs | (reads(order) & (frozenset(ref.columns) | named))) & frozenset(ref.columns)
    if frozenset(ref.columns) != keep and not top:
        ref = b.add(ir.Map(tuple(sorted(keep)), ref))
    untimed = [p for p in (inner.timeless, late) if p is not None]
    only_there = (outputs & frozenset().union(*map(alg.scope, untimed))) - frozenset(ref.columns)
    if only_there:
        # What only the background binds is unbound in what is streamed.
        ref = b.add(ir.Union(tuple(sorted(frozenset(ref.columns) | only_there)), (ref,), False))
    timeless = None
    if inner.timeless is not None:
        timeless = alg.SubSelect(replace(select, pattern=inner.timeless))
    return Part(ref, timeless, late)


def _needs_order(select: alg.Select) -> bool:
    """Does it matter which of the solutions of an instant comes first?"""
    counted = select.window is not None and select.window.events > 0
    ordered = any(a.name in ("GROUP_CONCAT", "SAMPLE", "MIN", "MAX") or a.operand is None for a in select.aggregates)
    return counted or ordered


def _shown(select: alg.Select, ref: ir.Ref) -> tuple[str, ...]:
    return tuple(name for name in sorted(select.variables) if name in ref.columns)


def _slice(select: alg.Select, ref: ir.Ref, b: Builder) -> ir.Ref:
    """DISTINCT, LIMIT and OFFSET of a sub-SELECT without aggregates."""
    if select.grouped or not (select.distinct or select.limit is not None or select.offset):
        return ref
    head, shown = tuple(sorted(select.variables)), _shown(select, ref)
    node = ir.Slice(head, ref, shown, select.distinct, select.order, select.limit, select.offset)
    return b.add(node)
