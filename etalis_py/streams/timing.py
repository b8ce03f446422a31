"""Chooses which of an element's times is its interval.

[REQ] (RDF Stream) lets an element carry a production time, a receiving time and a validity interval side by side, each
by its own predicate, and lets the predicate differ from element to element.  ``Timing`` says which one counts: the
validity interval if its two predicates are given, otherwise the first predicate of a list that the element has (its
value is an instant, or an ISO 8601 interval), otherwise the time of arrival.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from etalis_rules.calendar import SECOND
from etalis_rules.terms import is_iri, is_literal, parts

from etalis_py.events.clock import Clock, TimeError, clock_of, iso_spelling, parse_datetime, parse_interval
from etalis_py.events.errors import StreamError
from etalis_py.events.statement_lines import USUAL_TIME

PROV = "http://www.w3.org/ns/prov#"
RSP = "http://www.w3.org/ns/rsp#"
GENERATED_AT_TIME = f"<{PROV}generatedAtTime>"
PUNCTUATE = f"<{RSP}punctuate>"
NOW = f"<{RSP}now>"
ARRIVAL = "arrival"

_PREFIXES = {
    "prov": PROV,
    "rsp": RSP,
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://purl.oclc.org/NET/ssnx/ssn#",
    "as": "https://www.w3.org/ns/activitystreams#",
    "schema": "http://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "time": "http://www.w3.org/2006/time#",
}

Span = tuple[int, int]

_USUAL = re.compile(USUAL_TIME)
_POINT = len('"2026-01-31T10:00:00')  # position of the decimal point in the usual spelling, or of the Z
_AFTER = len('Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')  # what follows the digits
_SCALES = (0, 100_000, 10_000, 1_000, 100, 10, 1)  # microseconds of the last digit, by the number of digits
_MINUTES = 4096  # remembered minutes


class Statement(NamedTuple):
    """A statement of the default graph about an element: predicate, object, and line."""

    predicate: str
    object: str
    line: int


class Punctuation(NamedTuple):
    """No more items of this stream end at or before ``time``: its instants up to there are complete."""

    time: int


class Idle(NamedTuple):
    """Nothing arrived during the idle time of a live source; ``at`` is the wall clock in microseconds."""

    at: int


def predicate_iri(name: str) -> str:
    """A predicate as a term: ``<iri>``, a bare IRI, or one of a few well-known prefixed names."""
    if name.startswith("<") and name.endswith(">"):
        return name
    prefix, colon, local = name.partition(":")
    if not colon or not prefix:
        raise StreamError(
            f"{name!r} is not a predicate",
            hint=f"give an IRI, or a name with one of the prefixes {', '.join(sorted(_PREFIXES))}",
        )
    return f"<{_PREFIXES[prefix]}{local}>" if prefix in _PREFIXES and not local.startswith("//") else f"<{name}>"


def predicate_iris(names: str | Iterable[str] | None) -> tuple[str, ...]:
    if not names:
        return ()
    return tuple(predicate_iri(name) for name in ([names] if isinstance(names, str) else names))


@dataclass(frozen=True, slots=True)
class Timing:
    """The predicates that time an element, in order of preference.  Without any, everything is timed on arrival."""

    predicates: tuple[str, ...] = (GENERATED_AT_TIME,)
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    punctuations: tuple[str, ...] = (PUNCTUATE,)
    all: frozenset[str] = field(init=False, default=frozenset())
    alone: dict[str, frozenset[str]] = field(init=False, default_factory=dict)

    @property
    def after_graph(self) -> str:
        """The predicate that alone times an element, whatever other statements there are; or ""."""
        return self.predicates[0] if self.predicates and not self.starts else ""

    @property
    def distinct(self) -> bool:
        """Whether each predicate has only one meaning."""
        return len({*self.all, *self.punctuations}) == sum(
            map(len, (self.predicates, self.starts, self.ends, self.punctuations))
        )

    def __post_init__(self) -> None:
        if len(self.starts) != len(self.ends):
            raise StreamError(
                "a start predicate needs an end predicate, and the other way round",
                hint="name both; for instants name a time predicate instead",
            )
        object.__setattr__(self, "all", frozenset((*self.predicates, *self.starts, *self.ends)))
        object.__setattr__(self, "alone", {predicate: frozenset((predicate,)) for predicate in self.predicates})


class TimeReader:
    """Reads the time literals of one stream; the first one decides the stream's clock, and all others must agree."""

    __slots__ = ("_dates", "_minutes", "clock", "unit")

    def __init__(self, unit: str = "s", clock: Clock | None = None) -> None:
        self.unit = unit
        self.clock: Clock | None = clock
        self._dates = clock is not None and clock.kind == "datetime"
        self._minutes: dict[str, int] = {}

    def of_usual(self, term: str) -> int | None:
        """The time that a dateTime literal in the usual spelling (``USUAL_TIME``) gives.

        None if it needs care: in a stream that is not (known to be) timed by dates, and for a day that does not exist.

        This is by far the most common spelling: its minute is looked up, the rest is arithmetic.
        """
        if not self._dates:
            return None
        minute = term[1:18]
        time = self._minutes.get(minute)
        if time is None:
            try:
                time = parse_datetime(minute + "00Z")
            except TimeError:
                return None
            if len(self._minutes) >= _MINUTES:
                self._minutes.clear()
            self._minutes[minute] = time
        time += int(term[18:20]) * SECOND
        if term[_POINT] == "Z":
            return time
        fraction = term[_POINT + 1 : -_AFTER]
        return time + int(fraction) * _SCALES[len(fraction)]

    def of_term(self, term: str) -> Span:
        """The interval that a literal spells; TimeError if it spells none."""
        if _USUAL.fullmatch(term) is not None and (time := self.of_usual(term)) is not None:
            return time, time
        if not is_literal(term):
            raise TimeError("expected a time literal", term)
        return self.of_text(parts(term)[0].strip())

    def of_text(self, text: str) -> Span:
        clock = self._clock_for(text.partition("/")[0] if not text.startswith("P") else text.rpartition("/")[2])
        return parse_interval(text, clock)

    def of_value(self, value: object) -> Span:
        """A time as JSON has it: a number, a spelling, or a list of two."""
        if isinstance(value, list) and len(value) == 2:
            start, end = self.of_value(value[0])[0], self.of_value(value[1])[1]
            if start > end:
                raise TimeError("the interval ends before it starts", str(value))
            return start, end
        if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
            raise TimeError("expected a number, a dateTime, or a list of two of them", str(value))
        if isinstance(value, str):
            return self.of_text(value.strip())
        time = self._clock_for(value).parse(value)
        return time, time

    def of_cells(self, texts: list[str]) -> Span:
        """The time of a row, in one cell or in two; dates and times of day may be written as SQL and logs do."""
        if not any(text[10:11] == " " for text in texts):
            try:
                return self.of_value(texts if len(texts) == 2 else texts[0])
            except TimeError:
                pass
        texts = list(map(iso_spelling, texts))
        return self.of_value(texts if len(texts) == 2 else texts[0])

    def _clock_for(self, lexical: str | int | Decimal) -> Clock:
        clock = clock_of(lexical, self.unit)
        if self.clock is None:
            self.clock = clock
            self._dates = clock.kind == "datetime"
        elif clock.kind != self.clock.kind:
            kinds = {"integer": "plain numbers", "datetime": "xsd:dateTime"}
            raise TimeError(f"this stream's times are {kinds[self.clock.kind]}, this one is not", str(lexical))
        return self.clock


class Arrival:
    """Arrival times by the wall clock (or the given one), each later than the one before: arrival keeps its order.

    ``elapsed``: microseconds by a clock that nobody sets.  At least as much passes from one arrival to the next, so
    while a wall clock that was set back has not caught up, what happens an hour apart is still an hour apart, and what
    comes after a silence, which the same clock measures, is not late.

    ``given``: the time that the source has given what comes next, which has it as it is.  ``last``: the newest time by
    the clock; another process goes on after it.

    >>> wall, steady = iter([1_000, 400, 410, 2_000]), iter([0, 50, 60, 70])
    >>> arrival = Arrival(wall.__next__, steady.__next__)
    >>> [arrival()[0] for _ in range(4)]
    [1000, 1050, 1060, 2000]
    """

    __slots__ = ("_elapsed", "_now", "_then", "given", "last")

    def __init__(self, now: Callable[[], int], elapsed: Callable[[], int] = lambda: 0) -> None:
        self._now, self._elapsed = now, elapsed
        self.given: int | None = None
        self.last: int | None = None
        self._then = 0

    def __call__(self) -> Span:
        if self.given is not None:
            return self.given, self.given
        time, elapsed = self._now(), self._elapsed()
        if self.last is not None:
            time = max(time, self.last + max(1, elapsed - self._then))
        self.last, self._then = time, elapsed
        return time, time

    def go_on(self, last: int | None) -> None:
        """Go on where another process was, however the clock of this one is set."""
        self.last, self._then = last, self._elapsed()


def span_of(statements: Sequence[Statement], timing: Timing, times: TimeReader) -> tuple[Span, frozenset[str]] | None:
    """The interval of an element by the statements about it, and the predicates that gave it; None without one."""
    if len(statements) == 1 and not timing.starts:
        statement = statements[0]
        alone = timing.alone.get(statement.predicate)
        return None if alone is None else (_read(statement, times), alone)
    for start_predicate, end_predicate in zip(timing.starts, timing.ends, strict=True):
        start, end = _only(statements, start_predicate, times), _only(statements, end_predicate, times)
        if start and end:
            if start[0] > end[1]:
                raise StreamError("an element ends before it starts", line=_line(statements, end_predicate))
            return (start[0], end[1]), frozenset((start_predicate, end_predicate))
        if start or end:
            have, miss = (start_predicate, end_predicate) if start else (end_predicate, start_predicate)
            raise StreamError(
                f"an element has {have} but no {miss}",
                line=_line(statements, have),
                hint="give both bounds next to the element, or leave both out",
            )
    for predicate in timing.predicates:
        span = _only(statements, predicate, times)
        if span:
            return span, timing.alone[predicate]
    return None


def _only(statements: Sequence[Statement], predicate: str, times: TimeReader) -> Span | None:
    only: Span | None = None
    for statement in statements:
        if statement.predicate == predicate:
            span = _read(statement, times)
            if only is not None and only != span:
                raise StreamError(
                    f"an element has two different times by {predicate}",
                    line=statement.line,
                    hint="name the predicate that times the elements, or split the element",
                )
            only = span
    return only


def _read(statement: Statement, times: TimeReader) -> Span:
    try:
        return times.of_term(statement.object)
    except TimeError as error:
        reason = f"the value of {statement.predicate} is not a time: {error}"
        raise StreamError(reason, line=statement.line, hint=_time_hint(statement.object)) from None


def _time_hint(term: str) -> str:
    if is_iri(term):
        return "a time is a literal; OWL-Time nodes are not followed: name the predicate of the literal"
    return "write an xsd:dateTime (2016-03-01T13:00:00Z), a number, or an interval start/end"


def _line(statements: Sequence[Statement], predicate: str) -> int:
    return next((statement.line for statement in statements if statement.predicate == predicate), 0)
