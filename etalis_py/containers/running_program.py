"""One running program of a server: what it reads next, its matches, and why it stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from etalis_rules.messages import how_many

from .catalogue import CatalogueEntry, ProgramRow
from .changes import put_member
from .frames import read
from .match_graphs import match_name
from .messages import FROM_PROCESS, Compiled, Explained, Failed, Found, Idle, Message, Push, Refused, Step, Why, WhyNot
from .problems import Problem
from .processes import PATIENCE, Process, ProcessStopped
from .question_limits import Questions
from .rates import Rate
from .rendering import arrivals
from .store import Store
from .tracing import ProgramTrace, Tracing
from .transaction import StoredMember
from .worker import KEPT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

_LOG = logging.getLogger("etalis.containers")
_COUNTED = 10_000
_KEPT_BYTES = 2 * 1024 * 1024
_BATCH = 200
_GATHERED = 1_000  # of a program that takes corrections, whose backlog is one replay
_TOGETHER = 64
_WHY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KeptMatch:
    """A match kept for readers: ``number`` counts from 1 in order of finding, ``document`` is its JSON."""

    number: int
    id: str
    document: bytes


def listed(matches: Iterable[KeptMatch], number: int, limit: int) -> list[msgspec.Raw]:
    """The matches after the one with that number, the last ``limit`` of them, as JSON objects."""
    some = [kept for kept in matches if kept.number > number][-limit:]
    return [msgspec.Raw(b'{"number":%d,' % kept.number + kept.document[1:]) for kept in some]


class ProgramOwner(Protocol):
    """What a program needs of the server that runs it."""

    store: Store
    idle: float
    tracing: Tracing | None
    questions: Questions

    async def remember(self, row: ProgramRow, *, paused: bool, stopped: str) -> None: ...


class RunningProgram:
    """One program.  State: a cursor, the last matches (a thousand, within some bytes), and counts."""

    def __init__(self, owner: ProgramOwner, row: ProgramRow) -> None:
        self.row, self._owner, self._store = row, owner, owner.store
        self.pushed = self.found = self.written = self.repeated = self.refused = self.goals = 0
        self.expiring: set[int] = set()  # members whose retention is over, read or not
        self.overtaken = 0  # members whose retention was over before they were read
        self.newest: int | None = None
        self.state, self.reason = "starting", ""
        self.rules = b'{"nodes":[],"edges":[]}'
        self.warnings: list[str] = []
        self.unseen: list[str] = []
        self.rate_in, self.rate_out = Rate(), Rate()
        self.process: Process | None = None
        self.cursor = row.after
        self._kept: deque[KeptMatch] = deque()
        self._kept_bytes = 0
        self._wake = asyncio.Event()
        self._asking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._next_write = 0.0
        self._batch = _BATCH
        self._due: float | None = None  # by the clock of the loop
        self._quiet = True  # its last step had no member, which ended the open instant
        self._trace: ProgramTrace | None = None
        if owner.tracing is not None:
            self._trace = ProgramTrace(owner.tracing, self._store.catalogue.by_id[row.container].path + row.name)
        self.prefix = f"p{row.id}-"  # other writers to the same container may use the same match ids

    def start(self, process: Process, compiled: Compiled) -> None:
        """Run in this process, which has compiled the query."""
        self.process, self.state = process, "running"
        self.rules, self.warnings = compiled.rules, compiled.warnings
        self._batch = _GATHERED if compiled.gathers else _BATCH
        self._task = asyncio.create_task(self._run(process))

    def behind(self) -> int:
        """How many members it has yet to read, counted up to a bound; not to be called on the event loop."""
        with self._store.reading() as db:
            sql = "SELECT id FROM members INDEXED BY members_by_arrival WHERE container = ? AND id > ? LIMIT ?"
            rows = db.execute(f"SELECT count(*) FROM ({sql})", (self.row.container, self.cursor, _COUNTED + 1))
            return int(rows.fetchone()[0])

    def since(self, number: int, limit: int) -> list[msgspec.Raw]:
        """The kept matches after the one with that number, the last ``limit`` of them, as JSON objects."""
        return listed(self._kept, number, limit)

    async def why(self, match: str, client: str) -> msgspec.Raw:
        """The explanation of a kept match, as JSON."""
        return await self._explained(Why(match, self._store.limits.step_seconds, self._for_copy()), client)

    async def why_not(self, where: str, at: str, client: str) -> msgspec.Raw:
        """Why an expected match did not come, as JSON."""
        return await self._explained(WhyNot(where, at, self._store.limits.step_seconds, self._for_copy()), client)

    def _for_copy(self) -> tuple[float, float, int]:
        """What a copy of the process may use to answer a question."""
        limits = self._store.limits
        return limits.question_seconds, PATIENCE * limits.question_seconds, limits.question_bytes

    async def _explained(self, question: Why | WhyNot, client: str) -> msgspec.Raw:
        """The answer of a copy of the process, which the program only waits for until there is that copy."""
        async with self._owner.questions.place(client):
            if self.process is None or self.state != "running":
                raise Problem("not-found", "the program is not running, so it explains nothing")
            async with self._turn():
                # Shielded: the client may go away, but the process must be done with the question all the same.
                copying = asyncio.ensure_future(self._copied(self.process, question))
                connection = await asyncio.shield(copying)
            answer = await self._answer_of_copy(connection)
        match answer:
            case Explained(why):
                return msgspec.Raw(why)
            case Refused(kind, detail):
                raise Problem(kind, detail)
        raise Problem("failed", f"there is no explanation: {answer.detail}")

    async def _copied(self, process: Process, question: Why | WhyNot) -> socket.socket:
        seconds = self._store.limits.step_seconds
        try:
            return await process.ask_copy(question, seconds, _step(seconds))
        except ProcessStopped as stopped:
            raise Problem("failed", f"the program stopped: {stopped}") from None

    async def _answer_of_copy(self, connection: socket.socket) -> Any:
        limits = self._store.limits
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connection)
            try:
                # The copy ends itself before; this is for a machine that does not let it.
                async with asyncio.timeout(2 * PATIENCE * limits.question_seconds):
                    return await read(reader, FROM_PROCESS)
            finally:
                writer.close()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            raise Problem(
                "too-costly",
                f"the answer takes more than {limits.question_seconds:g} s of processor time (question_seconds) or "
                f"{limits.question_bytes // 1_048_576} MiB of memory (question_bytes); the program runs on. Ask about "
                "less: name a time, or more of what the match should have been",
            ) from None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A turn between two steps; a ``Problem`` if no step ends within some seconds."""
        try:
            async with asyncio.timeout(_WHY_SECONDS):
                await self._asking.acquire()
        except TimeoutError:
            raise Problem(
                "busy", "the program has been busy with one step for some seconds", headers={"Retry-After": "5"}
            ) from None
        try:
            yield
        finally:
            self._asking.release()

    async def _asked(self, question: Message, seconds: float, allowed: str) -> Any:
        """The answer of the process; only within a turn."""
        assert self.process is not None
        try:
            # Shielded: the client may go away, but the answer must be taken all the same.
            return await asyncio.shield(asyncio.ensure_future(self.process.ask(question, seconds, allowed)))
        except ProcessStopped as stopped:
            raise Problem("failed", f"the program stopped: {stopped}") from None

    async def stop(self, state: str = "stopped", reason: str = "") -> None:
        """End the process at once."""
        self.state, self.reason = state, reason
        if self.process is not None:
            self.process.kill()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def wake(self) -> None:
        self._wake.set()

    # -- at work --------------------------------------------------------------------------------------------------

    async def _run(self, process: Process) -> None:
        try:
            await self._follow(process)
        except ProcessStopped as stopped:
            self.reason = str(stopped)
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}"
            _LOG.exception("the program %s failed in the server", self.row.name)
        self.state = "stopped"
        process.kill()
        _LOG.warning("the program %s stopped: %s", self.row.name, self.reason)
        await self._owner.remember(self.row, paused=False, stopped=self.reason)

    async def _follow(self, process: Process) -> None:
        self._quiet = True
        process.ended.add_done_callback(lambda _: self.wake())
        while True:
            self._wake.clear()
            if process.ended.done():
                raise ProcessStopped(await process.why(""))
            members = await self._next(process)
            self._count_overtaken(members)
            if members:
                await self._step(process, members)
                continue
            try:
                silence = asyncio.timeout_at(self._due) if self._quiet else asyncio.timeout(self._owner.idle)
                async with silence:
                    await self._wake.wait()
            except TimeoutError:
                await self._step(process, None)

    def _count_overtaken(self, members: list[StoredMember]) -> None:
        """Count the members before the end of these, all that could still be read, that retention took away.

        A step may end before it has taken all of these, so they count as read only when the cursor has passed them.
        """
        self.expiring = {number for number in self.expiring if number > self.cursor}
        due = {number for number in self.expiring if not members or number <= members[-1].id}
        lost = due.difference(member.id for member in members)
        self.expiring -= lost
        if lost and not self.overtaken:
            _LOG.warning("the program %s reads too slowly: graphs are deleted before it reads them", self.row.name)
        self.overtaken += len(lost)

    def unread(self, path: str) -> list[str]:
        """That members were deleted before they were read, if some were; ``path`` is that of the container."""
        if not self.overtaken:
            return []
        graphs = how_many(self.overtaken, "graph was", "graphs were")
        kept = f"as {path} keeps no more: raise its retainCount, or its retainFor, which counts from their times"
        return [f"{graphs} deleted before the program read them, {kept}"]

    async def _next(self, process: Process) -> list[StoredMember]:
        """The members to read next."""
        container = self._store.catalogue.by_id.get(self.row.container)
        if container is None:
            return []
        read = asyncio.get_running_loop().run_in_executor
        return await read(self._store.pool, arrivals, self._store, container, self.cursor, self._batch)

    async def _step(self, process: Process, members: list[StoredMember] | None) -> None:
        """Hand over members, or the news that none came for a while, and take the results."""
        limits = self._store.limits
        output = self._store.catalogue.by_path.get(self.row.output)
        order = output.spec.order if output else ""
        sizes = limits.triples_per_graph, limits.match_bytes, limits.step_seconds, limits.matches_per_graph
        rest = (self.row.output, self.prefix, order, *sizes)
        async with self._asking:
            self._quiet = not members
            await process.send(Push(*rest, members) if members else Idle(*rest))
            done, position, since = False, 0, time.time_ns()
            seconds = limits.step_seconds * (len(members) if members and self._batch == _GATHERED else 1)
            while not done:
                answer = await process.answer(seconds, _step(limits.step_seconds))
                if isinstance(answer, Failed | Refused):
                    raise ProcessStopped(answer.detail)
                assert isinstance(answer, Step)
                taken = (members or [])[position : position + answer.taken]
                if self._trace is not None:
                    self._trace.answered(taken, answer.matches, since)
                    since = time.time_ns()
                self._note(answer)
                await self._write([m for m in answer.matches if m.graph is not None], output)
                if taken:
                    position += answer.taken
                    self.cursor, self.pushed = taken[-1].id, self.pushed + len(taken)
                    self.newest = max(self.newest or taken[0].time, *(m.time for m in taken), taken[0].time)
                    self.rate_in.add(len(taken))
                done = answer.done
                clock = asyncio.get_running_loop().time()
                self._due = None if answer.waits is None else clock + answer.waits

    def _note(self, step: Step) -> None:
        self.goals = step.goals
        if step.unseen is not None:
            self.unseen = step.unseen
        if not step.found:
            return
        self.rate_out.add(step.found)
        first = self.found + 1 + step.found - len(step.matches)
        self.found += step.found
        for number, match in enumerate(step.matches, first):
            self._kept.append(KeptMatch(number, match.id, match.document))
            self._kept_bytes += len(match.document)
        while len(self._kept) > KEPT or (self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft().document)

    async def _write(self, matches: list[Found], output: CatalogueEntry | None) -> None:
        if output is None:
            self.refused += len(matches)
            return
        for first in range(0, len(matches), _TOGETHER):
            some = matches[first : first + _TOGETHER]
            await self._slow_down(len(some))
            await asyncio.gather(*(self._put(match, output.path) for match in some))

    async def _slow_down(self, count: int) -> None:
        """Write no more than the limit: an excessive program must not fill the queue of the store."""
        now = time.monotonic()
        self._next_write = max(now, self._next_write) + count / self._store.limits.matches_per_second
        if self._next_write - now > 0.2:
            await asyncio.sleep(self._next_write - now)

    async def _put(self, match: Found, path: str) -> None:
        name = match_name(self.prefix + match.id)
        assert match.graph is not None
        while True:
            try:
                change = put_member(path, name, match.graph, self._store.clock(), _only_new)
                written = self._trace.writing(match.id, path + name, change) if self._trace else nullcontext(change)
                with written as change:
                    await asyncio.wrap_future(self._store.submit(change))
                self.written += 1
            except Problem as problem:
                if problem.kind == "busy":
                    await asyncio.sleep(0.1)  # the store is behind, so wait for it
                    continue
                if problem.kind in ("stale", "gone"):
                    self.repeated += 1
                else:
                    self.refused += 1
                    self.reason = str(problem)
            return


def _step(seconds: float) -> str:
    return f"one step took more than {seconds:g} s of processor time (step_seconds)"


def _only_new(state: str | None) -> None:
    if state is not None:
        raise Problem("stale", "the match is there already")
