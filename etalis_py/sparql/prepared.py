"""Preparing patterns and solving them: the entry point of this package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from time import time_ns
from typing import Any, cast

from etalis_rules.algebra import Pattern, is_volatile, without_blocks

from etalis_py.sparql.operators import compile_pattern, enter
from etalis_py.sparql.run import Bindings, EvaluationLimits, EvaluationRun, Meter, Runner, Solution
from etalis_py.sparql.scoping import Env, given_name, mentioned, standardise_apart, substituted
from etalis_py.sparql.shared_state import SharedState
from etalis_py.sparql.sources import Source


@dataclass(frozen=True, slots=True)
class ExpressionClock:
    """The context that expressions need: NOW() in microseconds."""

    now: int


class Prepared:
    """A pattern, compiled once for each set of variables bound at the call.

    ``substitute`` chooses between two ways of applying bindings to a pattern.  Without it they are *joined* with its
    solutions: the pattern keeps its bottom-up meaning, and passing bindings down is only an optimisation.  With it they
    are *substituted*, as EXISTS requires ([SPARQL 1.1 Query] §18.6): a bound variable is a constant wherever it occurs,
    except in sub-SELECTs that do not project it.  In both, a bound end of a path counts as a constant.
    """

    __slots__ = ("_meter", "_names", "_registry", "_run", "_substitute", "_variants", "_volatile", "pattern", "timed")

    def __init__(
        self, pattern: Pattern, *, substitute: bool = False, timed: bool = False, of_event: bool = False
    ) -> None:
        self.pattern = standardise_apart(pattern if timed else cast(Pattern, without_blocks(pattern)))  # type: ignore[redundant-cast]
        self.timed = timed
        self._substitute = substitute
        self._names = mentioned(self.pattern)
        self._volatile = is_volatile(self.pattern)
        self._registry = shared_state(timed, of_event)
        self._variants: dict[frozenset[str], Runner] = {}
        self._run: EvaluationRun | None = None
        self._meter: Meter | None = None
        self._variant(frozenset())  # refuse now what cannot be evaluated

    def solve(
        self,
        mu: Bindings,
        source: Source,
        at: int | None = None,
        context: Any = None,
        limits: EvaluationLimits | None = None,
    ) -> Iterator[Solution]:
        """The solutions compatible with μ, each extended by μ, with start and end; lazily.

        ``at`` leaves out occurrences that end later.  ``context`` has ``now``, the value of NOW(); without it NOW() is
        the time of the call.  Without ``limits`` the source determines how many steps it may take.  The returned
        dictionaries must not be modified.
        """
        if limits is None:
            return self._solutions(mu, source, at, context, self._metered(source))
        meter = Meter(limits)
        return meter.at_most(self._solutions(mu, source, at, context, meter))

    def holds(
        self, mu: Bindings, source: Source, at: int | None = None, context: Any = None, meter: Meter | None = None
    ) -> bool:
        """Whether there is a solution; ``meter`` is that of the calling evaluation, if any."""
        for _ in self._solutions(mu, source, at, context, meter or self._metered(source)):
            return True
        return False

    def _metered(self, source: Source) -> Meter | None:
        """The meter for a new evaluation over a source; it is kept so that a run can be reused."""
        meter = self._meter
        if source.steps is None:
            return None
        if meter is None or meter.limits.steps != source.steps:
            meter = self._meter = Meter(EvaluationLimits(steps=source.steps))
        else:
            meter.begin()
        return meter

    def _solutions(
        self, mu: Bindings, source: Source, at: int | None, context: Any, meter: Meter | None
    ) -> Iterator[Solution]:
        if "" in mu.values():
            mu = {v: t for v, t in mu.items() if t}
        bound = self._names.intersection(mu)
        runner = self._variants.get(bound)
        if runner is None:
            runner = self._variant(bound)
        run = self._run
        if (
            run is None
            or run.origin is not source
            or run.at != at
            or run.meter is not meter
            or (self._volatile and (context is None or run.context is not context))
        ):
            run = self._started(source, at, context, meter)
        return runner(mu, run)

    def _started(self, source: Source, at: int | None, context: Any, meter: Meter | None) -> EvaluationRun:
        """A run, kept for the next evaluation under the same circumstances."""
        if source.timed and not self.timed:
            raise ValueError("the pattern was prepared for timeless sources; prepare it with timed=True")
        if context is None:
            context = ExpressionClock(time_ns() // 1000)
        run = self._run = EvaluationRun(source, at, context, self._registry.holds, meter)
        return run

    def _variant(self, bound: frozenset[str]) -> Runner:
        if not bound:
            runner = compile_pattern(self.pattern, Env(), self._registry)
        elif self._substitute:
            runner = _substituting(self.pattern, bound, self._registry)
        else:
            runner = enter(self.pattern, Env(bound, bound, anchored=bound), self._registry)
        self._variants[bound] = runner
        return runner


def shared_state(timed: bool, of_event: bool = False) -> SharedState:
    """The state of the operators of a new pattern, whose EXISTS are prepared as the pattern is."""
    return SharedState(
        timed,
        lambda inner: Prepared(inner, substitute=True, timed=timed, of_event=of_event),
        lambda: shared_state(timed=True, of_event=True),
        of_event,
    )


def _substituting(pattern: Pattern, bound: frozenset[str], registry: SharedState) -> Runner:
    """The pattern with terms in place of the bound variables; its solutions are then joined with them."""
    changed = substituted(pattern, bound)
    given = {v: given_name(v) for v in sorted(bound)}
    names = frozenset(given.values())
    inner = compile_pattern(changed, Env(bound | names, bound | names, names, names), registry)

    def run_substituted(mu: Bindings, run: EvaluationRun) -> Iterator[Solution]:
        terms = {name: mu[v] for v, name in given.items()}
        for solution, start, end in inner({**mu, **terms}, run):
            yield {v: t for v, t in solution.items() if v not in names}, start, end

    return run_substituted


def prepare(pattern: Pattern, *, substitute: bool = False, timed: bool = False, of_event: bool = False) -> Prepared:
    """Compile a pattern for many evaluations.  ``timed``: a source may hold occurrences.  Raises ``Unsupported``.

    ``of_event``: the source is one event, and in every group the interval is the event's, the ``interval`` of the
    context.
    """
    return Prepared(pattern, substitute=substitute, timed=timed, of_event=of_event)


_prepared = lru_cache(maxsize=256)(prepare)


def solve(
    pattern: Pattern,
    mu: Bindings,
    source: Source,
    at: int | None = None,
    *,
    substitute: bool = False,
    context: Any = None,
    limits: EvaluationLimits | None = None,
) -> Iterator[Solution]:
    """``Prepared.solve`` for a pattern that is evaluated occasionally; recently used ones are kept prepared."""
    prepared = _prepared(pattern, substitute=substitute, timed=source.timed)
    return prepared.solve(mu, source, at, context, limits)
