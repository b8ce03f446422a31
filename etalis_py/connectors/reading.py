"""A ``Source`` as a stream: its messages become events, and it goes on from its position.

Before each ``read`` the stream is marked with the position, so that another process reads at most one portion twice
and leaves out what was used of it.  Mappings, contexts, time columns and EVENT work as with files, because a message is
read as a line of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack

from etalis_rules.terms import iri

from etalis_py.connectors.contracts import Message, Source, check_contract
from etalis_py.events import Event
from etalis_py.events.errors import without_password
from etalis_py.streams import Burst, Idle, Patience, Stream
from etalis_py.streams.messages import Messages
from etalis_py.streams.options import ReadOptions, StreamOptions
from etalis_py.streams.origin import Origin
from etalis_py.streams.sources import now


def connect(source: Source, address: str, **options: Unpack[StreamOptions]) -> Stream:
    """The stream of a source; ``options`` are those of ``read_stream`` that apply to messages.

    ``format`` is that of a message, by default a JSON line.  A source whose attribute ``again`` is False cannot give
    the same messages again: after a crash it goes on with what comes, and without checkpoints it is told at once what
    was taken.
    """
    check_contract(source, Source)
    address = without_password(address)
    options.setdefault("idle", 1.0)
    given = ReadOptions(**options)
    given = replace(given, name=given.name or iri(address), format=given.format or "jsonl")
    messages = Messages(given)
    patience = Patience(given.idle or 1.0)
    context = messages.context
    again = getattr(source, "again", True)
    origin = Origin(
        "connected" if again else "passing",
        address,
        given.format,
        committed=source.committed,
        pressing=getattr(source, "pressing", None),
        sent_again=getattr(source, "sent_again", False),
    )

    if hasattr(source, "hurried"):
        source.hurried = lambda: patience.hurried

    def read(seconds: float) -> tuple[Any] | None:
        """One portion, in a tuple, as an empty one is silence."""
        portion = source.read(seconds)
        return None if portion is not None and not portion else (portion,)

    def items() -> Iterator[Any]:
        source.open(context.tracker.start)
        while True:
            context.tracker.mark(source.position())
            portion = patience.wait(read)
            if portion is None:
                yield Idle(now())
                continue
            if portion[0] is None:
                return
            if patience.gathers:
                yield Burst(True)
            given_up_to = source.position()
            if isinstance(portion[0], Message | Event):
                raise TypeError(
                    f"{address}: read gives a list of messages, but this one gave a single one: put it in a list"
                )
            for one in portion[0]:
                if isinstance(one, Message):
                    one.check(address)
                    yield from messages.events(one.value, place=one.place, arrival=one.arrival, retract=one.retract)
                elif isinstance(one, Event):
                    yield one._replace(stream=one.stream or context.stream)
                else:
                    raise TypeError(f"{address}: a source gives Message(b'…') or events, but this one gave {one!r}")
            if patience.gathers:
                yield Burst(False)
            if not (again or context.tracker.active):
                source.committed(given_up_to)  # nobody else will say so: there are no checkpoints

    return Stream(
        items(),
        name=context.stream,
        source=address,
        contexts=[context],
        close=source.close,
        patience=(patience,),
        origin=origin,
    )
