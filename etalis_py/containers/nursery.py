"""A small process that loads the engine once and forks a process for each program, and for parsing documents.

Forking a process that has loaded everything takes some milliseconds and shares its memory; starting Python and loading
the engine takes a second and 60 MB each time.  The nursery has one thread and runs nothing of what clients send.

When the server ends, for whatever reason, the socket to it closes; then everything forked here is ended at once.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import resource
import select
import signal
import socket
import sys
from typing import NoReturn

from .confinement import limit_memory
from .frames import frame, receive, split
from .messages import TO_NURSERY, Ended, Fork, Forked, Kill, Ready, Setup
from .runners import RunnerFactory
from .worker import OUT_OF_MEMORY, work

_ROOM = 65_536


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="etalis: %(message)s", stream=sys.stderr)
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        setup = receive(control, TO_NURSERY)
        factory, error = _load(setup)
        gc.collect()
        gc.freeze()  # the collector must not touch loaded objects, which would copy the shared pages
        control.sendall(frame(Ready(error)))
        _Nursery(control, factory).run()
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return


def _load(setup: Setup) -> tuple[RunnerFactory | None, str]:
    if setup.factory is None:
        return None, ""
    sys.path[:] = setup.path
    module, _, name = setup.factory.partition(":")
    try:
        return getattr(importlib.import_module(module), name)(**setup.options), ""
    except Exception as error:  # whatever the error: the server goes on without programs, and says why
        return None, f"{type(error).__name__}: {error}"


class _Nursery:
    def __init__(self, control: socket.socket, factory: RunnerFactory | None) -> None:
        self._control, self._factory = control, factory
        self._pids: dict[int, int] = {}
        # When a child ends, a byte is written here, which ends the wait below.
        self._woken, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, stack: None)

    def run(self) -> None:
        buffer, sockets = bytearray(), []
        control = self._control.fileno()
        try:
            while True:
                ready, _, _ = select.select([control, self._woken], [], [])
                if self._woken in ready:
                    os.read(self._woken, 4096)
                    self._reap()
                if control not in ready:
                    continue
                data, handles, _, _ = socket.recv_fds(self._control, _ROOM, 64)
                if not data:
                    return
                buffer += data
                sockets += handles
                for message in split(buffer, TO_NURSERY):
                    match message:
                        case Fork():
                            self._fork(message, socket.socket(fileno=sockets.pop(0)))
                        case Kill(number) if number in self._pids:
                            _kill(self._pids[number])
        finally:
            for pid in self._pids.values():
                _kill(pid)

    def _fork(self, message: Fork, connection: socket.socket) -> None:
        pid = os.fork()
        if not pid:
            _child(message, connection, self._control, self._factory)
        connection.close()
        self._pids[message.number] = pid
        self._control.sendall(frame(Forked(message.number, pid)))

    def _reap(self) -> None:
        for number, pid in list(self._pids.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # everything it had started itself
                del self._pids[number]
                self._control.sendall(frame(Ended(number, status)))


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # by its own id as well: it may not have created its group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _child(message: Fork, connection: socket.socket, control: socket.socket, factory: RunnerFactory | None) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the copies that answer questions
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        control.close()
        os.nice(message.nice)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit_memory(message.memory)
        code = work(connection, factory)
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException:
        logging.getLogger("etalis.containers").exception("a process of the server failed")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
