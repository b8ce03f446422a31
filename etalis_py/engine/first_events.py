"""Counts the first events of a stream: what they tell of a program is told once, and later events are not looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from etalis_py.events import Event
    from etalis_py.kernel.batch import Columns


class FirstEvents(ABC):
    """Takes note of events until so many have been counted that a program asks for."""

    MOST: ClassVar[int] = 1000
    """The number of events that are counted."""
    ROWS: ClassVar[int] = 1000
    """The rows of a batch in columns that are looked at."""

    def __init__(self) -> None:
        self._events = 0
        self._was_cut = False  # whether a batch had more rows than were looked at

    @property
    def full(self) -> bool:
        """Whether enough events have been counted."""
        return self._events >= self.MOST

    @property
    def left_some(self) -> bool:
        """Whether there may have been events that were not looked at."""
        return self.full or self._was_cut

    def see(self, events: Iterable[Event]) -> None:
        """Count those of these events that the program asks for."""
        for event in events:
            if self.full:
                return
            self._events += self._count(event)

    def see_columns(self, columns: Columns) -> None:
        """The same for events in columns."""
        from etalis_py.kernel.batch import Batch

        if not self.full:
            self._was_cut |= len(columns) > self.ROWS
            some = columns.rows(0, min(len(columns), self.ROWS))
            self.see(Batch(None, int(some.end[-1]), some).rows)

    @abstractmethod
    def _count(self, event: Event) -> bool:
        """Take note of an event; false if the program asks for nothing in it."""

    @abstractmethod
    def warnings(self) -> Iterator[str]:
        """What the counted events tell."""
