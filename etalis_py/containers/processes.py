"""The processes of a server, from its side: forked by the nursery, watched, and ended when they exceed a limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .frames import frame, read, split
from .limits import Limits
from .messages import FROM_NURSERY, FROM_PROCESS, Copied, Ended, Fork, Forked, Kill, Message, Ready, Refused, Setup
from .problems import Problem
from .worker import OUT_OF_MEMORY

_LOG = logging.getLogger("etalis.containers")
_WATCH_SECONDS = 0.25
# By the clock a step may take this many times as long, as the kernel does not count waiting for its own process.
PATIENCE = 4.0
_PAGE = resource.getpagesize()


class ProcessStopped(Exception):
    """A process ended before it had answered; the text says why."""


class Process:
    """One process, which is asked one thing at a time.  ``memory`` is what it uses beyond what it started with."""

    def __init__(self, nursery: Nursery, number: int, limit: int) -> None:
        self.number, self.limit = number, limit
        self.pid = 0
        self.memory = 0
        self.reason = ""
        self._nursery = nursery
        self._connection: socket.socket
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._first_memory: int | None = None
        self._deadline: tuple[float, str] | None = None
        loop = asyncio.get_running_loop()
        self.forked: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()

    async def connect(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader, self._writer = await asyncio.open_unix_connection(sock=connection)

    async def send(self, message: Message) -> None:
        """Send a request, whose answer is taken with ``answer``."""
        try:
            self._writer.write(frame(message))
            await self._writer.drain()
        except ConnectionError:
            raise ProcessStopped(await self.why("")) from None

    async def answer(self, seconds: float, allowed: str) -> Any:
        """The next message from the process, or ``ProcessStopped``.

        The kernel ends the process after ``seconds`` of processor time, the server after several times that by the
        clock; ``allowed`` says so in words.
        """
        self._deadline = time.monotonic() + PATIENCE * seconds, allowed
        try:
            return await read(self._reader, FROM_PROCESS)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ProcessStopped(await self.why(allowed)) from None
        finally:
            self._deadline = None

    async def ask(self, message: Message, seconds: float, allowed: str) -> Any:
        """Send a message and wait for its answer."""
        await self.send(message)
        return await self.answer(seconds, allowed)

    async def ask_copy(self, message: Message, seconds: float, allowed: str) -> socket.socket:
        """Ask a question that a copy of the process answers, on the socket that this returns once there is a copy.

        The process must be between two messages, so nothing waits to be sent before this.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._connection, [frame(message)], [theirs.fileno()])
            answer = await self.answer(seconds, allowed)
            if isinstance(answer, Refused):
                raise Problem(answer.kind, answer.detail, headers={"Retry-After": "2"})
            if not isinstance(answer, Copied):
                raise ProcessStopped(answer.detail)
        except OSError:
            ours.close()
            raise ProcessStopped(await self.why("")) from None
        except BaseException:
            ours.close()
            raise
        return ours

    def watch(self, now: float) -> None:
        """Check its memory and time, and end it if it exceeds a limit."""
        used = _resident(self.pid)
        if used is not None:
            if self._first_memory is None:
                self._first_memory = used
            self.memory = max(0, used - self._first_memory)
        if self.memory > self.limit:
            self.kill(_memory_reason(self.limit))
        elif self._deadline is not None and now > self._deadline[0]:
            self.kill(self._deadline[1])

    def kill(self, reason: str = "") -> None:
        """End the process now, whatever it is doing."""
        self.reason = self.reason or reason
        self._nursery.kill(self)
        self._writer.close()

    async def why(self, allowed: str) -> str:
        """Why it ended; ``allowed`` is the text to use if it took too long."""
        if self.reason:
            return self.reason
        try:
            status = await asyncio.wait_for(asyncio.shield(self.ended), 2.0)
        except TimeoutError:
            return "its process went away"
        if os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            return _memory_reason(self.limit) if code == OUT_OF_MEMORY else f"its process ended with code {code}"
        number = os.WTERMSIG(status)
        if number == signal.SIGPROF:
            return allowed
        name = signal.Signals(number).name
        return f"its process ended by {name}, as it does when it may have no more memory ({_memory_reason(self.limit)})"


def _memory_reason(limit: int) -> str:
    return f"it needed more than {limit // 1_048_576} MiB of memory (program_bytes)"


def _resident(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


class Nursery:
    """The server's end of the nursery.  The nursery is started with the server, and again should it ever end."""

    def __init__(self, limits: Limits, factory: str | None, options: dict[str, object]) -> None:
        self._limits = limits
        self._setup = Setup(sys.path, factory, options)
        self._processes: dict[int, Process] = {}
        self._numbers = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready: asyncio.Future[str] | None = None
        self._buffer = bytearray()
        self._watcher: asyncio.Task[None] | None = None

    @property
    def has_engine(self) -> bool:
        return self._setup.factory is not None

    def start(self) -> None:
        """Start the nursery, unless it runs."""
        if self._control is not None:
            return
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "etalis_py.containers.nursery", str(theirs.fileno())]
        # Interrupts from a terminal are for the server only; libraries must not start threads before a fork.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OTEL_SDK_DISABLED": "true"}
        self._child = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        theirs.close()
        ours.sendall(frame(self._setup))
        ours.setblocking(False)
        self._control, self._ready, self._buffer = ours, loop.create_future(), bytearray()
        loop.add_reader(ours.fileno(), self._receive)
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())

    async def loaded(self) -> None:
        """Wait until programs can run; a ``Problem`` if they cannot."""
        self.start()
        assert self._ready is not None
        if error := await asyncio.shield(self._ready):
            raise Problem("no-engine", f"programs cannot run here: {error}")

    async def fork(self, memory: int, nice: int) -> Process:
        """A new process, which has not been asked anything yet."""
        self.start()
        assert self._control is not None
        self._numbers += 1
        process = Process(self, self._numbers, memory)
        self._processes[process.number] = process
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._control, [frame(Fork(process.number, memory, nice))], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise Problem("busy", f"no process can be started: {error}", headers={"Retry-After": "2"}) from None
        finally:
            theirs.close()
        await process.connect(ours)
        await process.forked
        return process

    def kill(self, process: Process) -> None:
        """End a process, if it has not ended."""
        if process.number in self._processes and self._control is not None:
            with contextlib.suppress(OSError):
                self._control.sendall(frame(Kill(process.number)))

    def _receive(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self._buffer += data
        for message in split(self._buffer, FROM_NURSERY):
            match message:
                case Ready(error):
                    if self._ready is not None and not self._ready.done():
                        self._ready.set_result(error)
                case Forked(number, pid):
                    process = self._processes[number]
                    process.pid = pid
                    _settle(process.forked, None)
                case Ended(number, status):
                    process = self._processes.pop(number)
                    _settle(process.forked, None)
                    _settle(process.ended, status)

    def _lost(self) -> None:
        """The nursery has ended, and with it everything that it had forked."""
        assert self._control is not None
        asyncio.get_running_loop().remove_reader(self._control.fileno())
        self._control.close()
        self._control = None
        if self._ready is not None:
            _settle(self._ready, "the process that starts programs ended; see the log of the server")
        for process in list(self._processes.values()):
            with contextlib.suppress(ProcessLookupError):
                if process.pid:
                    os.kill(process.pid, signal.SIGKILL)
            process.reason = process.reason or "the process that starts programs ended"
            _settle(process.forked, None)
            _settle(process.ended, 0)
        self._processes.clear()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            now = time.monotonic()
            live = [process for process in self._processes.values() if process.pid]
            for process in live:
                process.watch(now)
            if sum(process.memory for process in live) > self._limits.programs_bytes:
                most = max(live, key=lambda process: process.memory)
                limit = self._limits.programs_bytes // 1_048_576
                most.kill(f"all programs together needed more than {limit} MiB, this one the most (programs_bytes)")

    async def stop(self) -> None:
        """End the nursery and everything that it forked."""
        if self._watcher is not None:
            self._watcher.cancel()
        if self._control is not None:
            asyncio.get_running_loop().remove_reader(self._control.fileno())
            self._control.close()
            self._control = None
        if self._child is not None:
            try:
                await asyncio.to_thread(self._child.wait, 1.0)
            except subprocess.TimeoutExpired:
                self._child.kill()  # it was still loading
                self._child.wait()


def _settle(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)
