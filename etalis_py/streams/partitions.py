"""Where a topic with several partitions has got to.

The partitions are merged as their messages come, so another process may merge them otherwise.  A number of items says
nothing then: each partition has a position of its own, the offset of its next message, and how many of the events of
that message have been used.

>>> tracker = Partitions({0: 5, 1: 0})
>>> tracker.begin(None)
>>> for place in ((1, 1, 0), (0, 5, 1), (0, 6, 0)):  # the second and the third event come from one message
...     tracker.mark(place)
>>> tracker.confirm(2)
>>> tracker.place()["mark"][2]["next"]
[[0, 5, 1], [1, 1, 0]]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from etalis_py.streams.positions import Place, Tracker

Offset = tuple[int, int, int]
"""A partition, the offset of a message in it, and how many events of this message have been used."""
BEGINNING = -2  # as Kafka's clients say it
Places: TypeAlias = "Sequence[Offset] | Any"
"""The places behind events: offsets, or an array with a row for each."""


def offsets_in(mark: Any) -> list[tuple[int, int]] | None:
    """For each partition the offset from which a mark reads again; None if it is no mark of partitions."""
    if not isinstance(mark, dict) or "next" not in mark:
        return None
    return [(number, max(0, offset)) for number, offset, _ in mark["next"]]


class Partitions(Tracker):
    """The positions of the partitions.  ``ends``: the offsets at which the run ends, where it has an end.

    ``at``: the partition and the offset of the message that is being read.  State: for each event that was given and is
    not used yet, the place behind it.
    """

    def __init__(self, begins: Mapping[int, int], ends: Mapping[int, int] | None = None) -> None:
        super().__init__()
        self.next: dict[int, tuple[int, int]] = {number: (offset, 0) for number, offset in begins.items()}
        self.ends = dict(ends or {})
        self.at = (0, 0)
        self._behind: deque[Places] = deque()
        self._refused: dict[int, int] = {}

    def begin(self, place: Place | None) -> None:
        super().begin(place)
        self._marks.clear()
        if self.start is not None:
            # What was added while nobody read is new to the run, also if it began with what came from then on.
            self.next = dict.fromkeys(self.next, (BEGINNING, 0))
            self.next |= {number: (offset, done) for number, offset, done in self.start["next"]}
            if self.ends:
                self.ends = dict(self.start["ends"]) or self.ends
            self._refused = dict(self.start["refused"])

    def add(self, numbers: Iterable[int]) -> None:
        """Partitions that are new are read from their beginning."""
        self.next |= dict.fromkeys(numbers, (BEGINNING, 0))

    def mark(self, at: Any) -> None:
        """The next event ends at this place in its partition."""
        self.mark_all([at])

    def mark_all(self, places: Places) -> None:
        """The next events end at these places, in this order."""
        if self.active and len(places):
            self._behind.append(places)

    def is_repeated(self) -> bool:
        """Count a refused message; within a partition they come in the order of their offsets."""
        number, offset = self.at
        if offset <= self._refused.get(number, -1):
            return True
        self._reports += 1
        self._refused[number] = offset
        return False

    def confirm(self, count: int) -> None:
        self._used += count
        while count and self._behind:
            places = self._behind.popleft()
            if len(places) > count:
                self._behind.appendleft(places[count:])
                places = places[:count]
            count -= len(places)
            self.next.update(_last(places))

    def place(self) -> dict[str, Any]:
        at = {
            "next": [[number, *there] for number, there in sorted(self.next.items())],
            "ends": sorted(self.ends.items()),
            "refused": sorted(self._refused.items()),
        }
        return {"items": self._used, "reports": self._reports, "mark": [self._used, self._reports, at]}


def _last(places: Places) -> Iterator[tuple[int, tuple[int, int]]]:
    """The last place in each partition."""
    rows: Any = places
    if not isinstance(places, list):
        numbers = rows[:, 0]
        rows = [rows[numbers == number][-1].tolist() for number in set(numbers.tolist())]
    for number, offset, done in rows:
        yield number, (offset, done)


__all__ = ["BEGINNING", "Offset", "Partitions", "Places"]
