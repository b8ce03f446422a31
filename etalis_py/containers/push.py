"""Push: new members to readers as they are committed, by server-sent events or WebSocket.

A reader is a cursor, the id of the last member it got: nothing is queued for it.  Recent members are shared by all
readers of a container (bounded in number and bytes); a reader that falls behind them reads on from the store, and is
told if retention was faster there (``deletedUpTo``).  One that does not read at all is cut off after a while and can
come back with its cursor.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from .catalogue import CatalogueEntry
from .graphs import Base
from .problems import Problem
from .rates import Rate
from .rendering import arrivals_and_deleted, item
from .store import Store
from .transaction import StoredMember

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECENT = 1024
_RECENT_BYTES = 4 * 1024 * 1024
_BATCH = 200
_BATCH_BYTES = 256 * 1024
_WOKEN = 16
HEARTBEAT = 15.0


@dataclass(slots=True)
class PushMessage:
    """A member on its way to readers; its JSON is made once for each host name that readers use.

    ``deleted``: its only reader has missed members up to this one, which were deleted before.
    """

    stored: StoredMember
    deleted: int = 0
    json: dict[str, bytes] = field(default_factory=dict)

    def text(self, base: Base) -> bytes:
        text = self.json.get(base.outer)
        if text is None:
            if len(self.json) > 8:
                self.json.clear()
            text = self.json[base.outer] = item(self.stored, base, self.deleted)
        return text


class Reader:
    """One waiting reader, woken by new members, by the heartbeat, or because it has gone."""

    def __init__(self, channel: _Channel) -> None:
        self.channel, self.gone, self.beat = channel, False, False
        self._loop = asyncio.get_running_loop()
        self._woken: asyncio.Future[None] = self._loop.create_future()

    def arm(self) -> asyncio.Future[None]:
        """The future to await, created before looking for members so that none is missed."""
        self._woken = self._loop.create_future()
        return self._woken

    def wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    def leave(self, _: object = None) -> None:
        self.gone = True
        self.wake()


class _Channel:
    """The readers of one container, and its recent members above ``floor``."""

    def __init__(self) -> None:
        self.recent: deque[PushMessage] = deque()
        self.bytes = 0
        self.floor: int | None = None
        self.readers: dict[Reader, None] = {}

    def add(self, stored: list[StoredMember]) -> None:
        if self.floor is None:
            # Everything committed before this batch is in the store, and there is nothing in between.
            self.floor = stored[0].id - 1
        for one in stored:
            self.recent.append(PushMessage(one))
            self.bytes += len(one.body)
        while len(self.recent) > _RECENT or self.bytes > _RECENT_BYTES:
            dropped = self.recent.popleft().stored
            self.floor, self.bytes = dropped.id, self.bytes - len(dropped.body)
        self.wake()

    def wake(self) -> None:
        """Wake the readers, a few per turn of the event loop, so that requests are served in between."""
        _wake_some(list(self.readers), 0)

    def after(self, cursor: int) -> list[PushMessage] | None:
        """The recent messages after a cursor; None if the reader is further behind than these reach."""
        if self.floor is None or cursor < self.floor:
            return None
        newer: list[PushMessage] = []
        for message in reversed(self.recent):
            if message.stored.id <= cursor:
                break
            newer.append(message)
        newer.reverse()
        return newer[:_BATCH]


def _wake_some(readers: list[Reader], start: int) -> None:
    for reader in readers[start : start + _WOKEN]:
        reader.wake()
    if start + _WOKEN < len(readers):
        asyncio.get_running_loop().call_soon(_wake_some, readers, start + _WOKEN)


class Hub:
    """The readers of a server, and how fast its containers fill."""

    def __init__(self, store: Store) -> None:
        self.store, self.readers = store, 0
        self._channels: dict[int, _Channel] = {}
        self._rates: dict[int, Rate] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopping = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.store.listen(self._committed)
        self._loop.call_later(HEARTBEAT, self._beat)

    def _beat(self) -> None:
        """Make every reader send a heartbeat, so that dead connections are noticed."""
        for channel in self._channels.values():
            for reader in channel.readers:
                reader.beat = True
            channel.wake()
        if self._loop is not None and not self.stopping:
            self._loop.call_later(HEARTBEAT, self._beat)

    def stop(self) -> None:
        """Release every reader."""
        self.stopping = True
        for channel in self._channels.values():
            channel.wake()

    def _committed(self, stored: list[StoredMember]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._publish, stored)

    def _publish(self, stored: list[StoredMember]) -> None:
        by_container: dict[int, list[StoredMember]] = {}
        for one in stored:
            by_container.setdefault(one.container, []).append(one)
        for container, members in by_container.items():
            self._rates.setdefault(container, Rate()).add(len(members))
            if channel := self._channels.get(container):
                channel.add(members)

    def rate(self, container: int) -> Rate:
        """How fast a container fills."""
        return self._rates.get(container) or Rate()

    def forget(self, container: int) -> None:
        """The container was deleted: its readers end."""
        self._rates.pop(container, None)
        if channel := self._channels.get(container):
            channel.wake()

    @contextmanager
    def reader(self, container: CatalogueEntry) -> Iterator[Reader]:
        """A place among the readers; a ``Problem`` if all are taken."""
        if self.readers >= self.store.limits.push_clients:
            raise Problem("busy", "all places for push clients are taken (push_clients)", headers={"Retry-After": "10"})
        channel = self._channels.setdefault(container.id, _Channel())
        reader = Reader(channel)
        channel.readers[reader] = None
        self.readers += 1
        try:
            yield reader
        finally:
            del channel.readers[reader]
            self.readers -= 1
            if not channel.readers:
                self._channels.pop(container.id, None)

    async def messages(
        self, reader: Reader, container: CatalogueEntry, cursor: int
    ) -> AsyncIterator[list[PushMessage]]:
        """Batches of members after the cursor until the reader is gone; an empty one at each heartbeat."""
        loop = asyncio.get_running_loop()
        while not (reader.gone or self.stopping) and container.id in self.store.catalogue.by_id:
            woken = reader.arm()
            waiting = reader.channel.after(cursor)
            if waiting is None:
                read = partial(arrivals_and_deleted, self.store, container, cursor, _BATCH)
                stored, deleted = await loop.run_in_executor(self.store.pool, read)
                waiting = [PushMessage(one, 0 if number else deleted) for number, one in enumerate(stored)]
            if waiting:
                sizes = accumulate(len(message.stored.body) for message in waiting)
                batch = waiting[: 1 + sum(size <= _BATCH_BYTES for size in sizes)]
                cursor = batch[-1].stored.id
                yield batch
                await asyncio.sleep(0)  # other requests have a turn, and the loop notices a broken connection
                continue
            if not (reader.gone or self.stopping):
                await woken
            if reader.beat:
                reader.beat = False
                yield []
