"""The options of ``read_stream``: one frozen value, and the same names as keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from etalis_py.events.clock import Clock, TimeError
from etalis_py.events.errors import StreamError
from etalis_py.streams.dead_letters import DeadLetters
from etalis_py.streams.growing import Follow
from etalis_py.streams.sources import FORMATS, now
from etalis_py.streams.timing import ARRIVAL, PUNCTUATE, Timing, predicate_iris

if TYPE_CHECKING:
    from etalis_py.streams.csv_mapping import RowMapping

Predicates = str | Iterable[str] | None


class StreamOptions(TypedDict, total=False):
    """The keywords of ``read_stream``; see ``ReadOptions``."""

    name: str
    format: str
    time_predicate: Predicates
    start_predicate: Predicates
    end_predicate: Predicates
    time_unit: str
    clock: Clock | None
    at: int | str | None
    times: Literal["near", "anywhere"]
    messages: bool | None
    close_on_message: bool
    punctuation_predicate: Predicates
    mapping: RowMapping | str | Path | Mapping[str, Any] | None
    context: str | Path | Mapping[str, Any] | None
    prefixes: Mapping[str, str] | None
    in_order: bool | Callable[[str], None] | None
    on_error: Literal["stop", "skip"]
    dead_letters: DeadLetters | None
    idle: float | None
    follow: Follow | None
    max_pending: int
    now: Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How a source is read; every option has a default that suits most sources.

    ``name``: the IRI of the stream.  ``format``: one of nq, nt, trig, ttl, jsonl, csv, jelly, parquet, arrow; by
    default from the file name, otherwise from the first bytes.

    Time: ``time_predicate`` one or several in order of preference (default prov:generatedAtTime; "arrival": none),
    ``start_predicate`` with ``end_predicate`` for intervals; ``time_unit`` of plain numbers; ``clock`` to require one;
    ``at`` the single time of all triples of a .ttl or .nt file; ``times="anywhere"`` holds a whole document, for times
    far from their graphs; ``now`` the clock for arrival times.

    ``messages``: read .nq, .nt, .trig, .ttl as a message log (None: if the first 64 kB say so), and the frames of Jelly
    as messages (None: if the stream is grouped); ``close_on_message``: the end of a message is a punctuation.
    ``mapping``: from columns or keys to triples, for CSV, JSON lines, Parquet, Arrow and frames (see csv_mapping).
    ``context``: a JSON-LD context for plain JSON lines.  ``prefixes``: known in the Turtle of JSON lines and in
    mappings, besides ``:``.

    ``in_order``: put the events of a file or a frame in order of time if they are not; a function receives the notice,
    which is a warning otherwise.  False: keep the order of the source.  None: who reads the stream decides, and ``run``
    puts it in order, unless late events are allowed.

    ``on_error="skip"`` counts what cannot be read and hands it to ``dead_letters``; "stop" raises StreamError.
    ``idle``: seconds of silence until an ``Idle`` is yielded; ``follow``: wait for a file to grow.
    """

    name: str = ""
    format: str = ""
    time_predicate: Predicates = None
    start_predicate: Predicates = None
    end_predicate: Predicates = None
    time_unit: str = "s"
    clock: Clock | None = None
    at: int | str | None = None
    times: Literal["near", "anywhere"] = "near"
    messages: bool | None = None
    close_on_message: bool = False
    punctuation_predicate: Predicates = None
    mapping: RowMapping | str | Path | Mapping[str, Any] | None = None
    context: str | Path | Mapping[str, Any] | None = None
    prefixes: Mapping[str, str] | None = None
    in_order: bool | Callable[[str], None] | None = None
    on_error: Literal["stop", "skip"] = "stop"
    dead_letters: DeadLetters | None = None
    idle: float | None = None
    follow: Follow | None = None
    max_pending: int = 1_000_000
    now: Callable[[], int] = now

    def __post_init__(self) -> None:
        if self.on_error not in ("stop", "skip"):
            raise StreamError(f"unknown on_error={self.on_error!r}", hint="'stop' or 'skip'")
        if self.times not in ("near", "anywhere"):
            raise StreamError(f"unknown times={self.times!r}", hint="'near' or 'anywhere'")
        if self.format and self.format not in FORMATS:
            raise StreamError(f"unknown stream format {self.format!r}", hint=f"known formats: {', '.join(FORMATS)}")
        try:
            Clock("integer", self.time_unit)
        except TimeError as error:
            raise StreamError(str(error)) from None

    @property
    def live(self) -> bool:
        """Whether the source may be silent for a while or grow."""
        return self.idle is not None or self.follow is not None

    @property
    def timing(self) -> Timing:
        """The predicates that time an element."""
        punctuations = predicate_iris(self.punctuation_predicate) or (PUNCTUATE,)
        named = [self.time_predicate] if isinstance(self.time_predicate, str) else list(self.time_predicate or ())
        if ARRIVAL in named:
            if len(named) > 1:
                raise StreamError(
                    f"{ARRIVAL!r} stands alone", hint="what no time predicate times gets the time of its arrival anyway"
                )
            return Timing((), (), (), punctuations)
        predicates = predicate_iris(self.time_predicate) or Timing().predicates
        return Timing(
            predicates, predicate_iris(self.start_predicate), predicate_iris(self.end_predicate), punctuations
        )
