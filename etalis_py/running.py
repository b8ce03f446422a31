"""Running a program over a stream from start to end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from etalis_py.engine.engine import Engine
from etalis_py.engine.matches import Match
from etalis_py.events import Event
from etalis_py.program import Program
from etalis_py.streams import Idle, Punctuation, Stream, StreamError

if TYPE_CHECKING:
    from etalis_py.windows import WindowEngine, WindowProgram

BATCH = 1024


def run(program: Program | WindowProgram, stream: Stream | Iterable[Event], **options: Any) -> Iterator[Match]:
    """The matches of a program over a stream, as the instants close; ``options`` are those of its engine.

    Input that cannot be read is raised after the matches that end with the events before it.

    That is ``Engine``, or ``WindowEngine`` for what ``compile_windows`` makes.

    >>> from etalis_py import compile, event
    >>> [m["x"] for m in run(compile("SELECT ?x { ?c :p ?x }"), [event(":c :p 1", 1), event(":c :p 2", 2)])]
    [1, 2]
    """
    if isinstance(stream, Stream):
        options.setdefault("render", lambda us: stream.clock.render(us))
    engine = engine_of(program, **options)
    batch: list[Event] = []
    items = iter(stream)
    newest: int | None = None
    while True:
        try:
            item = next(items, None)
        except (StreamError, OSError):
            yield from engine.push_all(batch)
            if newest is not None:
                yield from engine.advance(newest)
            raise
        if isinstance(item, Event):
            batch.append(item)
            if newest is None or item.end > newest:
                newest = item.end
            if len(batch) < BATCH:
                continue
        yield from engine.push_all(batch)
        batch.clear()
        if isinstance(item, Punctuation):
            yield from engine.advance(item.time)
        elif isinstance(item, Idle):
            yield from engine.advance(item.at)
        elif item is None:
            break
    yield from engine.close()


def engine_of(program: Program | WindowProgram, **options: Any) -> Engine | WindowEngine:
    """The engine that a program is run by."""
    if isinstance(program, Program):
        return Engine(program, **options)
    from etalis_py.windows import WindowEngine, WindowProgram  # takes a while to import

    return WindowEngine(program, **options) if isinstance(program, WindowProgram) else Engine(program, **options)
