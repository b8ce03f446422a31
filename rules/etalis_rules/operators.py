"""What each kind of node does with its inputs.  Analyses loop over inputs, so that they need not know the kinds.

>>> from etalis_rules.program import Join, Ref
>>> from etalis_rules.relations import Op
>>> left, right = inputs(Join((), Op.SEQ, Ref("a", ()), Ref("b", ()), ()))
>>> left.earlier, right.earlier
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeGuard, assert_never

from .algebra import AggregateCall, Bound, Expr, Pattern, Var, certain, has_exists, scope, walk
from .algebra import Record as EventPattern
from .clock import ends_by_clock, waits
from .growth import Forever, Growth
from .program import (
    Absence,
    Assign,
    Background,
    Chain,
    Closure,
    Condition,
    Duration,
    Group,
    Join,
    Leaf,
    Map,
    Node,
    Outer,
    Parameters,
    Recall,
    Record,
    Ref,
    Rules,
    Run,
    Skip,
    Slice,
    Start,
    Step,
    Union,
    refs,
)
from .relations import ASKED, AT_ONCE, EITHER_LAST, LEFT_LAST, NEAREST, RIGHT_LAST, SAME_INTERVAL, TOGETHER, Op, OuterOp
from .roles import Role
from .runs import reported_when
from .steps import bound_by, conditions_of
from .traversal import Name, own_names


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a node.

    ``earlier``: its solutions end strictly before those that they take part in, or decide on.  ``negative``: the node
    must see all of an instant's solutions of this input before it decides, for this reason; empty where more solutions
    of the input only make more of the node.  ``decides``: which solutions it has decides which of the others count.
    ``last``: its solutions end when those that they take part in do.  ``forever``: what of it is kept without end.
    """

    ref: Ref
    role: Role = Role.SIDE
    earlier: bool = False
    negative: str = ""
    decides: bool = False
    last: bool = False
    forever: Forever | None = None


_CONSUMES = "a consuming policy"
_COUNTS = "an aggregate or LIMIT"
_SKIPS = "SKIP"


def inputs(node: Node) -> tuple[Input, ...]:
    """The inputs of a node, in the order of its parts."""
    match node:
        case Leaf() | Record() | Start():
            return ()
        case Map():
            return (Input(node.child, last=True),)
        case Union():
            return tuple(Input(ref, last=True) for ref in node.branches)
        case Closure():
            edges = Forever("every edge {} and every pair they connect", brief="every edge of the path")
            return (Input(node.edge, Role.MEMBER, forever=edges if node.bound is None else None),)
        case Join():
            return *_joined(node), *_past(node.leaves)
        case Chain():
            kept = None if node.bound is not None else Forever(brief="everything that may come first")
            return *(Input(ref, earlier=True, forever=kept) for ref in node.parts[:-1]), Input(
                node.parts[-1], last=True
            )
        case Outer():
            left = Input(node.left, negative=_CONSUMES if node.policy else "", last=True)
            if node.right is None:
                return left, *_past(node.leaves)
            kept = _optional(node.op) if node.op not in TOGETHER and node.bound is None else None
            right = Input(
                node.right, Role.OPTIONAL, node.op in LEFT_LAST, node.op.upper(), True, node.op in TOGETHER, kept
            )
            return left, right, *_past(node.leaves)
        case Absence():
            # An EXISTS in the condition looks at what ended by the end of N, which without a deadline is over.
            now = node.deadline is not None or any(map(has_exists, conditions_of(node.steps)))
            return *_around_absence(node), *_past(node.leaves, earlier=not now)
        case Run():
            return _of_run(node)
        case Recall():
            return Input(node.child, last=True), *_past(node.leaves)
        case Group():
            return Input(node.child, Role.MEMBER, negative=_COUNTS, forever=_groups(node)), *_past(node.leaves)
        case Slice():
            return (Input(node.child, negative=_COUNTS, last=True),)
        case Skip():
            kept = Forever("the time of the last one kept", Growth.KEYS, keys=node.keys) if node.keys else None
            return (Input(node.child, negative=_SKIPS, decides=True, last=True, forever=kept),)
        case _:
            assert_never(node)


def _joined(node: Join) -> tuple[Input, Input]:
    op, used = node.op, _CONSUMES if node.policy else ""
    left = right = None
    endless = waits(node) is None
    if endless and node.condition:
        left = Forever(
            "every solution of {} that has not found its next one", brief="whatever has not found its next one"
        )
    elif endless and op in NEAREST:
        waiting = "the solutions of {} that wait for their next one"
        left = Forever(waiting, brief="what waits for its next one", keys=node.certain)
    elif endless and op not in TOGETHER:
        brief = "everything that may come first" if op is Op.SEQ else "everything on both sides"
        left = Forever(brief=brief)
        right = left if op in EITHER_LAST else None
    return (
        Input(node.left, earlier=op in RIGHT_LAST, negative=used, last=op in TOGETHER, forever=left),
        Input(node.right, negative=used, decides=op in NEAREST, last=op not in EITHER_LAST, forever=right),
    )


def _of_run(node: Run) -> tuple[Input, ...]:
    what = "a run" if (node.longest or node.maximal) and node.most is None else "the runs that may go on"
    # With GAP and MAXIMAL a silence ends what is kept of a key.
    kept = None if ends_by_clock(node) else Forever(what, Growth.KEYS, keys=node.keys)
    whole = reported_when(node)
    found = [Input(node.child, Role.MEMBER, negative=whole, decides=True, forever=kept)]
    if node.absent is not None:
        gone = "MAXIMAL" if node.maximal else ""
        found.append(Input(node.absent, Role.ABSENT, not node.maximal, negative=gone, decides=True))
    if node.until is not None:
        found.append(Input(node.until, negative=whole, decides=True, last=True))
    return tuple(found)


def _around_absence(node: Absence) -> tuple[Input, ...]:
    used = _CONSUMES if node.policy else ""
    before = node.right is not None or node.deadline is not None
    endless = node.bound is None and node.deadline is None
    kept = Forever(brief="everything that may come first") if endless and node.right is not None else None
    left = Input(node.left, earlier=before, negative=used, last=not before, forever=kept)
    # A solution of the left may be as long as it likes, so that every N may lie inside a later one.
    all_past = Forever(brief="every solution of the NOT") if endless else None
    gone = Input(
        node.absent, Role.ABSENT, node.deadline is None, "the NOT of a deadline", True, forever=kept or all_past
    )
    return (left, gone) if node.right is None else (left, gone, Input(node.right, negative=used, last=True))


def _optional(op: OuterOp) -> Forever:
    if op in LEFT_LAST:
        return Forever(brief="every optional part")
    return Forever(growth=Growth.PAST, brief=_ASKED)


def _groups(node: Group) -> Forever | None:
    if node.window is not None and not node.window.events:
        return None
    if node.window is None and any(a.distinct or a.name == "GROUP_CONCAT" for a in node.aggregates):
        return Forever("every value it aggregates", Growth.GROUPS)
    return Forever("one row per group", Growth.GROUPS) if node.keys else None


_ASKED = "everything it may look back at"


def _past(leaves: tuple[str, ...], *, earlier: bool = False) -> tuple[Input, ...]:
    kept = Forever("every occurrence of {}", Growth.PAST, _ASKED)
    return tuple(Input(Ref(leaf, ()), Role.PAST, earlier, negative="EXISTS", forever=kept) for leaf in leaves)


def leaves(nodes: Iterable[Node]) -> list[Leaf]:
    """The triple patterns among some nodes."""
    return [node for node in nodes if isinstance(node, Leaf)]


def reads_stream(node: Node) -> TypeGuard[Leaf | Record]:
    """Whether it reads the stream itself, by triples or by whole events."""
    return isinstance(node, Leaf | Record)


def is_leaf(node: Node) -> TypeGuard[Leaf]:
    """Whether it reads single triples of the stream."""
    return isinstance(node, Leaf)


def event_patterns(nodes: Iterable[Node]) -> list[Record]:
    """The nodes that read whole events."""
    return [node for node in nodes if isinstance(node, Record)]


Pairing = Join | Absence
"""A node whose left side waits for its right one, if it has a right one."""


def pairs(node: Node) -> TypeGuard[Pairing]:
    """Whether it makes solutions of a left and a right one: a join, or SEQ NOT … SEQ."""
    return isinstance(node, Join) or (isinstance(node, Absence) and node.right is not None)


def combines(node: Node) -> TypeGuard[Pairing | Chain]:
    """Whether its solutions are made of one of each side or part."""
    return isinstance(node, Chain) or pairs(node)


def compares_times(node: Node) -> bool:
    """Whether it compares the times of its sides."""
    return isinstance(node, Join | Absence | Outer)


def lasts(node: Node) -> bool:
    """Whether its solutions last a while even where those of its inputs are points."""
    match node:
        case Join():
            return node.op not in AT_ONCE
        case Absence():
            return node.right is not None or node.deadline is not None
    return isinstance(node, Chain | Run | Closure | Group)


def spanned(node: Node) -> Iterable[Ref]:
    """The inputs whose intervals make up that of a solution; none if it is a point."""
    if isinstance(node, Map) and node.at_end:
        return ()
    if isinstance(node, Outer) and (node.op in ASKED or node.op in SAME_INTERVAL):
        return (node.left,)
    return (part.ref for part in inputs(node) if part.role not in (Role.ABSENT, Role.PAST))


def relation(node: Pairing) -> Op:
    """The temporal relation of a node's left and right; SEQ NOT … SEQ is a SEQ with one more condition."""
    return node.op if isinstance(node, Join) else Op.SEQ


def waiting_at(node: Node, side: str) -> tuple[Ref, tuple[Name, ...], Bound | None]:
    """The goal that waits at a side of a node, its key variables, and how long it waits at most."""
    match node:
        case Join():
            return (node.right if side == "H" else node.left), node.certain, waits(node)
        case Chain():
            place = chain_sides(node).index(side)
            return node.parts[place], node.keys[place], node.bound
        case Outer(right=Ref() as right):
            return right, node.certain, node.bound
        case Absence() if side == "N":
            return node.absent, node.shared, node.bound
        case Absence():
            return node.left, node.certain if node.right is not None else node.shared, node.bound
    raise TypeError(f"no goals wait at {node!r}")


def chain_sides(node: Chain) -> tuple[str, ...]:
    """The names of the places at which the parts of a chain wait, all but the last one, which waits for nothing."""
    return tuple(f"P{i}_" for i in range(len(node.parts) - 1))


def steps(node: Node) -> tuple[Step, ...]:
    """The steps on the solutions of a node, those of the condition of one of its sides first."""
    match node:
        case Map() | Chain():
            return node.steps
        case Outer() | Join() | Absence():
            return (*node.condition, *node.steps)
        case Leaf() | Record() | Union() | Run() | Start() | Skip() | Recall() | Closure() | Group() | Slice():
            return ()
        case _:
            assert_never(node)


def operands(node: Node) -> tuple[Expr, ...]:
    """The expressions whose values a node aggregates; FIRST and LAST aggregate none."""
    calls: tuple[AggregateCall, ...] = node.aggregates if isinstance(node, Group | Run) else ()
    calls += node.totals if isinstance(node, Run) else ()
    return tuple(a.operand for a in calls if a.operand is not None and not a.takes_element)


def conditions(node: Node) -> tuple[Expr, ...]:
    """The conditions that hold at every step of a run."""
    return node.condition if isinstance(node, Run) else ()


def expressions(node: Node) -> tuple[Expr, ...]:
    """All expressions that a node evaluates."""
    evaluated = (s.expression for s in steps(node) if isinstance(s, Condition | Assign))
    match node:
        case Run():
            return (*node.condition, *operands(node))
        case Group():
            own = (*node.having, *(e for _, e in node.extends), *(k.expression for k in node.order))
            return (*own, *operands(node))
        case Slice():
            return tuple(key.expression for key in node.order)
        case Skip():
            return () if node.after is None else (node.after,)
    return tuple(evaluated)


def windows(node: Node) -> tuple[Bound, ...]:
    """The lengths of time that a node looks at or waits for."""
    match node:
        case Map():
            return tuple(s.bound for s in node.steps if isinstance(s, Duration))
        case Absence() if node.right is None:
            return () if node.deadline is None else (node.deadline,)
        case Run() if node.gap is not None and node.maximal:
            return (node.gap,)
        case Join() if node.deadline is not None:
            return (node.deadline,)
        case Join() | Chain() | Outer() | Closure() | Absence() | Run():
            return () if node.bound is None else (node.bound,)
        case Group():
            return () if node.window is None else (node.window,)
        case Leaf() | Record() | Union() | Start() | Skip() | Recall() | Slice():
            return ()
        case _:
            assert_never(node)


def looked_up(node: Node) -> tuple[Pattern, ...]:
    """The patterns that a node looks up in the background."""
    if isinstance(node, Recall):
        return (node.pattern,)
    asked = (s.pattern for s in getattr(node, "steps", ()) if isinstance(s, Background))
    background = node.background if isinstance(node, Outer | Closure | Group) else None
    return (*asked, *(() if background is None else (background,)))


def variables(node: Node) -> Iterator[Name]:
    """Every variable of a node, in the order in which they first occur."""
    for ref in refs(node):
        yield from ref.columns
    match node:
        case Leaf():
            yield from (p.name for p in (node.subject, node.predicate, node.object) if isinstance(p, Var))
        case Record():
            yield from (name for part in walk((node.pattern, node.graph)) for name in own_names(part))
        case Group() | Run():
            yield from (a.variable for a in (*node.aggregates, *getattr(node, "totals", ())))
            yield from (name for name, _ in getattr(node, "extends", ()))
        case Outer():
            yield from bound_by(node.condition)
            if node.background is not None:
                yield from sorted(scope(node.background))
            yield from (*bound_by(node.steps), *((node.mark,) if node.mark else ()))
        case Recall():
            yield from (*sorted(scope(node.pattern)), node.mark)
        case Map() | Join() | Chain() | Absence():
            yield from bound_by(node.steps)
        case Union() | Closure() | Slice() | Start() | Skip():
            yield from own_names(node)
        case _:
            assert_never(node)
    yield from node.head


def agreement(node: Node) -> frozenset[Name]:
    """The variables on which all solutions agree that a node combines, or that rule one another out."""
    match node:
        case Join() | Outer():
            return frozenset(node.certain)
        case Absence():
            return frozenset(node.shared) & frozenset(node.shared if node.right is None else node.certain)
        case Run() | Group() | Skip():
            return frozenset(node.keys)
    return frozenset()


def compared(node: Node) -> frozenset[Name]:
    """The variables by which a node tells solutions apart, or finds those that belong together."""
    sides = [frozenset(i.ref.columns) for i in inputs(node) if i.role not in (Role.PAST, Role.MEMBER)]
    shared = frozenset[Name]().union(*(one & other for one, other in combinations(sides, 2)))
    match node:
        case Map(distinct=True):
            return frozenset(node.child.columns)
        case Union():
            return frozenset(node.head) if node.distinct else frozenset()
        case Group():
            return frozenset(node.keys)
        case Run():
            return shared | frozenset(node.keys)
        case Skip():
            return frozenset(node.child.columns)
        case Outer():
            return shared | frozenset(node.scope)
    return shared


def certain_columns(node: Node, below: Callable[[Ref], frozenset[Name]]) -> frozenset[Name]:
    """The columns that no solution of a node leaves unbound; ``below`` says so of the columns of an input."""
    head = frozenset(node.head)
    match node:
        case Leaf() | Closure():
            return head
        case Record():
            return certain(EventPattern(node.pattern, node.stream, node.graph)) & head
        case Union():
            return frozenset.intersection(*map(below, node.branches)) & head
        case Run(until=Ref() as until):
            return (below(until) | (below(node.child) & frozenset(node.keys))) & head
        case Group() | Run():
            return below(node.child) & frozenset(node.keys) & head
    sides = (below(part.ref) for part in inputs(node) if part.role is Role.SIDE)
    parameters = (name for s in steps(node) if isinstance(s, Parameters) for name, _ in s.binds)
    return frozenset(parameters).union(*sides) & head


def passes_on(node: Node) -> bool:
    """Whether each of its solutions is one of an input, perhaps with other columns."""
    return isinstance(node, Map | Union)


def passes_values(node: Node) -> bool:
    """Whether the values of columns below are values of the same columns of the node."""
    return not isinstance(node, Group | Slice | Skip | Recall | Run)


def keeps_state(node: Node) -> bool:
    """Whether it keeps something from one instant to the next, besides the history."""
    return not isinstance(node, Leaf | Record | Map | Union | Recall)


def keeps_goals_only(node: Node) -> bool:
    """Whether all that it keeps are goals."""
    return isinstance(node, Leaf | Record | Start | Map | Union | Join | Chain | Outer | Absence)


def decides_for_good(node: Node) -> bool:
    """Whether it decides at the end of an instant what is next or absent, and never again."""
    if isinstance(node, Join):
        return node.op in NEAREST
    return isinstance(node, Run | Skip) or any(part.role is Role.ABSENT for part in inputs(node))


def computes(node: Node) -> bool:
    """Whether it may make terms longer than those it is given."""
    if isinstance(node, Map):
        return any(isinstance(step, Assign) for step in node.steps)
    return isinstance(node, Group)


def multiplies(node: Node) -> bool:
    """Whether it may make more solutions than it is given."""
    if isinstance(node, Map):
        return any(isinstance(step, Background | Parameters) for step in node.steps)
    if isinstance(node, Absence):
        return node.right is not None and not node.policy
    alone = isinstance(node, (Union, Group, Slice, Skip, Recall))  # a group has a row for each of its keys
    return not alone and not (isinstance(node, Join) and node.policy)


def looks_back(rules: Rules) -> bool:
    """Whether some rule looks back at single occurrences."""
    if any(output.form == "describe" or output.late is not None for output in rules.outputs):
        return True
    return any(part.role is Role.PAST for _, node in rules.nodes for part in inputs(node))


def passed_on_at_end(node: Node) -> Iterable[Ref]:
    """The inputs whose solutions a node takes even if only the end of the stream has made them."""
    match node:
        case Map() | Union() | Group() | Slice() | Skip() | Recall():
            return refs(node)
        case Outer() if node.op not in TOGETHER and not node.policy:
            return (node.left,)
        case Absence(right=None, deadline=None):
            return (node.left,)
    return ()
