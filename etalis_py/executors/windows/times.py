"""Windows as pure functions of time ([RSPQL] Definitions 12 and 13, [RSEP] Definition 3 and what follows it).

A window sees, at time t, the items that end in a span (low, high].  All times are whole microseconds.

>>> w = Sliding(width=5, slide=2, t0=1)
>>> present(w, 9), span(w, 9), next_close(w, 9)
((5, 10), (5, 9), 10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from etalis_compiler.rsp import Count, Identity, Interval, Landmark, Now, Shape, Sliding

from etalis_py.events import Event, Triple

BEGINNING = -(2**63)
"""Before every time: the low end of spans without one."""

Span = tuple[int, int]
Units = Callable[[Event], Iterable[tuple[Triple, ...]]]
"""From an item to the triples of each of its BGP solutions."""


def present(window: Sliding, t: int) -> Span | None:
    """The present window at t: the oldest (o, c] with o < t ≤ c.

    [RSPQL] Definition 13 calls it the window with the most recent opening time; its Example 7 (the windows (1, 6],
    (3, 8], (5, 10]: at 9 the third) and Table 1 need the oldest one that is open.  None before t0, and in the gaps of a
    window that slides further than it is wide.
    """
    t -= window.offset
    number = max(0, -((window.t0 + window.width - t) // window.slide))
    opening = window.t0 + number * window.slide
    return (opening, opening + window.width) if opening < t else None


def span(shape: Shape, t: int) -> Span | None:
    """The span (low, high] of what the window holds at t; None when nothing can be in it.

    The present window is cut at t: (o, t].  Landmark and interval windows are closed, so their low end is one
    microsecond before their first time.  A window that counts has no span.
    """
    match shape:
        case Sliding():
            window = present(shape, t)
            return None if window is None else (window[0], t - shape.offset)
        case Landmark(start):
            return (start - 1, t) if start <= t else None
        case Interval(start, end):
            return (start - 1, min(t, end)) if start <= t else None
        case Identity():
            return BEGINNING, t
        case Now():
            return t - 1, t
    raise TypeError(f"a window that counts has no span: {shape!r}")


def opening(shape: Shape, t: int) -> int | None:
    """The time at which the window seen at t opened; None if it has no such time of its own."""
    match shape:
        case Sliding():
            window = present(shape, t)
            return None if window is None else window[0]
        case Landmark(start) | Interval(start, _):
            return start
        case Now():
            return t
    return None


def next_close(shape: Shape, after: int) -> int | None:
    """The first time later than ``after`` at which a window closes; None if no window will, or if items decide."""
    match shape:
        case Sliding(width, slide, t0, offset):
            first = t0 + width + offset
            return first + max(0, (after - first) // slide + 1) * slide
        case Interval(_, end):
            return end if end > after else None
    return None


def closes(shape: Shape, t: int) -> bool:
    """Whether a window closes at t by the clock."""
    return next_close(shape, t - 1) == t


def closings(shape: Shape, after: int, until: int) -> Iterator[int]:
    """The times in (after, until] at which a window closes by the clock."""
    close = next_close(shape, after)
    while close is not None and close <= until:
        yield close
        close = next_close(shape, close)


def next_close_of(shape: Sliding, end: int, after: int) -> int | None:
    """The first closing later than ``after`` of a window that holds an item ending at ``end``.

    None when every such window is closed already, or none ever holds it (before t0, or in a gap).
    """
    first = shape.t0 + shape.width
    number = max(0, -((first - end) // shape.slide))  # the oldest window that closes at or after the item
    close = first + number * shape.slide
    if close + shape.offset <= after:
        closing = next_close(shape, after)
        assert closing is not None
        close = closing - shape.offset
    return close + shape.offset if close - shape.width < end else None


def last_close_of(shape: Shape, end: int) -> int:
    """The last time at which an item ending at ``end`` is still part of something that closes."""
    match shape:
        case Sliding(width, slide, t0, offset):
            return t0 + (-((t0 - end) // slide) - 1) * slide + width + offset
        case Interval(_, close):
            return max(end, close)
    return end


def keep_after(shape: Shape, t: int) -> int:
    """Items that end at or before this time are in no window that can be seen after t."""
    match shape:
        case Sliding(width, slide, t0, offset):
            later = t + 1 - offset
            number = max(0, -((t0 + width - later) // slide))
            return t0 + number * slide
        case Landmark(start) | Interval(start, _):
            return start - 1
        case Now():
            return t
    return BEGINNING


def canonical(items: Iterable[Event]) -> list[Event]:
    """Items in canonical order: by end, start, then content."""
    return sorted(items, key=lambda e: (e.end, e.start, e.triples, e.stream, e.graph))


def units_of(item: Event, shape: Count, solve: Units | None = None) -> list[Event]:
    """The units of an item that a window counts, each as an item of its own."""
    match shape.unit:
        case "EVENTS":
            return [item]
        case "TRIPLES":
            return [Event._make((item.start, item.end, (t,), item.stream, item.graph)) for t in item.triples]
    assert solve is not None, "counting BGPs needs a function that solves them"
    return [item._replace(triples=tuple(triples)) for triples in solve(item)]


def counted(total: int, shape: Count) -> Span:
    """The positions (low, high] of the units in the last window that is closed when ``total`` units have come."""
    high = total // shape.slide * shape.slide
    return max(0, high - shape.size), high


def content(shape: Shape, items: Sequence[Event], t: int, solve: Units | None = None) -> list[Event]:
    """W(S, t): the items of the stream that the window holds at t.  Pure, and slow: it looks at every item."""
    if isinstance(shape, Count):
        units = [u for item in canonical(i for i in items if i.end <= t) for u in units_of(item, shape, solve)]
        low, high = counted(len(units), shape)
        return units[low:high]
    interval = span(shape, t)
    if interval is None:
        return []
    return canonical(i for i in items if interval[0] < i.end <= interval[1])


def nested(outer: Shape, inner: Shape, items: Sequence[Event], t: int) -> list[Event]:
    """(outer • inner)(S, t) = outer(inner(S, t), t) ([RSEP] §3.2)."""
    return content(outer, content(inner, items, t), t)
