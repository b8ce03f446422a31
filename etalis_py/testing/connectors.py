"""Checks a connector against its contract (``connectors.contracts``), and makes trouble for runs that use one.

``check_source`` reads a source again from each of its positions.  ``check_sink`` ends the process at each point of a
checkpoint, also between ``prepare`` and ``commit``.  ``Memory`` and ``MemorySink`` are the shortest connectors that
keep the contracts; ``Slow`` makes a sink wait, ``poisoned`` puts items among messages that cannot be read.

>>> check_source(lambda: Memory([b"1", b"2", b"3"]))
>>> kept: list[str] = []
>>> check_sink(lambda: MemorySink(kept), lambda: kept)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from etalis_py.connectors.contracts import Message, Position, Sink, Source
from etalis_py.engine.running import run
from etalis_py.events import Event, event
from etalis_py.kernel.matches import Match

_PATIENCE = 10.0


class Memory:
    """Messages in memory: the position is the number of those given.  ``portion``: how many come at once."""

    def __init__(self, values: Iterable[bytes | Message | Event], portion: int = 2) -> None:
        self._items = [Message(value) if isinstance(value, bytes) else value for value in values]
        self._portion, self._next = portion, 0

    def open(self, position: Position | None) -> None:
        self._next = position or 0

    def read(self, seconds: float) -> Sequence[Message | Event] | None:
        if self._next >= len(self._items):
            return None
        begin, self._next = self._next, min(self._next + self._portion, len(self._items))
        return self._items[begin : self._next]

    def position(self) -> Position:
        return self._next

    def committed(self, position: Position) -> None:
        """Do nothing: nobody else reads them."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class MemorySink:
    """The ids of matches in a list that outlives the process, and a number that says up to which token."""

    guarantee = "exactly once"

    def __init__(self, kept: list[str]) -> None:
        self._kept, self._held = kept, list[str]()

    def recover(self, token: Position | None) -> None:
        if token is not None:
            self.commit(token)

    def write(self, matches: Iterable[Match]) -> None:
        self._held += ("-" * match.retracted + match.id for match in matches)

    def prepare(self) -> Position:
        held, self._held = self._held, []
        return [len(self._kept), held]

    def commit(self, token: Position) -> None:
        begin, held = token
        self._kept[begin:] = held

    def abort(self) -> None:
        self._held.clear()

    def close(self) -> None:
        self.abort()


class Slow:
    """A sink that takes its time for each step: what is before it must wait, and lose nothing."""

    def __init__(self, sink: Sink, seconds: float) -> None:
        self._sink, self._seconds = sink, seconds
        self.guarantee = sink.guarantee

    def write(self, matches: Iterable[Match]) -> None:
        time.sleep(self._seconds)
        self._sink.write(matches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


def poisoned(values: Iterable[bytes], every: int = 3) -> Iterator[bytes]:
    """The messages, with one that is no JSON after every few, and one that is no UTF-8."""
    for number, value in enumerate(values, 1):
        yield value
        if number % every == 0:
            yield b'{"time": ' if number % (2 * every) else b"\xff\xfe"


def stored(data: Any) -> Any:
    """A position or token as it comes back from a checkpoint; an error if it is not plain data."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(data))


def check_source(make: Callable[[], Source], *, least: int = 2, arrivals: bool = True) -> None:
    """Check that a source gives the same items from each position as it gave after it in the first reading.

    ``make`` gives a new source, not opened, over the same items, of which there are at least so many.  A source without
    an end is read until it is silent.  ``arrivals``: the times of arrival come again as well.
    """
    source = make()
    source.open(None)
    items, positions = _read(source, stored(source.position()), least)
    source.close()
    source.close()  # twice is allowed
    assert len(items) >= least, f"the source gave {len(items)} items, fewer than {least}"
    for count, position in positions:
        again = make()
        again.open(position)
        rest, _ = _read(again, None, len(items) - count)
        if not arrivals:
            rest, items = _without_arrivals(rest), _without_arrivals(items)
        assert rest == items[count:], f"from {position!r} it gives {rest[:3]!r}…, not {items[count : count + 3]!r}…"
        again.committed(position)
        again.close()


def _without_arrivals(items: Iterable[Any]) -> list[Any]:
    return [one._replace(arrival=None) if isinstance(one, Message) else one for one in items]


def _read(source: Source, first: Position, least: int) -> tuple[list[Any], list[tuple[int, Position]]]:
    """All items, at least so many, and the positions between them, each with the number of items before it."""
    items: list[Any] = []
    positions = [(0, first)]
    end = time.monotonic() + _PATIENCE
    while (portion := source.read(0.2)) is not None:
        if not portion and (len(items) >= least or time.monotonic() > end):
            break
        items += portion
        positions.append((len(items), stored(source.position())))
    return items, positions


def some_matches(count: int) -> list[Match]:
    """Matches with different ids."""
    return list(run("SELECT ?x { ?c :p ?x }", [event(f":c :p {number}", number) for number in range(count)]))


def check_sink(make: Callable[[], Sink], content: Callable[[], Iterable[str]]) -> None:
    """Check that a sink holds every match as often as it promises, wherever the process ends.

    ``make`` gives a new sink to the same place, which is empty at first; ``content`` the ids of the matches there, in
    order.  Nine matches are written, three for each token.
    """
    matches = some_matches(9)
    ids = [match.id for match in matches]
    once = make().guarantee == "exactly once"

    def check(count: int, when: str) -> None:
        found = list(content())
        right = found == ids[:count] if once else list(dict.fromkeys(found))[:count] == ids[:count]
        assert right, f"{when} there are {len(found)} matches, {len(set(found))} of them different; expected {count}"

    sink = make()
    sink.recover(None)
    sink.write(matches[:3])
    sink.commit(first := stored(sink.prepare()))
    check(3, "after the first commit")
    sink.commit(first)
    check(3, "after the same commit again")

    sink.write(matches[3:6])
    second = stored(sink.prepare())
    sink.close()  # the process ends between prepare and commit, and the checkpoint was not written
    sink = make()
    sink.recover(first)
    check(3, "after an end before the checkpoint")
    sink.write(matches[3:6])
    second = stored(sink.prepare())
    sink.close()  # the checkpoint was written
    sink = make()
    sink.recover(second)
    check(6, "after an end between the checkpoint and its commit")
    sink.close()
    sink = make()
    sink.recover(second)
    check(6, "after an end behind the commit")

    sink.write(matches[6:])
    sink.abort()
    sink.write(matches[6:])
    sink.write([])
    third = stored(sink.prepare())
    sink.commit(third)
    check(9, "after an abort, and the same matches again")
    sink.commit(stored(sink.prepare()))
    check(9, "after an empty portion")
    sink.close()
    sink.close()


__all__ = ["Memory", "MemorySink", "Slow", "check_sink", "check_source", "poisoned", "some_matches", "stored"]
