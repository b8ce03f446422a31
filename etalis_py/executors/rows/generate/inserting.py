"""Generated code for goal-insertion rules: goals under their join key, and the edges of their buckets."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import replace

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import waits
from etalis_rules.relations import TOGETHER
from etalis_rules.sides import Split, compares_sides, deciding, equal_sides, sides_of, split

from etalis_py.executors.rows.generate.blocks import Code
from etalis_py.executors.rows.generate.frames import Frame, Named, item
from etalis_py.executors.rows.generate.hoisting import stored_expressions, stored_position
from etalis_py.executors.rows.generate.runtime_objects import GoalBuckets
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import computed_values, edge_of, write_insert
from etalis_py.values import NUMERIC
from etalis_py.values.equality_keys import equality_key
from etalis_py.values.expressions import Emitter

_FEW = 128
"""To search so many goals in vain costs less than to look for the best of them each time that some have expired."""


def key_of(ref: ir.Ref, certain: tuple[str, ...], solution: Named, also: Sequence[str] = ()) -> str:
    """Source of the join key of a solution: one item, a tuple of items, or None when nothing is shared.

    The items are the shared terms, and ``also`` the keys of what the sides compare by ``=``.
    """
    items = [*(item(solution, 2 + ref.columns.index(name)) for name in certain), *also]
    if not items:
        return "None"
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def insert(
    w: Writer, code: Code, node: str, side: str, ref: ir.Ref, certain: tuple[str, ...], source: str, *also: str
) -> None:
    """The goal-insertion rule: every new solution ``x`` is put into the bucket of its key ``k``; ``also`` runs then."""
    store, goals = code.store(node, side), code.goals(node, side)
    extra, equal = stored(code, node, ref), equated(code, node, ref)
    keys = [stored_position(code.layouts[ref.node], len(extra) + i) for i in range(len(equal))]
    key = (*(2 + ref.columns.index(name) for name in certain), *keys)
    code.stores[node, side] = replace(store, key=key, extend=extension(code, ref, extra, equal))
    compared = comparison_of(code, node, ref)
    with code.each(w, "x", source) as skip:
        frame, arrived = Frame(code.names), code.items.get(source, "x")
        frame.read(ref, code.layouts[ref.node], arrived)
        emitter = frame.emitter()
        if extra or equal:
            with w.block("try:"):
                w(f"x = {_with_values(code, added(code, emitter, extra, equal))}")
            with w.block("except SparqlError:"):
                w(skip)
        w(f"k = {key_of(ref, certain, arrived, [f'x[{place}]' for place in keys])}", f"b = {goals}.get(k)")
        write_insert(w, goals, code.names.use("insort", insort) if code.is_late(ref.node) else "")
        if code.journaled:
            w(f"{code.journal}.append(({store.number}, x))")
        w(*also)
        if compared is not None:
            value = waiting_value(code, emitter, compared, ref, extra)
            stretch(w, code.edges(node, side), compared, value, skip)


def stored(code: Code, name: str, waiting: ir.Ref) -> tuple[alg.Expr, ...]:
    """The expressions stored with the goals of one side of a node."""
    node = code.nodes[name]
    if not isinstance(node, ir.Join):
        return ()
    if node.op in TOGETHER and not code.is_late(name):
        return ()  # goals that live for one instant are compared directly
    arriving = node.left if waiting is node.right else node.right
    return stored_expressions(node.steps, sides_of(waiting, arriving, node.certain))


def equated(code: Code, name: str, side: ir.Ref) -> tuple[alg.Expr, ...]:
    """The expressions of one side of a node that are part of its key."""
    node = code.nodes[name]
    if not compares_sides(node):
        return ()
    return tuple(left if side is node.left else right for left, right in equal_sides(node))


def added(code: Code, emitter: Emitter, extra: tuple[alg.Expr, ...], equal: tuple[alg.Expr, ...]) -> Iterator[str]:
    """Source of what is stored with a goal: values that are compared, and keys of those that have to be equal."""
    yield from map(emitter.value, extra)
    yield from keys_of(code, emitter, equal)


def keys_of(code: Code, emitter: Emitter, equal: tuple[alg.Expr, ...]) -> Iterator[str]:
    """Source of the keys of expressions that have to be equal."""
    for e in equal:
        yield f"{code.names.use('equality_key', equality_key)}({emitter.value(e)})"


def sought(w: Writer, code: Code, name: str, side: ir.Ref, certain: tuple[str, ...], solution: Named, skip: str) -> str:
    """Source of the key that a solution looks up; a solution whose compared value is an error finds nothing.

    It is skipped then, or, if ``skip`` is empty, given a key that no goal has.
    """
    equal = equated(code, name, side)
    if not equal:
        return key_of(side, certain, solution)
    alone = Frame(code.names)
    alone.read(side, code.layouts[side.node], solution)
    emitter = alone.emitter()
    places = [f"q{i}" for i in range(len(equal))]
    with w.block("try:"):
        for place, source in zip(places, keys_of(code, emitter, equal), strict=True):
            w(f"{place} = {source}")
    with w.block("except SparqlError:"):
        w(skip or f"{' = '.join(places)} = None")
    return key_of(side, certain, solution, places)


def extension(code: Code, ref: ir.Ref, extra: tuple[alg.Expr, ...], equal: tuple[alg.Expr, ...]) -> str:
    """Source of a function that adds what is stored with a goal to one that was read back; empty without any."""
    if not extra and not equal:
        return ""
    frame = Frame(code.names)
    frame.read(ref, code.layouts[ref.node], "x")
    return f"def extend(x):\n    return {_with_values(code, added(code, frame.emitter(), extra, equal))}\n"


def _with_values(code: Code, values: Iterator[str]) -> str:
    """Source of goal ``x`` with values that are stored with it; why it is there remains its last item."""
    more = ", ".join(values)
    return f"(*x[:-1], {more}, x[-1])" if code.explain else f"x + ({more},)"


def comparison_of(code: Code, name: str, waiting: ir.Ref) -> Split | None:
    """If a single comparison decides which goals of this side can match, return it; else None.

    A bucket that is searched in vain then has an *edge* (``leave_edge``): no goal lies beyond it.  New goals that do
    lie beyond it move the edge, and a search whose value cannot reach the edge is skipped.  This is only right if a
    search in vain proves that the comparison fails for every goal.  So the node may have no other condition,
    except one on how long a goal itself may last, and its solutions may not become known late.
    """
    found = None if code.is_late(name) else deciding(code.nodes[name], waiting)
    if found is None:
        return None
    steps, arriving, certain = found
    return only_comparison(steps, waiting, arriving, certain)


def only_comparison(
    steps: tuple[ir.Step, ...], waiting: ir.Ref, arriving: ir.Ref, certain: tuple[str, ...]
) -> Split | None:
    """The comparison of both sides by which these steps alone decide on the goals of one side; None if they do not."""
    tests = [s for s in steps if not (isinstance(s, ir.Lasting) and s.parameter in waiting.columns)]
    if len(tests) != 1:
        return None
    (step,) = tests
    shared = frozenset(waiting.columns) & frozenset(arriving.columns)
    if not isinstance(step, ir.Condition) or shared - {*certain}:
        return None
    parted = split(step.expression, sides_of(waiting, arriving, certain))
    return parted if parted is not None and parted.op in ("<", "<=", ">", ">=") else None


def waiting_value(code: Code, emitter: Emitter, compared: Split, waiting: ir.Ref, extra: tuple[alg.Expr, ...]) -> str:
    """Source of the value of goal ``x`` that is compared."""
    if compared.waiting in extra:
        return f"x[{stored_position(code.layouts[waiting.node], extra.index(compared.waiting))}]"
    return emitter.value(compared.waiting)


def place_of_value(code: Code, waiting: ir.Ref, extra: Sequence[alg.Expr], compared: Split) -> int | None:
    """Where a goal has the value that is compared, given the expressions that are stored; None if it is computed."""
    layout = code.layouts[waiting.node]
    if compared.waiting in extra:
        return stored_position(layout, extra.index(compared.waiting))
    variable = alg.variable_of(compared.waiting)
    if not variable:
        return None
    column = layout.head[waiting.columns.index(variable)]
    return layout.value(column) if column in layout.values else None


def orders_of(code: Code, node: str, side: str) -> str:
    """A name for the orders by value of the buckets of a store."""
    return code.helper(f"B{side}", node, GoalBuckets(node, side, "orders"))


def compute_arriving(w: Writer, code: Code, compared: Split, arriving: ir.Ref, solution: str, otherwise: str) -> None:
    """Write what leaves in ``v0`` the compared value of an arriving solution and in ``c0`` its class.

    ``otherwise`` is what is done if it is an error, which passes no comparison.
    """
    alone = Frame(code.names)
    alone.read(arriving, code.layouts[arriving.node], solution)
    with w.block("try:"):
        w(f"v0 = {alone.emitter().value(compared.arriving)}", "c0 = v0.__class__")
    with w.block("except SparqlError:"):
        w(otherwise)


def stretch(w: Writer, edges: str, compared: Split, value: str, skip: str) -> None:
    """Insert a goal with ``value``: if its bucket has an edge, move it so that the goal does not lie beyond it."""
    w(f"e = {edges}.get(k)")
    with w.block("if e is not None:"):
        with w.block("try:"):
            w(f"w = {value}")
        with w.block("except SparqlError:"):
            w(skip)  # its comparison can never succeed
        with w.block("if w.__class__ is not e.__class__:"):
            w(f"del {edges}[k]")
        with w.block(f"elif w {compared.op[0]} e:"):
            w(f"{edges}[k] = w")


def stop_at_edge(w: Writer, edges: str, compared: Split, skip: str) -> None:
    """Write the test that skips a bucket if the arriving value ``v0`` (of class ``c0``) cannot pass its edge."""
    w(f"e = {edges}.get(k)")
    with w.block(f"if e.__class__ is c0 and not e {compared.op} v0:"):
        w(skip)


def leave_edge(w: Writer, code: Code, name: str, waiting: ir.Ref, edges: str) -> None:
    """Leave the edge of bucket ``b`` of key ``k``, which has been searched in vain for ``v0``.

    It is the best value of the goals, so that values which rise ever more are not all searched for.  Where a policy
    takes goals it is ``v0``, as the best value would soon be gone, and of a few goals, as to search them costs less.
    """
    compared, node = comparison_of(code, name, waiting), code.nodes[name]
    if compared is None or (isinstance(node, ir.Join) and node.policy):
        w(f"{edges}[k] = v0")
        return
    extra = stored(code, name, waiting)
    bucket, place = "b", place_of_value(code, waiting, extra, compared)
    if isinstance(node, ir.Join):
        longest = code.longest(name, waits(node) if waiting is node.left else node.bound)
        bucket = f"b[{use_bisect(code)}(b, (t - {longest},)):]" if longest else "b"
    if place is None:
        frame = Frame(code.names)
        frame.read(waiting, code.layouts[waiting.node], "x")
        value = waiting_value(code, frame.emitter(), compared, waiting, extra)
        values = f"{code.names.use('computed_values', computed_values)}({bucket}, lambda x: {value})"
    else:
        values = f"[x[{place}] for x in {bucket}]"
    best = "min" if compared.op in ("<", "<=") else "max"
    w(f"{edges}[k] = v0 if len(b) <= {_FEW} else {code.names.use('edge_of', edge_of)}({values}, {best}, v0)")


def in_vain(code: Code) -> str:
    """Source that is true when ``v0`` may be an edge; NaN may not, as it compares with nothing."""
    return f"c0 in {code.names.use('NUMERIC', NUMERIC)} and v0 == v0"


def use_bisect(code: Code) -> str:
    return code.names.use("bisect_left", bisect_left)
