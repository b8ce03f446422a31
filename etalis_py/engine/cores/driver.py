"""The drivers of runs on several cores: others read ahead, a thread or processes, or share the matching."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

from etalis_py.engine.cores.crew import Crew, check_parent
from etalis_py.engine.cores.shared_engine import SharedEngine
from etalis_py.engine.driver import Driver, Step
from etalis_py.streams import Stream
from etalis_py.streams.columns.shared_blocks import SharedBlocks

_OFTEN = 0.0002
"""The seconds for which a thread waits for the interpreter.  In Python's own 0.005 it could have read half a batch."""


class AheadDriver(Driver):
    """A driver whose stream is read ahead by a thread of this process."""

    def steps(self) -> Iterator[Step]:
        if isinstance(self._stream, Stream):
            self._stream.read_ahead()
        with _taking_turns():
            yield from super().steps()


class _Turns:
    """How many runs take turns with a thread at the moment, and what was set before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs, self.before = 0, 0.0


_turns = _Turns()


@contextmanager
def _taking_turns() -> Iterator[None]:
    """The threads of this process take turns more often."""
    with _turns.lock:
        if not _turns.runs:
            _turns.before = sys.getswitchinterval()
            sys.setswitchinterval(min(_OFTEN, _turns.before))
        _turns.runs += 1
    try:
        yield
    finally:
        with _turns.lock:
            _turns.runs -= 1
            if not _turns.runs:
                sys.setswitchinterval(_turns.before)


class SharedDriver(Driver):
    """A driver with other processes.  They begin with the first step, and end with the last at the latest.

    ``readers`` is the number of those that read blocks ahead.  A ``SharedEngine`` has processes that take the same
    steps as this one.
    """

    def __init__(self, engine: Any, stream: Any = (), *, readers: int = 0, **how: Any) -> None:
        super().__init__(engine, stream, **how)
        self._readers = readers

    def steps(self) -> Iterator[Step]:
        engine = self.engine
        with ExitStack() as stack:
            blocks = self._shared_blocks(stack)
            crew = Crew(blocks.files if blocks is not None else ())
            stack.callback(crew.end)
            if blocks is not None:
                crew.fork_readers(self._readers, partial(self._read, blocks))
                blocks.check = crew.check_readers
            if isinstance(engine, SharedEngine):
                engine.start(crew, partial(self._take_part, blocks))
            yield from super().steps()

    def _shared_blocks(self, stack: ExitStack) -> SharedBlocks | None:
        """The blocks of the stream that are read ahead, if any are."""
        if not self._readers or not isinstance(self._stream, Stream):
            return None
        count = self.engine.processes if isinstance(self.engine, SharedEngine) else 1
        blocks = stack.enter_context(closing(SharedBlocks(self._readers, count)))
        self._stream.share(blocks)
        return blocks

    def end(self) -> Iterator[Step]:
        if self._interrupt.asked and isinstance(self.engine, SharedEngine):
            self.engine.leave()
        yield from super().end()

    def _read(self, blocks: SharedBlocks, number: int) -> None:
        """In a process that reads blocks for the others."""
        self._leave_letters()
        blocks.become_reader(number, check_parent())
        for _ in self._items():
            pass

    def _take_part(self, blocks: SharedBlocks | None, number: int) -> None:
        """In a process that takes the same steps."""
        self._leave_letters()
        if blocks is not None:
            blocks.become_consumer(number, check_parent())
        for _ in super().steps():
            pass

    def _leave_letters(self) -> None:
        if isinstance(self._stream, Stream):
            self._stream.leave_letters()
