"""What a pattern asks of one stream or graph while it is in another, or nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from etalis_rules import algebra as alg

from etalis_py.engine.program import Program
from etalis_py.events import Event
from etalis_py.values.term_likeness import slip_of
from etalis_py.whynot.titles import Titles

NEAREST = 3


def listed(terms: Sequence[str], titles: Titles) -> str:
    """The first few terms."""
    return ", ".join(map(titles.term, terms[:NEAREST])) + ", …" * (len(terms) > NEAREST)


def missing_graph(pattern: alg.Pattern, graphs: Iterable[str], titles: Titles) -> Iterator[str]:
    """A note if none of the graphs of the background has the name that a pattern asks for."""
    asked = alg.constant_of(getattr(pattern, "graph", None))
    names = sorted(graphs)
    if not asked or asked in names:
        return
    slip = slip_of(asked, names)
    if not names:
        there = "the background has none: give it one, from TriG or N-Quads, or by named={…}"
    elif slip is not None:
        there = f"the nearest is {titles.term(slip[0])}: {slip[1].text}"
    else:
        there = f"there {'is' if len(names) == 1 else 'are'} {listed(names, titles)}"
    yield f"there is no graph {titles.term(asked)}; {there}"


def derived_streams(program: Program) -> frozenset[str]:
    """The streams that the rules of a program derive."""
    registered = (query.syntax.register for query in program.compilation.queries)
    rules = {register.name for register in registered if register is not None and register.kind == "STREAM"}
    return frozenset(rules | {plan.feeds for plan in program.plans if plan.feeds})


def empty_stream(name: str, stream: str, events: Sequence[Event], program: Program, titles: Titles) -> Iterator[str]:
    """A note if a window is over a stream that has no event.  Events without a stream may be in any."""
    streams = sorted({event.stream for event in events})
    if not events or not stream or "" in streams or stream in streams or stream in derived_streams(program):
        return
    slip = slip_of(stream, streams)
    where = (
        f"the nearest is {titles.term(slip[0])}: {slip[1].text}" if slip else f"they are in {listed(streams, titles)}"
    )
    yield f"WINDOW {titles.term(name)} is over the stream {titles.term(stream)}, which has no events; {where}"
