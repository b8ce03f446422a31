"""The state of one evaluation: the source, the time bound, the context of expressions, the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

from etalis_py.sparql.sources import Occurrence, Source
from etalis_py.values.errors import LimitExceeded
from etalis_py.values.time import TIMELESS_END

if TYPE_CHECKING:
    from etalis_rules.algebra import Pattern

Bindings = dict[str, str]
Solution = tuple[Bindings, int, int]
"""⟨μ, start, end⟩; μ must not be modified, as it may be shared."""


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Limits on the cost of an evaluation, beyond which it is stopped; None means no limit.

    ``solutions`` counts the results, ``steps`` the triples looked at and the rows combined on the way; ``seconds``
    count from the call of ``solve``.
    """

    solutions: int | None = None
    steps: int | None = None
    seconds: float | None = None


_CLOCK_EVERY = 256  # steps between two looks at the clock
_FIRST = itemgetter(0)


class Meter:
    """Counts the steps of successive evaluations against the limits of each.

    A step costs about 40 ns: items are counted by being paired with the ticks of a generator, without a call for each.
    """

    __slots__ = ("_ticks", "limits", "step")

    def __init__(self, limits: EvaluationLimits) -> None:
        self.limits = limits
        self.begin()

    def begin(self) -> None:
        """Start counting the steps of another evaluation."""
        self._ticks = _ticks(self.limits)
        self.step = self._ticks.__next__

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        return map(_FIRST, zip(items, self._ticks, strict=False))

    def at_most(self, solutions: Iterator[Solution]) -> Iterator[Solution]:
        most = self.limits.solutions
        for number, solution in enumerate(solutions, 1):
            if most is not None and number > most:
                raise LimitExceeded(
                    f"a pattern over background knowledge or history has more than {most} solutions; "
                    "add a LIMIT or a FILTER to it, or raise the limit on solutions"
                )
            yield solution


def _ticks(limits: EvaluationLimits) -> Iterator[None]:
    """A generator of as many ticks as the limits allow, which then raises their error."""
    steps, seconds = limits.steps, limits.seconds
    if seconds is None:
        if steps is None:
            yield from repeat(None)
        else:
            yield from repeat(None, steps)
    else:
        taken, deadline = 0, monotonic() + seconds
        while steps is None or taken < steps:
            chunk = _CLOCK_EVERY if steps is None else min(_CLOCK_EVERY, steps - taken)
            yield from repeat(None, chunk)
            taken += chunk
            if monotonic() > deadline:
                raise LimitExceeded(
                    f"a pattern over background knowledge or history took longer than {seconds} s "
                    f"({taken} steps so far); make it more selective or raise the limit on running time"
                )
    raise LimitExceeded(
        f"a pattern over background knowledge, a window or history took more than {steps} steps; make it more "
        "selective (fewer unconnected parts, bound ends of paths), or raise Limits(steps=…)"
    )


Runner = Callable[[Bindings, "EvaluationRun"], Iterator[Solution]]
"""An operator, compiled: the solutions compatible with the bindings, each joined with them."""


class EvaluationRun:
    """The state of one evaluation; also the context that expressions are evaluated in."""

    __slots__ = ("_exists", "at", "context", "match", "meter", "now", "origin", "source")

    def __init__(
        self,
        source: Source,
        at: int | None,
        context: Any,
        exists: Callable[[Pattern, Bindings, EvaluationRun, int | None], bool],
        meter: Meter | None = None,
    ) -> None:
        self.origin, self.at, self.context = source, at, context
        self.source = source.upto(at)
        self.now: int = context.now
        self._exists = exists
        self.meter = meter
        self.match: Callable[[str | None, str | None, str | None, str, str | None], Iterable[Occurrence]]
        if meter is None:
            self.match = self.source.match
        else:
            match, counted = self.source.match, meter.counted
            self.match = lambda s, p, o, stream, graph: counted(match(s, p, o, stream, graph))

    def exists(self, pattern: Pattern, mu: Bindings, start: int, end: int) -> bool:
        """EXISTS over solutions that end no later than the group it is written in (a timeless group: any)."""
        at = self.at
        if end != TIMELESS_END:
            at = end if at is None else min(at, end)
        return self._exists(pattern, mu, self, at)
