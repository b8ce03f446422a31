"""A stream: items, and what its readers know of it so far: clock, counters, warnings, where it has got to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from etalis_py.events.clock import Clock, ClockRender
from etalis_py.events.errors import StreamError, warn_caller
from etalis_py.streams.elements import Blocks, Counters, Item, StreamContext, doubt_beside, in_lists
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.origin import Origin
from etalis_py.streams.positions import Order, Place, Tracker
from etalis_py.streams.sources import IN_BLOCKS, Patience, read_ahead
from etalis_py.streams.timing import Arrival

if TYPE_CHECKING:
    from etalis_py.streams.columns.merge_in_order import Chunk

LARGE = 4 << 20
"""The least bytes of a file that is read in columns; a smaller one is read by the time Numba and Arrow are loaded."""
SHARED = 16 << 20
"""The least bytes of a file whose blocks other processes read: to start them takes a while."""
LOOKED_AT = 2 << 20
"""The least bytes of a file that is read in columns to be put in order, as nothing comes before that is done."""


class Merged(NamedTuple):
    """The streams that one is merged from; ``complete``: each can be read to its end at once.

    ``drain`` makes it give what it holds back, and end.
    """

    streams: Sequence[Stream]
    order: Order
    complete: bool
    drain: Callable[[], object] | None = None


class Stream:
    """An iterator of ``Event``, ``Punctuation`` and (for live sources) ``Idle``; its clock; its counters.

    ``clock`` is known after the first timed element; until then it is the dateTime clock.
    """

    def __init__(
        self,
        items: Iterator[Item],
        *,
        name: str,
        source: str,
        contexts: Sequence[StreamContext],
        close: Callable[[], None],
        bulk: Callable[[], Iterator[Chunk]] | None = None,
        size: int = 0,
        patience: Sequence[Patience] = (),
        origin: Origin | Merged | None = None,
    ) -> None:
        self._items = items
        self._sortable = False
        self._ahead = False
        # Whether what a column reader has read is given as events: to set up columns takes longer than they save.
        self._one_by_one = False
        self._in_columns = False  # a part of what is read in columns, however small it is itself
        self._parts: Sequence[Stream] = ()  # those that are put in order each by itself
        self._merged: Sequence[Stream] = ()
        self._order = Order()
        self._tracker: Tracker | None = None
        self.origin: Origin | None = None
        if isinstance(origin, Merged):
            self._merged, self._order = origin.streams, origin.order
            self._parts = origin.streams if origin.complete else ()
        elif origin is not None:
            self.origin, self._tracker = origin, contexts[0].tracker
        self._patience = tuple(dict.fromkeys(patience))
        self._contexts = contexts
        self._close = close
        self._drain = None if origin is None else origin.drain
        self._bulk = bulk
        self._size = size
        self._opened = 0 if bulk is None else size  # what is put in order may seem large
        self.name = name
        self.source = source

    def __iter__(self) -> Iterator[Item]:
        if self._tracker is None or not self._tracker.active:
            return self._items
        return self._tracker.tracked(self._items)

    def __next__(self) -> Item:
        return next(self._items)

    def chunks(self, *, large: bool | None = None, size: int = 1024, as_records: bool = False) -> Iterator[Chunk]:
        """The same items, many at a time: lists of them, and batches in the flat form if they are read in columns.

        Use it instead of iterating over the stream, not in addition.  ``large`` says whether it is worth starting the
        column readers; by default the size of the source decides.  ``as_records``: a table whose rows are events may be
        given in batches of records (``columns.wide``), unless places are kept.
        """
        tracked = self._tracker is not None and self._tracker.active
        large = large or self._in_columns or (large is None and self.in_bulk and not self._one_by_one)
        bulk = self._bulk if large else None
        for context in self._contexts:
            context.as_records = as_records and bulk is not None and not tracked
        chunks = in_lists(self._items, size) if bulk is None else read_ahead(bulk()) if self._ahead else bulk()
        if self._tracker is None or not tracked:
            return chunks
        return self._tracker.tracked_chunks(chunks)

    @property
    def in_bulk(self) -> bool:
        """Whether the source is read in columns, and large enough for it."""
        return self.is_large if self._parts else self._bulk is not None and self._size >= LARGE

    @property
    def is_large(self) -> bool:
        """Whether it is so large, as it was opened, that it is read in columns."""
        return self.for_columns >= LARGE

    @property
    def for_columns(self) -> int:
        """The bytes, as it was opened, for which there is a column reader."""
        return self._opened + sum(part.for_columns for part in self._parts)

    @property
    def in_blocks(self) -> bool:
        """Whether it is a large file of lines, whose blocks several processes can read."""
        origin = self.origin
        return self._opened >= SHARED and origin is not None and origin.kind == "file" and origin.format in IN_BLOCKS

    def share(self, blocks: Blocks) -> None:
        """Before it is read: share its blocks with other processes."""
        (context,) = self._contexts
        context.blocks = blocks

    def read_in_columns(self) -> None:
        """Before it is read: do so in columns, if there is a reader for that, as it is a part of something large."""
        self._in_columns = True

    def read_ahead(self) -> None:
        """Before it is read: if it is read in columns, do so in a thread, while what was read is used."""
        self._ahead = True

    def leave_letters(self) -> None:
        """In a process that reads the same as another one: that one writes the dead letters."""
        for context in self._contexts:
            context.dead_letters = None

    @property
    def in_portions(self) -> bool:
        """Whether ``chunks(large=True)`` gives in columns what is there at once, and everything else as it comes."""
        return self._bulk is not None and self.origin is not None and self.origin.kind == "connected"

    @property
    def is_file(self) -> bool:
        """Whether it is a file, several files or a table, all of which have an end."""
        return self._size > 0 or (bool(self._parts) and all(part.is_file for part in self._parts))

    @property
    def clock(self) -> Clock:
        """How the stream spells its times; the dateTime clock if its parts differ."""
        clocks = self.clocks
        return next(iter(clocks)) if len(clocks) == 1 else Clock("datetime")

    @property
    def render(self) -> ClockRender:
        """Shows times as the stream spells them, which it may learn later."""
        return ClockRender(lambda: self.clock)

    @property
    def clocks(self) -> frozenset[Clock]:
        """How the parts of the stream that have begun spell their times."""
        return frozenset(context.times.clock for context in self._contexts if context.times.clock)

    @property
    def unit(self) -> str:
        """The unit of times that are plain numbers; seconds if its parts differ."""
        units = {context.times.unit for context in self._contexts}
        return units.pop() if len(units) == 1 else "s"

    @property
    def counters(self) -> Counters:
        return sum((context.counters for context in self._contexts), Counters())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sources that gave no event at all, for example because a mapping names other keys, doubtful times, and lists
        and cells that were left out.
        """
        contexts = self._contexts
        each = (told for of in contexts for told in (of.warning, of.doubt, of.left_out, of.cut_short) if told)
        return (*each, *doubt_beside(contexts))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Those of the warnings that are of times."""
        return (*(of.doubt for of in self._contexts if of.doubt), *doubt_beside(self._contexts))

    @property
    def subjects(self) -> frozenset[str]:
        """The columns of its tables that say what a row is about, and are no properties."""
        return frozenset[str]().union(*(context.subjects for context in self._contexts))

    @property
    def times_of_rows(self) -> frozenset[str]:
        """The columns of its tables that say when a row was, and are no properties."""
        return frozenset[str]().union(*(context.times_of_rows for context in self._contexts))

    @property
    def properties(self) -> dict[str, frozenset[str]] | None:
        """The predicates of its rows, with the columns that give the objects; None if no mapping says them."""
        made: dict[str, frozenset[str]] = {}
        for context in self._contexts:
            if context.properties is None:
                return None
            for predicate, columns in context.properties.items():
                made[predicate] = made.get(predicate, frozenset()) | columns
        return made

    @property
    def ties(self) -> frozenset[str]:
        """What orders events of one time, by the mapping of each source; "" for one that says nothing of it."""
        return frozenset(context.ties for context in self._contexts)

    @property
    def idle(self) -> float | None:
        """The number of seconds without an item after which an ``Idle`` comes; None if none does."""
        return max((patience.idle for patience in self._patience), default=None)

    def wake(self, at: float | None) -> None:
        """The next ``Idle`` comes at this time of ``time.monotonic`` at the latest, unless something comes earlier."""
        for patience in self._patience:
            patience.wake = at

    def hurry(self) -> None:
        """End the wait for more that is going on: a silence comes soon."""
        for patience in self._patience:
            patience.hurry()
        for part in self._merged:
            part.hurry()

    @property
    def holds_back(self) -> bool:
        """Whether an event may wait here for earlier ones of another part."""
        return self._drain is not None

    def drain(self) -> None:
        """Read no more: what is held back comes, in order, and then the end."""
        if self._drain is not None:
            self._drain()

    @property
    def leaves(self) -> tuple[Stream, ...]:
        """The sources that are merged, or this one."""
        return tuple(leaf for part in self._merged for leaf in part.leaves) or (self,)

    def track(self, places: Sequence[Place | None] | None = None) -> None:
        """Before it is read: know from now on where it has got to, from the beginning or from the places of another.

        Every leaf must have an ``origin``.
        """
        self._log_order()
        for leaf, place in zip(self.leaves, places or [None] * len(self.leaves), strict=True):
            assert leaf._tracker is not None
            assert leaf.origin is not None
            if place is not None and not leaf.origin.again:
                leaf._tracker.afresh(place)
            else:
                leaf._tracker.begin(place)
            times = leaf._contexts[0].times
            if place is not None and place["clock"] is not None and times.clock is None:
                times.clock = Clock(*place["clock"])
            arrival = leaf._contexts[0].arrival
            if place is not None and isinstance(arrival, Arrival):
                arrival.go_on(place.get("arrived"))

    def _log_order(self) -> None:
        self._order.active = True
        for part in self._merged:
            part._log_order()

    @property
    def read_to(self) -> int:
        """The bytes of a file that were read, used or not."""
        return 0 if self._tracker is None else self._tracker.read_to

    def committed(self, place: Place) -> None:
        """Another process would now go on from this place."""
        if self.origin is not None and self.origin.committed is not None and place["mark"] is not None:
            self.origin.committed(place["mark"][2])

    def confirm(self, count: int) -> None:
        """The consumer has used this many more events and punctuations; an event of a batch counts as one."""
        if self._tracker is not None:
            self._tracker.confirm(count)
        for part in self._order.confirm(count):
            self._merged[part].confirm(1)

    def places(self) -> list[dict[str, Any]]:
        """Where each leaf can go on, as plain data: everything before has been used."""
        places = []
        for leaf in self.leaves:
            assert leaf._tracker is not None
            clock, arrival = leaf._contexts[0].times.clock, leaf._contexts[0].arrival
            place = leaf._tracker.place() | {"clock": clock and [clock.kind, clock.unit]}
            if isinstance(arrival, Arrival) and arrival.last is not None:
                place["arrived"] = arrival.last
            places.append(place)
        return places

    @contextmanager
    def reports_waiting(self) -> Iterator[None]:
        """Inside the block no refused part is counted or written, although threads go on reading."""
        with ExitStack() as stack:
            for leaf in self.leaves:
                if leaf._tracker is not None:
                    stack.enter_context(leaf._tracker.lock)
            yield

    def gather(self) -> None:
        """From now on put a ``Burst`` before and after items that were available at once.

        The parts of a merged stream have none; it puts them itself, where it is live.
        """
        if len(self._patience) == 1:
            self._patience[0].gathers = True

    def complete(self, options: ReadOptions) -> Stream:
        """The same stream, of a source that can be read to its end at once: so it may be put in order of time."""
        # By itself, a punctuation stays where it is.
        self._sortable = not options.close_on_message if options.in_order is None else bool(options.in_order)
        if options.in_order:
            self.sort(options.in_order if callable(options.in_order) else None)
        return self

    def sort(self, notice: Callable[[str], None] | None = None) -> None:
        """From now on, give the events in order of time.

        This only changes complete files and frames, unless they were opened with ``in_order=False``.  If the events
        were not in order, ``notice`` is called with a sentence that says so; by default it is a warning.
        """
        for part in self._parts:
            part.sort(notice)
        if not self._sortable:
            return
        self._sortable = False
        items, size, reader = self._items, self._size, self._bulk
        self._one_by_one = reader is not None and LOOKED_AT <= size < LARGE

        def ordered() -> Iterator[Chunk]:
            from etalis_py.streams.ordering import in_order

            bulk = reader if size >= LOOKED_AT or self._in_columns else None
            text = f"{self.source}: not in order of time, so sorted first"
            tell = notice or warn_caller
            try:
                chunks = in_lists(items) if bulk is None else bulk()
                yield from in_order(chunks, lambda: tell(text), self._contexts[0].among)
            except StreamError as error:
                raise error.at(self.source, 0) from None

        self._items, self._bulk, self._size = items_of(ordered), ordered, LARGE

    def close(self) -> None:
        """Release files and threads; counters and clock stay."""
        self._close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def items_of(chunks: Callable[[], Iterator[Chunk]]) -> Iterator[Item]:
    """The items one by one."""
    for chunk in chunks():
        if isinstance(chunk, list):
            yield from chunk
        else:
            from etalis_py.streams.columns.flat_form import events_of  # takes a while to import

            yield from events_of(chunk)
