"""A stream container as a live stream, for engines.

Its members have numbers, so a run with a checkpoint goes on after the last one that it has used.  Where graphs withdraw
others by name, it reads the members before that once more, to know the names.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from etalis_rules.terms import iri

from etalis_py.events import Event
from etalis_py.events.errors import StreamError, without_password
from etalis_py.streams import Burst, Idle, Patience, Stream
from etalis_py.streams.elements import Counters, StreamContext
from etalis_py.streams.options import ReadOptions
from etalis_py.streams.origin import Origin
from etalis_py.streams.partitions import Partitions
from etalis_py.streams.sources import now
from etalis_py.streams.timing import Arrival, TimeReader

from .client import Follower
from .feed import check_position, missed
from .origin import checked_address, token_for
from .withdrawals import Remembered

_ONE = 0  # the only partition


def container_stream(url: str, name: str = "", idle: float = 1.0, *, revise: bool = False) -> Stream:
    """A container's current members, then new ones, without end.

    ``name`` is the IRI of the stream (default: the address).  ``revise``: its graphs may withdraw others.
    """
    checked, shown = checked_address(url), without_password(url)
    reader = _Reader(checked, name, Patience(idle), revise)
    return Stream(
        reader.items(),
        name=name or iri(shown),
        source=shown,
        contexts=[reader.context],
        close=reader.close,
        patience=(reader.patience,),
        origin=Origin("connected", shown),
    )


class _Reader:
    """Follows a container from the position of the tracker, to which the members are one partition of a topic."""

    def __init__(self, url: str, name: str, patience: Patience, revise: bool) -> None:
        self._url, self._name, self.patience = url, name, patience
        self._remembered = Remembered() if revise else None
        self._tracker = Partitions({_ONE: 0})
        self._begin = 0, 0
        self._missed: int | None = None  # up to which member some were deleted, read or not; None: it has read none
        self._follower: Follower | None = None
        self.context = StreamContext(
            stream=name or iri(without_password(url)),
            timing=ReadOptions().timing,
            times=TimeReader("s", None),
            arrival=Arrival(now),
            counters=Counters(),
            report=_refuse,
            tracker=self._tracker,
        )

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()

    def items(self) -> Iterator[Any]:
        self._begin = begin, _ = self._tracker.next[_ONE]
        if self._tracker.active:
            check_position(self._url, begin - 1)
        if begin:
            self._missed = begin - 1
        again = self._remembered is not None or begin == 0
        since: str | int = "oldest" if again else begin - 1
        self._follower = Follower(self._url, token=token_for(self._url), since=since)
        yield from self._events(self._follower)

    def _events(self, follower: Follower) -> Iterator[Any]:
        patience, opened = self.patience, False
        for event in follower.items(patience):
            if patience.gathers and not opened:
                opened = True
                yield Burst(True)
            if event is None:
                yield Idle(now())
            else:
                self._tell_missed(follower.deleted)
                yield from self._of_member(event, follower.cursor)
            if opened and not follower.more:
                opened = False
                yield Burst(False)

    def _tell_missed(self, deleted: int) -> None:
        """Warn of members that were deleted before they were read; those before the first one were not asked for."""
        if self._missed is not None and deleted > self._missed:
            warnings.warn(missed(without_password(self._url)), stacklevel=2)
        self._missed = max(deleted, self._missed or 0)

    def _of_member(self, event: Event, number: int) -> Iterator[Event]:
        """The event of a member, or the withdrawals that it stands for; without those that were used already."""
        begin, used = self._begin
        events = [event] if self._remembered is None else self._remembered.take(event)
        for done, taken in enumerate(events, 1):
            if number > begin or (number == begin and done > used):
                self._tracker.mark((_ONE, number, done) if done < len(events) else (_ONE, number + 1, 0))
                yield taken._replace(stream=self._name) if self._name else taken


def _refuse(error: StreamError) -> None:
    raise error
