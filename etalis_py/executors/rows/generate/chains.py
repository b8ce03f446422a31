"""Generated code for chains: a SEQ of several parts without partial solutions.

Definition.  A solution of part i + 1 is kept if what it completes exists: solutions x₀ … xᵢ of the parts before it,
in sequence, each with the key that the next one has.  The goal has its end, its columns, and as its start the *latest
start* of all that it completes.  So it has expired exactly if nothing that it completes can lie in the window any more.
Its own start, by which the parts before it are found, is one more column, empty if the solution starts at its end.

A solution of the last part is completed backwards: the goals of the part before it that are within the window, for each
of these the goals of the part before that, and so on.  Each step leads to a match.  Many matches that an aggregate only
sums up are not made (``run.match_sums``).

Cost: for each solution, one look-up and a few steps back; for each match, a step per part.  State: the solutions of the
parts.

A trace of ``{?a :a 1} SEQ {?b :b 1} SEQ {?c :c 1}`` within 10: a@1 waits; b@2 waits with the start 1; b@4 likewise;
a@5 waits; b@6 waits with the start 5; c@12 finds b@6, and with it a@5, but b@2 and b@4 have expired.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from etalis_rules import program as ir
from etalis_rules.operators import chain_sides
from etalis_rules.steps import first_conditions
from etalis_rules.terms import XSD

from etalis_py.executors.rows.generate import limit_checks
from etalis_py.executors.rows.generate.blocks import Code, comprehension, emit_steps
from etalis_py.executors.rows.generate.frames import Frame
from etalis_py.executors.rows.generate.inserting import insert, key_of
from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.summed_chains import SummedChain
from etalis_py.executors.rows.generate.writer import Writer
from etalis_py.executors.rows.run.goals import write_insert, write_prune
from etalis_py.executors.rows.run.match_sums import MatchSums

OWN = "own start"
"""The column with the start of a part's solution."""
NEVER = -(2**62)
_TAIL = f'"^^<{XSD}integer>'


def spelled_start(start: int) -> str:
    """The own start of a solution as a term."""
    return f'"{start}{_TAIL}'


def own_start(term: str) -> int:
    """The time that a term of the column stands for."""
    return int(term[1 : -len(_TAIL)])


def latest_start(goals: Sequence[tuple[Any, ...]] | None, before: int) -> int:
    """The latest start of the goals that ended before a time, NEVER if there are none.

    No goal starts after its end, so the search stops at the first one that ended before the latest start so far.
    """
    if not goals:
        return NEVER
    i = len(goals) if goals[-1][0] < before else bisect_left(goals, (before,))
    latest = NEVER
    while i:
        i -= 1
        goal = goals[i]
        if goal[0] <= latest:
            break
        if goal[1] > latest:
            latest = goal[1]
    return latest


def layout_of(node: ir.Chain, place: int, part: Layout) -> Layout:
    """The layout of the goals at a place of a chain, given that of the part's solutions."""
    return replace(part, head=(*part.head, OWN)) if place else part


def _goals(code: Code, name: str, node: ir.Chain, place: int) -> str:
    """A name for the buckets of a place."""
    side = chain_sides(node)[place]
    layout = layout_of(node, place, code.layouts[node.parts[place].node])
    code.stores[name, side] = replace(code.store(name, side), layout=layout)
    return code.goals(name, side)


def await_later(w: Writer, code: Code, name: str, node: ir.Chain, reached: frozenset[str]) -> None:
    """Write the insertion of goals at the end of an instant."""
    for place, (side, ref) in enumerate(zip(chain_sides(node), node.parts, strict=False)):
        if ref.node not in reached:
            continue
        goals, new = _goals(code, name, node, place), code.new(ref.node)
        with code.guard(w, new):
            if place:
                _await(w, code, name, node, place, goals)
            else:
                insert(w, code, name, side, ref, node.keys[0], new)


def _await(w: Writer, code: Code, name: str, node: ir.Chain, place: int, goals: str) -> None:
    ref = node.parts[place]
    before = _goals(code, name, node, place - 1)
    layout = code.layouts[ref.node]
    width = layout.width
    code.names.use("bisect_left", bisect_left)
    with w.block(f"for x in {code.new(ref.node)}:"):
        w(f"k = {key_of(ref, node.keys[place - 1], 'x')}", f"b = {before}.get(k)")
        with w.block("if not b:"):
            w("continue")
        write_prune(w, code.longest(name, node.bound))
        with w.block("if not b:"):
            w("continue")
        latest = f"{code.names.use('latest_start', latest_start)}(b, x[1])"
        w(f"e = b[0][1] if len(b) == 1 and b[0][0] < x[1] else {latest}")
        with w.block("if e == NEVER:" if node.bound is None else f"if e < t - {node.bound.micros}:"):
            w("continue")
        code.names.use("NEVER", NEVER)
        own = f"'' if x[1] == x[0] else {code.names.use('spelled_start', spelled_start)}(x[1])"
        columns, values = (f"x[{i}]" for i in range(2, width)), (f"x[{width + i}]" for i in range(len(layout.values)))
        w(f"x = ({', '.join(['x[0]', 'e', *columns, own, *values])})")
        w(f"k = {key_of(ref, node.keys[place], 'x')}", f"b = {goals}.get(k)")
        write_insert(w, goals)
        if code.journaled:
            w(f"{code.journal}.append(({code.store(name, chain_sides(node)[place]).number}, x))")


def complete(w: Writer, code: Code, name: str, node: ir.Chain, source: str, summed: SummedChain | None) -> None:
    """Write the block of the last part: each new solution is completed backwards, part by part.

    ``summed``: how its only reader sums up the matches, which then are listed only if they are few.
    The first two parts are found in one comprehension.  ``rows`` are the solutions of the parts after them; each of
    these leads to a match, so they are compared with the limits as matches are.
    """
    last = len(node.parts) - 1
    code.names.use("bisect_left", bisect_left)
    goals = _goals(code, name, node, last - 1)
    if node.bound is not None:
        w(f"least = t - {node.bound.micros}")
    with w.block(f"for x{last} in {source}:"):
        w(f"k = {key_of(node.parts[last], node.keys[last - 1], f'x{last}')}", f"b = {goals}.get(k)")
        with w.block("if not b:"):
            w("continue")
        write_prune(w, code.longest(name, node.bound))
        if summed is not None and not code.journaled:
            _sum_up(w, code, name, node, summed)
        if last == 2:
            _complete(w, code, name, node, "b", f"x{last}[1]")
            return
        w(f"rows = [(x{last - 1}, x{last}) {_loop(node, last - 1, 'b', f'x{last}[1]')}]")
        for place in range(last - 2, 1, -1):
            later = ", ".join(f"x{i}" for i in range(place + 1, last + 1))
            goals = _found(code, name, node, place, place + 1)
            loop = _loop(node, place, goals, _own_start(code, node, place + 1))
            w(f"rows = [(x{place}, {later}) for {later} in rows {loop}]")
            limit_checks.compare(w, code, name, "rows", limit_checks.MANY)
        with w.block(f"for {', '.join(f'x{i}' for i in range(2, last + 1))} in rows:"):
            _complete(w, code, name, node, _found(code, name, node, 1, 2), _own_start(code, node, 2))


def _sum_up(w: Writer, code: Code, name: str, node: ir.Chain, plan: SummedChain) -> None:
    last = len(node.parts) - 1
    layouts = [layout_of(node, place, code.layouts[ref.node]) for place, ref in enumerate(node.parts[:-1])]
    layouts += [code.layouts[node.parts[last].node], code.layouts[name]]
    sums = code.names.use(f"sums{code.numbers[name]}", MatchSums(node, plan, plan.reader.aggregates, layouts))
    buckets = "".join(f"{_goals(code, name, node, place)}.get(k, ()), " for place in range(last - 1))
    least = code.names.use("NEVER", NEVER) if node.bound is None else "least"
    w(f"summed = {sums}(x{last}, ({buckets}b), {least})")
    with w.block("if summed is not None:"):
        w(f"{code.new(name)} += summed", "continue")


def _found(code: Code, name: str, node: ir.Chain, place: int, later: int) -> str:
    """Source of the goals at a place that have the key of the solution of a later part."""
    key = key_of(node.parts[later], node.keys[place], f"x{later}")
    return f"{_goals(code, name, node, place)}.get({key}, ())"


def _own_start(code: Code, node: ir.Chain, place: int) -> str:
    """Source of the own start of a solution of a part in the middle."""
    own = f"x{place}[{2 + len(node.parts[place].columns)}]"
    return f"{code.names.use('own_start', own_start)}({own}) if {own} else x{place}[0]"


def _loop(node: ir.Chain, place: int, goals: str, start: str) -> str:
    """Source of a loop over those of these goals that ended before a start, and whose start is in the window."""
    within = "" if node.bound is None else f" if x{place}[1] >= least"
    if goals.isidentifier():
        return f"for x{place} in {goals}[:bisect_left({goals}, ({start},))]{within}"
    return f"for g in ({goals},) for x{place} in g[:bisect_left(g, ({start},))]{within}"


def _complete(w: Writer, code: Code, name: str, node: ir.Chain, goals: str, start: str) -> None:
    """Write the loop over these goals of the second part, and those of the first that belong to them."""
    first = _found(code, name, node, 0, 1)
    if node.keys[0] == node.keys[1]:  # the solution of the third part has the key, too
        w(f"earliest = {_found(code, name, node, 0, 2)}")
        first = "earliest"
    loop = f"{_loop(node, 1, goals, start)} {_loop(node, 0, first, _own_start(code, node, 1))}"
    frame = Frame(code.names, start="x0[1]")
    for i, ref in enumerate(node.parts):
        place = i if i < len(node.parts) - 1 else 0
        frame.read(ref, layout_of(node, place, code.layouts[ref.node]), f"x{i}")
    layout, out = code.layouts[name], code.new(name)
    conditions, rest = first_conditions(node.steps)
    tests = [frame.emitter().test(condition) for condition in conditions]
    if rest:
        with w.block(f"for x1, x0 in [(x1, x0) {loop}]:"):
            emit_steps(
                w, code, name, node.steps, frame, "continue", lambda: w(f"{out}.append({frame.solution(layout)})")
            )
    elif tests:
        comprehension(w, out, frame.solution(layout), f"for x1, x0 in [(x1, x0) {loop}]", tests)
    else:
        comprehension(w, out, frame.solution(layout), loop, [])
    limit_checks.again(w, code, name)
