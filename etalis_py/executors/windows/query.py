"""One windowed query while it runs: its windows, its evaluation times, its answers ([RSPQL] Definition 24)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from etalis_compiler.rsp import Count, Current, Now, Sliding, Strategy, WindowPlan, WindowUse
from etalis_compiler.rsp.plan import ROW, TIMES, column
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.spelling import Spelling
from etalis_rules.terms import is_blank

from etalis_py.events import Event, Triple
from etalis_py.executors.windows.content import Content, UnindexedContent
from etalis_py.executors.windows.facts import FactWindow
from etalis_py.executors.windows.groups import EarlyContent, GroupedContent, Groups, incremental
from etalis_py.executors.windows.patterns import EventMatcher
from etalis_py.executors.windows.source import StoredGraphs, TimedDataset, WindowSource, times_graph
from etalis_py.executors.windows.state import CountWindow, HeldItems, NestedWindow, PlainWindow, TimeWindow, Window
from etalis_py.executors.windows.times import BEGINNING, span
from etalis_py.kernel.batch import Row
from etalis_py.kernel.shapes import Shape
from etalis_py.kernel.templates import fresh_nodes_of, template_triples
from etalis_py.knowledge.graph import Graph
from etalis_py.sparql import ExpressionClock, Prepared, prepare
from etalis_py.sparql.run import EvaluationRun

Bindings = dict[str, str]


@dataclass(frozen=True, slots=True)
class Came:
    """How many items entered a window, and how many of these repeated what it held."""

    entered: int
    repeated: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answer of a query at one time: its rows (end, start, terms…) after the streaming operator."""

    time: int
    opening: int
    rows: list[Row]
    derived: tuple[Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a row is reported: the evaluation that gave it, and the windows that it looked at, each as (after, until]."""

    query: str
    time: int | str
    windows: tuple[tuple[str, int | str, int | str], ...]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--explain-matches`` writes."""
        windows = [{"window": name, "after": low, "until": high} for name, low, high in self.windows]
        return {"query": self.query, "evaluated": self.time, "windows": windows}

    def __str__(self) -> str:
        lines = [f"{self.query} was evaluated at {self.time}" + (" over" if self.windows else "")]
        lines += [f"  {name}: after {low}, until {high}" for name, low, high in self.windows]
        return "\n".join(lines)


class QueryRun:
    """A running plan.  Ask ``next_time`` when it may have to be evaluated, then ``evaluate``.

    ``stored``: there may be stored triples, now or later.
    """

    def __init__(
        self,
        plan: WindowPlan,
        graphs: StoredGraphs,
        render: Callable[[int], int | str],
        *,
        duplicates: bool = False,
        stored: bool = True,
    ) -> None:
        self.plan = plan
        self.stored = graphs
        self.duplicates = duplicates
        self.due_known = False  # whether the next evaluation time has been computed
        self._groups: Groups | None = None
        # the fast path counts each triple once and reads no stored triples
        followed = None if duplicates else incremental(plan, stored)
        if followed is not None:
            self._groups = Groups(plan.select, followed)
        names, sets = _needs_names(plan), _streams_read_as_sets(plan)
        self.windows: dict[str, Window] = {}
        for use in _inner_first(plan.windows):
            if self._groups is not None:
                content: Content = (EarlyContent if _shows_all(plan, use) else GroupedContent)(self._groups)
            elif plan.form == "describe" or _is_read_as_set(sets, use):
                content = Content(names)
            else:
                content = UnindexedContent()
            self.windows[use.name] = self._window(use, content)
        self._by_stream: dict[str, list[TimeWindow | CountWindow | FactWindow]] = {}
        self._of_facts = [w for w in self.windows.values() if isinstance(w, FactWindow)]  # they read every stream
        for window in self.windows.values():
            if not isinstance(window, NestedWindow | FactWindow):
                self._by_stream.setdefault(window.use.stream, []).append(window)
        for reading in self._by_stream.values():
            reading += self._of_facts
        contents = {name: w.content for name, w in self.windows.items()}
        default = [w.name for w in plan.windows if w.default]
        self._contents, self._default = contents, default
        self._dataset = WindowSource(graphs, contents, default, duplicates)
        self._prepared = prepare(alg.SubSelect(plan.select))
        self._matchers: dict[str, EventMatcher] = {}
        self._temporal: dict[str, Prepared] = {}
        for m in plan.matches:
            if m.events is not None:
                self._matchers[m.name] = EventMatcher(m.events, plan.consumption)
            elif m.group is not None:
                self._temporal[m.name] = prepare(m.group, timed=True)
        self.answered = frozenset[tuple[str, ...]]()
        """The rows of the last answer, with ISTREAM and DSTREAM."""
        self._checked: dict[str, int] = {}  # how many items had entered each window when it was last looked at
        self._due: int | None = None
        kinds = {s.kind for s in plan.report}
        self._by_clock = kinds & {"WC", "P", "AT"}
        self._nonempty = "NC" in kinds
        looked = [s for s in plan.report if s.kind in ("WC", "CC", "NC")]
        self._looks_at_one = [(s, self.windows[s.window]) for s in looked if s.window]
        self._looks_at_any = [s for s in looked if not s.window]
        self._clocked = [window for name, window in self.windows.items() if self._looks_at("WC", name)]
        self._counting = [window for window in self.windows.values() if isinstance(window, CountWindow)]
        self.reads_all = bool(self._of_facts)
        self._reacts = not self._by_clock or any(isinstance(w.shape, Now | Count) for w in plan.windows)
        consumes = any(m.consuming for m in self._matchers.values())
        self._forgets_answers = plan.r2s == "RSTREAM" and not plan.feeds and not consumes
        self.shape = self._shape(render)

    def _window(self, use: WindowUse, content: Content) -> Window:
        if isinstance(use.shape, Current):
            return FactWindow(use)
        if use.inner:
            return NestedWindow(use, content, self.windows[use.inner])
        return CountWindow(use, content) if isinstance(use.shape, Count) else TimeWindow(use, content)

    # --- input ---

    def push(self, item: Event) -> int:
        """Take a stream item into the windows on its stream; returns how many of them will hold it."""
        taken = 0
        for window in self._by_stream.get(item[3], self._of_facts):
            if self.due_known and (self._reacts or self._due is None or window.empty):
                self.due_known = False
            taken += window.push(item)
        return taken

    @property
    def early(self) -> EarlyContent | None:
        """The content of its only window, if it takes items before that closes."""
        contents = [window.content for window in self.windows.values()]
        return next((content for content in contents if isinstance(content, EarlyContent)), None)

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings about windows under an aggregate whose items repeated each other, as a window is a set."""
        if self.duplicates or not _counts_members(self.plan):
            return
        sets = _streams_read_as_sets(self.plan)
        for name, held in self.windows.items():
            if (number := held.content.repeated) and _is_read_as_set(sets, held.use):
                repeats, window = "item repeats" if number == 1 else "items repeat", Spelling().term(name)
                yield (
                    f"{number:,} {repeats} what the window {window} of {self.plan.name} holds already; a window is a "
                    "set of triples, so aggregates count each triple once: give each item a node of its own, or use "
                    "duplicates=True (--duplicates)"
                )

    # --- the form of columns ---

    @property
    def follows(self) -> bool:
        """Whether its aggregates are updated by what enters and leaves its only window."""
        return self._groups is not None

    def items(self) -> dict[str, HeldItems]:
        """The items in each window, and those that wait for it."""
        return {name: window.items for name, window in self.windows.items() if isinstance(window, PlainWindow)}

    def go_on(self, items: Mapping[str, HeldItems]) -> None:
        """Continue with these items in each window, and those that wait for it."""
        for name, window in self.windows.items():
            if isinstance(window, PlainWindow):
                repeated = window.content.repeated
                window.items = items.get(name, HeldItems())
                self._repeated(window.content, repeated)
        self.due_known = False

    def has_taken(self, came: Mapping[str, Came]) -> None:
        """Count the items that entered each window elsewhere, and how many of them repeated its content."""
        for name, window in self.windows.items():
            window.entered += came[name].entered
            self._checked[name] = window.entered
            self._repeated(window.content, window.content.repeated + came[name].repeated)

    def _repeated(self, content: Content, repeated: int) -> None:
        content.repeated = repeated
        if self._groups is not None:
            self._groups.repeated = repeated

    # --- when ([RSPQL] Definition 23) ---

    def next_time(self, after: int) -> int | None:
        """The first time later than ``after`` at which the report policy may hold, as far as is known now."""
        if not self.due_known or (self._due is not None and self._due <= after):
            self._due = self._next(after)
            self.due_known = True
        return self._due

    def _next(self, after: int) -> int | None:
        if "AT" in self._by_clock:
            at = [t for s in self.plan.report if s.kind == "AT" for t in s.times if t > after]
            return min(at, default=None)
        if "P" in self._by_clock:
            return self._next_period(after)
        times: list[int | None] = []
        for name, window in self.windows.items():
            if "WC" not in self._by_clock:
                times.append(window.next_entry(after))
            elif self._looks_at("WC", name):
                times.append(window.next_close(after, self._looks_at("NC", name)))
        return min((t for t in times if t is not None), default=None)

    def _looks_at(self, kind: str, name: str) -> bool:
        return any(s.kind == kind and s.window in ("", name) for s in self.plan.report)

    def _next_period(self, after: int) -> int | None:
        if self._nonempty and not any(w.content.size for w in self.windows.values()):
            entries = [t for w in self.windows.values() if (t := w.next_entry(after)) is not None]
            if not entries:
                return None
            after = max(after, min(entries) - 1)
        strategy = next(s for s in self.plan.report if s.kind == "P")
        periods = max(0, (after - strategy.start) // strategy.period + 1)
        return strategy.start + periods * strategy.period

    def _holds(self, t: int) -> bool:
        """Whether t ∈ ET; the windows have moved to t."""
        for s in self.plan.report:
            if s.kind == "P" and (t < s.start or (t - s.start) % s.period):
                return False
            if s.kind == "AT" and t not in s.times:
                return False
        fixed = all(self._meets(s, window, t) for s, window in self._looks_at_one)
        free, clocked = self._looks_at_any, self._clocked
        holds = fixed and (not free or any(all(self._meets(s, w, t) for s in free) for w in self.windows.values()))
        if holds or not clocked or any(window.closes(t) for window in clocked):
            self._checked = {name: w.entered for name, w in self.windows.items()}
        return holds

    def _meets(self, strategy: Strategy, window: Window, t: int) -> bool:
        match strategy.kind:
            case "WC":
                return window.closes(t)
            case "NC":
                return window.content.size > 0
        return window.entered > self._checked.get(window.use.name, 0)

    def horizon(self) -> int | None:
        """After the end of the stream: the last time at which there is something new to report."""
        ends = [h for w in self.windows.values() if (h := w.horizon()) is not None]
        ends += [t for s in self.plan.report if s.kind == "AT" for t in s.times]
        last = max(ends, default=None)
        if last is not None and "P" in self._by_clock:
            strategy = next(s for s in self.plan.report if s.kind == "P")
            last = strategy.start - (strategy.start - last) // strategy.period * strategy.period
        return last

    # --- what ---

    def evaluate(self, t: int, *, repeating: bool = False) -> list[Evaluation]:
        """Move the windows to t and, if the policy holds, answer; several times if several count windows closed at t.

        ``repeating``: the answer has been given already, and is only computed if something later depends on it.
        """
        answers = []
        while True:
            for window in self.windows.values():
                window.move(t)
            if self._holds(t) and not (repeating and self._forgets_answers):
                answers.append(self._answer(t))
            if not any(window.more for window in self._counting):
                break
        for window in self.windows.values():
            window.prune(t)
        self.due_known = False
        return answers

    def _answer(self, t: int) -> Evaluation:
        openings = [o for w in self.windows.values() if (o := w.opening(t)) is not None]
        opening = min(openings, default=t)
        answers = self._answers(t)
        if self.plan.form == "ask":
            answers = [("true" if answers else "false",)]
        elif not self.plan.ordered:
            answers.sort()
        kept = self._stream(answers)
        rows: list[Row] = [(t, opening, *terms) for terms in kept]
        if self.plan.form == "describe":
            rows = [(*row, self._described(row)) for row in rows]
        derived: tuple[Triple, ...] = ()
        if self.plan.feeds and self.shape.triples is not None:
            make = self.shape.triples
            derived = tuple(dict.fromkeys(triple for row in rows for triple in make(row)))
        return Evaluation(t, opening, rows, derived)

    def _stream(self, rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """RSTREAM, ISTREAM and DSTREAM by membership, as defined in Definitions 20 to 22."""
        if self.plan.r2s == "RSTREAM":
            return rows
        now, before = frozenset(rows), self.answered
        self.answered = now
        if self.plan.r2s == "ISTREAM":
            return [x for x in rows if x not in before]
        return sorted(before - now)

    def _answers(self, t: int) -> list[tuple[str, ...]]:
        """The values of the variables in each solution, with empty strings for what is unbound."""
        if self._groups is not None:
            self._dataset.at({})
            return self._groups.answers(EvaluationRun(self._dataset, None, ExpressionClock(t), lambda *_: False))
        names = self.plan.variables
        return [tuple([mu.get(v, "") for v in names]) for mu in self._solutions(t)]

    def _solutions(self, t: int) -> list[Bindings]:
        clock = ExpressionClock(t)
        extra: dict[str, Graph] = {}
        for here in self.plan.times:
            extra[TIMES + here] = times_graph(self._latest(here))
        timed = None
        for match in self.plan.matches:
            matcher = self._matchers.get(match.name)
            if matcher is not None:
                solutions = [m.mu for m in matcher.evaluate(self._contents, t)]
            else:
                timed = timed or TimedDataset(self.stored, self._contents, self._default)
                solved = self._temporal[match.name].solve({}, timed, None, clock)
                solutions = [{v: x for v, x in mu.items() if alg.is_visible(v)} for mu, _, _ in solved]
            extra[match.name] = _rows_graph(match.name, solutions)
        self._dataset.at(extra)
        return [mu for mu, _, _ in self._prepared.solve({}, self._dataset, None, clock)]

    def _latest(self, here: str) -> dict[Triple, int]:
        latest: dict[Triple, int] = {}
        for name in [here] if here else self._default:
            for triple, at in self._contents[name].latest().items():
                latest[triple] = max(at, latest.get(triple, at))
        return latest

    # --- what it looks like ---

    def _shape(self, render: Callable[[int], int | str]) -> Shape:
        plan = self.plan
        output = ir.Output(
            plan.name, plan.form, None, None, plan.variables, template=plan.template, stream=plan.feeds,
            subjects=plan.subjects, identity=plan.identity,
        )  # fmt: skip
        shown = tuple(sorted(plan.variables))
        places = tuple(2 + plan.variables.index(v) for v in shown)
        triples: Callable[[Row], tuple[Triple, ...]] | None = None
        if plan.form == "construct":
            blanks = fresh_nodes_of(output, plan.variables)
            fresh = None if blanks is None else lambda row: dict(zip(blanks[0], blanks[1](row), strict=True))
            triples = template_triples(output, plan.variables, fresh)
        elif plan.form == "describe":
            triples = _last_field

        def why(row: Row) -> Reason:
            looked = []
            for w in plan.windows:
                interval = None if isinstance(w.shape, Count | Current) else span(w.shape, row[0])
                if interval is not None:
                    low = "the beginning" if interval[0] == BEGINNING else render(interval[0])
                    looked.append((w.name, low, render(interval[1])))
            return Reason(plan.name, render(row[0]), tuple(looked))

        counts = any(isinstance(w.shape, Count) for w in plan.windows)  # several answers at one time
        return Shape(output, shown, places, render, triples, why, adjacent=not (counts or plan.ordered))

    def _described(self, row: Row) -> tuple[Triple, ...]:
        """A concise bounded description from the windows and the stored graphs, as they are now."""
        bound = dict(zip(self.plan.variables, row[2:], strict=False))
        waiting = [x for subject in self.plan.subjects if (x := alg.term_in(bound, subject))]
        seen, triples = set(waiting), dict[Triple, None]()
        while waiting:
            node = waiting.pop()
            about = {
                x[:3] for stream in ("", *self._contents) for x in self._dataset.match(node, None, None, stream, None)
            }
            for triple in sorted(about):
                triples[triple] = None
                if is_blank(triple[2]) and triple[2] not in seen:
                    seen.add(triple[2])
                    waiting.append(triple[2])
        return tuple(triples)

    # --- state ---

    def remembered(self) -> int:
        """How many items are kept: those in the windows, and those that wait."""
        return sum(w.remembered for w in self.windows.values() if not isinstance(w, NestedWindow))

    def kept(self) -> Iterator[Event]:
        """These items."""
        return chain.from_iterable(w.each() for w in self.windows.values() if isinstance(w, PlainWindow))

    def snapshot(self) -> list[Any]:
        """Everything the query remembers, as lists, strings and integers."""
        windows = {name: w.snapshot() for name, w in self.windows.items()}
        consumed = {
            name: sorted([w, list(triple), at] for w, triple, at in m.consumed) for name, m in self._matchers.items()
        }
        return [windows, sorted(map(list, self.answered)), dict(self._checked), consumed]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot; the windows fill when they are next moved."""
        windows, previous, self._checked, consumed = state
        for name, w in windows.items():
            self.windows[name].restore(w)
        self.answered = frozenset(map(tuple, previous))
        for name, used in consumed.items():
            self._matchers[name].consumed = {(w, tuple(triple), at) for w, triple, at in used}
        self.due_known = False


def _last_field(row: Row) -> tuple[Triple, ...]:
    triples: tuple[Triple, ...] = row[-1]
    return triples


def _rows_graph(name: str, solutions: list[Bindings]) -> Graph:
    """The results of a MATCH, as triples that the query reads: a set of solutions ([RSEP] (8), Example 9)."""
    distinct = dict.fromkeys(tuple(sorted(mu.items())) for mu in solutions)
    triples = []
    for number, solution in enumerate(distinct):
        node = f"_:{name}.{number}"
        triples.append((node, ROW, ROW))
        triples += [(node, column(v), term) for v, term in solution]
    return Graph(triples)


def _needs_names(plan: WindowPlan) -> bool:
    """Whether some pattern reads the graphs of items, or their times."""
    from etalis_py.executors.windows.source import GENERATED_AT

    for part in alg.reads_of_triples(plan.select.pattern):
        if part.stream and part.graph is not None:
            return True
        if any(triple.predicate == alg.Const(GENERATED_AT) for triple in alg.triples_of(part) or ()):
            return True
    return False


def _counts_members(plan: WindowPlan) -> bool:
    """Whether some aggregate depends on how often a value occurs."""
    calls = (call for select in alg.selects(plan.select) for call in select.aggregates)
    return any(call.name in ("COUNT", "SUM", "AVG") and not call.distinct for call in calls)


def _shows_all(plan: WindowPlan, use: WindowUse) -> bool:
    """Whether each closing is evaluated, and shows all items that came since the one before."""
    match use.shape:
        case Sliding(width, slide, _, offset):
            return {s.kind for s in plan.report} <= {"WC", "NC"} and slide <= width and not offset
    return False


def _streams_read_as_sets(plan: WindowPlan) -> frozenset[str]:
    """Where some pattern reads triples, and not events one by one as ``EVENT`` does."""
    return frozenset(part.stream for part in alg.reads_of_triples(plan.select.pattern))


def _is_read_as_set(sets: frozenset[str], use: WindowUse) -> bool:
    """Whether the window is among what is read as sets of triples."""
    return use.name in sets or (use.default and "" in sets)


def _inner_first(windows: tuple[WindowUse, ...]) -> list[WindowUse]:
    """The windows in an order in which each comes after the one it stands on."""
    by_name = {w.name: w for w in windows}

    def depth(use: WindowUse) -> int:
        return 1 + depth(by_name[use.inner]) if use.inner else 0

    return sorted(windows, key=depth)
