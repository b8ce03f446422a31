"""The steps of a rule over many solutions at once: filters, BIND, WITHIN, joins with the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, assert_never

import numpy as np
from etalis_rules import algebra as alg
from etalis_rules import program as ir
from etalis_rules.calendar import add_months
from etalis_rules.sides import looked_up

from etalis_py.executors.columns.evaluation import Given, results, truths
from etalis_py.executors.columns.family_columns import Sources
from etalis_py.executors.columns.kernels.computing import TRUE
from etalis_py.executors.columns.tables import SolutionTable
from etalis_py.executors.columns.terms import Terms
from etalis_py.values import decode

MANY_AT_ONCE = 1 << 20
"""Solutions are joined with parameters in portions of about this many, so that those that fail never pile up."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """Solutions as columns, by the names that their variables have in the rule that reads them.

    ``rows`` remembers, for each solution, the number that it had before the rule's steps.
    """

    terms: Terms
    at: np.ndarray
    end: np.ndarray
    start: np.ndarray
    columns: dict[str, np.ndarray]
    rows: np.ndarray

    @classmethod
    def of(cls, terms: Terms, table: SolutionTable, names: Sequence[str]) -> Bindings:
        """The solutions of a node, with the rule's own names for its columns."""
        columns = dict(zip(names, table.columns, strict=True))
        return cls(terms, table.at, table.end, table.start, columns, np.arange(len(table)))

    def __len__(self) -> int:
        return len(self.at)

    def keep(self, rows: np.ndarray) -> Bindings:
        """These rows, by number or by mask."""
        end = self.end[rows]
        at = end if self.at is self.end else self.at[rows]
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Bindings(self.terms, at, end, self.start[rows], columns, self.rows[rows])

    def table(self, head: Sequence[str]) -> SolutionTable:
        """The solutions with these columns; a column that is missing here is unbound."""
        columns = tuple(self.columns[name] if name in self.columns else np.zeros(len(self), np.int32) for name in head)
        return SolutionTable(self.at, self.end, self.start, columns)

    # --- expressions ---

    def holds(self, e: alg.Expr) -> np.ndarray:
        """A mask of the solutions for which the expression is true; an error counts as not true."""
        return truths(e, self.given(e)) == TRUE

    def bound(self, e: alg.Expr) -> np.ndarray:
        """The terms that the expression gives; an error leaves the variable unbound."""
        if isinstance(e, alg.Var):
            column = self.columns.get(e.name)
            return np.zeros(len(self), np.int32) if column is None else column
        if isinstance(e, alg.Const):
            return np.full(len(self), self.terms.id_of(e.term), np.int32)
        return results(e, self.given(e))

    def given(self, e: alg.Expr) -> Given:
        """The columns and times that an expression may read."""
        columns = {name: self.columns[name] for name in alg.variables(e) if name in self.columns}
        return Given(self.terms, columns, (self.start, self.end, self.at))


@dataclass(frozen=True, slots=True)
class RuleSteps:
    """The steps of a rule, ready to be applied to solutions; equal terms share one look-up in the background."""

    steps: tuple[ir.Step, ...]
    sources: Sources

    def applied(self, frame: Bindings) -> Bindings:
        """The solutions that pass the steps, with what the steps bind."""
        for number, step in enumerate(self.steps):
            if not len(frame):
                return replace(
                    frame, columns={**frame.columns, **{name: frame.rows.astype(np.int32) for name in _binds(step)}}
                )
            match step:
                case ir.Condition(e):
                    frame = frame.keep(frame.holds(e))
                case ir.Assign(variable, e):
                    frame = replace(frame, columns={**frame.columns, variable: frame.bound(e)})
                case ir.Duration(bound):
                    frame = frame.keep(in_time(bound, frame.start, frame.end))
                case ir.Lasting(parameter):
                    frame = frame.keep(frame.end - frame.start <= _lengths(frame, parameter))
                case ir.Parameters():
                    return self._of_each_query(frame, step, RuleSteps(self.steps[number + 1 :], self.sources))
                case ir.Background():
                    frame = self._looked_up(frame, step, self.steps[number + 1 :])
                case _:
                    assert_never(step)
        return frame

    def _of_each_query(self, frame: Bindings, step: ir.Parameters, rest: RuleSteps) -> Bindings:
        """Join each solution with the rows of parameters that it matches, and apply the rest of the steps.

        This is done in portions: a solution may match very many queries, of which most fail the steps that follow.
        """
        chosen, begins, each = self.sources.matching(step, frame.columns, frame.end - frame.start)
        portion = np.cumsum(each) // MANY_AT_ONCE
        cuts = [0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), len(chosen)]
        parts = []
        for first, last in pairwise(cuts):
            some = slice(first, last)
            repeated = np.repeat(chosen[some], each[some])
            bound = self.sources.bound(step, begins[some], each[some])
            part = frame.keep(repeated)
            parts.append(rest.applied(replace(part, columns={**part.columns, **bound})))
        return parts[0] if len(parts) == 1 else united(parts)

    def _looked_up(self, frame: Bindings, step: ir.Background, later: Sequence[ir.Step]) -> Bindings:
        """Each solution joined with each compatible solution of the background."""
        pattern, read = looked_up(step, later, frame.columns)
        known = tuple(sorted(read & frame.columns.keys()))
        wanted = tuple(sorted({*step.binds, *known}))
        terms = np.empty((len(frame), len(known)), np.int32)
        for i, name in enumerate(known):
            terms[:, i] = frame.columns[name]
        begins, each, answers = self.sources.answers(pattern, known, wanted).of(terms)
        rows = np.repeat(np.arange(len(frame)), each)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
        chosen = begins[rows] + within
        frame = frame.keep(rows)
        columns = dict(frame.columns)
        for name, column in zip(wanted, answers, strict=True):
            columns[name] = column[chosen]
        return replace(frame, columns=columns)


def _binds(step: ir.Step) -> tuple[str, ...]:
    match step:
        case ir.Assign(variable, _):
            return (variable,)
        case ir.Background(_, binds):
            return binds
        case ir.Parameters(binds=bound):
            return tuple(name for name, _ in bound)
    return ()


def united(frames: Sequence[Bindings]) -> Bindings:
    """The solutions of some frames with the same columns, one after the other."""
    first = frames[0]
    end = np.concatenate([frame.end for frame in frames])
    at = end if all(frame.at is frame.end for frame in frames) else np.concatenate([frame.at for frame in frames])
    columns = {name: np.concatenate([frame.columns[name] for frame in frames]) for name in first.columns}
    start, rows = (np.concatenate([getattr(frame, name) for frame in frames]) for name in ("start", "rows"))
    return Bindings(first.terms, at, end, start, columns, rows)


def _lengths(frame: Bindings, parameter: str) -> np.ndarray:
    """A parameter's value in microseconds."""
    distinct, which = np.unique(frame.columns[parameter], return_inverse=True)
    lengths: list[Any] = [decode(text) for text in frame.terms.spellings(distinct)]
    return np.array(lengths, np.int64)[which]


def in_time(bound: alg.Bound, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Where end − start ≤ bound; months are counted by the calendar."""
    if not bound.months:
        return end - start <= bound.micros
    return end <= later(start, bound)


def later(times: np.ndarray, bound: alg.Bound) -> np.ndarray:
    """These times plus the bound; months are counted by the calendar."""
    if not bound.months:
        return times + bound.micros
    moments, which = np.unique(times, return_inverse=True)
    after = np.array([add_months(moment, bound.months) + bound.micros for moment in moments.tolist()], np.int64)
    return after[which]


def longest_micros(bound: alg.Bound | None) -> int | None:
    """The greatest length that a bound allows, or None."""
    return None if bound is None else bound.longest
