"""Sinks, which take matches, and how a text format and an output form one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from etalis_rules.terms import FALSE, TRUE

from etalis_py.events import Triple
from etalis_py.events.clock import is_number
from etalis_py.events.errors import ClosedPipe
from etalis_py.streams.outputs import TextOutput

if TYPE_CHECKING:
    from etalis_py.streams.columns.results import Results


class Match(Protocol):
    """What a sink must know about a match; its times are spelled as in the stream, None if timeless.

    ``triples`` is None for a query that constructs nothing.  An ASK match also has a ``boolean``, and an explained one
    ``why()``.
    """

    @property
    def query(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def bindings(self) -> Mapping[str, str]: ...
    @property
    def triples(self) -> Sequence[Triple] | None: ...
    @property
    def start(self) -> int | str | None: ...
    @property
    def end(self) -> int | str | None: ...
    def to_dict(self) -> dict[str, Any]: ...


class Sink(Protocol):
    """Takes matches.  ``flush`` makes visible what was written; ``close`` completes the output and may come twice.

    As a context manager a sink is closed at the end; after an error, incomplete output is removed.
    """

    def write(self, match: Match) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Format(Protocol):
    """Matches as text, one file at a time: the text before the first match, of each match, and after the last.

    ``begin`` is called after the first match has been rendered, so that it may depend on it.
    """

    def begin(self) -> str: ...

    def render(self, match: Match) -> str: ...

    def end(self) -> str: ...


class ClosedByItsBlock(ABC):
    """Closed at the end of its ``with`` block; abandoned if an error ends that, unless the reader has gone away."""

    @abstractmethod
    def close(self) -> None:
        """Finish what has been written."""

    @abstractmethod
    def abandon(self) -> None:
        """Leave nothing behind that looks finished."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.close()
        elif not issubclass(kind, ClosedPipe):
            self.abandon()


class TextSink(ClosedByItsBlock):
    """A format written to an output.  As a context manager it completes the output, or removes it after an error."""

    def __init__(self, format: Format, output: TextOutput) -> None:
        self._format, self._output = format, output
        self._begun = self._closed = False
        self.written = 0

    def write(self, match: Match) -> None:
        self._put(self._format.render(match), 1)

    def write_all(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self.write(match)

    @property
    def begun(self) -> bool:
        """Whether what comes before the first match is written."""
        return self._begun

    def go_on(self) -> None:
        """What comes before the first match is written already."""
        self._begun = True

    def write_results(self, results: Results) -> bool:
        """Write matches in columns, all at once; returns False if they have to come one by one."""
        render = getattr(self._format, "render_results", None)
        text = None if render is None else render(results)
        if text is None:
            return False
        self._put(text, len(results))
        return True

    def _put(self, text: str, count: int) -> None:
        """Write the text of some matches."""
        if not self._begun:
            self._begun = True
            text = self._format.begin() + text
        with self._completed():
            self._output.write(text)
            self.written += count
            if self._output.full():
                self._finish()

    @contextmanager
    def _completed(self) -> Iterator[None]:
        """What could not be written to its end never appears, not even if the sink is closed later."""
        try:
            yield
        except ClosedPipe:
            raise
        except OSError:
            self.abandon()
            raise

    def _finish(self) -> None:
        self._output.write(self._format.end())
        self._output.close()
        self._begun = False

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """Complete the output; without any match it has what the format writes around matches."""
        if self._closed:
            return
        self._closed = True
        with self._completed():
            if not self._begun and self.written == 0:
                self._output.write(self._format.begin())
                self._begun = True
            if self._begun:
                self._finish()

    def abandon(self) -> None:
        self._closed = True
        self._output.abandon()


class NetSink:
    """Writes what holds at the end: keeps matches until then, and leaves out those that were taken back."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept: dict[str, Match] = {}

    def write(self, match: Match) -> None:
        if is_retracted(match):
            del self._kept[match.id]
        else:
            self._kept[match.id] = match

    def flush(self) -> None:
        """Do nothing: until the end anything may be taken back."""

    def _hand_over(self) -> None:
        kept, self._kept = self._kept, {}
        for match in kept.values():
            self._sink.write(match)

    def close(self) -> None:
        with self._sink:
            self._hand_over()

    def __enter__(self) -> Self:
        self._sink.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.close()
        else:
            self._sink.__exit__(kind, error, trace)


def is_retracted(match: Match) -> bool:
    """Whether it takes back an earlier match."""
    return bool(getattr(match, "retracted", False))


def is_construct(match: Match) -> bool:
    """Whether the match has triples rather than bindings."""
    return bool(match.triples) or (match.triples is not None and not match.bindings)


def solution(match: Match) -> Mapping[str, str]:
    """The match's bindings; the answer of an ASK query counts as one, called ``boolean``."""
    answer = getattr(match, "boolean", None)
    return match.bindings if answer is None else {"boolean": TRUE if answer else FALSE}


def spelled(time: int | str | None) -> str:
    """A time in a cell; a timeless match has none."""
    return "" if time is None else str(time)


def time_type(time: int | str) -> str:
    """The XSD type (its local name) of a time as the stream spells it."""
    if isinstance(time, int):
        return "integer"
    return "decimal" if is_number(time) else "dateTime"
