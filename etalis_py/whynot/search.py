"""Evaluating parts of a plan with bounded work.

The backward evaluator gives the solutions one by one and stops at a limit.  Patterns that it refuses, because the
answer depends on the time (aggregates, LIMIT), are run by the engine over the same occurrences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from etalis_compiler import ast
from etalis_compiler.pipeline import Compilation, CompiledQuery
from etalis_rules import algebra as alg

from etalis_py.engine.engine import Engine
from etalis_py.kernel.matches import Match
from etalis_py.sparql import EvaluationLimits, Prepared, Unsupported
from etalis_py.sparql import ExpressionClock as Moment
from etalis_py.sparql.run import Solution
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.time import TIMELESS_END, TIMELESS_START
from etalis_py.whynot.question import Question, fixed
from etalis_py.whynot.stream import Facts


@dataclass(frozen=True, slots=True)
class Work:
    """Limits on one evaluation: its ``steps``, its ``seconds``, and the ``solutions`` kept."""

    steps: int = 200_000
    solutions: int = 5_000
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class FirstSolutions:
    """The first solutions of a pattern; ``number`` is how many there are, or a lower bound unless ``complete``.

    A solution is kept and counted if ``keep`` of it is not None; the kept values are in the same order.
    """

    solutions: tuple[Any, ...]
    number: int
    complete: bool = True


Keep = Callable[[Solution], Any]


def itself(solution: Solution) -> Solution:
    return solution


@dataclass(frozen=True, slots=True)
class Search:
    """Evaluates patterns over the facts, for one question; ``windows`` are the windows that its plan reads."""

    facts: Facts
    question: Question
    work: Work = Work()
    windows: frozenset[str] = frozenset()

    def wanted(self, pattern: alg.Pattern, *, at_end: bool, keep: Keep = itself) -> FirstSolutions:
        """The solutions that fulfil the question, as far as the pattern's variables show.

        ``at_end``: the pattern's interval ends with the answer's, so the whole span counts; otherwise only its end,
        since parts of an answer end no later than the answer.
        """
        where = self.question.about(alg.scope(pattern))
        return self.sample(pattern, where, self._times(at_end), keep)

    def all(self, pattern: alg.Pattern) -> FirstSolutions:
        return self.sample(pattern, (), None)

    def _times(self, at_end: bool) -> tuple[int, int] | None:
        span = self.question.span
        return span if span is None or at_end else (TIMELESS_END, span[1])

    def sample(
        self, pattern: alg.Pattern, where: tuple[alg.Expr, ...], span: tuple[int, int] | None, keep: Keep = itself
    ) -> FirstSolutions:
        """The solutions of a pattern for which the conditions hold and that end within the span.

        The evaluator is fast if a term is given; if it does not finish, the engine is tried, for which a window bounds
        the work.
        """
        mu = {name: term for name, term in fixed(where).items() if name in alg.certain(pattern)}
        if where:
            pattern = alg.Filter(pattern, where)
        try:
            prepared = Prepared(pattern, timed=True)
        except Unsupported:
            return self._by_engine(pattern, span, keep)
        latest = None if span is None else span[1]
        limits = EvaluationLimits(steps=self.work.steps, seconds=self.work.seconds)
        solutions = prepared.solve(mu, self.facts.source, latest, Moment(self.facts.end), limits)
        sample = self._taken(solutions, span, keep)
        if sample.complete:
            return sample
        other = self._by_engine(pattern, span, keep)
        return other if other.complete or other.number > sample.number else sample

    def _taken(self, solutions: Iterator[Solution], span: tuple[int, int] | None, keep: Keep) -> FirstSolutions:
        taken: list[Any] = []
        number = 0
        try:
            for solution in solutions:
                if span is not None and solution[2] < span[0]:
                    continue
                kept = keep(solution)
                if kept is not None:
                    number += 1
                    if number <= self.work.solutions:
                        taken.append(kept)
        except LimitExceeded:
            return FirstSolutions(tuple(taken), number, complete=False)
        return FirstSolutions(tuple(taken), number)

    def _by_engine(self, pattern: alg.Pattern, span: tuple[int, int] | None, keep: Keep) -> FirstSolutions:
        """The pattern as a query of its own, beside the program, over the same events."""
        asked = query_of(self.question.query, alg.Select(pattern, tuple(sorted(alg.scope(pattern)))), _PART)
        matches = run_beside(self.facts, asked, self.work.seconds)
        wanted = (solution_of(match) for match in matches if match.query == _PART)
        timely = wanted if span is None else (solution for solution in wanted if solution[2] <= span[1])
        return self._taken(timely, span, keep)


_PART, _AT_ONCE = ".part", 256


def query_of(query: CompiledQuery, select: alg.Select, name: str) -> CompiledQuery:
    """A copy of a query with different algebra; it consumes nothing."""
    syntax = replace(query.syntax, form=ast.Select(()), register=None, policy="unrestricted")
    return replace(query, name=name, syntax=syntax, algebra=select, template=())


def run_beside(facts: Facts, query: CompiledQuery, seconds: float | None = None) -> Iterator[Match]:
    """The matches of a program and one more query; raises ``LimitExceeded`` if the time is up."""
    engine = Engine(facts.program, **facts.options)
    engine.add(Compilation((query,)), name=query.name)
    until = None if seconds is None else monotonic() + seconds
    for first in range(0, len(facts.events), _AT_ONCE):
        yield from engine.push_all(facts.events[first : first + _AT_ONCE])
        if until is not None and monotonic() > until:
            raise LimitExceeded(f"{query.name} took more than {seconds} s")
    yield from engine.close()


def solution_of(match: Match) -> Solution:
    """A match in the form of the evaluator's solutions."""
    if match.start_us is None or match.end_us is None:
        return match.bindings, TIMELESS_START, TIMELESS_END
    return match.bindings, match.start_us, match.end_us
