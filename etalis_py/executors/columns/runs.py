"""REPEAT over a batch: each run when its last element comes, where a step depends on no more than two elements.

As long as each element of a key starts after the one before it has ended, the elements of a key are a chain: an element
is linked to the one before it if GAP, WHERE and NOT allow this step.  The runs that end in an element go back along
these links, as far as WITHIN and the most elements allow.  So the batch is arranged key by key, all steps are tested at
once, and a run is a range of places.  Elements of a key that overlap, or end at the same time, make several chains: the
operator of rows takes such a batch (``Runs``), and columns go on after it if each key has one chain again.

Cost: some passes over the batch and the elements that are kept, and some steps for each run that is reported.  State:
the runs that may go on, each with its last and its first element; with LONGEST and no most elements one for each key.

A trace of ``{?c :price ?x} REPEAT 3 BY ?c WHERE (?x > PREVIOUS(?x))``: 1@1, 2@2, 3@3 → [1, 3]; 4@4 → [2, 4].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.runs import keeps_longest_alone

from etalis_py.executors.columns.aggregation import KeepsSolutions, Reported, solutions_of, window_table
from etalis_py.executors.columns.arguments import Unfit
from etalis_py.executors.columns.evaluation import Given, truths
from etalis_py.executors.columns.instants import NodeOperator
from etalis_py.executors.columns.kernels.computing import TRUE
from etalis_py.executors.columns.kernels.joining import UNBOUNDED
from etalis_py.executors.columns.kernels.runs import mark_between, reach_back
from etalis_py.executors.columns.kernels.windows import arrange
from etalis_py.executors.columns.run_aggregates import aggregated
from etalis_py.executors.columns.store import Keys
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.executors.rows.run.runs import Runs
from etalis_py.kernel.batch import Row

_NEVER = 2**62


class Overlapping(Exception):
    """An element of a key starts before the one before it has ended."""


@dataclass(frozen=True, slots=True)
class Chains:
    """Elements key by key, those of a key in order of time: the ones that were kept, then those of the batch.

    ``rows`` has the number of each element in the order in which they came, ``bounds`` where the elements of each key
    begin.  ``first`` is where the longest run that ends in an element begins.
    """

    keys: np.ndarray
    rows: np.ndarray
    bounds: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    columns: dict[str, np.ndarray]
    first: np.ndarray

    def last_places(self) -> np.ndarray:
        """The place of the last element of each key."""
        return self.bounds[1:] - 1


class KeepsRuns(KeepsSolutions, ABC):
    """What the operators of REPEAT share: the runs that may go on, which rows take over when something unfit comes.

    ``give`` hands these to the operator of rows.  ``window`` has their last elements, with the columns of their first
    elements after their own.  ``compared``: some rule compares the aggregates, so equal numbers must be one term.
    """

    fast: bool

    def __init__(
        self, node: ir.Run, terms: Terms, give: Callable[[list[Row], list[Reported]], None], *, compared: bool
    ) -> None:
        self.node = node
        self.terms = terms
        self.compared = compared
        self.give = give
        self._columns = node.child.columns
        self._key = [self._columns.index(name) for name in node.keys]
        self._condition = tuple(map(alg.elements_named, node.condition))

    @abstractmethod
    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these runs."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """These runs, as ``fill`` takes them."""

    def reported(self) -> list[Reported]:
        """A run is reported once."""
        return []

    def _leave(self) -> None:
        """Hand the runs to rows."""
        self.give(self.rows(), [])
        self.fill([], [])
        self.fast = False

    def _identified(self, ids: np.ndarray) -> np.ndarray:
        return self.terms.distinguished(ids) if self.compared else ids


class RunOperator(KeepsRuns):
    """One such REPEAT; ``slow`` is the operator of the node in rows, and ``runs`` its state."""

    def __init__(
        self,
        node: ir.Run,
        terms: Terms,
        slow: NodeOperator,
        runs: Runs,
        give: Callable[[list[Row], list[Reported]], None],
        *,
        compared: bool,
    ) -> None:
        super().__init__(node, terms, give, compared=compared)
        self._slow, self._runs = slow, runs
        self._absent_key = [] if node.absent is None else [node.absent.columns.index(name) for name in node.keys]
        self._alone = keeps_longest_alone(node)
        self._bound = UNBOUNDED if node.bound is None else node.bound.micros
        self._suits = True  # whether the values so far could be aggregated
        self.fill([], [])

    # --- the runs that may go on ---

    def fill(self, rows: list[Row], reported: list[Reported]) -> None:
        """Continue with these runs: the last element of each, then the first, how many elements, what blocks it."""
        width = len(self._columns)
        first = 2 + width
        rows = sorted(rows, key=lambda x: x[first])
        self.window = window_table([(*x[:first], *x[first + 2 : -2]) for x in rows], 2 * width, self.terms)
        numbers = np.array([(x[first], x[first + 1], x[-2], _NEVER if x[-1] is None else x[-1]) for x in rows])
        self._first_ends, self._first_starts, self._counts, self._blocked = (
            part.copy() for part in numbers.reshape(-1, 4).astype(np.int64).T
        )
        self.fast = True

    def rows(self) -> list[Row]:
        """These runs, as ``fill`` takes them."""
        first = 2 + len(self._columns)
        named = solutions_of(self.window, self.terms)
        numbers = (part.tolist() for part in (self._first_ends, self._first_starts, self._counts, self._blocked))
        return [
            (*x[:first], end, start, *x[first:], count, None if blocked == _NEVER else blocked)
            for x, end, start, count, blocked in zip(named, *numbers, strict=True)
        ]

    # --- a batch ---

    def advance(self, child: SolutionTable, absent: SolutionTable | None = None) -> SolutionTable:
        """The runs that end in these elements."""
        if not self.fast and self._suits and (held := self._runs.held()) is not None:
            self._runs.clear()
            self.fill(held, [])
        if self.fast:
            try:
                return self._by_chains(child, absent)
            except Overlapping:
                pass
            except Unfit:
                self._suits = False
            self._leave()
        return self._slow.advance(child) if absent is None else self._slow.advance(child, absent)

    def _by_chains(self, child: SolutionTable, absent: SolutionTable | None) -> SolutionTable:
        held = len(self.window)
        if not len(child) and not (held and absent is not None and len(absent)):
            return SolutionTable.empty(len(self.node.head))
        keys = Keys(len(self._key))
        numbers, elements = self._numbered(keys, child)
        gone = SolutionTable.empty(0) if absent is None else absent
        barred = np.zeros(0, np.int64)
        if len(gone):
            barred = keys.numbers(gone.matrix(self._absent_key), create=False)
            if self._key and not (gone.matrix(self._absent_key).all() and keys.rows().all()):
                raise Overlapping  # an unbound term agrees with any
            gone, barred = gone.take(barred >= 0), barred[barred >= 0]
        blocked = np.full(keys.count, _NEVER)
        blocked[numbers[:held]] = self._blocked
        chains = self._chains(keys, numbers, elements, held)
        chains = self._linked(chains, held, blocked, gone, barred)
        rows = self._reported_rows(chains, held)
        self._keep(chains, held, gone, barred, blocked)
        return rows

    def _numbered(self, keys: Keys, child: SolutionTable) -> tuple[np.ndarray, SolutionTable]:
        """The keys of all elements, by number, and the elements: of the chains that are kept, then of the batch."""
        width, window = len(self._columns), self.window
        if self._alone:
            kept = SolutionTable(window.at, window.end, window.start, window.columns[:width])
        else:
            kept = SolutionTable(window.at, self._first_ends, self._first_starts, window.columns[width:])
        ends, starts = (np.concatenate([getattr(part, name) for part in (kept, child)]) for name in ("end", "start"))
        columns = tuple(np.concatenate(parts) for parts in zip(kept.columns, child.columns, strict=True))
        elements = SolutionTable(ends, ends, starts, columns)
        return keys.numbers(elements.matrix(self._key), create=True), elements

    def _chains(self, keys: Keys, numbers: np.ndarray, elements: SolutionTable, held: int) -> Chains:
        """The elements key by key."""
        bounds, rows = np.zeros(keys.count + 2, np.int64), np.empty(len(numbers), np.int64)
        arrange(numbers, bounds, rows)
        columns = {name: column[rows] for name, column in zip(self._columns, elements.columns, strict=True)}
        ends, starts = elements.end[rows], elements.start[rows]
        return Chains(numbers[rows], rows, bounds[:-1], ends, starts, columns, np.zeros(len(rows), np.int64))

    def _linked(
        self, chains: Chains, held: int, blocked: np.ndarray, gone: SolutionTable, barred: np.ndarray
    ) -> Chains:
        """The chains with their links tested."""
        linked = np.zeros(len(chains.rows), np.bool_)
        linked[1:] = chains.keys[1:] == chains.keys[:-1]
        here = np.flatnonzero(linked)
        if (chains.starts[here] <= chains.ends[here - 1]).any():
            raise Overlapping
        here = here[chains.rows[here] >= held]  # the others were tested before
        starts, ends_before = chains.starts[here], chains.ends[here - 1]
        goes_on = np.ones(len(here), np.bool_)
        if self.node.gap is not None:
            goes_on &= starts <= ends_before + self.node.gap.micros
        if self.node.absent is not None:
            from_held = chains.rows[here - 1] < held
            goes_on &= ~from_held | (starts <= blocked[chains.keys[here]])
            bounds, places = np.zeros(len(blocked) + 2, np.int64), np.empty(len(barred), np.int64)
            arrange(barred, bounds, places)
            between = np.empty(len(here), np.bool_)
            mark_between(chains.keys[here], ends_before, starts, bounds[:-1], places, gone.end, gone.start, between)
            goes_on &= ~between
        for e in self._condition:
            tested = np.flatnonzero(goes_on)
            goes_on[tested] = truths(e, self._step(chains, here[tested])) == TRUE
        linked[here] = goes_on
        reach_back(chains.ends, chains.starts, linked, self._bound, chains.first)
        return chains

    def _step(self, chains: Chains, here: np.ndarray) -> Given:
        """What the condition reads of these elements and of those before them."""
        own = {name: column[here] for name, column in chains.columns.items()}
        before = {f"PREVIOUS {name}": column[here - 1] for name, column in chains.columns.items()}
        end = chains.ends[here]
        return Given(self.terms, own | before, (chains.starts[here], end, end))

    # --- rows ---

    def _lengths(self, chains: Chains, held: int, places: np.ndarray) -> np.ndarray:
        """How many elements the longest run has that ends at each of these places."""
        first = chains.first[places]
        lengths = places - first + 1
        if self._alone:
            kept = chains.rows[first] < held
            lengths[kept] += self._counts[chains.rows[first[kept]]] - 1
        return lengths if self.node.most is None else np.minimum(lengths, self.node.most)

    def _reported_rows(self, chains: Chains, held: int) -> SolutionTable:
        """The rows of the runs that end in an element of the batch, in order of time."""
        places = np.empty(len(chains.rows), np.int64)
        places[chains.rows] = np.arange(len(chains.rows))
        places = places[held:]
        longest = self._lengths(chains, held, places)
        least = self.node.least
        if self.node.longest:
            lasts = places[longest >= least]
            counts = longest[longest >= least]
        else:
            each = np.maximum(longest - least + 1, 0)
            lasts = np.repeat(places, each)
            counts = np.arange(len(lasts)) - np.repeat(np.cumsum(each) - each, each) + least
        firsts = chains.first[lasts] if self._alone else lasts - counts + 1
        starts, of_first = self._of_first(chains, held, firsts)
        shown = {name: chains.columns[name][lasts] for name in self.node.keys}
        for call in self.node.aggregates:
            if call.takes_element:
                name = alg.variable_of(call.operand)
                shown[call.variable] = of_first[name] if call.name == "FIRST" else chains.columns[name][lasts]
            elif call.operand is None:
                shown[call.variable] = self._identified(self.terms.append_integers(counts))
            else:
                shown[call.variable] = self._identified(aggregated(call, self.terms, chains.columns, firsts, lasts))
        end = chains.ends[lasts]
        return SolutionTable(end, end, starts, tuple(shown[name] for name in self.node.head))

    def _of_first(self, chains: Chains, held: int, firsts: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The starts and columns of the first elements of runs; that of a kept run may be no longer there itself."""
        starts = chains.starts[firsts]
        columns = {name: column[firsts] for name, column in chains.columns.items()}
        if self._alone:
            runs = chains.rows[firsts]
            kept = np.flatnonzero(runs < held)
            starts[kept] = self._first_starts[runs[kept]]
            for i, name in enumerate(self._columns):
                columns[name][kept] = self.window.columns[len(self._columns) + i][runs[kept]]
        return starts, columns

    # --- what is kept ---

    def _keep(self, chains: Chains, held: int, gone: SolutionTable, barred: np.ndarray, blocked: np.ndarray) -> None:
        """Remember the runs that may go on: of each key the longest, or all that the bound and the most allow."""
        lasts = chains.last_places()
        lengths = self._lengths(chains, held, lasts)
        unblocked = chains.rows[lasts] >= held
        blocked[unblocked] = _NEVER
        if len(gone):
            after = gone.start > chains.ends[lasts[barred]]
            np.minimum.at(blocked, barred[after], gone.end[after])
        if self._alone:
            each, firsts = np.ones(len(lasts), np.int64), chains.first[lasts]
            counts = lengths
        else:
            each = lengths if self.node.most is None else np.minimum(lengths, self.node.most - 1)
            total = np.cumsum(each)
            counts = np.repeat(total, each) - np.arange(len(np.repeat(total, each)))
            firsts = np.repeat(lasts, each) - counts + 1
        lasts, blocks = np.repeat(lasts, each), np.repeat(blocked, each)
        first_starts, of_first = self._of_first(chains, held, firsts)
        first_ends = chains.ends[firsts]
        if self._alone:
            runs = chains.rows[firsts]
            first_ends = np.where(runs < held, np.append(self._first_ends, 0)[np.minimum(runs, held)], first_ends)
        table = SolutionTable(
            chains.ends[lasts],
            chains.ends[lasts],
            chains.starts[lasts],
            (*(chains.columns[name][lasts] for name in self._columns), *(of_first[name] for name in self._columns)),
        )
        parts = first_ends, first_starts, counts, blocks
        if self._bound < UNBOUNDED and len(chains.ends):
            young = first_starts >= chains.ends.max() - self._bound
            table, parts = table.take(young), tuple(part[young] for part in parts)
        self.window = table
        self._first_ends, self._first_starts, self._counts, self._blocked = parts
