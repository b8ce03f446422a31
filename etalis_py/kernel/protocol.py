"""The contract of an executor, which runs the rules or windows of one stage of a program.

The kernel owns the clock.  It puts events in order, refuses late ones, cuts the stream into complete instants, passes
them through the stages in order, and arranges what they report.  An executor computes: it takes complete instants and
says which solutions they give.  It owns no clock, no lateness and no order of reports, and it never sees a closed
instant again.

    push ──▶ order of input ──▶ Batch ──▶ stage 0 ──▶ (+ what it derives) ──▶ stage 1 ──▶ …  ──▶ Matches
                                            └── reports ───────────────────────┴── reports ───▶

**How to write one.**  Make a class with the attributes and methods of ``RuleExecutor`` or ``WindowedExecutor``, and
have ``etalis_py.engine.executor_choice`` choose it.  The kernel calls, between construction and ``close``:

* ``begin(t)``: once, before the first instant.  Reports what the background alone answers.
* ``started(t)``: when the stream starts, once that is known: before the first instant.  START is decided by it.
* ``take(batch)``: complete instants in order, 1 to 10⁶ events, one instant or many.  Reports everything that these
  instants give, and everything that falls due up to and including ``batch.through``, in order of time.  An empty batch
  says that time has passed.
* ``next_due()``: the first time at which it will report something even if no event comes (a window that closes, an
  absence that is certain then), or None.  The kernel calls ``advance`` or ``take`` for it, and tells live sources
  when to wake up.
* ``horizon()``: after the end of the stream, the last time at which it still has something to say, or None.  The kernel
  lets time run on until there, through all stages, and calls ``close`` at the end.
* ``close(t)``: the stream has ended, at ``t``.  Reports what is only known then.

Reports are appended to ``reports`` as ``(output, instant, rows)``, in order of time: ``output`` is the number of the
output within the executor (its place in ``shapes``), ``rows`` are in the order of the output.  An executor of columns
appends a ``ColumnReport`` instead, which holds many instants.  What later stages read (triples of CONSTRUCT) is
appended to ``derived`` as events, if ``feeding`` is set.  The kernel empties both lists after each call.

**State** is plain data (lists, dicts, strings, integers: MessagePack) and independent of the executor where it can be:
goals are ``Goals``, by the id of their rule node and side, as columns of spellings, in lists or in an Arrow table
(``kernel.goals``).  So a component goes from one executor to another: ``other.load(one.dump())`` and the answers stay
the same.  ``journal`` gives what changed since the last ``dump`` or ``journal``, and ``replay`` repeats it; a snapshot
and the journals after it, in order, are the state.

**The fast path.**  With one stage whose executor offers ``dispatch``, the kernel's loop calls the functions of an
instant directly, and no batch is made: the cost of ``push_all`` is the loop and these calls.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from etalis_compiler.rsp import WindowPlan
from etalis_rules import program as ir

from etalis_py.events import Event
from etalis_py.kernel.batch import Batch, ColumnReport, Columns, Report, Row
from etalis_py.kernel.position import StateSize
from etalis_py.kernel.shapes import Shape

Occurrence = tuple[str, str, str, int, str]
"""A triple of an instant: subject, predicate, object, start, stream."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The functions of an instant; both append to the ``reports`` of their executor.

    ``single.get(p, other)(s, o, start, t, stream, p)`` runs an instant of one triple with predicate ``p``; ``instant(t,
    occurrences)`` runs any other.  Both also report what falls due at ``t`` itself.
    """

    single: Mapping[str, Callable[..., None]]
    other: Callable[..., None]
    instant: Callable[[int, Sequence[Occurrence]], None]
    keep: Callable[[int, int], None]
    """``keep(events, now)`` does periodic work."""
    every: Sequence[int]
    """The number of events, which changes, after which to call ``keep``."""
    due: Callable[[int], None] | None = None
    """``due(t)`` reports what falls due up to ``t``; None if nothing ever falls due."""
    alarm: Sequence[int] = (0,)
    """A changing time before which nothing is due, so that ``due`` need not be called."""


@dataclass(frozen=True, slots=True)
class Goals:
    """The goals that wait on one side of a node: ends, starts, then the node's columns in its order, as spellings.

    ``why`` has the provenance of each goal as plain data, when explanations are kept.
    """

    node: str
    side: str
    columns: tuple[Sequence[Any], ...]
    why: Sequence[Any] | None = None


class Executor(Protocol):
    """Runs one stage; the module's docstring says what each call means."""

    feeding: bool
    """Whether a later stage reads what this one derives."""
    rows_next: bool
    """Whether a small batch follows the state that is being loaded, so that goals had better go into rows."""

    @property
    def kind(self) -> Literal["rules", "windows"]:
        """What it runs; stored state uses the same name."""

    @property
    def form(self) -> Literal["rows", "columns"]:
        """The form in which it keeps its goals now."""

    @property
    def reads(self) -> Literal["rows", "columns", "records"]:
        """The form of batch that suits it best."""

    @property
    def shapes(self) -> Sequence[Shape]:
        """For each output, the shape by which its rows are read; ``reports`` has their places here as numbers."""

    @property
    def reports(self) -> list[Any]:
        """``Report`` or ``ColumnReport``."""

    @property
    def derived(self) -> list[Event]:
        """Events for later stages."""

    @property
    def warnings(self) -> Iterator[str]:
        """What is probably unintended, judging by the events so far."""

    def begin(self, t: int) -> None: ...

    def started(self, t: int | None) -> None:
        """The stream starts at ``t``, before all instants that it will take; None: it has started long ago."""

    def take(self, batch: Batch) -> None: ...

    def next_due(self) -> int | None: ...

    def horizon(self) -> int | None: ...

    def close(self, t: int) -> None: ...

    def dispatch(self) -> Dispatch | None:
        """The functions of the fast path; None if every instant has to come as a batch."""

    def dump(self) -> dict[str, Any]:
        """The whole state as plain data; ``goals`` has lists of the fields of ``Goals``."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump of an executor with the same nodes; raises ``SnapshotError`` if they differ."""

    def journal(self) -> list[Any]:
        """The changes since the last ``journal``, ``dump`` or ``load``, as plain data."""

    def replay(self, entries: Sequence[Any]) -> None:
        """Repeat the journal of an executor that was in the same state as this one; reports nothing."""

    def forget_journal(self) -> None:
        """Drop the journal as ``journal`` would, for a caller that writes a snapshot instead."""

    def journaling(self, on: bool) -> None:
        """Turn the journal on or off: what happens while it is off is stored by a snapshot."""

    @property
    def entries(self) -> int:
        """The number of entries in the next journal."""

    def kept(self) -> StateSize:
        """The size of the state that it keeps now."""

    def renew(self) -> None:
        """The background has a new version: repeat the look-ups."""

    def fitted(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """A dump of an executor of other rules, without what this one has no place for."""

    def fitted_journal(self, entries: Sequence[Any]) -> Sequence[Any]:
        """A journal of an executor of other rules, without the entries this one has no place for."""


class RuleExecutor(Executor, Protocol):
    """Runs rules, which may change while it keeps its state."""

    @property
    def rules(self) -> ir.Rules:
        """The rules as they run."""

    @property
    def given(self) -> ir.Rules:
        """The rules as they were given."""

    @property
    def families(self) -> Any:
        """The running families of queries that differ only in constants (``rows.run.family_relation``), or None."""

    @property
    def source(self) -> str:
        """The generated Python."""

    def load_rules(self, rules: ir.Rules, knowledge: Any, makers: dict[str, Any], gathered: Any = None) -> None:
        """Run these rules over this background from now on; the state of nodes that stay is kept.

        ``makers``: which rules led to a node that was derived from the background alone.  ``gathered``: the families
        among the rules.
        """

    def add_to_family(self, family: str, row: tuple[Any, ...]) -> None:
        """Run one more query of a family: a row with its name and its constants."""

    def report_timeless(self, t: int, queries: Container[str]) -> None:
        """Report what the background alone answers to these queries."""

    def adopt(self, others: Iterable[Mapping[str, Any]], own: Container[str]) -> None:
        """Take over the state of nodes from the dumps of other executors; its ``own`` nodes keep theirs."""


class WindowedExecutor(Executor, Protocol):
    """Runs windowed queries and facts."""

    @property
    def plans(self) -> tuple[WindowPlan, ...]:
        """The plans of the queries."""

    def in_rows(self) -> Any:
        """The ``WindowExecutor`` that has all items in rows."""

    def go_on_from(self, others: Iterable[WindowedExecutor]) -> None:
        """Take over the state of queries and facts that ran in these executors before."""


__all__ = [
    "Batch",
    "ColumnReport",
    "Columns",
    "Dispatch",
    "Executor",
    "Goals",
    "Occurrence",
    "Report",
    "Row",
    "RuleExecutor",
    "StateSize",
    "WindowedExecutor",
]
