"""COUNT, SUM and AVG without HAVING, ORDER BY or LIMIT: aggregation as generated code.

It gives the same rows as ``Grouping``, for the aggregates that a running number can hold.  As long as the summands of a
group are integers, their sum is a Python int; the first other summand moves the group to the exact accumulators of the
function library.

A group is a list: the number of its solutions (without a window), the window, LOWS, start, end, and for each aggregate
its count, its sum, its accumulator and its errors.  LOWS has the solutions that may become the one with the least
start; it is None as long as the solutions of the window start in the order in which they end, since the first one then
has the least start.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.terms import XSD

from etalis_py.executors.rows.generate.frames import Frame, Named, item
from etalis_py.executors.rows.generate.layout import Layout
from etalis_py.executors.rows.generate.writer import Writer, load
from etalis_py.executors.rows.run.several import Several, packed, unpacked
from etalis_py.values import SparqlError, decode, div, encode
from etalis_py.values.expressions import GlobalNames
from etalis_py.values.functions import PlainSum, accumulator, pack_int, restore_accumulator, unpack_int
from etalis_py.values.time import TIMELESS_END, TIMELESS_START

Solution = tuple[Any, ...]
State = list[Any]
COUNT, WINDOW, LOWS, START, END, FIRST = 0, 1, 2, 3, 4, 5
FIELDS = 4  # of an aggregate: count, sum, accumulator, errors
_SUMMED = frozenset({"COUNT", "SUM", "AVG"})


def is_running(node: ir.Group) -> bool:
    """Whether the rows of this node can be maintained by adding and subtracting."""
    plain = not (node.having or node.order or node.distinct or node.limit is not None or node.offset)
    names = {call.variable for call in node.aggregates} | set(node.keys)
    renamed = all(alg.variable_of(e) in names for _, e in node.extends)
    return plain and renamed and all(c.name in _SUMMED and not c.distinct for c in node.aggregates)


class IncrementalSums:
    """The state of an aggregation by running sums; ``advance`` is generated code."""

    def __init__(self, node: ir.Group, source: str, names: Mapping[str, Any]) -> None:
        """``source`` is that of ``running_source``, ``names`` are the objects in it."""
        self.node = node
        self.groups: dict[Any, State] = {}
        self.order: deque[tuple[int, Any]] = deque()  # for each solution in a window, when it ended, and its group
        self.reported: dict[Any, Solution] = {}
        scope = {**names, **_CALLED}
        scope |= {
            "groups": self.groups,
            "order": self.order,
            "reported": self.reported,
            "fresh": self.fresh,
            "Several": Several,
            "count_several": count_several,
            "opens": None if node.window is None else node.window.before,
            "SparqlError": SparqlError,
        }
        load(source, scope)
        self.advance: Callable[[int, list[Solution]], list[Solution]] = scope["advance"]
        self._enter: Callable[[State, Solution], None] = scope["enter"]

    def fresh(self) -> State:
        """A group without solutions."""
        window: deque[Solution] | None = deque() if self.node.window is not None else None
        return [0, window, None, TIMELESS_START, TIMELESS_END, *([0, 0, None, 0] * len(self.node.aggregates))]

    def at_end(self, t: int) -> list[Solution]:
        """The row of an ungrouped aggregate over a stream without solutions: counts, sums and averages are 0."""
        if self.node.keys or self.groups:
            return []
        values = {call.variable: encode(0) for call in self.node.aggregates}
        for name, source in alg.renamed(self.node.extends).items():
            values[name] = values.get(source, "")
        return [(TIMELESS_END, TIMELESS_START, *(values.get(c, "") for c in self.node.head))]

    def live(self) -> int:
        return sum(len(g[WINDOW]) if g[WINDOW] is not None else 1 for g in self.groups.values())

    def clear(self) -> None:
        self.groups.clear()
        self.order.clear()
        self.reported.clear()

    def held(self) -> list[Solution]:
        """The plain solutions in the window, in order of their ends.

        Without a window, the hull and key of each group, how many solutions it has, and the states of its accumulators.
        """
        if self.node.window is None:
            return self._states()
        width = 2 + len(self.node.child.columns)
        return sorted((packed(x, width) for g in self.groups.values() for x in g[WINDOW] or ()), key=itemgetter(0))

    def last_rows(self) -> list[tuple[tuple[str, ...], Solution]]:
        """The last row of each group, with its key."""
        single = len(self.node.keys) == 1
        return [((key,) if single else key or (), row) for key, row in self.reported.items()]

    def go_on(self, solutions: list[Solution], reported: list[tuple[tuple[str, ...], Solution]]) -> None:
        """Continue with these solutions in the window, in order of their ends, and the last row of each group."""
        self.clear()
        if self.node.window is None:
            self._set_states(solutions)
            return
        columns, names = self.node.child.columns, self.node.keys
        places = [2 + columns.index(name) if name in columns else -1 for name in names]
        timed = names and self.node.window is not None and not self.node.window.events
        for x in solutions:
            key = self._key_of(tuple(x[i] if i > 0 else "" for i in places))
            g = self.groups.get(key)
            if g is None:
                g = self.groups[key] = self.fresh()
            self._enter(g, x)
            if timed:
                self.order.append((x[0], key))
        if timed:
            self.reported.update((self._key_of(key), row) for key, row in reported)

    def _states(self) -> list[Solution]:
        held = []
        for key, g in self.groups.items():
            terms = () if key is None else key if isinstance(key, tuple) else (key,)
            states = [_state(call.name, g, FIRST + FIELDS * i) for i, call in enumerate(self.node.aggregates)]
            held.append((g[END], g[START], *terms, g[COUNT], *states))
        return held

    def _set_states(self, held: list[Solution]) -> None:
        width = len(self.node.keys)
        for end, start, *rest in held:
            terms, (count, *states) = tuple(rest[:width]), rest[width:]
            g = self.groups[self._key_of(terms)] = self.fresh()
            g[COUNT], g[START], g[END] = count, start, end
            for i, state in enumerate(states):
                g[FIRST + FIELDS * i : FIRST + FIELDS * (i + 1)] = _fields(state)

    @staticmethod
    def _key_of(terms: tuple[str, ...]) -> Any:
        """The key of a group, as generated code writes it."""
        return (terms[0] if len(terms) == 1 else terms) if terms else None

    def snapshot(self) -> list[Any]:
        """Plain data: windows as the solutions in them, unbounded groups as their numbers."""
        width = 2 + len(self.node.child.columns)
        groups = []
        for key, g in self.groups.items():
            if g[WINDOW] is not None:
                groups.append([key, [list(packed(x, width)) for x in g[WINDOW]], None])
            else:
                numbers = [
                    [pack_int(n), str(s), None if a is None else a.state(), pack_int(bad)]
                    for n, s, a, bad in zip(*(g[FIRST + i :: FIELDS] for i in range(FIELDS)), strict=True)
                ]
                groups.append([key, None, [g[COUNT], g[START], g[END], numbers]])
        reported = [[key, list(row)] for key, row in self.reported.items()]
        return [groups, [[end, key] for end, key in self.order], reported]

    def restore(self, data: list[Any], rebuild: Callable[[Solution], Solution]) -> None:
        """Take over a snapshot; ``rebuild`` decodes the values that a solution carries."""
        self.clear()
        groups, order, reported = data
        width = 2 + len(self.node.child.columns)
        for raw, window, numbers in groups:
            g = self.groups[_key(raw)] = self.fresh()
            if window is not None:
                for stored in window:
                    self._enter(g, unpacked(stored, width, rebuild))
                continue
            g[COUNT], g[START], g[END], kept = numbers
            for i, (n, s, state, bad) in enumerate(kept):
                total = None if state is None else restore_accumulator(state)
                g[FIRST + FIELDS * i : FIRST + FIELDS * (i + 1)] = [unpack_int(n), int(s), total, unpack_int(bad)]
        if self.node.keys:
            self.order.extend((end, _key(key)) for end, key in order)
        self.reported.update({_key(key): tuple(row) for key, row in reported})


def _key(raw: Any) -> Any:
    return tuple(raw) if isinstance(raw, list) else raw


def _state(name: str, g: State, at: int) -> list[Any]:
    """The state of the accumulator of an aggregate, whose fields begin at ``at``."""
    count, whole, total, errors = g[at : at + FIELDS]
    if name == "COUNT":
        return [name, pack_int(count)]
    if total is None:
        return PlainSum(int, count, whole, 0, errors).state(name)
    _, counts, *sums = total.state()
    return [name, [*counts[:-1], pack_int(unpack_int(counts[-1]) + errors)], *sums]


def _fields(state: list[Any]) -> list[Any]:
    """The fields of an aggregate with the state of this accumulator."""
    if state[0] == "COUNT":
        return [unpack_int(state[1]), 0, None, 0]
    plain = PlainSum.of(state)
    if plain is not None and plain.kind is int:
        return [plain.count, plain.total, None, plain.failures]
    _, (*counts, failures), *sums = state
    total = restore_accumulator(["SUM", [*counts, 0], *sums])
    return [sum(map(unpack_int, counts)), 0, total, unpack_int(failures)]


def to_accumulator(g: State, at: int) -> Any:
    """Move an aggregate to its exact accumulator, at the first summand that is not an integer; returns that."""
    if g[at + 2] is None:
        g[at + 2] = accumulator("SUM")
        g[at + 2].add_integers(g[at + 1], g[at])
        g[at + 1] = 0
    return g[at + 2]


def count_several(g: State, x: Several, sign: int) -> None:
    """Add what several solutions amount to, or take it out."""
    for i, (given, whole, _) in enumerate(x.amounts):
        at = FIRST + FIELDS * i
        g[at] += sign * given
        g[at + 3] += sign * (x.weight - given)
        if g[at + 2] is None:
            g[at + 1] += sign * whole
        else:
            g[at + 2].add_integers(sign * whole, sign * given)


def total(g: State, at: int) -> str:
    """The term of SUM, or the empty string where a summand was an error."""
    if g[at + 3]:
        return ""
    if g[at + 2] is None:
        return encode(g[at + 1])
    try:
        return str(g[at + 2].result())
    except SparqlError:
        return ""


def average(g: State, at: int) -> str:
    """The term of AVG."""
    summed = total(g, at)
    if not summed or not g[at]:
        return summed
    try:
        return encode(div(decode(summed), g[at]))
    except SparqlError:
        return ""


@dataclass(frozen=True, slots=True)
class _Sums:
    """What is written for one node; ``own`` names an object of its operator, ``several``: a solution may be several."""

    node: ir.Group
    entering: Frame
    leaving: Frame
    own: Callable[[str], str]
    several: bool

    @property
    def timed(self) -> bool:
        """Whether solutions leave when time passes."""
        return self.node.window is not None and not self.node.window.events


def _frame(node: ir.Group, names: GlobalNames, layout: Layout, solution: Named) -> Frame:
    frame = Frame(names, start=item(solution, 1), end=item(solution, 0))
    frame.read(node.child, layout, solution)
    return frame


def running_source(node: ir.Group, names: GlobalNames, layout: Layout) -> str:
    """Source of ``enter`` and ``advance`` for one node."""
    w = Writer()
    sums = _Sums(node, _frame(node, names, layout, "x"), _frame(node, names, layout, "gone"), str, several=True)
    with w.block("def enter(g, x):"):
        _enter(w, sums)
    with w.block("def advance(t, rows):"):
        w("if not rows: return []")
        _expire(w, sums)
        if node.keys or node.window is not None:
            w(f"if len(rows) > 1: rows = sorted(rows, key=lambda x: (x[0], x[1]{_canonical(node)}))")
        with w.block("for x in rows:"):
            _take(w, sums, "x")
            if node.keys:
                w("touched[key] = g")
        if node.keys:
            _changed(w, sums, "return {}".format)
        else:
            w(f"return [{_row(node)}]")  # a solution entered, so the hull ends now and the row is a new one
    return w.text() + "\n"


def advance_by_one(
    w: Writer, node: ir.Group, names: GlobalNames, layout: Layout, own: Callable[[str], str], items: Named, out: str
) -> bool:
    """Write ``advance`` for a single new solution ``x``, whose ``items`` have names; returns whether it gives one row.

    ``own`` names an object of the operator, ``out`` the list for the rows.  The solutions that the node reads are those
    of a pattern, so none of them stands for several.
    """
    for name, called in _CALLED.items():
        names.use(name, called)
    sums = _Sums(node, _frame(node, names, layout, items), _frame(node, names, layout, "gone"), own, several=False)
    _expire(w, sums)
    _take(w, sums, items)
    if node.keys and sums.timed:
        w("touched[key] = g")
        _changed(w, sums, f"{out} = {{}}".format)
        return False
    w(f"{out} = ({_row(node, sums.entering.end)},)")
    return True


def _key_source(node: ir.Group, solution: Named) -> str:
    """Source of the key of a solution's group; an ungrouped aggregate has one group, None."""
    columns = node.child.columns
    parts = [item(solution, 2 + columns.index(k)) if k in columns else "''" for k in node.keys]
    if not parts:
        return "None"
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _expire(w: Writer, sums: _Sums) -> None:
    """Write what comes before the new solutions: the one group without keys, and what leaves because time has passed.

    A solution that enters now leaves in the next instant at the earliest, so the one group is never empty afterwards.
    """
    node, own = sums.node, sums.own
    if node.keys:
        w("touched = {}")
    else:
        w(f"g = {own('groups')}.get(None)", f"if g is None: g = {own('groups')}[None] = {own('fresh')}()")
    if not sums.timed:
        return
    assert node.window is not None
    w(f"opening = t - {node.window.micros}" if node.window.is_fixed else "opening = opens(t)")
    if node.keys:
        with w.block(f"while {own('order')} and {own('order')}[0][0] <= opening:"):
            w(f"key = {own('order')}.popleft()[1]", f"g = touched[key] = {own('groups')}[key]")
            _leave(w, sums)
    else:
        with w.block(f"while g[{WINDOW}] and g[{WINDOW}][0][0] <= opening:"):
            _leave(w, sums)


def _take(w: Writer, sums: _Sums, solution: Named) -> None:
    """Write how a new solution enters its group."""
    node, own = sums.node, sums.own
    if node.keys:
        w(f"key = {_key_source(node, solution)}", f"g = {own('groups')}.get(key)")
        w(f"if g is None: g = {own('groups')}[key] = {own('fresh')}()")
    _enter(w, sums)
    if sums.timed and node.keys:
        w(f"{own('order')}.append(({item(solution, 0)}, key))")
    elif node.window is not None and node.window.events:
        with w.block(f"if len(window) > {node.window.events}:"):
            _leave(w, sums)


def _canonical(node: ir.Group) -> str:
    return "".join(f", x[{2 + node.child.columns.index(c)}]" for c in node.canonical)


def _enter(w: Writer, sums: _Sums) -> None:
    start, end = sums.entering.start, sums.entering.end
    if sums.node.window is None:
        w(f"g[{COUNT}] += 1")
        w(f"if {start} < g[{START}]: g[{START}] = {start}", f"if {end} > g[{END}]: g[{END}] = {end}")
    else:
        w(f"window = g[{WINDOW}]")
        with w.block(f"if g[{LOWS}] is not None or window and window[-1][1] > {start}:"):
            w(f"g[{LOWS}] = lower(g[{LOWS}], window, x)")
        w("window.append(x)")
    _count(w, sums, "x", "+")


def _leave(w: Writer, sums: _Sums) -> None:
    w(f"gone = g[{WINDOW}].popleft()")
    w(f"if g[{LOWS}] is not None and g[{LOWS}][0] is gone: g[{LOWS}].popleft()")
    _count(w, sums, "gone", "-")


def _count(w: Writer, sums: _Sums, solution: str, sign: str) -> None:
    frame = sums.entering if sign == "+" else sums.leaving
    if not sums.several:
        _apply(w, sums.node, frame, sign)
        return
    with w.block(f"if {solution}.__class__ is Several:"):
        w(f"count_several(g, {solution}, {sign}1)")
    with w.block("else:"):
        _apply(w, sums.node, frame, sign)


def lower(lows: deque[Solution] | None, window: deque[Solution], x: Solution) -> deque[Solution]:
    """Add ``x`` to LOWS, the solutions of a window that may become the one with the least start.

    A solution that starts later than one that leaves after it never will, so it is dropped.
    """
    if lows is None:
        lows = deque()
        for earlier in window:
            lower(lows, window, earlier)
    while lows and lows[-1][1] > x[1]:
        lows.pop()
    lows.append(x)
    return lows


def _apply(w: Writer, node: ir.Group, frame: Frame, sign: str) -> None:
    """Add a solution to every aggregate of its group, or take it out."""
    for i, call in enumerate(node.aggregates):
        at = FIRST + FIELDS * i
        if call.operand is None:
            w(f"g[{at}] {sign}= 1")
            continue
        with w.block("try:"):
            # NOW() has to be the same when the solution leaves.
            w(f"v = {frame.emitter(now=frame.end).value(call.operand)}")
        with w.block("except SparqlError:"):
            w(f"g[{at + 3}] {sign}= 1")
        with w.block("else:"):
            if call.name != "COUNT":
                # The sums are integers as long as all values were; a variable of what leaves has the value it had.
                known = sign == "-" and alg.variable_of(call.operand)
                with w.block(f"if {'' if known else 'v.__class__ is int and '}g[{at + 2}] is None:"):
                    w(f"g[{at + 1}] {sign}= v")
                with w.block("else:"):
                    w(f"to_accumulator(g, {at}).{'add' if sign == '+' else 'remove'}(v, '')")
            w(f"g[{at}] {sign}= 1")


def _result(name: str, at: int) -> str:
    """Source of the term of an aggregate; the literal of an integer is written inline, without a call."""

    def integer(place: int) -> str:
        return f"""f'"{{g[{place}]}}"^^<{XSD}integer>'"""

    match name:
        case "COUNT":
            return integer(at)
        case "SUM":
            return f"({integer(at + 1)} if g[{at + 2}] is None and not g[{at + 3}] else total(g, {at}))"
    return f"average(g, {at})"


def _row(node: ir.Group, end: str = "") -> str:
    """Source of the row of group ``g``, whose key is ``key``; ``end`` is that of its last solution, if it is known."""
    spelled = {call.variable: _result(call.name, FIRST + FIELDS * i) for i, call in enumerate(node.aggregates)}
    for i, name in enumerate(node.keys):
        spelled[name] = "key" if len(node.keys) == 1 else f"key[{i}]"
    for name, source in alg.renamed(node.extends).items():
        spelled[name] = spelled[source]
    latest = f"g[{WINDOW}][-1][0]"
    hull = f"g[{END}], g[{START}]" if node.window is None else f"{end or latest}, (g[{LOWS}] or g[{WINDOW}])[0][1]"
    return f"({', '.join([hull, *(spelled.get(c, repr('')) for c in node.head)])})"


def _changed(w: Writer, sums: _Sums, give: Callable[[str], str]) -> None:
    """The rows of the groups that changed; where keys are hidden, a row of another group may have been equal.

    ``give`` writes what is done with them.
    """
    node, reported = sums.node, sums.own("reported")
    w("made = []")
    if sums.timed and node.hides_keys:
        w(f"before = Counter({reported}[key] for key in touched if key in {reported})")
    with w.block("for key, g in touched.items():"):
        if node.window is not None:
            with w.block(f"if not g[{WINDOW}]:"):
                w(f"del {sums.own('groups')}[key]", f"{reported}.pop(key, None)", "continue")
        w(f"row = {_row(node)}")
        if sums.timed and node.hides_keys:
            w("known = before[row]", f"{reported}[key] = row")
            w("if known: before[row] = known - 1", "else: made.append(row)")
        elif sums.timed:
            with w.block(f"if {reported}.get(key) != row:"):
                w(f"{reported}[key] = row", "made.append(row)")
        else:
            w("made.append(row)")
    w(give("made"))


_CALLED: dict[str, Callable[..., Any]] = {
    "to_accumulator": to_accumulator,
    "total": total,
    "lower": lower,
    "average": average,
    "Counter": Counter,
}
"""The functions that generated code calls."""
