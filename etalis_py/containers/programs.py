"""The programs of a server: each reads one container as a stream and writes its matches into another.

A program runs in a process of its own (``worker``); this module feeds it and takes its matches.  After a restart a
program reads its container again from where it was registered; the members that its matches become are named by the
program and the match's id, so that none is written twice.  A program that exceeds a limit or fails is stopped, keeps
the reason, and stays stopped, even over restarts, until it is resumed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from etalis_py.events.clock import render_datetime

from .catalogue import ProgramRow
from .changes import set_program_state
from .graphs import Base
from .messages import Compile, Compiled, Refused
from .problems import Problem
from .processes import Nursery, Process, ProcessStopped
from .query_changes import count_clients
from .query_program import Clients, ManyQueries
from .question_limits import Questions
from .running_program import RunningProgram
from .store import Store
from .tracing import Tracing
from .transaction import StoredMember, Transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

_LOG = logging.getLogger("etalis.containers")
_NICE = 15
_COMPILING = max(2, os.cpu_count() or 1)
_WAITING = 16


class Programs:
    """The programs of a server: those of the store start with it."""

    def __init__(
        self, store: Store, nursery: Nursery, base: Base, idle: float = 1.0, tracing: Tracing | None = None
    ) -> None:
        self.store, self.idle, self.tracing = store, idle, tracing
        self._nursery, self._base = nursery, base
        self._programs: dict[int, RunningProgram] = {}
        self.questions = Questions(store.limits)
        self.clients = Clients(store.limits.queries_per_client, count_clients(store))
        self._compiling = asyncio.Semaphore(_COMPILING)
        self._changing = asyncio.Lock()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self, row: ProgramRow) -> RunningProgram | None:
        return self._programs.get(row.id)

    def _made(self, row: ProgramRow) -> RunningProgram:
        program = self._programs[row.id] = ManyQueries(self, row) if row.many else RunningProgram(self, row)
        return program

    def stream_iri(self, path: str) -> str:
        """The IRI by which programs know a container, whatever name a client uses for this server."""
        return self._base.out_iri(path)

    async def compile(
        self, query: str, path: str, *, name: str = "", standing: bool = False
    ) -> tuple[Process, Compiled]:
        """A process that has compiled a query on a container, and its answer; a ``Problem`` if it cannot.

        ``name``: of the program, and so of its query.  ``standing``: as one of many queries, or, without a text, for a
        program of many.
        """
        if not self._nursery.has_engine:
            raise Problem("no-engine", "programs cannot be registered: this server was started without an engine")
        limits = self.store.limits
        seconds = limits.compile_seconds
        allowed = f"compiling it took more than {seconds:g} s of processor time (compile_seconds)"
        base, rules = self._base, limits.standing_rules if standing else limits.query_rules
        message = Compile(query, self.stream_iri(path), base.inner, base.outer, rules, seconds, name, standing)
        async with self._place():
            await self._nursery.loaded()
            process = await self._nursery.fork(limits.program_bytes, _NICE)
            try:
                answer = await process.ask(message, seconds, allowed)
            except ProcessStopped as stopped:
                raise Problem("too-costly", f"the query was not compiled: {stopped}") from None
            except BaseException:
                process.kill()
                raise
        if isinstance(answer, Compiled):
            return process, answer
        process.kill()
        if isinstance(answer, Refused):
            raise Problem(answer.kind, answer.detail)
        raise Problem("bad-query", answer.detail)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """One of a few places for compiling."""
        if self._waiting >= _WAITING:
            raise Problem("busy", "too many queries wait to be compiled", headers={"Retry-After": "5"})
        self._waiting += 1
        try:
            await self._compiling.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._compiling.release()

    def start_all(self) -> None:
        """Start the programs in the store, alongside the first requests."""
        self._loop = asyncio.get_running_loop()
        self.store.listen(self._committed)
        self.store.listen_to_expiry(self._expired)
        for row in list(self.store.catalogue.programs.values()):
            program = self._made(row)
            if row.paused or row.stopped:
                program.state, program.reason = ("paused", "") if row.paused else ("stopped", row.stopped)
            else:
                task = asyncio.create_task(self._begin(program))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _begin(self, program: RunningProgram) -> None:
        """Compile and start a program that is registered; one that does not compile shows its error."""
        row = program.row
        container = self.store.catalogue.by_id[row.container]
        while True:
            try:
                process, compiled = await self.compile(row.query, container.path, name=row.name, standing=row.many)
            except Problem as problem:
                if problem.kind == "busy":
                    await asyncio.sleep(0.5)
                    continue
                program.state, program.reason = "stopped", problem.detail
                _LOG.warning("the program %s%s does not run: %s", container.path, row.name, problem.detail)
                if problem.kind == "too-costly":
                    await self.remember(row, paused=False, stopped=problem.detail)
                return
            if self._programs.get(row.id) is program and program.state == "starting":
                program.start(process, compiled)
            else:
                process.kill()
            return

    async def run(
        self, change: Callable[[Transaction], ProgramRow], process: Process, compiled: Compiled
    ) -> ProgramRow:
        """Register a program, or replace its query, and run it in the process that has compiled it."""
        async with self._turn(process):
            row = await self._changed(change)
            await self._run(row, process, compiled)
        return row

    async def delete(self, change: Callable[[Transaction], ProgramRow]) -> None:
        """Delete a program, and end its process."""
        async with self._changing:
            await self._stop(await self._changed(change))

    async def pause(self, row: ProgramRow) -> None:
        """End the process of a program, until it is resumed."""
        async with self._changing:
            await self._changed(set_program_state(row.id, paused=True, stopped=""))
            if program := self._programs.get(row.id):
                await program.stop("paused")

    async def resume(self, row: ProgramRow) -> None:
        """Start a paused or stopped program again: it reads from where it was registered, as after a restart."""
        while not self._is_at_work(row):
            container = self.store.catalogue.by_id[row.container]
            process, compiled = await self.compile(row.query, container.path, name=row.name, standing=row.many)
            async with self._turn(process):
                if not self._is_at_work(row):
                    query, row = row.query, await self._changed(set_program_state(row.id, paused=False, stopped=""))
                    if row.query == query:
                        await self._run(row, process, compiled)
                        return
            process.kill()  # another client has resumed or replaced it meanwhile

    def _is_at_work(self, row: ProgramRow) -> bool:
        program = self._programs.get(row.id)
        return program is not None and program.state in ("running", "starting")

    @asynccontextmanager
    async def _turn(self, process: Process) -> AsyncIterator[None]:
        """A turn to change which programs run: what the store has, and what runs, change together.

        If that fails, for example because the program has been deleted meanwhile, the process ends.
        """
        try:
            async with self._changing:
                yield
        except BaseException:
            process.kill()
            raise

    async def _changed(self, change: Callable[[Transaction], ProgramRow]) -> ProgramRow:
        return await asyncio.wrap_future(self.store.submit(change, alone=True))

    async def _run(self, row: ProgramRow, process: Process, compiled: Compiled) -> None:
        """Only within a turn."""
        await self._stop(row)
        self._made(row).start(process, compiled)

    async def _stop(self, row: ProgramRow) -> None:
        """End the process of a program, only within a turn."""
        if program := self._programs.pop(row.id, None):
            await program.stop()

    async def check(self, query: str, path: str) -> Compiled:
        """Compile a query and throw it away: its rules and warnings, or a ``Problem`` with its faults."""
        process, compiled = await self.compile(query, path)
        process.kill()
        return compiled

    async def check_standing(self, query: str, row: ProgramRow) -> int:
        """How many rules a query has as one of the many of a program; a ``Problem`` if it cannot be one."""
        path = self.store.catalogue.by_id[row.container].path
        process, compiled = await self.compile(query, path, standing=True)
        process.kill()
        return compiled.size

    async def remember(self, row: ProgramRow, *, paused: bool, stopped: str) -> None:
        """Record over restarts that a program does not run, and why."""
        change = set_program_state(row.id, paused=paused, stopped=stopped)
        try:
            await asyncio.wrap_future(self.store.submit(change, alone=True))
        except Problem as problem:
            _LOG.warning("the state of the program %s is not kept: %s", row.name, problem)

    async def stop_all(self) -> None:
        self.store.unlisten(self._committed)
        for task in list(self._tasks):
            task.cancel()
        for program in list(self._programs.values()):
            await program.stop(program.state, program.reason)

    def _committed(self, stored: list[StoredMember]) -> None:
        containers = {one.container for one in stored}
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notice, containers)

    def _expired(self, members: Mapping[int, list[int]]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_over, members)

    def _pass_over(self, members: Mapping[int, list[int]]) -> None:
        for program in self._programs.values():
            if program.state == "running":
                program.expiring.update(members.get(program.row.container, ()))

    def _notice(self, containers: set[int]) -> None:
        for program in self._programs.values():
            if program.row.container in containers:
                program.wake()

    def describe(self, row: ProgramRow) -> dict[str, Any]:
        """The state of a program as JSON."""
        container = self.store.catalogue.by_id[row.container]
        p = self._programs.get(row.id) or RunningProgram(self, row)
        many = {"queries": len(p.queries)} if isinstance(p, ManyQueries) else {}
        return many | {
            "name": row.name,
            "program": container.path + row.name,
            "input": container.path,
            "output": row.output,
            "query": row.query,
            "state": p.state,
            "running": p.state == "running",
            "error": p.reason,
            "warnings": [*p.warnings, *p.unseen, *p.unread(container.path)],
            "pushed": p.pushed,
            "matches": p.found,
            "written": p.written,
            "repeated": p.repeated,
            "refused": p.refused,
            "goals": p.goals,
            "memory": p.process.memory if p.process and p.state == "running" else 0,
            "newest": None if p.newest is None else render_datetime(p.newest),
            "behind": p.behind(),
            "rateIn": p.rate_in.per_second(),
            "rateOut": p.rate_out.per_second(),
            "historyIn": p.rate_in.history(),
            "historyOut": p.rate_out.history(),
            "last": p.since(p.found - 1, 1) if p.found else [],
        }
