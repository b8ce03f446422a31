"""How many questions (why, why-not) a server answers at once, and how many of one client in a minute.

A question costs far more than reading, and anybody who may read may ask, so a client that asks without end must take
nothing from programs, from writers, or from others who ask.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .limits import Limits
from .problems import Problem

_MINUTE = 60.0
_WAITING_SECONDS = 5.0


class Rates:
    """When each client has asked in the last minute; clients that are silent for a minute are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: dict[str, deque[float]] = {}
        self._looked = 0.0

    def take(self, client: str, now: float) -> float:
        """Count a question; if the client has asked too often, it does not count, and this is the time to wait."""
        if now - self._looked > _MINUTE:
            self._times = {c: times for c, times in self._times.items() if now - times[-1] < _MINUTE}
            self._looked = now
        times = self._times.setdefault(client, deque())
        while times and now - times[0] >= _MINUTE:
            times.popleft()
        if len(times) >= self._most:
            return times[0] + _MINUTE - now
        times.append(now)
        return 0.0


class Questions:
    """The places for questions.  A client has one of them at most, so that it leaves the others to others."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rates = Rates(limits.questions_per_minute)
        self._places = asyncio.Semaphore(limits.questions_at_once)
        self._asking: set[str] = set()

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """A place for one question of this client."""
        if client in self._asking:
            detail = f"the client {client} has a question that is not answered yet; it may have one at a time"
            raise Problem("limit", detail, headers={"Retry-After": "1"})
        if wait := self._rates.take(client, time.monotonic()):
            detail = (
                f"the client {client} has asked {self._limits.questions_per_minute} questions within a minute "
                "(questions_per_minute)"
            )
            raise Problem("limit", detail, headers={"Retry-After": str(int(wait) + 1)})
        self._asking.add(client)
        try:
            try:
                async with asyncio.timeout(_WAITING_SECONDS):
                    await self._places.acquire()
            except TimeoutError:
                detail = f"{self._limits.questions_at_once} questions of others are being answered (questions_at_once)"
                raise Problem("busy", detail, headers={"Retry-After": "5"}) from None
            try:
                yield
            finally:
                self._places.release()
        finally:
            self._asking.discard(client)
