"""Several streams as one, in the order of the ends of their events; at equal times in the order of the streams.

Finite streams are read in turn, each when its event is next.  With live streams it is unknown which will have an event
first: each is read in its own thread, and a silent one (after an ``Idle``) does not hold the others up.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from etalis_py.events import Event
from etalis_py.streams.elements import Item
from etalis_py.streams.positions import Order
from etalis_py.streams.sources import Patience, now
from etalis_py.streams.timing import Idle, Punctuation

if TYPE_CHECKING:
    from etalis_py.streams.stream import Stream

MOST_WAITING = 1_000  # most items of one live stream that are held while waiting for another


def in_turn(given: Iterable[Iterator[Item]], order: Order) -> Iterator[Item]:
    """Merge finite streams.  A punctuation is passed on once every stream has come past it."""
    streams = list(given)
    heap: list[tuple[int, bool, int, Item]] = []
    waiting = list(range(len(streams)))
    while heap or waiting:
        for index in waiting:
            item = next(streams[index], None)
            if item is not None:
                heapq.heappush(heap, (*_place(item), index, item))
        waiting = []
        if heap:
            *_, index, item = heapq.heappop(heap)
            order.given(index)
            yield item
            waiting = [index]


def _place(item: Item) -> tuple[int, bool]:
    """The place of an item in the order: a punctuation comes after the events of its time."""
    return (item.time, True) if isinstance(item, Punctuation) else (item.end, False)  # type: ignore[union-attr]


class LiveMerge:
    """Live streams side by side.

    An event waits for an earlier one from another stream as long as that stream is not silent: no longer than its
    patience.  While a stream is silent, punctuations of the others are left out, because it may still have earlier
    events.  If all are silent, an ``Idle`` is yielded at once, and again whenever ``patience`` runs out.

    State: at most ``MOST_WAITING`` items of each stream; and, once it is drained, the streams that have ended thereby.
    """

    def __init__(self, streams: Sequence[Stream], patience: Patience, order: Order) -> None:
        self._patience, self._order = patience, order
        self._held: list[deque[Item | BaseException | None]] = [deque() for _ in streams]
        self._silent: set[int] = set()
        self._ended: set[int] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._streams = streams
        self._threads = [
            threading.Thread(target=self._read, args=(stream, index), name="merged-stream", daemon=True)
            for index, stream in enumerate(streams)
        ]

    def items(self) -> Iterator[Item]:
        """The items in order of time, until all streams have ended."""
        for thread in self._threads:
            thread.start()
        running = set(range(len(self._streams)))
        while (item := self._next(running)) is not None:
            if isinstance(item, BaseException):
                yield from self._arrived_before()
                raise item
            yield item

    def _arrived_before(self) -> list[Item]:
        """Stop reading because of an error; returns the events that are held, in order."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            items = [item for held in self._held for item in held if isinstance(item, Event)]
        return sorted(items, key=_place)

    def close(self) -> None:
        """Stop reading.  A stream that is being waited for is closed when it has an item, or is silent."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for stream, thread in zip(self._streams, self._threads, strict=True):
            if thread.ident is None:
                stream.close()

    def drain(self) -> None:
        """Take no more from the streams, but for those that hold something back themselves: they give that, and end."""
        with self._changed:
            self._ended |= {index for index, stream in enumerate(self._streams) if not stream.holds_back}
            self._changed.notify_all()
        for stream in self._streams:
            stream.drain()

    def _next(self, running: set[int]) -> Item | BaseException | None:
        """The next item, None when all streams have ended; streams that have ended leave ``running``."""
        with self._changed:
            while True:
                fell_silent = self._look(running)
                missing = {index for index in running if not self._held[index]}
                if not missing <= self._silent:
                    self._changed.wait()
                elif missing != running:
                    item, index = self._take(running - missing)
                    if not (isinstance(item, Punctuation) and missing):
                        self._order.given(index)
                        return item
                    self._order.dropped(index)
                elif not running:
                    return None
                elif fell_silent or not self._patience.wait(self._changed.wait):
                    return Idle(now())

    def _look(self, running: set[int]) -> bool:
        """Take silences and ends from the front of the held items; returns whether there was a silence."""
        fell_silent = False
        for index in sorted(running):
            held = self._held[index]
            while held and isinstance(held[0], Idle):
                held.popleft()
                self._silent.add(index)
                fell_silent = True
            if held:
                self._silent.discard(index)
            if held[0] is None if held else index in self._ended:
                running.discard(index)
        return fell_silent

    def _take(self, ready: set[int]) -> tuple[Item | BaseException, int]:
        """Take the first of the held items of these streams, and say whose it is.

        An error in the input comes before all of them.
        """
        heads = {index: self._held[index][0] for index in ready}
        for index, head in heads.items():
            if isinstance(head, BaseException):
                return head, index
        first = min(ready, key=lambda index: (*_place(heads[index]), index))  # type: ignore[arg-type]
        item = self._held[first].popleft()
        self._changed.notify_all()
        return item, first  # type: ignore[return-value]

    def _read(self, stream: Stream, index: int) -> None:
        """Hold the items of a stream, and None at its end; runs in a separate thread."""
        try:
            for item in stream:
                if not self._put(item, index):
                    return
            self._put(None, index)
        except BaseException as error:  # handed over to the thread that reads the merged stream, which raises it
            self._put(error, index)
        finally:
            stream.close()

    def _put(self, item: Item | BaseException | None, index: int) -> bool:
        """Hold an item once there is room for it; returns False if no more of this stream is taken."""
        held = self._held[index]

        def is_over() -> bool:
            return self._stopped or index in self._ended

        with self._changed:
            self._changed.wait_for(lambda: is_over() or len(held) < MOST_WAITING)
            if not is_over():
                held.append(item)
                self._changed.notify_all()
            return not is_over()
