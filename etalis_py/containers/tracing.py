"""The path of a posted graph to its match as OpenTelemetry spans, in a process that has set OpenTelemetry up.

    etalis.post ─ etalis.taken (by a program) ─ etalis.matched ─ etalis.written ─ etalis.taken (by the next program) …

A match belongs to the graph that completed it: among those the program has read, the newest one not after its end.
Cost: four spans a graph, and the contexts of the last ``_KEPT`` graphs and of ``_READ`` for each program; nothing, and
no import, in a process without OpenTelemetry.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from .messages import Found
from .transaction import StoredMember, Transaction

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

T = TypeVar("T")
Change = Callable[[Transaction], T]
_KEPT = 10_000
_READ = 1_000


class Tracing:
    """The spans of a server.  State: the contexts in which its last graphs were stored, by the graph's number."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._stored: dict[int, Context] = {}

    def stored(self, number: int) -> Context | None:
        """The context in which a graph was stored, while it is remembered."""
        return self._stored.get(number)

    @contextmanager
    def posting(self, container: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """A graph is posted; the caller's trace is continued if its headers name one (``traceparent``)."""
        from opentelemetry import propagate, trace

        with self.tracer.start_as_current_span(
            "etalis.post",
            context=propagate.extract(headers),
            kind=trace.SpanKind.SERVER,
            attributes={"etalis.container": container},
        ) as span:
            yield span

    def storing(self, span: Span, change: Change[T]) -> Change[T]:
        """The change, extended to remember its graphs with this span once they are durable, before they are read."""
        from opentelemetry import trace

        context = trace.set_span_in_context(span)

        def remember(number: int) -> None:
            self._stored[number] = context
            if len(self._stored) > _KEPT:
                del self._stored[next(iter(self._stored))]

        def traced(transaction: Transaction) -> T:
            before = len(transaction.stored)
            result = change(transaction)
            for one in transaction.stored[before:]:
                span.set_attribute("etalis.graph", one.path + one.name)
                transaction.after.append(lambda number=one.id: remember(number))  # type: ignore[misc]
            return result

        return traced


class ProgramTrace:
    """The spans of one program.  State: the contexts of the last graphs it read and of its last matches."""

    def __init__(self, tracing: Tracing, program: str) -> None:
        self._tracing, self._program = tracing, program
        self._read: deque[tuple[int, int, StoredMember, Context]] = deque(
            maxlen=_READ
        )  # with the times of event and reading
        self._matched: dict[str, Context] = {}

    def answered(self, taken: Sequence[StoredMember], matches: Sequence[Found], since: int) -> None:
        """The program has taken graphs that it was given at ``since`` (ns), and reported matches."""
        for member in taken:
            attributes = {"etalis.program": self._program, "etalis.graph": member.path + member.name}
            context = self._span("etalis.taken", self._tracing.stored(member.id), since, attributes)
            self._read.append((member.time, time.time_ns(), member, context))
        self._matched = {match.id: self._match(match) for match in matches}

    @contextmanager
    def writing(self, match: str, graph: str, change: Change[T]) -> Iterator[Change[T]]:
        """A match becomes a graph by this change."""
        with self._tracing.tracer.start_as_current_span(
            "etalis.written",
            context=self._matched.get(match),
            attributes={"etalis.program": self._program, "etalis.match": match, "etalis.graph": graph},
        ) as span:
            yield self._tracing.storing(span, change)

    def _match(self, match: Found) -> Context:
        completed = [one for one in self._read if match.end is None or one[0] <= match.end]
        attributes = {"etalis.program": self._program, "etalis.match": match.id}
        if not completed:
            return self._span("etalis.matched", None, time.time_ns(), attributes)
        _, read, member, context = max(completed, key=lambda one: (one[0], one[2].id))
        attributes["etalis.graph"] = member.path + member.name
        return self._span("etalis.matched", context, read, attributes)

    def _span(self, name: str, parent: Context | None, since: int, attributes: dict[str, str]) -> Context:
        """A span that ends now, as the context for what follows from it."""
        from opentelemetry import context, trace

        span = self._tracing.tracer.start_span(
            name, context=parent or context.Context(), start_time=since, attributes=attributes
        )
        span.end()
        return trace.set_span_in_context(span, context.Context())


def tracing() -> Tracing | None:
    """The tracing of this process; None unless OpenTelemetry has been set up in it."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else Tracing(provider.get_tracer("etalis_py"))
