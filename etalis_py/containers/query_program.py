"""A program of many queries: they come and go while it runs, in one process.

A query begins after the member that the program has read last (``after``).  After a restart the program reads its
container again from where its first query begins, and adds each query at its member, so it has the same goals as
before.  A query that has too many matches is ended alone; exceeding a limit of the process ends the whole program.

    members    1   2   3   4
    query a        begins after 1: sees 2, 3, 4
    query b                begins after 3: sees 4, and whatever else belongs to the instant of 3, if that was open
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .catalogue import ProgramRow, QueryRow
from .messages import Add, Added, Refused, Remove, Step
from .problems import Problem
from .processes import Process, ProcessStopped
from .query_changes import all_queries, before_instant, end_query, find_query, newest_member, put_query
from .running_program import KeptMatch, ProgramOwner, RunningProgram, listed
from .transaction import StoredMember

_LOG = logging.getLogger("etalis.containers")
_TOGETHER = 100
_KEPT = 20
_COMPILING_SECONDS = 0.02  # between two looks whether a query has been compiled
_KEPT_BYTES = 32 * 1024 * 1024


class Clients:
    """How many standing queries each client has."""

    def __init__(self, most: int, counts: Counter[str]) -> None:
        self._most, self._counts = most, counts

    def take(self, client: str) -> None:
        """Count one more, or refuse it."""
        if self._counts[client] >= self._most:
            raise Problem(
                "limit",
                f"the client {client} has {self._most} standing queries (queries_per_client); delete some of them, or "
                "let the operator of the server raise the limit",
            )
        self._counts[client] += 1

    def leave(self, client: str) -> None:
        self._counts[client] -= 1
        if self._counts[client] <= 0:
            del self._counts[client]


@dataclass(slots=True)
class Standing:
    """One query while its program runs; ``id`` is 0 until the store has it."""

    id: int
    client: str
    state: str = "waiting"
    reason: str = ""
    matches: int = 0
    kept: deque[KeptMatch] = field(default_factory=deque)

    def end(self, reason: str) -> None:
        self.state, self.reason = "stopped", reason


class Recent:
    """The last twenty matches of each query; a bound on the bytes of all queries drops the oldest first."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._order: deque[tuple[Standing, KeptMatch]] = deque()
        self._live = 0

    def add(self, standing: Standing, match: KeptMatch) -> None:
        standing.kept.append(match)
        self._order.append((standing, match))
        self._bytes += len(match.document)
        self._live += 1
        if len(standing.kept) > _KEPT:
            self._drop(standing)
        while self._bytes > self._most and self._live > 1:
            oldest, known = self._order.popleft()
            if _has(oldest, known):
                self._drop(oldest)
        if len(self._order) > 2 * self._live + _KEPT:
            self._order = deque(one for one in self._order if _has(*one))

    def _drop(self, standing: Standing) -> None:
        self._bytes -= len(standing.kept.popleft().document)
        self._live -= 1

    def forget(self, standing: Standing) -> None:
        """Drop the matches of a query that is gone."""
        while standing.kept:
            self._drop(standing)


def _has(standing: Standing, match: KeptMatch) -> bool:
    return bool(standing.kept) and standing.kept[0].number <= match.number


class QueriesOwner(ProgramOwner, Protocol):
    """What a program of many queries needs of the server that runs it."""

    clients: Clients

    async def check_standing(self, query: str, row: ProgramRow) -> int: ...


class ManyQueries(RunningProgram):
    """A program of many queries.  State: that of any program, its queries, and those yet to begin."""

    _owner: QueriesOwner

    def __init__(self, owner: QueriesOwner, row: ProgramRow) -> None:
        super().__init__(owner, row)
        self.queries: dict[str, Standing] = {}
        self._pending: deque[QueryRow] = deque()
        self._recent = Recent()
        self._ended: dict[str, str] = {}
        self._numbers = 0
        for query in all_queries(self._store, row.id):
            standing = self.queries[query.name] = Standing(query.id, query.client)
            if query.stopped:
                standing.end(query.stopped)
            else:
                self._pending.append(query)
        self.cursor = self._first_cursor()

    # -- queries that come and go ---------------------------------------------------------------------------------

    def free_name(self, slug: str | None) -> str:
        """A name for a new query, based on ``slug`` if given."""
        if slug is not None and slug not in self.queries:
            return slug
        while True:
            self._numbers += 1
            name = f"{slug or 'query'}-{self._numbers + (slug is not None)}"
            if name not in self.queries:
                return name

    async def add(self, name: str, text: str, client: str, known: int | None) -> QueryRow:
        """Run a query from now on and over restarts, replacing the one with the id ``known``, if any."""
        before = self.queries.get(name)
        if (None if before is None else before.id) != known:
            raise Problem("stale", f"the query {name} changed meanwhile; read it again")
        limits = self._store.limits
        if before is None and len(self.queries) >= limits.standing_queries:
            detail = (
                f"the program has {limits.standing_queries} queries (standing_queries); delete some, or use another"
            )
            raise Problem("limit", detail)
        if before is None or before.client != client:
            self._owner.clients.take(client)
        self.queries[name] = standing = Standing(0, client)
        try:
            row = await self._begun(QueryRow(0, self.row.id, name, text, client, 0, False), standing)
            row = await self._kept_in_store(row, known)
        except BaseException:
            if before is None or before.client != client:
                self._owner.clients.leave(client)
            if self.queries.get(name) is standing:
                del self.queries[name]
                if before is not None:
                    self.queries[name] = before
            raise
        standing.id = row.id
        if before is not None:
            self._recent.forget(before)
            if before.client != client:
                self._owner.clients.leave(before.client)
        return row

    async def _begun(self, row: QueryRow, standing: Standing) -> QueryRow:
        """Give a query to the engine, or let it wait until the program has read the members before it.

        One of a new kind is compiled twice: first in a process of its own, to see whether it may run, and then beside
        the other queries, which go on.
        """
        limits, size = self._store.limits, None
        read = asyncio.get_running_loop().run_in_executor
        while True:
            async with self._turn():
                if self.state == "starting":
                    raise Problem("busy", "the program is starting", headers={"Retry-After": "1"})
                if self.state != "running":
                    raise Problem("conflict", f"the program is {self.state}; resume it first, then add queries")
                newest = await read(self._store.pool, newest_member, self._store, self.row)
                if newest <= self.cursor:
                    some, rules, seconds = [(row.name, row.text)], limits.standing_rules, limits.compile_seconds
                    added = await self._added(Add(some, size, rules, seconds, beside=True))
                    if row.name in added.refused:
                        raise Problem("bad-query" if size is None else "too-costly", added.refused[row.name])
                    if row.name in added.running:
                        standing.state = "running"
                        self._forget_pending(row.name)
                        return replace(row, after=self.cursor, quiet=self._quiet)
                elif size is not None:
                    self._forget_pending(row.name)
                    self._pending.append(replace(row, after=newest))
                    return self._pending[-1]
            if size is None:
                size = await self._owner.check_standing(row.text, self.row)
            else:
                await asyncio.sleep(_COMPILING_SECONDS)

    async def _kept_in_store(self, row: QueryRow, known: int | None) -> QueryRow:
        """The row with its id; if the store refuses it, the query goes, and the one it replaced begins again."""
        try:
            return await asyncio.wrap_future(self._store.submit(put_query(row)))
        except BaseException:
            await self._take_out(row.name)
            before = None if known is None else find_query(self._store, self.row.id, row.name)
            if before is not None:
                self._pending.appendleft(before)
                self.wake()
            raise

    async def _added(self, message: Add) -> Added:
        """The answer of the process to new queries; only within a turn."""
        answer = await self._asked(message, message.seconds, _adding(message.seconds))
        match answer:
            case Added():
                return answer
            case Refused(kind, detail):
                raise Problem(kind, detail)
        raise Problem("bad-query", answer.detail)

    async def remove(self, row: QueryRow) -> None:
        """Remove a query that has left the store."""
        standing = self.queries.get(row.name)
        if standing is None or standing.id != row.id:
            return
        del self.queries[row.name]
        self._owner.clients.leave(standing.client)
        self._recent.forget(standing)
        await self._take_out(row.name)

    async def _take_out(self, name: str) -> None:
        """Make the process stop running a query, if it runs."""
        self._forget_pending(name)
        async with self._asking:
            if self.state == "running":
                seconds = self._store.limits.compile_seconds
                await self._asked(Remove(name, seconds), seconds, _adding(seconds))

    def _forget_pending(self, name: str) -> None:
        if any(row.name == name for row in self._pending):
            self._pending = deque(row for row in self._pending if row.name != name)

    def _first_cursor(self) -> int:
        """The last member read before the first query began; a query sees all of an instant that was open."""
        if not self._pending:
            return max(self.row.after, newest_member(self._store, self.row))
        first = self._pending[0]
        return first.after if first.quiet else before_instant(self._store, self.row, first.after)

    def leave(self) -> None:
        """Give up the places of all queries, as the program was deleted."""
        for standing in self.queries.values():
            self._owner.clients.leave(standing.client)

    # -- at work --------------------------------------------------------------------------------------------------

    async def _next(self, process: Process) -> list[StoredMember]:
        """The members until the next query begins; queries that begin here are added first."""
        while True:
            await self._remember_ended()
            while self._pending and self._pending[0].after <= self.cursor:
                await self._add_due(process)
            members = await super()._next(process)
            if not self._pending:
                return members
            begins = self._pending[0].after
            before = [member for member in members if member.id <= begins]
            if before:
                return before
            self.cursor = max(self.cursor, begins)

    async def _add_due(self, process: Process) -> None:
        """Add the queries that begin at this place in the stream: before the end of the instant, or after it."""
        quiet = self._pending[0].quiet
        if quiet and not self._quiet:
            await self._step(process, None)
        some: list[QueryRow] = []
        while self._pending and len(some) < _TOGETHER and self._pending[0].after <= self.cursor:
            if self._pending[0].quiet != quiet:
                break
            some.append(self._pending.popleft())
        limits = self._store.limits
        message = Add([(row.name, row.text) for row in some], 0, limits.standing_rules, limits.compile_seconds)
        async with self._asking:
            try:
                added = await self._added(message)
            except Problem as problem:
                raise ProcessStopped(problem.detail) from None
        for row in some:
            standing = self.queries.get(row.name)
            if standing is None:
                continue
            if row.name in added.refused:
                self._end(row.name, added.refused[row.name])
            else:
                standing.state = "running"

    def _end(self, name: str, reason: str) -> None:
        if name in self.queries:
            self.queries[name].end(reason)
            self._ended[name] = reason

    async def _remember_ended(self) -> None:
        """Record queries that were ended, so that they stay so over restarts until they are put again."""
        while self._ended:
            name, reason = self._ended.popitem()
            _LOG.warning("the query %s of %s stopped: %s", name, self.row.name, reason)
            await asyncio.wrap_future(self._store.submit(end_query(self.row.id, name, reason)))

    def _note(self, step: Step) -> None:
        first = self.found + 1 + step.found - len(step.matches)
        super()._note(step)
        for number, match in enumerate(step.matches, first):
            if standing := self._at_work(match.query):
                standing.matches += 1
                self._recent.add(standing, KeptMatch(number, match.id, match.document))
        for name, reason in step.ended.items():
            if self._at_work(name):
                self._end(name, reason)

    def _at_work(self, name: str) -> Standing | None:
        """The query of this name, if it has begun; until then the process may run the one it replaces."""
        standing = self.queries.get(name)
        return standing if standing is not None and standing.state == "running" else None

    def describe_query(self, name: str, after: int) -> dict[str, Any]:
        """The state of a query as JSON, with its last matches after the one with that number."""
        standing = self.queries[name]
        running = self.state == "running" and standing.state == "running"
        return {
            "name": name,
            "state": standing.state if standing.state == "stopped" or self.state == "running" else self.state,
            "running": running,
            "error": standing.reason or self.reason,
            "matches": standing.matches,
            "found": listed(standing.kept, after, _KEPT),
        }


def _adding(seconds: float) -> str:
    return f"adding a query took more than {seconds:g} s of processor time (compile_seconds)"
