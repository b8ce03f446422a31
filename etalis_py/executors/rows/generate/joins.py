"""Generated code for joins: goal-insertion rules, checking rules, and both under a consuming policy.

The right side of a SEQ looks up the bucket of its key in the store of the left (see ``goals``); goals that ended before
it started are its candidates.  A bucket is pruned by the window when it is looked at, and a sweep prunes all buckets
now and then.

Where a FILTER compares the two sides (``?p1 < ?p2``) a bucket has an *edge*: a number beyond which none of its goals
lies.  An arriving solution that does not reach the edge has no partner, and the goals are not looked at.  A search in
vain leaves the best value of the goals as the edge; where a policy takes goals, it is the value that was looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.clock import waits
from etalis_rules.operators import Pairing, relation
from etalis_rules.relations import APART, RIGHT_LAST, SAME_INTERVAL, Relation, hull, sources
from etalis_rules.sides import sides_of, split
from etalis_rules.steps import first_conditions

from etalis_py.executors.rows.generate import limit_checks
from etalis_py.executors.rows.generate.blocks import Code, comprehension, emit_steps, in_time, lasts
from etalis_py.executors.rows.generate.frames import Frame, Named, item, merge
from etalis_py.executors.rows.generate.hoisting import hoist_arriving, stored_position
from etalis_py.executors.rows.generate.inserting import (
    comparison_of,
    in_vain,
    insert,
    key_of,
    leave_edge,
    orders_of,
    place_of_value,
    sought,
    stop_at_edge,
    stored,
    use_bisect,
)
from etalis_py.executors.rows.generate.runtime_objects import GoalBuckets
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import FEW, write_prune, write_retract

if TYPE_CHECKING:
    from etalis_py.executors.rows.generate.bands import Bounds

_FITS = {"<": lt, "<=": le, ">": gt, ">=": ge}
_BOUNDS = {"a": "x[1]", "a'": "x[0]", "b": "y[1]", "b'": "y[0]"}
_STARTS = {"a": "x[1]", "b": "y[1]", "min": "(x[1] if x[1] < y[1] else y[1])"}


def tests_of(op: Relation) -> list[str]:
    """Source of the temporal relation between a left solution ``x`` and a right one ``y``."""
    return sources(op, _BOUNDS)


def seq_check(
    w: Writer,
    code: Code,
    name: str,
    node: Pairing,
    source: str,
    gap: Callable[[Frame, Search], Search] | None = None,
    before: Callable[[Frame, list[str], str], bool] | None = None,
) -> None:
    """The checking rule for operators whose left side ends first: each new solution ``y`` of the right looks for lefts.

    These are SEQ, the nearest relations and some of Allen's relations.  ``gap`` writes what narrows the search of
    bucket ``b`` for a solution that starts at ``begun`` to the goals whose gap is empty, ``before`` what is done with
    the bucket before its goals are looked at, and returns whether only goals that ended before ``y`` started are left.
    """
    assert node.right is not None
    op = relation(node)
    use_bisect(code)
    # Comprehensions would make cells of the names that they read, and ``gap`` reads ``y``.
    straight = bool(node.policy) and op in APART and gap is None and before is None
    arriving: Named = code.items.get(source, "y") if straight else "y"
    frame, tests = frame_of(code, name, node, arriving)
    alone = source == code.new(node.right.node) and finds_one(code, name, node)
    if alone:
        code.at_most_one.add(code.new(name))
    if node.policy and source not in code.single:
        with w.block(f"if len({source}) > 1:"):
            w(f"{source} = sorted({source})")
    with code.each(w, "y" if arriving == "y" else "", source) as skip:
        look_up(w, code, name, node, arriving, skip)
        with w.block("if b:"):
            all_ended = before is not None and before(frame, tests, skip)
            search = _search(w, code, name, node, frame, tests, node.left, arriving, skip)
            if isinstance(node, ir.Join) and node.deadline is not None:
                search.open.append(in_time(node.deadline, "x[0]", frame.end, code.names))
            write_prune(w, code.longest(name, waits(node)))
            if search.bounds is not None:
                search.bounds.narrow(w, code)
            w(f"begun = {item(arriving, 1)}")
            if gap is not None:
                search = gap(frame, search)
            if node.policy:
                # ``begun`` is read for every candidate, and a local name is faster than a tuple index.
                search.last.extend(["x[0] < begun"] if op in APART else tests_of(op))
                _consume(w, code, name, node, frame, search, "G", finds_one=alone)
                return
            if op in APART and not all_ended:
                # All goals of the bucket, unless some ended too late for this solution.
                if search.edges:
                    w("whole = not b or b[-1][0] < begun")
                with w.block("if not whole:" if search.edges else "if b and b[-1][0] >= begun:"):
                    w("b = b[:bisect_left(b, (begun,))]")
            elif op not in APART:
                # The goals that have not ended when this solution starts.
                with w.block("if b and b[0][0] < begun:"):
                    w("b = b[bisect_left(b, (begun,)):]")
                search.open.extend(tests_of(op))
            all_matches(w, code, name, node, frame, search, "for x in b")


def frame_of(code: Code, name: str, node: Pairing, arriving: Named) -> tuple[Frame, list[str]]:
    """The frame of a pair, whose left solution is ``x``, and the tests that the index does not ensure."""
    assert node.right is not None
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", arriving)
    frame.start = _STARTS[hull(relation(node))[0]]
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    return frame, tests


def look_up(w: Writer, code: Code, name: str, node: Pairing, arriving: Named, skip: str) -> None:
    """Leave in ``b`` the goals that an arriving solution of the right side finds by its key ``k``."""
    assert node.right is not None
    key = sought(w, code, name, node.right, node.certain, arriving, skip)
    w(f"k = {key}", f"b = {code.goals(name, 'G')}.get(k)")


def finds_one(code: Code, name: str, node: ir.Node) -> bool:
    """Whether a SEQ has at most one new solution: a policy takes one goal, and at most one solution looks for it."""
    if not isinstance(node, ir.Join) or not node.policy or code.is_late(name) or node.op not in RIGHT_LAST:
        return False
    return code.is_short(code.new(node.right.node)) and not first_conditions(_on_pairs(node))[1]


@dataclass(frozen=True, slots=True)
class Search:
    """The tests that a candidate still has to pass.

    ``open`` are the tests of compatibility and time that the index does not ensure, ``conditions`` the FILTERs,
    ``last`` more tests of time, and ``rest`` the steps that bind something.  ``waiting`` is the side of the candidates,
    ``edges`` the name of its store's edges, empty if it has none; ``bounds`` are a lower and an upper one, by which the
    goals can be searched; ``fitting`` is the source of the places of the goals that may fit, if a policy looks for the
    first, and ``orders`` the name of what it needs; ``places`` is that of all places to look at, if these are not the
    whole bucket.
    """

    open: list[str]
    conditions: list[str]
    rest: list[ir.Step]
    waiting: ir.Ref
    edges: str = ""
    last: list[str] = field(default_factory=list)
    bounds: Bounds | None = None
    fitting: str = ""
    orders: str = ""
    places: str = ""


def _search(
    w: Writer,
    code: Code,
    name: str,
    node: Pairing,
    frame: Frame,
    open_: list[str],
    waiting: ir.Ref,
    arriving: Named,
    skip: str = "continue",
) -> Search:
    """Write the code that runs before the candidates are looked at; returns the tests that are left.

    ``waiting`` is the side of the candidates, ``arriving`` the solution that looks for them, ``skip`` the statement
    that goes on to the next one.
    """
    conditions, rest = candidate_tests(w, code, name, node, _on_pairs(node), frame, waiting, arriving, skip)
    compared = comparison_of(code, name, waiting)
    if compared is None:
        return Search(open_, conditions, rest, waiting, bounds=_bounds(code, name, node, waiting, arriving))
    side = "G" if waiting is node.left else "H"
    edges = code.edges(name, side)
    stop_at_edge(w, edges, compared, skip)
    place = place_of_value(code, waiting, stored(code, name, waiting), compared) if node.policy else None
    if place is None:
        return Search(open_, conditions, rest, waiting, edges)
    code.store(name, side)
    find, fits = code.helper(f"F{side}", name, GoalBuckets(name, side, "fitting")), _FITS[compared.op]
    compare = code.names.use(f"{fits.__name__}_of_kind", fits)
    fitting = f"{find}(k, b, {place}, {compare}, {node.policy == 'recent'}, v0)"
    return Search(open_, conditions, rest, waiting, edges, fitting=fitting, orders=orders_of(code, name, side))


def _bounds(code: Code, name: str, node: Pairing, waiting: ir.Ref, arriving: Named) -> Bounds | None:
    """A lower and an upper bound on the candidates, if the conditions on a pair have both."""
    conditions = first_conditions(_on_pairs(node))[0]
    if len(conditions) < 2 and not any(alg.comparison(e) for condition in conditions for e in alg.conjuncts(condition)):
        return None
    from etalis_py.executors.rows.generate.bands import bounds_of  # few programs need it

    return bounds_of(code, name, node, waiting, arriving, conditions)


def candidate_tests(
    w: Writer,
    code: Code,
    name: str,
    node: Pairing,
    steps: tuple[ir.Step, ...],
    frame: Frame,
    waiting: ir.Ref,
    solution: Named,
    skip: str,
) -> tuple[list[str], list[ir.Step]]:
    """The tests of one candidate, cheapest first, and the remaining steps, from the first one that binds something on.

    The code for values that do not depend on the candidate is written at once, before the loop over candidates.
    """
    arriving = node.left if waiting is node.right else node.right
    assert arriving is not None
    emitter = frame.emitter()
    for i, e in enumerate(stored(code, name, waiting)):
        variable = "x" if waiting is node.left else "y"
        emitter.ready[e] = f"{variable}[{stored_position(code.layouts[waiting.node], i)}]"
    tests = []
    lasting = [lasts(step.parameter, frame) for step in steps if isinstance(step, ir.Lasting)]
    # If both sides bind a variable, its value for the arriving side has to come from the arriving solution itself.
    alone = Frame(code.names)
    alone.read(arriving, code.layouts[arriving.node], solution)
    its_own = alone.emitter()
    conditions, rest = first_conditions(step for step in steps if not isinstance(step, ir.Lasting))
    for condition in conditions:
        parted = split(condition, sides_of(waiting, arriving, node.certain))
        if parted is None:
            tests.append(emitter.test(condition))
        else:
            tests.append(hoist_arriving(w, code.names, its_own, emitter, parted, len(tests), skip))
    return [*tests, *lasting], list(rest)


def _on_pairs(node: Pairing) -> tuple[ir.Step, ...]:
    """The steps on a pair of solutions; the condition of an absence is none, as it is about what is absent."""
    return (*node.condition, *node.steps) if isinstance(node, ir.Join) else node.steps


def all_matches(w: Writer, code: Code, name: str, node: Pairing, frame: Frame, search: Search, loop: str) -> None:
    out = code.new(name)
    layout = code.layouts[name]
    # Filters are tested before the window: they refuse more candidates, as the bucket has been pruned already.
    tests = [*search.open, *search.conditions]
    if node.bound is not None and not isinstance(node.bound, ir.Longest):
        tests.append(in_time(node.bound, frame.start, frame.end, code.names))
    if not search.rest and not search.conditions:
        comprehension(w, out, frame.solution(layout), loop, tests)
        limit_checks.again(w, code, name)
        return
    if search.edges:
        w(f"found = len({out})")
    with w.block(f"{loop}:"):
        if tests:
            with w.block("try:"), w.block(f"if not ({' and '.join(tests)}):"):
                w("continue")
            with w.block("except SparqlError:"):
                w("continue")
        steps = tuple(search.rest)
        emit_steps(w, code, name, steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})"))
    if search.edges:
        whole = "whole and " if relation(node) in RIGHT_LAST else ""
        with w.block(f"if {whole}len({out}) == found and {in_vain(code)}:"):
            leave_edge(w, code, name, search.waiting, search.edges)


def _consume(
    w: Writer,
    code: Code,
    name: str,
    node: Pairing,
    frame: Frame,
    search: Search,
    side: str = "",
    waiting: str = "x",
    *,
    finds_one: bool = False,
) -> None:
    """Take the earliest or the latest candidate of bucket ``b`` and retract its goal.

    ``side`` is that of the store, if the store outlives the instant.  ``waiting`` is the name of the candidate: ``x``
    of the left side, ``y`` of the right.  ``finds_one``: no other solution of this instant takes one.
    """
    out = code.new(name)
    latest = node.policy == "recent"
    conditions = search.conditions
    required = [*search.open, *conditions, *search.last]
    if node.bound is not None and not isinstance(node.bound, ir.Longest):
        required.append(in_time(node.bound, frame.start, frame.end, code.names))
    places = search.places or ("range(len(b) - 1, -1, -1)" if latest else "range(len(b))")
    if search.fitting:
        few = f"range(len(b) - 1, len(b) - {FEW + 1}, -1)" if latest else f"range({FEW})"
        places += f" if len(b) <= {FEW} else {code.names.use('chain', chain)}({few}, {search.fitting})"
    with w.block(f"for i in {places}:"):
        w(f"{waiting} = b[i]")

        def take() -> None:
            solution = frame.solution(code.layouts[name])
            w(f"{out} = ({solution},)" if finds_one else f"{out}.append({solution})")
            if side:
                write_retract(w, code.goals(name, side), "k", search.edges, search.orders)
            else:
                w("del b[i]")
            if code.journaled and side:
                w(f"{code.journal}.append(({-code.store(name, side).number - 1}, {waiting}))")
            w("break")

        if conditions:
            with w.block("try:"), w.block(f"if not ({' and '.join(required)}):"):
                w("continue")
            with w.block("except SparqlError:"):
                w("continue")
        elif required:
            with w.block(f"if not ({' and '.join(required)}):"):
                w("continue")
        emit_steps(w, code, name, tuple(search.rest), frame, "continue", take)
    if search.edges:
        with w.block("else:"), w.block(f"if (not b or b[-1][0] < begun) and {in_vain(code)}:"):
            w(f"{search.edges}[k] = v0")


def equals(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """EQUALS and FINISHES: both sides end in this instant and meet by key (and start); no goal outlives it."""
    goals = code.of_instant("G", name, "dict")
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    left_key, right_key = _meeting(node, frame, tests)
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    for source in (left, right):
        if node.policy:
            with w.block(f"if len({source}) > 1:"):
                w(f"{source} = sorted({source})")
    with w.block(f"for x in {left}:"):
        w(f"{goals}.setdefault({left_key}, []).append(x)")
    with w.block(f"for y in {right}:"):
        w(f"b = {goals}.get({right_key})")
        with w.block("if b:"):
            search = _search(w, code, name, node, frame, tests, node.left, "y")
            if node.policy:
                _consume(w, code, name, node, frame, search)
            else:
                all_matches(w, code, name, node, frame, search, "for x in b")


def _meeting(node: ir.Join, frame: Frame, tests: list[str]) -> tuple[str, str]:
    """The keys by which the sides of EQUALS or FINISHES meet; FINISHES leaves the start to a test."""
    left, right = key_of(node.left, node.certain, "x"), key_of(node.right, node.certain, "y")
    if node.op in SAME_INTERVAL:
        return f"({left}, x[1])", f"({right}, y[1])"
    frame.start = _STARTS[hull(node.op)[0]]
    tests.append(tests_of(node.op)[0])  # both end in this instant, so only the starts are left to test
    return left, right


def equals_again(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """EQUALS and FINISHES inside a recursion: both sides may grow while the instant lasts."""
    goals = code.of_instant("G", name, "dict")
    other = code.of_instant("H", name, "dict", "'")
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    left_key, right_key = _meeting(node, frame, tests)
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    with w.block(f"for x in {left}:"):
        w(f"{goals}.setdefault({left_key}, []).append(x)")
        search = _search(w, code, name, node, frame, tests, node.right, "x")
        all_matches(w, code, name, node, frame, search, f"for y in {other}.get({left_key}, ())")
    with w.block(f"for y in {right}:"):
        w(f"{other}.setdefault({right_key}, []).append(y)")
        search = _search(w, code, name, node, frame, tests, node.left, "y")
        all_matches(w, code, name, node, frame, search, f"for x in {goals}.get({right_key}, ())")


def both(w: Writer, code: Code, name: str, node: ir.Join, left: str, right: str) -> None:
    """AND and PAR: each side in turn checks the goals of the other and inserts its own, so a pair is found only once.

    The other relations are written this way, too, if a side may become known late, since then either can come last.
    """
    use_bisect(code)
    frame, tests = merge(code.names, node.left, node.right, code.layouts, node.certain, "x", "y")
    frame.start = _STARTS["min"]
    if code.is_late(name):
        frame.end = "(x[0] if x[0] > y[0] else y[0])"
    tests += tests_of(node.op)
    frame.provenance = code.provenance(name, "x[-1]", "y[-1]")
    sides = ((left, node.left, "x", "G"), (right, node.right, "y", "H"))
    for (source, ref, arriving, own), (_, other, waiting, theirs) in (sides, sides[::-1]):
        if not source:
            continue
        goals = code.goals(name, theirs)
        if node.policy and source not in code.single:
            with w.block(f"if len({source}) > 1:"):
                w(f"{source} = sorted({source})")
        with code.each(w, arriving, source) as skip:
            w(f"k = {sought(w, code, name, ref, node.certain, arriving, skip)}", f"b = {goals}.get(k)")
            with w.block("if b:"):
                search = _search(w, code, name, node, frame, list(tests), other, arriving, skip)
                write_prune(w, code.longest(name, node.bound))
                if search.bounds is not None:
                    search.bounds.narrow(w, code)
                if node.policy:
                    _consume(w, code, name, node, frame, search, theirs, waiting)
                else:
                    all_matches(w, code, name, node, frame, search, f"for {waiting} in b")
        insert(w, code, name, own, ref, node.certain, source)
