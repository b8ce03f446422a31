"""The two contracts: a ``Source`` that can go on from a position, and a ``Sink`` that takes part in a checkpoint.

What a run does with them, in this order:

    source.open(position)   sink.recover(token)      once, from the newest checkpoint; both None on the first start
    source.read(…)          sink.write(matches)      again and again
    source.position()       sink.prepare() → token   the two are written to the checkpoint together
                            sink.commit(token)       once the checkpoint is on the disk
    source.committed(…)                              what came before the position is not asked for again

The process may end at any point, also between ``prepare`` and ``commit``.  The next one calls ``recover`` with the
token of the newest checkpoint, and the sink must make sure then that this token is committed, and that nothing written
after it is there.  So ``commit`` and ``recover`` may be called again for a token that is committed already.

Positions and tokens are plain data (numbers, texts, bytes, lists, dicts), which are stored as MessagePack.  A token may
hold the output itself, if the system behind the sink cannot keep it uncommitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from etalis_py.events import Event
from etalis_py.streams.sinks import Match

Position = Any
"""Where a source has got to, or what a sink has prepared: plain data."""


FARTHEST = 1 << 62
"""Microseconds since 1970 that no time of arrival reaches."""


class Message(NamedTuple):
    """One message: its bytes, where it stands (for errors and dead letters), and when it arrived in microseconds.

    ``arrival``: as the source keeps it, so that it is the same when the message is read again; None: it arrives when it
    is read, by a clock that never goes back.  ``retract``: it withdraws what it states.
    """

    value: bytes
    place: str = ""
    arrival: int | None = None
    retract: bool = False

    def check(self, address: str) -> None:
        """Refuse a message that a source has put together wrongly."""
        if not isinstance(self.value, bytes | bytearray):
            kind = type(self.value).__name__
            raise TypeError(
                f"{address}: the value of a Message is bytes, and this one has a {kind}: encode it as UTF-8"
            )
        if self.arrival is not None and not (type(self.arrival) is int and abs(self.arrival) < FARTHEST):
            raise TypeError(
                f"{address}: the arrival of a Message is an integer, the microseconds since 1970, and this one has "
                f"{self.arrival!r}"
            )


class Source(Protocol):
    """A source of messages, or of events, that come in the same order again from a position.

    One whose attribute ``again`` is False gives what comes.  If its sender repeats what was not ``committed``, its
    attribute ``sent_again`` is True; if the sender also waits for that, ``pressing()`` says when, and there is a
    checkpoint soon.  If ``read`` may wait for longer than it is told to, its attribute ``hurried`` is set to a function
    that says when it must not.
    """

    def open(self, position: Position | None) -> None:
        """Connect, and go on after a position; None: from the beginning."""
        ...

    def read(self, seconds: float) -> Sequence[Message | Event] | None:
        """What there is, waiting for at most so long; nothing: silence; None: the end."""
        ...

    def position(self) -> Position:
        """The position after everything that ``read`` has given so far."""
        ...

    def committed(self, position: Position) -> None:
        """A checkpoint with this position is on the disk; a source that must acknowledge does so here.

        Without checkpoints, a source that does not give the same ``again`` is told what was taken.
        """
        ...

    def close(self) -> None:
        """Release connections; may be called twice."""
        ...


class Sink(Protocol):
    """Takes matches, and makes them final at checkpoints.

    ``guarantee``: ``exactly once``, or ``at least once`` if matches may come again, with the same ids, after a crash.

    A sink may also have ``write_results(results) -> bool``: many matches of one query in columns
    (``streams.columns.results``), instead of ``write``; False if they have to come one by one.  And it may have
    ``finish()``, called before the last ``prepare`` of a run that has come to its end: no match follows.
    """

    guarantee: str

    def recover(self, token: Position | None) -> None:
        """Begin, or go on from a checkpoint: afterwards the token is committed, and nothing is there beyond it."""
        ...

    def write(self, matches: Iterable[Match]) -> None:
        """Take the matches of a step.  A sink that falls behind may wait here: the sources then wait, too."""
        ...

    def prepare(self) -> Position:
        """Make sure that everything since the last token can be committed, also by another process."""
        ...

    def commit(self, token: Position) -> None:
        """Make final what ``prepare`` gave the token for."""
        ...

    def abort(self) -> None:
        """Drop what was written since the last token."""
        ...

    def close(self) -> None:
        """Release connections; what is not committed is dropped.  May be called twice."""
        ...


Settings = Mapping[str, str]
"""What an address says after ``?``."""


def check_contract(given: object, contract: type) -> None:
    """Refuse an object that lacks what a contract names, before it is asked for anything."""
    word = contract.__name__.lower()
    if isinstance(given, str):
        raise TypeError(f"{given!r} is an address, not a {word}: give etalis_py.connectors.registry.open_{word}(…)")
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class, not a {word}: give an object, {given.__name__}(…)")
    named = [name for name in (*contract.__annotations__, *vars(contract)) if not name.startswith("_")]
    if lacking := [name for name in named if not hasattr(given, name)]:
        raise TypeError(
            f"{type(given).__name__} is no {word}: it lacks {', '.join(lacking)}; etalis_py.connectors."
            f"{contract.__name__} says what each part of a {word} is for"
        )
