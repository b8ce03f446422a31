"""The programs of a server: each reads one container as a stream and writes its matches into another.

A program runs in a process of its own (``worker``); here is what feeds it and takes its matches.  After a restart a
program reads its container again from where it was registered; the members that its matches become are named by the
program and the match's id, so that none is written twice.  One that exceeds a limit or fails is stopped, keeps the
reason, and stays stopped, over restarts as well, until somebody resumes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from etalis_py.streams.clock import render_datetime

from .catalogue import Container, ProgramRow
from .changes import put_member, set_program_state
from .graphs import Base
from .match_graphs import match_name
from .messages import Compile, Compiled, Explained, Failed, Found, Idle, Push, Refused, Step, Why, WhyNot
from .problems import Problem
from .processes import Nursery, Process, Stopped
from .rates import Rate
from .rendering import arrivals
from .store import Store, Stored
from .tracing import ProgramTrace, Tracing
from .worker import KEPT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_LOG = logging.getLogger("etalis.containers")
_COUNTED = 10_000
_KEPT_BYTES = 2 * 1024 * 1024
_BATCH = 200
_TOGETHER = 64
_NICE = 15
_WHY_SECONDS = 5.0
_COMPILING = max(2, os.cpu_count() or 1)
_WAITING = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """A match as it is kept for readers: ``number`` counts from 1 in order of finding, ``document`` is its JSON."""

    number: int
    id: str
    document: bytes


class RunningProgram:
    """One program.  State: a cursor, the last matches (a thousand, within some bytes), and counts."""

    def __init__(self, owner: Programs, row: ProgramRow) -> None:
        self.row, self._owner, self._store = row, owner, owner.store
        self.pushed = self.found = self.written = self.repeated = self.refused = self.goals = 0
        self.newest: int | None = None
        self.state, self.reason = "starting", ""
        self.rules = b'{"nodes":[],"edges":[]}'
        self.warnings: list[str] = []
        self.rate_in, self.rate_out = Rate(), Rate()
        self.process: Process | None = None
        self.cursor = row.after
        self._kept: deque[Kept] = deque()
        self._kept_bytes = 0
        self._wake = asyncio.Event()
        self._asking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._next_write = 0.0
        self._due: float | None = None  # by the clock of the loop
        self._trace: ProgramTrace | None = None
        if owner.tracing is not None:
            self._trace = ProgramTrace(owner.tracing, self._store.catalogue.by_id[row.container].path + row.name)
        self.prefix = f"p{row.id}-"  # others that write to the same container may give their matches the same ids

    def start(self, process: Process, compiled: Compiled) -> None:
        """Run in this process, which has compiled the query."""
        self.process, self.state = process, "running"
        self.rules, self.warnings = compiled.rules, compiled.warnings
        self._task = asyncio.create_task(self._run(process))

    def behind(self) -> int:
        """How many members it has yet to read, as far as that is worth counting; not from the event loop."""
        with self._store.reading() as db:
            sql = "SELECT id FROM members INDEXED BY members_by_arrival WHERE container = ? AND id > ? LIMIT ?"
            rows = db.execute(f"SELECT count(*) FROM ({sql})", (self.row.container, self.cursor, _COUNTED + 1))
            return int(rows.fetchone()[0])

    def since(self, number: int, limit: int) -> list[msgspec.Raw]:
        """The kept matches after the one with that number, the last ``limit`` of them, as JSON objects."""
        kept = [k for k in self._kept if k.number > number][-limit:]
        return [msgspec.Raw(b'{"number":%d,' % k.number + k.document[1:]) for k in kept]

    async def why(self, match: str) -> msgspec.Raw:
        """The explanation of a kept match, as JSON."""
        return await self._explained(Why(match, self._store.limits.step_seconds))

    async def why_not(self, where: str, at: str) -> msgspec.Raw:
        """Why an expected match did not come, as JSON."""
        return await self._explained(WhyNot(where, at, self._store.limits.step_seconds))

    async def _explained(self, question: Why | WhyNot) -> msgspec.Raw:
        process = self.process
        if process is None or self.state != "running":
            raise Problem("not-found", "the program is not running, so it explains nothing")
        seconds = self._store.limits.step_seconds
        try:
            async with asyncio.timeout(_WHY_SECONDS):
                await self._asking.acquire()
        except TimeoutError:
            raise Problem(
                "busy", "the program has been busy with one step for some seconds", headers={"Retry-After": "5"}
            ) from None
        try:
            # Shielded: whoever asked may go away, the answer must be taken all the same.
            answer = await asyncio.shield(asyncio.ensure_future(process.ask(question, seconds, _step(seconds))))
        except Stopped as stopped:
            raise Problem("failed", f"the program stopped: {stopped}") from None
        finally:
            self._asking.release()
        match answer:
            case Explained(why):
                return msgspec.Raw(why)
            case Refused(kind, detail):
                raise Problem(kind, detail)
        raise Problem("failed", f"the match cannot be explained: {answer.detail}")

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
        except Stopped as stopped:
            self.reason = str(stopped)
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}"
            _LOG.exception("the program %s failed in the server", self.row.name)
        self.state = "stopped"
        process.kill()
        _LOG.warning("the program %s stopped: %s", self.row.name, self.reason)
        await self._owner.remember(self.row, paused=False, stopped=self.reason)

    async def _follow(self, process: Process) -> None:
        quiet = True
        process.ended.add_done_callback(lambda _: self.wake())
        read = asyncio.get_running_loop().run_in_executor
        while True:
            self._wake.clear()
            if process.ended.done():
                raise Stopped(await process.why(""))
            container = self._store.catalogue.by_id.get(self.row.container)
            members: list[Stored] = []
            if container is not None:
                members = await read(self._store.pool, arrivals, self._store, container, self.cursor, _BATCH)
            if members:
                await self._step(process, members)
                quiet = False
                continue
            try:
                silence = asyncio.timeout_at(self._due) if quiet else asyncio.timeout(self._owner.idle)
                async with silence:
                    await self._wake.wait()
            except TimeoutError:
                await self._step(process, None)
                quiet = True

    async def _step(self, process: Process, members: list[Stored] | None) -> None:
        """Hand over members, or that none came for a while, and take what comes of it."""
        limits = self._store.limits
        output = self._store.catalogue.by_path.get(self.row.output)
        order = output.spec.order if output else ""
        rest = (self.row.output, self.prefix, order, limits.triples_per_graph, limits.match_bytes, limits.step_seconds)
        async with self._asking:
            await process.send(Push(members, *rest) if members else Idle(*rest))
            done, position, since = False, 0, time.time_ns()
            while not done:
                answer = await process.answer(limits.step_seconds, _step(limits.step_seconds))
                if isinstance(answer, Failed | Refused):
                    raise Stopped(answer.detail)
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
        if not step.found:
            return
        self.rate_out.add(step.found)
        first = self.found + 1 + step.found - len(step.matches)
        self.found += step.found
        for number, match in enumerate(step.matches, first):
            self._kept.append(Kept(number, match.id, match.document))
            self._kept_bytes += len(match.document)
        while len(self._kept) > KEPT or (self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1):
            self._kept_bytes -= len(self._kept.popleft().document)

    async def _write(self, matches: list[Found], output: Container | None) -> None:
        if output is None:
            self.refused += len(matches)
            return
        for first in range(0, len(matches), _TOGETHER):
            some = matches[first : first + _TOGETHER]
            await self._slow_down(len(some))
            await asyncio.gather(*(self._put(match, output.path) for match in some))

    async def _slow_down(self, count: int) -> None:
        """Write no more than the limit: a program without measure must not fill the queue of the store."""
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
                    await asyncio.sleep(0.1)  # the store is behind: so are we
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


class Programs:
    """The programs of a server: those of the store start with it."""

    def __init__(
        self, store: Store, nursery: Nursery, base: Base, idle: float = 1.0, tracing: Tracing | None = None
    ) -> None:
        self.store, self.idle, self.tracing = store, idle, tracing
        self._nursery, self._base = nursery, base
        self._programs: dict[int, RunningProgram] = {}
        self._compiling = asyncio.Semaphore(_COMPILING)
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self, row: ProgramRow) -> RunningProgram | None:
        return self._programs.get(row.id)

    def stream_iri(self, path: str) -> str:
        """The IRI by which programs know a container, whatever name a client uses for this server."""
        return self._base.out_iri(path)

    async def compile(self, query: str, path: str) -> tuple[Process, Compiled]:
        """A process that has compiled a query on a container, and what it says; a ``Problem`` where it cannot."""
        if not self._nursery.has_engine:
            raise Problem("no-engine", "programs cannot be registered: this server was started without an engine")
        limits = self.store.limits
        seconds = limits.compile_seconds
        allowed = f"compiling it took more than {seconds:g} s of processor time (compile_seconds)"
        message = Compile(query, self.stream_iri(path), self._base.inner, self._base.outer, limits.query_rules, seconds)
        async with self._place():
            await self._nursery.loaded()
            process = await self._nursery.fork(limits.program_bytes, _NICE)
            try:
                answer = await process.ask(message, seconds, allowed)
            except Stopped as stopped:
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
        """Start what the store holds, beside the first requests."""
        self._loop = asyncio.get_running_loop()
        self.store.listen(self._committed)
        for row in list(self.store.catalogue.programs.values()):
            program = self._programs[row.id] = RunningProgram(self, row)
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
                process, compiled = await self.compile(row.query, container.path)
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

    def start(self, row: ProgramRow, process: Process, compiled: Compiled) -> None:
        """Run what has just been registered."""
        program = self._programs[row.id] = RunningProgram(self, row)
        program.start(process, compiled)

    async def stop(self, row: ProgramRow) -> None:
        """End a program that is no more."""
        if program := self._programs.pop(row.id, None):
            await program.stop()

    async def pause(self, row: ProgramRow) -> None:
        """End the process of a program, until it is resumed."""
        await self.remember(row, paused=True, stopped="")
        if program := self._programs.get(row.id):
            await program.stop("paused")

    async def resume(self, row: ProgramRow) -> None:
        """Start a paused or stopped program again: it reads from where it was registered, as after a restart."""
        program = self._programs.get(row.id)
        if program is not None and program.state in ("running", "starting"):
            return
        container = self.store.catalogue.by_id[row.container]
        process, compiled = await self.compile(row.query, container.path)
        await self.remember(row, paused=False, stopped="")
        await self.stop(row)
        self.start(row, process, compiled)

    async def check(self, query: str, path: str) -> Compiled:
        """Compile a query and throw it away: its rules and warnings, or a ``Problem`` with its faults."""
        process, compiled = await self.compile(query, path)
        process.kill()
        return compiled

    async def remember(self, row: ProgramRow, *, paused: bool, stopped: str) -> None:
        """Keep over restarts that a program does not run, and why."""
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

    def _committed(self, stored: list[Stored]) -> None:
        containers = {one.container for one in stored}
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notice, containers)

    def _notice(self, containers: set[int]) -> None:
        for program in self._programs.values():
            if program.row.container in containers:
                program.wake()

    def describe(self, row: ProgramRow) -> dict[str, Any]:
        """The state of a program as JSON."""
        container = self.store.catalogue.by_id[row.container]
        p = self._programs.get(row.id) or RunningProgram(self, row)
        return {
            "name": row.name,
            "program": container.path + row.name,
            "input": container.path,
            "output": row.output,
            "query": row.query,
            "state": p.state,
            "running": p.state == "running",
            "error": p.reason,
            "warnings": p.warnings,
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
