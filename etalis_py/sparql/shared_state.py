"""Shared state of the operators of one prepared pattern while they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from etalis_rules.algebra import Expr, Pattern, patterns_of_exists

from etalis_py.sparql.run import Bindings, EvaluationRun, Meter
from etalis_py.sparql.scoping import Env, given_name, mentioned_in, unseen
from etalis_py.sparql.sources import Source
from etalis_py.values.expressions import condition, term

T = TypeVar("T")
Test = Callable[[dict[str, str], int, int, Any], bool]
Value = Callable[[dict[str, str], int, int, Any], str]


class InnerPattern(Protocol):
    """The prepared pattern of an EXISTS."""

    def holds(
        self, mu: Bindings, source: Source, at: int | None = None, context: Any = None, meter: Meter | None = None
    ) -> bool: ...


class SharedState:
    """Whether sources may be timed, and the prepared EXISTS patterns met so far."""

    __slots__ = ("_by_identity", "_exists", "_prepare", "of_event", "of_one_event", "timed")

    def __init__(
        self,
        timed: bool,
        prepare: Callable[[Pattern], InnerPattern],
        of_one_event: Callable[[], SharedState],
        of_event: bool = False,
    ) -> None:
        """``of_event``: every expression has the interval of the event, which is that of the context.

        ``of_one_event`` makes the state of a pattern inside EVENT.
        """
        self.timed = timed
        self.of_one_event = of_one_event
        self.of_event = of_event
        self._prepare = prepare
        self._exists: dict[Pattern, InnerPattern] = {}
        # hashing a pattern walks it, which is too slow for each call
        self._by_identity: dict[int, tuple[Pattern, InnerPattern]] = {}

    def test(self, exprs: tuple[Expr, ...], visible: frozenset[str], env: Env) -> Test | None:
        """The expressions as one test that sees ``visible`` and substituted variables; None for no expressions."""
        tests = [self._timed(condition(e)) for e in self._scoped(exprs, visible, env)]
        if len(tests) <= 1:
            return tests[0] if tests else None
        return lambda mu, start, end, context: all(test(mu, start, end, context) for test in tests)

    def value(self, expr: Expr, visible: frozenset[str], env: Env) -> Value:
        return self._timed(term(self._scoped((expr,), visible, env)[0]))

    def _timed(self, compiled: Callable[[dict[str, str], int, int, Any], T]) -> Callable[..., T]:
        """Inside EVENT every group has the interval of the event."""
        if not self.of_event:
            return compiled

        def in_event(mu: dict[str, str], start: int, end: int, run: Any) -> T:
            start, end = run.context.interval
            return compiled(mu, start, end, run)

        return in_event

    def _scoped(self, exprs: tuple[Expr, ...], visible: frozenset[str], env: Env) -> tuple[Expr, ...]:
        # What EXISTS has replaced still stands where VALUES or BIND name it, and is joined with the solution there.
        replaced = {name for name in env.seen if given_name(name) in env.given}
        exprs = unseen(exprs, (mentioned_in(exprs) & env.seen) - visible - env.given - replaced)
        for expr in exprs:
            for pattern in patterns_of_exists(expr):
                self._exists.setdefault(pattern, self._prepare(pattern))
        return exprs

    def holds(self, pattern: Pattern, mu: dict[str, str], run: EvaluationRun, at: int | None) -> bool:
        """EXISTS: whether the pattern, with μ substituted, has a solution by ``at``."""
        known = self._by_identity.get(id(pattern))
        if known is None:  # the pattern is kept with its operator, so that its id is not reused
            known = self._by_identity[id(pattern)] = (pattern, self._exists[pattern])
        _, prepared = known
        return prepared.holds(mu, run.origin, at, run.context, run.meter)
