"""The processes of a run: forked, heard one step after the other, and ended with the run.

A forked process has everything that this one had in memory.  What both have open they would share: so files that are
read are opened anew, at the same place, and whatever else could be written to leads nowhere, except for the pipe to
this process.  It ends with its run, when nobody listens any longer, or when it is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import queue
import signal
import stat
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import BinaryIO, NoReturn

import msgspec

from etalis_py.values.errors import LimitExceeded

_PIPE = 1 << 20
_AHEAD = 64
"""The number of steps whose answers may wait to be sent."""


class WorkerFailed(RuntimeError):
    """A process of the run has ended before the run, or has failed; ``__cause__`` is what happened there."""


class Answer(msgspec.Struct, array_like=True, gc=False):
    """What one process has to say of one step.

    ``step`` and ``at`` are the number and the kind of the step, by which it is recognized.  ``reports`` are packed (see
    ``wire``).  ``error`` has the class and the text of an error that ended the step.
    """

    step: int
    at: str
    reports: list[tuple[int, bool, bytes]] = []
    triples: int = 0
    goals: int = 0
    error: tuple[str, str] | None = None
    trace: str = ""


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(Answer).decode


class Sender:
    """In a forked process: sends answers, while the next ones are worked out."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def send(self, answer: Answer) -> None:
        data = _ENCODE(answer)
        self._waiting.put(len(data).to_bytes(8) + data)

    def finish(self) -> None:
        """Wait until everything is sent."""
        self._waiting.put(None)
        self._thread.join()

    def _send_all(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._pipe, rest) :]
        except OSError:  # nobody listens any longer
            os._exit(1)


class Crew:
    """The other processes of a run: those that answer, and those that only read.

    ``files``: open files that all share.
    """

    def __init__(self, files: Sequence[int] = ()) -> None:
        self._files = tuple(files)
        self._pipes: dict[int, BinaryIO] = {}  # by process
        self._readers: dict[int, BinaryIO] = {}

    def fork(self, count: int, work: Callable[[int, Sender], object]) -> None:
        """Start processes that do this work, each with its number, from 1."""
        for number in range(1, count + 1):
            pid, pipe = self._forked(partial(_answering, partial(work, number)))
            self._pipes[pid] = pipe

    def fork_readers(self, count: int, work: Callable[[int], object]) -> None:
        """Start processes that do this work, each with its number, from 0, and answer nothing but why they failed."""
        for number in range(count):
            pid, pipe = self._forked(partial(_reading, partial(work, number)))
            self._readers[pid] = pipe

    def check_readers(self) -> None:
        """Raise an error if a reader has failed."""
        for pid in tuple(self._readers):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                with self._readers.pop(pid) as pipe:
                    trace = pipe.read().decode()
                if status:
                    cause = WorkerFailed(f"in process {pid} of the run:\n{trace}") if trace else None
                    raise WorkerFailed(f"process {pid} of the run {_ended(status)}: {_AGAIN}") from cause

    def _forked(self, work: Callable[[int], object]) -> tuple[int, BinaryIO]:
        """A new process that does this work, given a pipe; and where to read what it writes there."""
        read, write = os.pipe()
        with contextlib.suppress(OSError):  # less is all that this user may have
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE)
        places = files_read()
        with warnings.catch_warnings():
            # Python warns of threads, which the new process does not have: Arrow starts its own anew, we use none.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            _work((write, *self._files), places, partial(work, write))
        os.close(write)
        return pid, os.fdopen(read, "rb")

    def answers(self, step: int, at: str) -> list[Answer]:
        """The answers of all to a step; an error of one of them is raised."""
        answers = [self._answer(pid, pipe) for pid, pipe in self._pipes.items()]
        for pid, answer in zip(self._pipes, answers, strict=True):
            if answer.error is not None:
                raise _error(pid, answer)
            if (answer.step, answer.at) != (step, at):
                raise WorkerFailed(
                    f"process {pid} of the run is at step {answer.step} ({answer.at}), this one at {step} ({at}): "
                    "the input has changed while it was read, or reads differently each time; run it on one core"
                )
        return answers

    def _answer(self, pid: int, pipe: BinaryIO) -> Answer:
        head = pipe.read(8)
        data = pipe.read(int.from_bytes(head)) if len(head) == 8 else b""
        if len(head) < 8 or len(data) < int.from_bytes(head):
            raise WorkerFailed(f"process {pid} of the run {self._end_of(pid)}: {_AGAIN}")
        return _DECODE(data)

    def _end_of(self, pid: int) -> str:
        """How a process has ended that should not have."""
        self._pipes.pop(pid).close()
        return _ended(os.waitpid(pid, 0)[1])

    def end(self) -> None:
        """End all of them, at once."""
        every = self._pipes | self._readers
        for pipe in every.values():
            pipe.close()
        for pid in every:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in every:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._pipes.clear()
        self._readers.clear()


_AGAIN = "run it again, or on one core"


def _ended(status: int) -> str:
    """How a process has ended that should not have."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        memory = ", perhaps for lack of memory" if name == "SIGKILL" else ""
        return f"was ended by {name}{memory}"
    return f"has ended with code {os.waitstatus_to_exitcode(status)}"


def _error(pid: int, answer: Answer) -> Exception:
    assert answer.error is not None
    kind, text = answer.error
    known: dict[str, type[Exception]] = {"LimitExceeded": LimitExceeded, "MemoryError": MemoryError}
    cause = WorkerFailed(f"in process {pid} of the run:\n{answer.trace}")
    error = known[kind](text) if kind in known else WorkerFailed(f"{kind}: {text}")
    error.__cause__ = cause
    return error


def failure(step: int, at: str, error: BaseException) -> Answer:
    """The answer of a step that an error has ended."""
    shown = "".join(traceback.format_exception(error))
    return Answer(step, at, error=(type(error).__name__, str(error)), trace=shown)


def _answering(work: Callable[[Sender], object], pipe: int) -> None:
    sender = Sender(pipe)
    try:
        work(sender)
    finally:
        sender.finish()


def _reading(work: Callable[[], object], pipe: int) -> None:
    try:
        work()
    except Exception as error:
        os.write(pipe, "".join(traceback.format_exception(error)).encode()[-_PIPE // 2 :])
        raise


def _work(files: Sequence[int], places: Mapping[int, int], work: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started the run ends it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        warnings.simplefilter("ignore")  # the first process warns
        gc.freeze()  # what is never looked at is never copied
        part_files(files, places)
        work()
        code = 0
    except BaseException:
        code = 1  # where it matters, an answer says why
    finally:
        os._exit(code)


def files_read() -> dict[int, int]:
    """The files that are open for reading only, with the place that each has got to."""
    return {number: os.lseek(number, 0, os.SEEK_CUR) for number in _open_files() if _is_read(number)}


def part_files(keep: Sequence[int], places: Mapping[int, int]) -> None:
    """Open what is read anew, at these places, and let what may be written lead nowhere.

    The places are from before the fork: the process that forked this one goes on reading.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in _open_files():
        if number in places:
            anew = os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
            os.lseek(anew, places[number], os.SEEK_SET)
            os.dup2(anew, number, inheritable=False)
            os.close(anew)
        elif number not in (*keep, nowhere):
            os.dup2(nowhere, number, inheritable=number < 3)


def _open_files() -> list[int]:
    """The numbers of the open files."""
    numbers = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder that was listed is closed by now
            os.fstat(int(name))
            numbers.append(int(name))
    return numbers


def _is_read(number: int) -> bool:
    flags = fcntl.fcntl(number, fcntl.F_GETFL)
    return stat.S_ISREG(os.fstat(number).st_mode) and flags & os.O_ACCMODE == os.O_RDONLY


def check_parent() -> Callable[[], None]:
    """What ends a forked process once the one that forked it has gone."""
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)

    return check


def can_fork() -> bool:
    """Whether this system can."""
    return sys.platform == "linux"


__all__ = ["Answer", "Crew", "Sender", "WorkerFailed", "can_fork", "check_parent", "failure"]
