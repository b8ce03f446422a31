"""Several streams as one, in the order of the ends of their events; at equal times in the order of the streams.

Finite streams are read in turn, each when its event is next.  With live streams it is unknown which will have an event
first: each is read in its own thread, and a silent one (after an ``Idle``) does not hold the others up.  What has come
is merged many items at a time, because each turn of the lock costs more than a merged event.
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
from etalis_py.streams.sources import Burst, Patience, now
from etalis_py.streams.timing import Idle, Punctuation

if TYPE_CHECKING:
    from etalis_py.streams.stream import Stream

MOST_WAITING = 1_000  # items of one live stream beyond which none is taken from it while it waits for another
AT_ONCE = 1_000  # most items that are handed over together


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

    State: at most ``MOST_WAITING`` items of each stream and ``AT_ONCE`` more; and, once it is drained, the streams that
    have ended thereby.
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
        while (items := self._next(running)) is not None:
            if isinstance(items, BaseException):
                yield from self._arrived_before()
                raise items
            burst = self._patience.gathers and len(items) > 1
            if burst:
                yield Burst(True)
            yield from items
            if burst:
                yield Burst(False)

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

    def _next(self, running: set[int]) -> Sequence[Item] | BaseException | None:
        """The next items, None when all streams have ended; streams that have ended leave ``running``."""
        with self._changed:
            while True:
                fell_silent = self._look(running)
                missing = {index for index in running if not self._held[index]}
                if not missing <= self._silent:
                    self._changed.wait()
                elif missing != running:
                    if items := self._take(running - missing, alone=not missing):
                        return items
                elif not running:
                    return None
                elif fell_silent or not self._patience.wait(self._changed.wait):
                    return [Idle(now())]

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

    def _take(self, ready: set[int], *, alone: bool) -> Sequence[Item] | BaseException:
        """Take the first of the held items of these streams, up to where another look at them is needed.

        An error in the input comes before all of them.  ``alone``: no other stream is waited for.
        """
        heads = []
        for index in ready:
            head = self._held[index][0]
            if isinstance(head, BaseException):
                return head
            heads.append((*_place(head), index))  # type: ignore[arg-type]
        heapq.heapify(heads)
        taken: list[Item] = []
        while len(taken) < AT_ONCE:
            index = heads[0][2]
            held = self._held[index]
            item: Item = held.popleft()  # type: ignore[assignment]
            if isinstance(item, Event) or alone:
                self._order.given(index)
                taken.append(item)
            else:
                self._order.dropped(index)
            if not held or not isinstance(held[0], Event):
                break
            heapq.heapreplace(heads, (held[0].end, False, index))
        self._changed.notify_all()
        return taken

    def _read(self, stream: Stream, index: int) -> None:
        """Hold the items of a stream, and None at its end; runs in a separate thread."""
        try:
            for items in _portions(stream):
                if not self._put(items, index):
                    return
            self._put([None], index)
        except BaseException as error:  # handed over to the thread that reads the merged stream, which raises it
            self._put([error], index)
        finally:
            stream.close()

    def _put(self, items: Sequence[Item | BaseException | None], index: int) -> bool:
        """Hold items once there is room for them; returns False if no more of this stream is taken."""
        held = self._held[index]

        def is_over() -> bool:
            return self._stopped or index in self._ended

        with self._changed:
            self._changed.wait_for(lambda: is_over() or len(held) < MOST_WAITING)
            if not is_over():
                held.extend(items)
                self._changed.notify_all()
            return not is_over()


def _portions(stream: Stream) -> Iterator[Sequence[Item]]:
    """The items that come together, where the stream tells."""
    if not stream.in_portions:
        for item in stream:
            yield (item,)
        return
    for chunk in stream.chunks(large=True):
        if not isinstance(chunk, list):
            from etalis_py.streams.columns.flat_form import events_of  # takes a while to import

            chunk = list(events_of(chunk))
        for begin in range(0, len(chunk), AT_ONCE):
            yield chunk[begin : begin + AT_ONCE]
